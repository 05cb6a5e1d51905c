// @ts-check
import { pick } from "../../static/choosing.js";
import { onContent } from "../../static/contents.js";
import { button, find } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { reveal } from "../../static/reveal.js";

/** @param {HTMLElement} element @param {import("../../static/contents.js").Gradio} gradio */
export default function coach(element, { props, emit }) {
  const line = find(element, ".coach");

  function show({ words, look, offer }) {
    element.hidden = !words;
    line.replaceChildren(words);
    if (look) line.append(button(_("Show me"), () => { pick(look); reveal(line.dataset.shown); }));
    if (!offer) return;
    const end = `${offer.length > 24 ? "…" : ""}${offer.slice(-24)}`;
    const use = () => { props.value = offer; emit.apply(); };
    line.append(button(_("Use this prompt: {end}", { end }), use, { title: offer }));
  }

  element.hidden = true;
  onContent(element, show);
}
