// @ts-check
import { onContent } from "../../static/contents.js";
import { button, find } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { runPrompt } from "../../static/moves.js";

/** @param {HTMLElement} element */
export default function advice(element) {
  const line = find(element, ".advice");

  function show({ words, offer }) {
    element.hidden = !words;
    line.replaceChildren(words);
    if (!offer) return;
    const end = `${offer.length > 24 ? "…" : ""}${offer.slice(-24)}`;
    const use = () => runPrompt(offer, true);
    line.append(button(_("Use this prompt: {end}", { end }), use, { title: offer }));
  }

  element.hidden = true;
  onContent(element, show);
}
