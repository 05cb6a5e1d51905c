// @ts-check
import { findAll } from "../../static/dom.js";
import { makeMove } from "../../static/moves.js";

/** @param {HTMLElement} element */
export default function promptPairs(element) {
  for (const button of findAll(element, "[data-pair]"))
    button.addEventListener("click", () => makeMove({ kind: "pair", pair: +button.dataset.pair }));
}
