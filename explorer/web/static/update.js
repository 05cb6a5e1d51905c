// @ts-check
// What Gradio's generation writes: changes of the state.
import { merge } from "./writing.js";

/** @param {import("./bus.js").Gradio} gradio */
export default function connect({ props, watch }) {
  watch("value", () => { if (props.value) merge(props.value); });
}
