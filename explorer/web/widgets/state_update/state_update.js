// @ts-check
import { merge } from "../../static/writing.js";

/** @param {HTMLElement} element @param {import("../../static/contents.js").Gradio} gradio */
export default function stateUpdate(element, { props, watch }) {
  const follow = () => { if (props.value) merge(props.value); };
  watch("value", follow);
  follow();
}
