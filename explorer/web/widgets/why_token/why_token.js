// @ts-check
import { pick } from "../../static/choosing.js";
import { onContent } from "../../static/contents.js";
import { countDraw, find } from "../../static/dom.js";
import { linkTo } from "../../static/links.js";
import { onState, state } from "../../static/state.js";

/** @param {HTMLElement} element */
export default function whyToken(element) {
  const asked = find(element, ".asked"), told = find(element, ".clauses");
  const isOpen = () => state.why === "open";

  function show(clauses) {
    told.replaceChildren(...clauses.flatMap((clause) => [linkTo(clause.words, clause.look, clause.picture), " "]));
    countDraw(told);
  }

  function open() {
    asked.ariaExpanded = String(isOpen());
    told.hidden = !isOpen();
  }

  asked.addEventListener("click", () => pick({ why: isOpen() ? "closed" : "open" }));
  onState(element, open);
  onContent(element, show);
  open();
}
