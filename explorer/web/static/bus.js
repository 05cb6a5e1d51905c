// @ts-check
// The state in Gradio: the value of an invisible widget, whose events have Python do more than answer.
import { keptBy, state } from "./state.js";

/** @typedef {import("./state.js").State} State */

/**
 * @typedef {object} Bus
 * @property {(state: State) => void} write
 * @property {() => void} open the tab that the state names
 * @property {() => void} follow all of Gradio's own widgets do so
 * @property {(state: State) => void} move makes the `move` in the state
 * @property {() => void} halt what is being written ends
 */

/** Null until Gradio has built the widget. @type {Bus | null} */
export let bus = null;

keptBy(() => bus?.write(state));

/** @param {Bus} built */
export function connectBus(built) {
  bus = built;
  bus.write(state);
}
