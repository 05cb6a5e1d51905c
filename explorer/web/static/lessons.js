// @ts-check
// Going about in a lesson: its step and the visitor's reply are the state's; where each lesson was left, with the replies
// given, the browser keeps, so that nobody needs an account.
import { tune } from "./choosing.js";
import { makeMove } from "./moves.js";
import { keptBy, setState, state } from "./state.js";

const KEPT = "explorer:lessons"; // its place in the browser's storage

const told = new EventTarget();
/** @type {Record<string, any> | null} */
let step = null;

/** The step that Python told last; null outside of a lesson. */
export const lessonTold = () => (state.lesson ? step : null);

/** Has whoever follows the lesson know what Python told of a step. @param {Record<string, any>} now */
export function tellLesson(now) {
  step = now;
  told.dispatchEvent(new Event("told"));
}

/** Calls `listener` with every step that Python tells, or tells anew. @param {(now: Record<string, any>) => void} listener @param {AbortSignal} [signal] */
export const onLessonTold = (listener, signal) => told.addEventListener("told", () => listener(step), { signal });

/** Where a lesson was left: the step, and each step's reply. @typedef {{ step: number, replies: Record<string, string> }} Left */

/** All that were begun, by their names. @returns {Record<string, Left>} */
export function leftAt() {
  try { return JSON.parse(localStorage.getItem(KEPT)) ?? {}; } catch { return {}; } // not every frame has a storage
}

/** Has the browser keep where the visitor is. */
export function keepPlaces() {
  keptBy((now, before) => {
    if (!now.lesson || ["lesson", "step", "reply"].every((name) => now[name] === before[name])) return;
    const all = leftAt(), one = (all[now.lesson] ??= { step: 1, replies: {} });
    one.step = now.step;
    const reply = replyTo(now.step, now.reply);
    if (reply) one.replies[now.step] = now.reply;
    try { localStorage.setItem(KEPT, JSON.stringify(all)); } catch { /* for this visit, then */ }
  });
}

/** The reply to a step; null where what is given is none to it. @param {number} step @param {string | undefined} reply */
export const replyTo = (step, reply) => (reply?.startsWith(`${step}:`) ? reply.slice(`${step}:`.length) : null);

/**
 * Goes to a step of a lesson, with the reply that was given there before.
 * @param {string} lesson
 * @param {number} step
 * @param {string} [checkpoint] taken in the place of a model that is not here
 */
export function goToStep(lesson, step, checkpoint) {
  const reply = leftAt()[lesson]?.replies[step] ?? "";
  makeMove({ kind: "lesson", lesson, step, reply, ...(checkpoint ? { checkpoint } : {}) });
}

/** Replies to the step's question. @param {string} reply */
export const replyWith = (reply) => tune({ reply: `${state.step}:${reply}` });

/** Asks for the truth without a reply. */
export const showAnyway = () => replyWith("?");

/** Forgets the reply, so that the question is asked again. */
export function askAgain() {
  const all = leftAt();
  delete all[state.lesson]?.replies[state.step];
  try { localStorage.setItem(KEPT, JSON.stringify(all)); } catch { /* it is asked again in this visit */ }
  tune({ reply: "" });
}

/** Leaves the lesson; the page stays as it is. */
export const leaveLesson = () => setState({ lesson: "", step: 0, reply: "" });
