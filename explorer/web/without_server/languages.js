// @ts-check
// Translation of the page's markup, which is written in English. Only texts that are whole messages are translated.
import { findAll } from "../static/dom.js";
import { language, lookUpMessage, MESSAGES } from "../static/translations.js";

const ATTRIBUTES = ["aria-label", "aria-description", "placeholder", "title", "data-label"];

/** Translate the texts in an element. @param {Element | DocumentFragment} root */
export function translateElement(root) {
  if (language === "en") return;
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.nodeValue = translateText(texts.currentNode.nodeValue);
  for (const name of ATTRIBUTES) for (const element of root.querySelectorAll(`[${name}]`)) element.setAttribute(name, translateText(element.getAttribute(name)));
  for (const list of findAll(root, "[data-known]")) { // forms and meanings of the glossary terms (GlossaryList)
    const [forms, meanings] = JSON.parse(list.dataset.known), entries = Object.entries;
    list.dataset.known = JSON.stringify([
      Object.fromEntries(entries(forms).map(([form, name]) => [translateText(form), name])),
      Object.fromEntries(entries(meanings).map(([name, meaning]) => [name, translateText(meaning)])),
    ]);
    for (const term of findAll(list.parentElement, "dt")) term.textContent = translateText(term.textContent);
  }
}

/** @param {string} text a message with any white space around it */
function translateText(text) {
  const message = text.trim();
  return message && message in MESSAGES ? text.replace(message, () => lookUpMessage(message)) : text;
}

/** @param {string} markup from this page's own files */
export function translateMarkup(markup) {
  const template = document.createElement("template");
  template.innerHTML = markup;
  translateElement(template.content);
  return template.innerHTML;
}
