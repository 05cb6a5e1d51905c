// @ts-check
import { pick } from "../../static/choosing.js";
import { onContent } from "../../static/contents.js";
import { countDraw, find, make } from "../../static/dom.js";
import { addressOf } from "../../static/history.js";
import { reveal } from "../../static/reveal.js";
import { onState, state } from "../../static/state.js";

/** @param {HTMLElement} element */
export default function whyToken(element) {
  const asked = find(element, ".asked"), told = find(element, ".clauses");
  const isOpen = () => state.why === "open";

  function show(clauses) {
    told.replaceChildren(...clauses.flatMap((clause) => [link(clause), " "]));
    countDraw(told);
  }

  function link({ words, look, picture }) {
    const made = make("a", { href: addressOf({ ...state, ...look }, location.href).href }, words);
    made.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // the address in another tab or window
      event.preventDefault();
      pick(look);
      reveal(picture);
    });
    return made;
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
