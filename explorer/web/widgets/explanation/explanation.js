// @ts-check
import { pick } from "../../static/choosing.js";
import { onContent } from "../../static/contents.js";
import { countDraw, find } from "../../static/dom.js";
import { linkTo } from "../../static/links.js";
import { onState, state } from "../../static/state.js";

/** @param {HTMLElement} element */
export default function asked(element) {
  const button = find(element, ".asked"), told = find(element, ".clauses"), { field } = button.dataset;
  const isOpen = () => state[field] === "open";

  function show(clauses) {
    told.replaceChildren(...clauses.flatMap((clause) => [linkTo(clause.words, clause.look, clause.picture), " "]));
    countDraw(told);
  }

  function open() {
    button.ariaExpanded = String(isOpen());
    told.hidden = !isOpen();
  }

  button.addEventListener("click", () => pick({ [field]: isOpen() ? "closed" : "open" }));
  onState(element, open);
  onContent(element, show);
  open();
}
