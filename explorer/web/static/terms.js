// @ts-check
// The page's terms of art, each marked where a tab says it first, and explained to whoever points at it, moves to it with
// the Tab key, or taps it: what it means, and then, once Python has said it, what it is in this run.
import { call } from "./connection.js";
import { findAll, make } from "./dom.js";
import { state } from "./state.js";

const PLACES = ":is(#tagline, #next-token-words, #views, #steps) :is(.prose, .formula), .falls, .panels h2, #generation h2";
const SOON_MS = 120;
/** @type {HTMLElement} */
let told;
/** @type {HTMLElement | null} */
let shown = null;

/**
 * Has the terms explained from now on, in all that is written.
 * @param {Record<string, string>} forms each form -> the name of its entry
 * @param {Record<string, string>} meanings of each entry, until Python says more
 */
export function explainTerms(forms, meanings) {
  const pattern = finder(Object.keys(forms));
  const names = new Map(Object.entries(forms).map(([form, name]) => [form.toLowerCase(), name]));
  const explain = ({ target }) => follow(termOf(target), meanings);
  let timer = null;
  const soon = () => { clearTimeout(timer); timer = setTimeout(() => markAll(pattern, names), SOON_MS); };
  new MutationObserver(soon).observe(document.body, { childList: true, characterData: true, subtree: true });
  told = make("div", { id: "definition", role: "tooltip", popover: "manual" });
  document.body.append(told);
  for (const type of ["pointerover", "focusin", "click"]) document.addEventListener(type, explain);
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") follow(null); });
  document.addEventListener("scroll", place, { capture: true, passive: true });
  soon();
}

/**
 * A pattern that finds each of some words, the longest first, as a whole where it is made of letters that join.
 * @param {string[]} forms
 */
export function finder(forms) {
  const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const joins = (character) => /[\p{Script=Latin}\p{N}·]/u.test(character);
  const alone = (text) => `(?<!\\p{Script=Han})${text}(?!\\p{Script=Han})`; // a character of which many words are made
  const whole = (text) => /^\p{Script=Han}$/u.test(text) ? alone(text) : `${joins(text[0]) ? "(?<![\\p{Script=Latin}\\p{N}_.-])" : ""}${escaped(text)}${joins(text.at(-1)) ? "(?![\\p{Script=Latin}\\p{N}_-])" : ""}`;
  return new RegExp([...forms].sort((a, b) => b.length - a.length).map(whole).join("|"), "giu");
}

function markAll(pattern, names) {
  if (!shown?.isConnected) follow(null);
  const said = new Map(); // tab, or what is outside of tabs -> the terms that are marked in it
  for (const place of findAll(document, PLACES)) {
    if (!place.offsetWidth) continue;
    const area = place.closest("[role=tabpanel]") ?? document.body;
    if (!said.has(area)) said.set(area, new Set());
    mark(place, pattern, names, said.get(area));
  }
}

function mark(place, pattern, names, said) {
  const kept = findAll(place, ".term");
  for (const term of kept) said.add(term.dataset.term);
  if (place.dataset.marked === place.textContent && kept.length) return;
  place.dataset.marked = place.textContent;
  const texts = document.createTreeWalker(place, NodeFilter.SHOW_TEXT), nodes = [];
  while (texts.nextNode()) if (!texts.currentNode.parentElement.closest(".term, button, a")) nodes.push(texts.currentNode);
  for (const node of nodes) {
    const pieces = [];
    let from = 0;
    for (const { 0: found, index } of node.data.matchAll(pattern)) {
      const name = names.get(found.toLowerCase());
      if (!name || said.has(name) || isQuoted(node.data, index)) continue;
      said.add(name);
      pieces.push(node.data.slice(from, index), make("span", { className: "term", tabIndex: 0, dataset: { term: name } }, found));
      from = index + found.length;
    }
    if (pieces.length) node.replaceWith(...pieces, node.data.slice(from));
  }
}

// Whether it stands between quotation marks, as tokens do.
const isQuoted = (text, index) => text.lastIndexOf("“", index) > text.lastIndexOf("”", index - 1);

const termOf = (target) => /** @type {HTMLElement | null} */ (target instanceof Element ? target.closest(".term") : null);

async function follow(term, meanings = {}) {
  if (term === shown) return;
  shown?.removeAttribute("aria-describedby");
  shown = term;
  if (!term) return told.hidePopover();
  tell(meanings[term.dataset.term]);
  term.setAttribute("aria-describedby", told.id);
  try {
    const whole = await call("define", [state, term.dataset.term]);
    if (shown === term) tell(whole);
  } catch { /* its meaning stands */ }
}

function tell(words) {
  told.textContent = words;
  told.showPopover();
  place();
}

// Below the term, or above it where there is no room.
function place() {
  if (!shown) return;
  const { top, bottom, left } = shown.getBoundingClientRect();
  told.style.left = `${Math.max(8, Math.min(left, innerWidth - told.offsetWidth - 8))}px`;
  told.style.top = `${bottom + told.offsetHeight + 8 > innerHeight ? top - told.offsetHeight - 6 : bottom + 6}px`;
}
