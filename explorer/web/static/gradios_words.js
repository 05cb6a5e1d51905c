// @ts-check
// Words that Gradio has in English alone, in the page's language. Those that it has in more follow the language that the
// browser says it speaks, which the page's head makes the page's (page.py).
import { _, N_, language, lookUp } from "./language.js";

const WORDS = new Set([
  N_("Reset to default value"), N_("More tabs"), N_("Gradio footer navigation"), N_("Close"), N_("Warning"), N_("Error"),
  N_("Connection to the server was lost. Attempting reconnection..."), N_("Connection errored out."),
  N_("This application is currently busy. Please try again."),
]);
const LABELS = /** @type {[RegExp, (name: string) => string][]} */ ([
  [/^number input for (.+)$/s, (name) => _("number input for {name}", { name })],
  [/^range slider for (.+)$/s, (name) => _("range slider for {name}", { name })],
]);

/** Says them so wherever Gradio puts them, now and later. */
export function translateGradio() {
  if (language === "en") return;
  translate(document.body);
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes) for (const added of addedNodes) if (added instanceof HTMLElement) translate(added);
  }).observe(document.body, { childList: true, subtree: true });
}

/** @param {HTMLElement} box */
function translate(box) {
  for (const labelled of [box, ...box.querySelectorAll("[aria-label]")]) {
    const label = labelled.ariaLabel ?? "", said = translated(label);
    if (said !== label) labelled.ariaLabel = said;
  }
  for (const toast of box.querySelectorAll(".toast-title > span, .toast-title, .toast-message-text")) {
    const text = toast.firstChild;
    if (text instanceof Text) text.data = translated(text.data);
  }
}

/** @param {string} english */
function translated(english) {
  for (const [label, say] of LABELS) if (label.test(english)) return say(/** @type {string[]} */ (label.exec(english))[1]);
  return WORDS.has(english.trim()) ? lookUp(english.trim()) : english;
}
