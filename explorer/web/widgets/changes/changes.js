// @ts-check
import { edits, setEdits } from "../../static/choosing.js";
import { onContent } from "../../static/contents.js";
import { button, find } from "../../static/dom.js";
import { _, inPieces } from "../../static/language.js";

/** @param {HTMLElement} element */
export default function changes(element) {
  const box = find(element, ".changes");
  const takeBack = (text, label, left) => button(text, () => setEdits(left()), { ariaLabel: label });
  element.hidden = true;
  onContent(element, (made) => {
    element.hidden = !made.length;
    const buttons = made.map(([edit, words]) =>
      takeBack(`${words} ✕`, _("take back: {words}", { words }), () => edits().filter((other) => other !== edit)));
    if (made.length > 1) buttons.push(takeBack(_("take all back"), _("take all back"), () => []));
    const told = _("The model is changed, and all you see follows: {changes}");
    box.replaceChildren(...inPieces(told, { changes: buttons }));
  });
}
