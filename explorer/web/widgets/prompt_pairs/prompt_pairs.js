// @ts-check
import { find, findAll } from "../../static/dom.js";
import { makeMove } from "../../static/moves.js";
import { onState, state } from "../../static/state.js";

/** @param {HTMLElement} element */
export default function promptPairs(element) {
  const pairs = find(element, ".pairs"), mark = () => pairs.classList.toggle("first", !state["b.checkpoint"]);
  for (const button of findAll(element, "[data-pair]"))
    button.addEventListener("click", () => makeMove({ kind: "pair", pair: +button.dataset.pair }));
  mark();
  onState(element, mark);
}
