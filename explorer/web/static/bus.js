// @ts-check
// The state in Gradio: the value of an invisible component, which generation starts from, and whose events have Gradio's
// controls follow.
import { keptBy, state } from "./state.js";

/** @typedef {import("./state.js").State} State */

/**
 * What Gradio gives the script of a component (layout.py).
 * @typedef {object} Gradio
 * @property {Record<string, any>} props
 * @property {(name: string, act: () => void) => void} watch calls `act` when Python has changed the prop
 * @property {Record<string, () => void>} emit its events
 */

/** Null until Gradio has built it. @type {{ sync: () => void, halt: () => void, localize: () => void, wake: () => void } | null} */
export let bus = null;
/** @type {(nothing?: any) => void} */
let tellReady;
/** Resolved once it is built. */
export const ready = new Promise((resolve) => { tellReady = resolve; });

/** @param {Gradio} gradio */
export default function connect({ props, emit }) {
  bus = /** @type {any} */ (emit);
  const write = () => { props.value = state; };
  keptBy(write);
  write();
  tellReady();
}
