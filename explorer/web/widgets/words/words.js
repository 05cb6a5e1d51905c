// @ts-check
import { onContent } from "../../static/contents.js";

/** @param {HTMLElement} element @param {import("../../static/contents.js").Gradio} gradio */
export default function words(element, { props, watch }) {
  const write = (text) => {
    element.firstElementChild.textContent = text || "";
    element.hidden = !text;
  };
  watch("value", () => write(props.value));
  write(props.value);
  onContent(element, write);
}
