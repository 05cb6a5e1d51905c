// @ts-check
// The state in Gradio: the value of an invisible widget, which generation starts from, and whose events have Gradio's
// controls follow.
import { keptBy, state } from "./state.js";

/** @typedef {import("./state.js").State} State */

/**
 * @typedef {object} Bus
 * @property {(state: State) => void} write
 * @property {() => void} open the tab that the state names
 * @property {() => void} sync Gradio's controls follow the state
 * @property {() => void} halt what is being written ends
 * @property {() => void} wake Gradio opens its stream of answers
 */

/** Null until Gradio has built the widget. @type {Bus | null} */
export let bus = null;

keptBy(() => bus?.write(state));

/** @param {Bus} built */
export function connectBus(built) {
  bus = built;
  bus.write(state);
}
