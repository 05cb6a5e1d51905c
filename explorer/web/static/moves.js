// @ts-check
// What a person has Python do: run a prompt, change the model, move among the continuations, of a text's beginning and of a
// second run (actions/page_actions.py).
import { act, allDone } from "./asking.js";
import { syncControls } from "./controls.js";
import { own } from "./history.js";
import { modelOf } from "./series.js";
import { state } from "./state.js";
import { halt, isWriting, setMaking, stop } from "./writing.js";

/**
 * Among the continuations, of the text's beginning, or of a second run.
 * @typedef {{ kind: "undo" | "step" } | { kind: "take", token: number } | { kind: "go" | "prune", path: number[] }
 *   | { kind: "compare", with: "unchanged" | "model" | "prompt", checkpoint?: string, text?: string }
 *   | { kind: "swap" | "copy" | "close" | "unpin" } | { kind: "pin", a: number, b: number }
 *   | { kind: "pair", pair: number } | { kind: "beginning" }
 *   | { kind: "lesson", lesson: string, step: number, reply: string, checkpoint?: string }
 *   | { kind: "place", words: Record<string, string> }} Move
 */

const told = new EventTarget();

/** What is being written ends; what is being done is, with what it leads to. */
const haltWriting = () => { if (isWriting()) halt(); };

/** Calls `listener` once Python has answered a move, with whether it was made. @param {(move: Move, isMade: boolean) => void} listener @param {AbortSignal} [signal] */
export const onMove = (listener, signal) => told.addEventListener("moved", (event) => listener(.../** @type {CustomEvent<[Move, boolean]>} */ (event).detail), { signal });

/** Makes a move, after those before it. What is being written stops. @param {Move} move */
export async function makeMove(move) {
  haltWriting();
  const isMade = await act(move, () => move.kind !== "undo" || state.generated.length > 0);
  told.dispatchEvent(new CustomEvent("moved", { detail: [move, isMade] }));
}

/** Runs a prompt, with the model that there is by then. @param {string} text @param {boolean} [isOffered] and not in its box yet */
export function runPrompt(text, isOffered = false) {
  haltWriting();
  if (isOffered) syncControls(text, {});
  act({ kind: "prompt", text });
}

/** Runs an example, with that model too. @param {string} text */
export function runExample(text) {
  haltWriting();
  syncControls(text, {});
  act({ kind: "example", text });
}

/** Runs the same prompt with another model, which may have been here before. @param {string} checkpoint */
export function changeModel(checkpoint) {
  haltWriting();
  const { value: text } = /** @type {HTMLTextAreaElement} */ (document.querySelector("#prompt textarea"));
  act({ kind: "model", text, checkpoint, own: own[modelOf(checkpoint)] ?? null });
}

/** The state that what is to be written begins with: what is seen, and before anything is what will be. The buttons
 * themselves have Gradio cancel what the others began: `halt` could cancel what now begins. */
export async function beginWriting() {
  await allDone();
  stop();
  setMaking(true);
  return state;
}
