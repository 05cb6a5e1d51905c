// @ts-check
import { onContent } from "../../static/contents.js";
import { find, make, span } from "../../static/dom.js";
import { _, inPieces } from "../../static/language.js";
import { tokenNodes } from "../../static/token_text.js";

/** @param {HTMLElement} element */
export default function brief(element) {
  const line = find(element, ".brief");
  line.addEventListener("click", () => find(document, "#prompt textarea").focus());
  onContent(element, (value) => {
    const values = {
      text: make("span", { className: "text", dir: "auto" }, value.text),
      next: span("next", ...tokenNodes(value.next)),
      probability: span("probability", value.probability),
    };
    // What is seen is the name, with words between that are only heard.
    const pieces = inPieces(_("{text}: next {next}, probability {probability}"), values);
    line.replaceChildren(...pieces.map((piece) => (typeof piece === "string" ? span("heard", piece) : piece)));
  });
}
