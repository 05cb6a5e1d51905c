// @ts-check
// Moves among the continuations, of a text's beginning and of a second run (tree_commands.py, second_run.py): Python answers each with the run it
// leads to.
import { bus } from "./bus.js";
import { own } from "./history.js";
import { modelOf } from "./series.js";
import { keptBy, state } from "./state.js";
import { merge, setMaking, stop } from "./writing.js";

/**
 * Among the continuations, of the text's beginning, or of a second run.
 * @typedef {{ kind: "undo" } | { kind: "take", token: number } | { kind: "go" | "prune", path: number[] }
 *   | { kind: "compare", with: "unchanged" | "model" | "prompt", checkpoint?: string, text?: string }
 *   | { kind: "swap" | "copy" | "close" | "unpin" } | { kind: "pin", a: number, b: number }
 *   | { kind: "pair", pair: number } | { kind: "beginning" }
 *   | { kind: "lesson", lesson: string, step: number, reply: string, checkpoint?: string }
 *   | { kind: "place", words: Record<string, string> }} Move
 */

/** Whether there is a state yet, which Gradio's first event brings. @type {Promise<void>} */
const opened = new Promise((resolve) => keptBy((now) => { if (now.checkpoint) resolve(); }));

/** @type {Move[]} */
const moves = []; // of which the first is being made
let moved = Promise.resolve(); // whether all are made
/** @type {(nothing?: any) => void} */
let tellMoved;
let movedFrom = ""; // the model before the first of them
let askedAt = 0; // the turn at which the first of them was
const told = new EventTarget();

/** Calls `listener` once Python has answered a move, with whether it was made. @param {(move: Move, isMade: boolean) => void} listener @param {AbortSignal} [signal] */
export const onMove = (listener, signal) => told.addEventListener("moved", (event) => listener(.../** @type {CustomEvent<[Move, boolean]>} */ (event).detail), { signal });

/** Makes a move, after those before it. What is being written stops. @param {Move} move */
export function makeMove(move) {
  if (moves.push(move) > 1) return;
  stop();
  movedFrom = state.checkpoint;
  moved = new Promise((resolve) => { tellMoved = resolve; });
  send(move);
}

/** @param {Move} move */
function send(move) {
  askedAt = state.turn;
  bus.move({ ...state, move });
}

/** Python has answered the first of the moves; the next is made of the run it led to. @param {any} update */
export function onMoved(update) {
  const turn = update?.change?.turn;
  if (turn > state.turn) merge(update);
  const isMade = turn > askedAt && turn >= state.turn; // or else it was refused, or comes too late
  const isStep = isMade && ["lesson", "place"].includes(moves[0]?.kind); // of which Gradio's own widgets show settings and tab, too
  if (state.checkpoint !== movedFrom || isStep) bus.follow(); // A is what B was: they show another model
  if (isStep) bus.open();
  movedFrom = state.checkpoint;
  told.dispatchEvent(new CustomEvent("moved", { detail: [moves.shift(), isMade] }));
  while (moves[0]?.kind === "undo" && !state.generated.length) moves.shift(); // there was no more to be undone
  if (moves.length) send(moves[0]);
  else tellMoved();
}

/** The state that what is to be written, or run, begins with: what is seen, and before anything is what will be. */
export async function begin() {
  await opened;
  await moved;
  stop();
  return state;
}

/** The same for what is to be written, which is being written from then on. */
export async function beginWriting() {
  const begun = await begin();
  setMaking(true);
  return begun;
}

/** The same for another model, which may have been here before. @param {string} checkpoint */
export async function beginWith(checkpoint) {
  return { ...await begin(), own: own[modelOf(checkpoint)] ?? null };
}
