// @ts-check
import { onContent } from "../../static/contents.js";
import { say } from "../../static/dom.js";

/** @param {HTMLElement} element @param {import("../../static/contents.js").Gradio} gradio */
export default function words(element, { props, watch }) {
  const write = (text) => {
    say(element.firstElementChild, text || ""); // or else what is marked in it would be lost
    element.hidden = !text;
  };
  watch("value", () => write(props.value));
  write(props.value);
  onContent(element, write);
}
