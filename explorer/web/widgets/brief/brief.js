// @ts-check
import { onContent } from "../../static/contents.js";
import { find } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { tokenNodes } from "../../static/token_text.js";

/** @param {HTMLElement} element */
export default function brief(element) {
  const line = find(element, ".brief"), [text, next, probability] = line.children;
  line.addEventListener("click", () => find(document, "#prompt textarea").focus());
  onContent(element, (value) => {
    text.textContent = value.text;
    next.replaceChildren(...tokenNodes(value.next));
    probability.textContent = value.probability;
    line.ariaLabel = _("{text}: next {next}, probability {probability}; to the prompt", value);
  });
}
