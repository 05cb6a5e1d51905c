// @ts-check
import { find } from "../../static/dom.js";
import { startWalk } from "../../static/walks.js";

/** @param {HTMLElement} element */
export default function walkButton(element) {
  const open = find(element, ".walks");
  open.addEventListener("click", () => startWalk(JSON.parse(open.dataset.walk)));
}
