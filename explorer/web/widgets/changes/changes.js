// @ts-check
import { edits, setEdits } from "../../static/choosing.js";
import { onContent } from "../../static/contents.js";
import { button, find, span } from "../../static/dom.js";
import { _, inPieces } from "../../static/language.js";

/** @param {HTMLElement} element */
export default function changes(element) {
  const box = find(element, ".changes");
  const takeBack = (of, text, label, left) => button(text, () => setEdits(left(), of), { ariaLabel: label });

  /** @param {import("../../static/choosing.js").Edits} of @param {[string, string][]} made */
  function listed(of, made) {
    const buttons = made.map(([edit, words]) =>
      takeBack(of, `${words} ✕`, _("take back: {words}", { words }), () => edits(of).filter((other) => other !== edit)));
    if (made.length > 1) buttons.push(takeBack(of, _("take all back"), _("take all back"), () => []));
    const told = of === "edits" ? _("The model is changed, and all you see follows: {changes}") : _("B is changed: {changes}");
    return made.length ? [span("of", ...inPieces(told, { changes: buttons }))] : [];
  }

  element.hidden = true;
  onContent(element, (made) => {
    element.hidden = !Object.values(made).some((each) => each.length);
    box.replaceChildren(...listed("edits", made.edits), ...listed("b.edits", made["b.edits"] ?? []));
  });
}
