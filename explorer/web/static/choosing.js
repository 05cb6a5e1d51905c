// @ts-check
// What a person chooses: it is shown at once, then Python is asked for what follows from it.
import { ask } from "./asking.js";
import { modeOf } from "./mode.js";
import { WHOLE } from "./protocol.js";
import { setState, state } from "./state.js";
import { halt } from "./writing.js";

/** Something of the selection, in another tab perhaps. @param {import("./state.js").State} change */
export function pick(change) {
  if (!state.checkpoint) return; // nothing runs yet: what runs first brings what is chosen of it
  const before = state.view, view = change.view ?? before;
  setState(change);
  if (view === before) return ask("pick");
  askForView(before);
}

/** Asks for the tab that the state names. The simple page shows one run and the full one two: from one to the other all is
 * another that stands around the tabs. @param {string} before the tab that was open */
export function askForView(before) {
  ask(state["b.checkpoint"] && modeOf(before) !== modeOf(state.view) ? "show" : "view");
}

/** Which of two runs all pictures show, those that follow no selection too. @param {string} shown */
export function show(shown) {
  setState({ shown });
  ask("view");
}

/** Settings that the next token's distribution follows. Of a box that is empty, as while another number is typed, what it
 * had is kept; of one for whole numbers what is before the point. @param {import("./state.js").State} change */
export function tune(change) {
  const told = Object.entries(change).filter(([_name, value]) => value !== null);
  const read = told.map(([name, value]) => [name, WHOLE.includes(name) ? Math.trunc(value) : value]);
  const others = read.filter(([name, value]) => state[name] !== value); // a slider that is left says its value again
  if (!others.length) return;
  setState(Object.fromEntries(others));
  ask("tune");
}

/**
 * Another step of the training of the run's model, or of the second run's. All steps share a tokenizer, so text, selection
 * and continuations go along.
 * @param {string} checkpoint
 * @param {"checkpoint" | "b.checkpoint"} [of]
 */
export function chooseStep(checkpoint, of = "checkpoint") {
  if (state[of] === checkpoint) return;
  halt(); // what is being written would bring the step before back
  setState({ [of]: checkpoint });
  ask("show");
}

/** @typedef {"edits" | "b.edits"} Edits which run's: the run's or the second one's */

/** The changes to a model's computation, as texts (state/interventions). @param {Edits} [of] @returns {string[]} */
export const edits = (of = "edits") => (state[of] ? state[of].split("~") : []);

/**
 * Other changes to it. What is being written under the ones before ends.
 * @param {string[]} changed
 * @param {Edits} [of]
 * @param {import("./state.js").State} [change] of the selection with them
 */
export function setEdits(changed, of = "edits", change = {}) {
  halt();
  setState({ ...change, [of]: changed.join("~") });
  ask("show");
}

/**
 * One change more; none where it is there already.
 * @param {string} edit
 * @param {{ of: Edits, adds: boolean }} how `adds`: beside all others, and not in place of those of its kind
 * @param {import("./state.js").State} [change]
 */
export function toggleEdit(edit, { of, adds }, change) {
  const before = edits(of), kind = edit.slice(edit.lastIndexOf("*"));
  const others = before.filter((other) => (adds ? other !== edit : !other.endsWith(kind)));
  setEdits(before.includes(edit) ? others : [...others, edit], of, change);
}
