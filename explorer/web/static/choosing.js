// @ts-check
// What a person chooses: it is shown at once, then Python is asked for what follows from it.
import { ask } from "./asking.js";
import { bus } from "./bus.js";
import { modeOf, openedIn } from "./mode.js";
import { setState, state } from "./state.js";
import { stop } from "./writing.js";

/** Something of the selection, in another tab perhaps. @param {import("./state.js").State} change */
export function pick(change) {
  const before = state.view, view = change.view ?? before, isOpen = openedIn(modeOf(view)) === view;
  setState(change);
  if (view === before) return ask("pick");
  if (!isOpen) bus.open();
  ask("show");
}

/** Which of two runs all pictures show, those that follow no selection too. @param {string} shown */
export function show(shown) {
  setState({ shown });
  ask("view");
}

/** Settings that the next token's distribution follows. @param {import("./state.js").State} change */
export function tune(change) {
  setState(change);
  ask("tune");
}

/** A tab, which Gradio has opened. @param {string} view */
export function openView(view) {
  if (!state.checkpoint || view === state.view) return; // Gradio also names the first tab, before anything runs
  if (modeOf(view) !== modeOf(state.view)) return; // and one that was asked for and is no longer seen
  setState({ view });
  ask("show");
}

/**
 * Another step of the training of the run's model, or of the second run's. All steps share a tokenizer, so text, selection
 * and continuations go along.
 * @param {string} checkpoint
 * @param {"checkpoint" | "b.checkpoint"} [of]
 */
export function chooseStep(checkpoint, of = "checkpoint") {
  if (state[of] === checkpoint) return;
  stop(); // what is being written would bring the step before back
  bus.halt();
  setState({ [of]: checkpoint });
  ask("show");
}

/** The changes to the model's computation, as texts (state/interventions). @returns {string[]} */
export const edits = () => (state.edits ? state.edits.split("~") : []);

/**
 * A run takes one value of the other one, in place of those that it took before; none where it takes that already.
 * @param {"edits" | "b.edits"} run which of the two
 * @param {string} patch
 * @param {import("./state.js").State} change of the selection with it
 */
export function setPatch(run, patch, change) {
  const before = (state[run] ?? "").split("~").filter(Boolean), others = before.filter((edit) => !edit.endsWith("*patch"));
  stop();
  bus.halt();
  setState({ ...change, [run]: (before.includes(patch) ? others : [...others, patch]).join("~") });
  ask("show");
}

/** Other changes to it. What is being written under the ones before ends. @param {string[]} changed */
export function setEdits(changed) {
  stop();
  bus.halt();
  setState({ edits: changed.join("~") });
  ask("show");
}
