// @ts-check
// One question to Python at a time, about the state as it then is, so that no answer is overtaken by an older one. The
// next is on its way while an answer is drawn; what is left of an answer is not waited for once something newer is asked.
import { bus } from "./bus.js";
import { call, isLost, onReturn, Refused } from "./connection.js";
import { give } from "./contents.js";
import { find } from "./dom.js";
import { outdate, questions } from "./old_pictures.js";
import { ABOUT, PROBLEM } from "./protocol.js";
import { state, tellState } from "./state.js";

/**
 * A question, by its place in `ABOUT`; the part of the answer, and the number of the last question that it answers.
 * @typedef {{ about: number, part: number, number: number }} Asked
 */

let wanted = -1; // the most important question since the last was sent, by its place in ABOUT
let waiting = null; // for which part of an answer, and what ends that
let version = ""; // of the model's files that what is on show was computed with

/** @param {string} [question] of `ABOUT`; or what was asked before there was anybody to ask */
export async function ask(question) {
  wanted = Math.max(wanted, ABOUT.indexOf(question));
  const mark = question && outdate(question, state.view);
  if (mark) queueMicrotask(mark); // once it is asked, which nothing is to hold up
  if (waiting?.part) waiting.abort();
  if (waiting || !bus) return;
  let asked = next(null, false), coming = asked && send(asked);
  setBusy(true);
  while (asked) {
    const answer = await answered(coming), { number } = asked;
    version = answer.version ?? version;
    wanted = Math.max(wanted, ABOUT.indexOf(answer.ask)); // the model was written anew: all of it has changed
    asked = next(asked, answer.more);
    coming = asked && send(asked);
    for (const [id, content] of Object.entries(answer.contents)) give(id, content, number);
    tellState();
  }
  waiting = null;
  setBusy(false);
}

/** Whether an answer is on its way. */
export const isAsking = () => waiting !== null;

onReturn(() => ask("show"));

function setBusy(is) { find(document, "#views")?.setAttribute("aria-busy", is); }

function send({ about, part }) {
  const unwanted = new AbortController();
  waiting = { part, abort: () => unwanted.abort() };
  return call("answer", [ABOUT[about], { ...state, version }, part], unwanted.signal);
}

// What came, or in its place the sentence that says why nothing did. Nobody's answer is asked for again (`onReturn`).
async function answered(coming) {
  try { return await coming; } catch (error) {
    if (error.name === "AbortError") return { contents: {}, more: true };
    return { contents: error instanceof Refused ? { [PROBLEM]: error.message } : {}, more: false };
  }
}

function next(asked, more) {
  if (isLost) return null;
  const following = questionAfter(asked, more, wanted, questions);
  wanted = -1;
  return following;
}

/**
 * The newest question, with what is left of the one before; or else the rest of that; or null.
 * @param {Asked | null} asked
 * @param {boolean} more whether there is a rest
 * @param {number} wanted place in `ABOUT`, -1 for none
 * @param {number} number of the last question
 * @returns {Asked | null}
 */
export function questionAfter(asked, more, wanted, number) {
  if (wanted < 0) return more ? { ...asked, part: asked.part + 1 } : null;
  return { about: more ? Math.max(wanted, asked.about) : wanted, part: 0, number };
}
