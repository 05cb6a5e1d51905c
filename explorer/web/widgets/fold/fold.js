// @ts-check
import { find } from "../../static/dom.js";
import { toggleFold } from "../../static/fold.js";

/** @param {HTMLElement} element */
export default function fold(element) {
  const button = find(element, ".fold");
  button.addEventListener("click", () => toggleFold(button));
}
