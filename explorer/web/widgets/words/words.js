// @ts-check
import { onContent } from "../../static/contents.js";
import { find, say } from "../../static/dom.js";

/** @param {HTMLElement} element */
export default function words(element) {
  const text = find(element, ".prose, .formula");
  const write = (content) => {
    say(text, content || ""); // or else what is marked in it would be lost
    element.hidden = !content;
  };
  text.addEventListener("click", () => { if (getSelection()?.isCollapsed) text.classList.toggle("whole"); }); // of which one line is seen
  element.hidden = !text.textContent;
  onContent(element, write);
}
