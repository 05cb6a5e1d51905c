// @ts-check
// The page's markup, which is written in English, in the page's language: texts that are whole messages.
import { findAll } from "../static/dom.js";
import { language, lookUpMessage, MESSAGES } from "../static/translations.js";

const ATTRIBUTES = ["aria-label", "aria-description", "placeholder", "title", "data-label"];

/** Translates what is in an element. @param {Element | DocumentFragment} root */
export function translateElement(root) {
  if (language === "en") return;
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.nodeValue = translated(texts.currentNode.nodeValue);
  for (const name of ATTRIBUTES) for (const element of root.querySelectorAll(`[${name}]`)) element.setAttribute(name, translated(element.getAttribute(name)));
  for (const list of findAll(root, "[data-known]")) { // the words that are explained (GlossaryList)
    const [forms, meanings] = JSON.parse(list.dataset.known), entries = Object.entries;
    list.dataset.known = JSON.stringify([
      Object.fromEntries(entries(forms).map(([form, name]) => [translated(form), name])),
      Object.fromEntries(entries(meanings).map(([name, meaning]) => [name, translated(meaning)])),
    ]);
    for (const term of findAll(list.parentElement, "dt")) term.textContent = [...new Set(term.textContent.split(", ").map(translated))].join(", ");
  }
}

/** @param {string} text what is around a message stays */
function translated(text) {
  const message = text.trim();
  return message && message in MESSAGES ? text.replace(message, () => lookUpMessage(message)) : text;
}

/** @param {string} markup of this page's own files */
export function translateMarkup(markup) {
  const template = document.createElement("template");
  template.innerHTML = markup;
  translateElement(template.content);
  return template.innerHTML;
}
