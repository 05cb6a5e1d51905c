// @ts-check
// What there is to go through on the stage, page by page.
import { CHOOSERS, NEXT_TOKEN, SERIES, WHAT_IFS } from "../../static/protocol.js";

/** Where a page of a step is, of what there is of it. @typedef {"before" | "question" | "answer" | "after"} PageOfStep */

/**
 * The pages of a lesson's step, each short enough for a screen: its words, its question, the truth, and what follows.
 * @param {Record<string, any>} told the step, as Python tells it
 * @returns {PageOfStep[]}
 */
export function pagesOf({ before, question, after, task, missing, problem }) {
  if (missing || problem) return ["question"];
  if (task) return task.is_done ? ["before", "after"] : ["before"];
  const isAsked = question && !question.is_example;
  const pages = /** @type {PageOfStep[]} */ ([before?.length && "before", question && "question", isAsked && "answer", after?.length && "after"].filter(Boolean));
  return pages.length ? pages : ["before"];
}

/**
 * The page that a step is at once Python has told it anew: the truth where there is a reply now.
 * @param {PageOfStep} page
 * @param {Record<string, any>} before @param {Record<string, any>} now
 * @returns {PageOfStep}
 */
export function pageAfter(page, before, now) {
  if (!before.judged && now.judged) return "answer";
  if (!before.task?.is_done && now.task?.is_done) return "after";
  if (before.judged && !now.judged && page !== "before") return "question";
  return page;
}

/** What is shown of what a step points out: of settings, what they make; nothing of controls that change what is elsewhere. @param {string} target */
export const pictureOf = (target) => (target === "generation" ? NEXT_TOKEN : CONTROLS.test(target) ? "" : target);

const CONTROLS = new RegExp(`^(${SERIES}|.*-(${WHAT_IFS}|${CHOOSERS}))$`);

/** Whether the picture that a step points out may be seen: it is not what would tell the answer. @param {Record<string, any>} told */
export const isShown = ({ target, hides, missing }) => Boolean(target) && !missing && !hides?.ids.includes(target);

/**
 * Where a key leads on the stage; null where it is none of the stage's.
 * @param {string} key
 * @returns {"next" | "back" | "black" | "leave" | "notes" | null}
 */
export const meaningOf = (key) => KEYS[key] ?? KEYS[key.toLowerCase()] ?? null;

/** @type {Record<string, "next" | "back" | "black" | "leave" | "notes">} */
const KEYS = {
  ArrowRight: "next", ArrowDown: "next", PageDown: "next", " ": "next", // the last two are those of a presenter's remote
  ArrowLeft: "back", ArrowUp: "back", PageUp: "back",
  b: "black", ".": "black", n: "notes", p: "leave", Escape: "leave",
};
