// @ts-check
import { onContent } from "../../static/contents.js";
import { find } from "../../static/dom.js";
import { linkTo } from "../../static/links.js";

/** @param {HTMLElement} element */
export default function inFull(element) {
  onContent(element, (content) => {
    find(element, ".in-full").replaceChildren(...(content ? [linkTo(`${content.words} →`, content.look)] : []));
  });
}
