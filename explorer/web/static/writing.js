// @ts-check
// Text as it is written: while tokens stream in the prediction alone follows; once they stop coming, for whatever reason,
// all pictures do.
import { ask, isAsking } from "./asking.js";
import { bus } from "./bus.js";
import { isLost, look } from "./connection.js";
import { syncControls } from "./controls.js";
import { notify } from "./notices.js";
import { paced } from "./pace.js";
import { forgetTyped, setWriting } from "./reload.js";
import { setState, state, tellLater, tellState } from "./state.js";

const LOOK_MS = 2000; // between two looks whether the server is still there
const QUIET_MS = 300; // without another token until it is taken that they stopped coming
let written = null; // what Python has written so far, of which the first tokens are shown
let silence = null, looking = null;
let isMaking = false, isComing = false; // whether Python writes; whether tokens of it are still to be shown
let isHeard = false; // whether anything of it has come
const pace = paced(showTokens, () => isAsking() || isLost);

/** Whether something is being written, which can be stopped. */
export const isWriting = () => isMaking || isComing;

/** Python begins to write, or has ended. @param {boolean} now */
export function setMaking(now) {
  isMaking = now;
  clearInterval(looking);
  isHeard = false;
  if (now) looking = setInterval(() => { // what Gradio streams says nothing where it breaks off
    look();
    // Gradio 6.31 closes its stream once nothing more is due, and does not open it for what is asked before it has read so.
    if (!isHeard && !isLost) bus?.wake();
  }, LOOK_MS);
  tellLater();
  tellState();
}

/** @param {boolean} now */
function setComing(now) {
  isComing = now;
  setWriting(now);
}

/** The change that shows the first `count` tokens of what is written. */
export function changeTo({ change, steps }, count) {
  const generated = change.generated.slice(0, change.generated.length - steps.length + count), query = steps[count - 1];
  return { ...change, generated, query, key: Math.max(0, query - 1) };
}

function showTokens(count, isLast) {
  clearTimeout(silence);
  setState(changeTo(written, count), false); // what is said of a new token is as it is drawn
  setComing(!isLast);
  ask(isLast ? "show" : "token");
  if (!isLast && count === written.steps.length) silence = setTimeout(() => ask("show"), QUIET_MS);
}

/**
 * Python's change of the state while it writes, and what to ask then.
 * @param {object} update
 * @param {import("./state.js").State} [update.change]
 * @param {string} [update.ask]
 * @param {number[]} [update.steps] the place of each token that was written: they are shown one by one
 * @param {string[]} [update.notices]
 */
export function merge({ change, ask: question, steps, notices }) {
  isHeard = true;
  notices?.forEach(notify);
  if (!change || !applyChange(change, Boolean(steps))) return;
  if ("seed" in change) syncControls(null, change);
  if (!steps) return ask(question);
  written = { change, steps };
  pace.play(steps.length, question === "show");
}

/**
 * Python's change of the state is made, or is only known of where tokens of it are still to be shown.
 * @param {import("./state.js").State} change
 * @param {boolean} [isComing]
 * @returns {boolean} whether it still applies
 */
export function applyChange(change, isComing = false) {
  if (change.turn < state.turn) return false; // of what has been stopped since
  if (change.turn > state.turn) pace.drop();
  if (state.prompt && change.prompt) { // or else the page has just been loaded, and what was before is still told
    setComing(isComing);
    if (String(change.prompt) !== String(state.prompt)) forgetTyped();
  }
  clearTimeout(silence);
  if (!isComing) setState(change, false);
  return true;
}

/** What is being written ends, and its writer is told. */
export function halt() {
  if (isWriting()) bus?.halt();
  stop();
}

/** What is being written ends with what is seen: all that is on its way comes too late. */
export function stop() {
  if (!state.checkpoint) return;
  const playing = pace.drop();
  clearTimeout(silence);
  setMaking(false);
  setComing(false);
  setState({ turn: state.turn + 2 });
  if (playing) ask("show");
}

/** What was written and not shown yet never is, and nothing more is written. */
export function dropUnseen() {
  pace.drop();
  clearTimeout(silence);
  setMaking(false);
  setComing(false);
}
