// @ts-check
import { blockOf } from "../../static/contents.js";
import { find } from "../../static/dom.js";
import { toggleFold } from "../../static/fold.js";

/** @param {HTMLElement} element */
export default function fold(element) {
  const button = find(element, ".fold");
  button.addEventListener("click", () => {
    toggleFold(button);
    document.body.classList.toggle(`unfolded-${blockOf(element).id}`, button.ariaExpanded === "true");
  });
}
