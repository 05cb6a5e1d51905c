// @ts-check
// The page's one way to ask Python. One question at a time, about the state as it then is, so that no answer is overtaken
// by an older one; actions, such as running a prompt, are done one after another. An answer comes in parts, those in sight
// first; what is left of it is not waited for once something newer is asked.
import { answerLines, isLost, onReturn, Refused } from "./connection.js";
import { give } from "./contents.js";
import { syncControls } from "./controls.js";
import { notify, tellWaiting } from "./notices.js";
import { outdate, questions } from "./old_pictures.js";
import { ABOUT, PROBLEM } from "./protocol.js";
import { setState, state, tellLater, tellState } from "./state.js";
import { applyChange } from "./writing.js";

/** What is done to the state (actions/page_actions.py). @typedef {{ kind: string } & Record<string, any>} Action */

let wanted = -1; // the most important question since the last was sent, by its place in ABOUT
/** @type {{ action: Action, resolve: (isDone: boolean) => void, isWanted: () => boolean }[]} */
const actions = []; // of which the first is being done
/** @type {{ picture: string, point: Record<string, any>, tell: (words: string) => void } | null} */
let clicked = null; // a point that the next question is about, too
let done = Promise.resolve(); // all of them
/** @type {{ hasBegun: boolean, abort: () => void } | null} */
let waiting = null; // for an answer
let version = ""; // of the model's files that what is on show was computed with
let isReady = false;

/** From now on there are widgets to show what was asked before. */
export function beginAsking() {
  isReady = true;
  askAll();
}

/** @param {string} question of `ABOUT` */
export function ask(question) {
  wanted = Math.max(wanted, ABOUT.indexOf(question));
  queueMicrotask(outdate(question, state.view)); // once it is asked, which nothing is to hold up
  askAll();
}

/**
 * Has Python do something to the state, and answer with all that follows.
 * @param {Action} action
 * @param {() => boolean} [isWanted] whether it is still to be done, asked when its turn comes
 * @returns {Promise<boolean>} whether it was done
 */
export function act(action, isWanted = () => true) {
  const acted = /** @type {Promise<boolean>} */ (new Promise((resolve) => { actions.push({ action, resolve, isWanted }); }));
  done = done.then(() => acted).then(() => {});
  askAll();
  return acted;
}

/**
 * How the number at a clicked point comes about: asked with what the click chooses, which is to be chosen next.
 * @param {string} picture
 * @param {Record<string, any>} point
 * @returns {Promise<string>} "" where nobody tells
 */
export function inspect(picture, point) {
  clicked?.tell("");
  const told = /** @type {Promise<string>} */ (new Promise((tell) => { clicked = { picture, point, tell }; }));
  queueMicrotask(() => { if (clicked) ask("tune"); }); // or else it chooses nothing
  return told;
}

/** Resolved once every action is done. */
export const allDone = () => done;

/** Whether an answer is on its way. */
export const isAsking = () => waiting !== null;

/** Whether anything is to be asked, or on its way. */
export const isBusy = () => isAsking() || actions.length > 0;

onReturn(() => { if (state.checkpoint) ask("show"); });

async function askAll() {
  if (waiting?.hasBegun) waiting.abort();
  if (waiting || !isReady) return;
  while (!isLost && (actions.length || (wanted >= 0 && state.checkpoint))) {
    const next = actions[0];
    if (next && !next.isWanted()) end(false);
    else if (next) end(await answered(ABOUT.length - 1, next.action));
    else await answered(wanted);
  }
  while (isLost && actions.length) end(false);
}

/** The first action has ended. @param {boolean} isDone */
const end = (isDone) => actions.shift().resolve(isDone);

/** Asks, and shows what comes. @param {number} about by its place in ABOUT @param {Action} [action] @returns {Promise<boolean>} whether the action was done */
async function answered(about, action) {
  const unwanted = new AbortController(), before = wanted, { tell, ...inspected } = clicked ?? {};
  let isDone = !action, isWhole = false, number = questions;
  const isNewer = () => wanted >= 0 || actions.length > (action ? 1 : 0);
  waiting = { hasBegun: false, abort: () => unwanted.abort() };
  setBusy(true);
  wanted = -1;
  clicked = null;
  try {
    for await (const line of answerLines({ about: ABOUT[about], state: { ...state, version }, ...(action && { action }), ...(tell && { inspect: inspected }) }, unwanted.signal)) {
      tellWaiting(line.waiting ?? null);
      line.notices?.forEach(notify);
      if (line.change) isDone = line.done && applyChange(line.change);
      if (line.change && isDone) {
        outdate("show", state.view)();
        number = questions;
        syncControls(line.prompt, line.change);
      }
      if ("inspection" in line) tell?.(line.inspection);
      if (!line.contents || !isDone) continue;
      waiting.hasBegun = true;
      version = line.version ?? version;
      if (line.vocab_size) syncControls(null, { vocab_size: line.vocab_size });
      for (const [id, content] of Object.entries(line.contents)) give(id, content, number);
      tellState();
      if (isNewer()) break;
    }
    isWhole = !isNewer();
  } catch (error) {
    isWhole = error.name !== "AbortError";
    if (error instanceof Refused) give(PROBLEM, error.message);
  }
  tell?.("");
  tellWaiting(null);
  if (!isDone) {
    wanted = Math.max(wanted, before);
    tellLater(); // what was chosen is not so
    tellState();
  } else if (!isWhole) wanted = Math.max(wanted, about); // its rest is asked for with what is newer
  waiting = null;
  setBusy(false);
  return isDone;
}

function setBusy(is) { document.querySelector("#view")?.setAttribute("aria-busy", is); }
