// @ts-check
import { onContent } from "../../static/contents.js";
import { button, find } from "../../static/dom.js";
import { _ } from "../../static/language.js";

/** @param {HTMLElement} element @param {import("../../static/contents.js").Gradio} gradio */
export default function advice(element, { props, emit }) {
  const line = find(element, ".advice");

  function show({ words, offer }) {
    element.hidden = !words;
    line.replaceChildren(words);
    if (!offer) return;
    const end = `${offer.length > 24 ? "…" : ""}${offer.slice(-24)}`;
    const use = () => { props.value = offer; emit.apply(); };
    line.append(button(_("Use this prompt: {end}", { end }), use, { title: offer }));
  }

  element.hidden = true;
  onContent(element, show);
}
