// @ts-check
// Where the page's terms of art are marked. Sentences have each once a tab, and so have what is chosen from and the
// headings of tables, where it is looked for. What marks cannot be in, pictures and buttons, has its words in a line below.
import { find, findAll, make, span } from "./dom.js";
import { _ } from "./language.js";
import { wordsOf } from "./words_in_pictures.js";

const SENTENCES = [
  ":is(#tagline, #facts, #legend, #next-token-words, #view) :is(.prose, .formula, .evidence-mark, .inspection)",
  ":is(.panels, #generation) h2", "#guess :is(.how, output)", "#branches :is(.legend, thead th)", ".falls", ".parts", ".advice", ".changes",
  "#lesson .told :is(.before, .after, .against, .words, .note)", "#walk .says",
].join();
const LABELS = [":is(.choosers, .what-ifs, .tools) label > span", ":is(.settings, #more-settings) [data-testid=block-info]"].join();
const HEADINGS = ".distribution th[tabindex]:not([scope])"; // of a grid: they have the focus themselves
const BUTTONS = "#compare, :is(#why-token, #stand-ins) :is(.asked, a), .in-full a, .changes button";
/** What words are drawn in, or chosen: no mark can be in it. */
export const PICTURES = "#view :is(.plot, .map), .choosers, #strip label";
const WITH_LINES = `${PICTURES}, #compare, #why-token .clauses, #stand-ins .clauses, .in-full, .changes`;
const PLACES = [SENTENCES, LABELS, HEADINGS, BUTTONS, WITH_LINES].join();

/** @typedef {import("./term_finder.js").Found} Found */

/**
 * Marks all terms that are seen.
 * @param {(text: string) => Found[]} findTerms
 */
export function markAll(findTerms) {
  const said = saidByArea(), seen = seenPlaces();
  for (const place of seen(SENTENCES)) mark(place, findTerms, said(place));
  for (const places of [LABELS, HEADINGS, BUTTONS]) {
    const there = saidByArea();
    for (const place of seen(places)) mark(place, findTerms, there(place), places === LABELS);
    if (places === LABELS) for (const place of seen(places)) for (const term of findAll(place, ".term")) said(place).add(term.dataset.term);
  }
  for (const place of seen(WITH_LINES)) list(place, findTerms, said(place));
}

// Gives the function that says which terms the tab of a place, the lesson, a walk, or what is outside of them, has already.
function saidByArea() {
  const said = new Map();
  return (place) => {
    const area = place.closest("[role=tabpanel], #lesson .lesson, #walk .walk") ?? document.body;
    if (!said.has(area)) said.set(area, new Set());
    return said.get(area);
  };
}

// Gives the function that finds the places of a kind; the page is gone through once for all kinds.
function seenPlaces() {
  const places = shownParts(document.body).flatMap((part) => [...(part.matches(PLACES) ? [part] : []), ...findAll(part, PLACES)]);
  const seen = places.filter((place) => place.offsetWidth);
  return (/** @type {string} */ kind) => seen.filter((place) => place.matches(kind));
}

/**
 * All of the page but tabs that are hidden, in its order: most elements are in those.
 * @param {Element} box
 * @returns {HTMLElement[]}
 */
function shownParts(box) {
  const hidden = new Set([...box.getElementsByClassName("tabitem")].filter((tab) => !(/** @type {HTMLElement} */ (tab).offsetWidth)));
  const around = new Set();
  for (const tab of hidden) for (let at = tab.parentElement; at; at = at.parentElement) around.add(at);
  const parts = (part) => {
    if (around.has(part)) return [...part.children].flatMap(parts);
    return hidden.has(part) ? [] : [part];
  };
  return parts(box);
}

function mark(place, findTerms, said, isStop = !place.matches(`${HEADINGS}, ${BUTTONS}`)) {
  const kept = findAll(place, ".term");
  for (const term of kept) said.add(term.dataset.term);
  if (place.dataset.marked === place.textContent && kept.length) return;
  place.dataset.marked = place.textContent;
  const texts = document.createTreeWalker(place, NodeFilter.SHOW_TEXT), nodes = /** @type {Text[]} */ ([]);
  const skipped = isStop ? ".term, button, a" : ".term";
  while (texts.nextNode()) if (!texts.currentNode.parentElement.closest(skipped)) nodes.push(/** @type {Text} */ (texts.currentNode));
  for (const node of nodes) {
    const pieces = [];
    let done = 0;
    for (const { name, form, from, to } of findTerms(node.data)) {
      if (said.has(name)) continue;
      said.add(name);
      if (from > done) pieces.push(node.data.slice(done, from));
      pieces.push(termNode(name, form, isStop));
      done = to;
    }
    if (done && done < node.data.length) pieces.push(node.data.slice(done));
    const isInButton = node.parentElement.matches("button"); // whose contents Gradio sets side by side
    if (done) node.replaceWith(...(isInButton ? [span("", ...pieces)] : pieces));
  }
}

const termNode = (name, form, isStop) =>
  make("span", { className: "term", dataset: { term: name }, ...(isStop && { tabIndex: 0 }) }, form);

// The terms of a picture that its tab has not said, in a line below it.
function list(place, findTerms, said) {
  const found = new Map();
  for (const words of wordsOf(place)) for (const { name, form } of findTerms(words.text)) if (!said.has(name) && !found.has(name)) found.set(name, form);
  for (const name of found.keys()) said.add(name);
  const listed = [...found].join();
  let line = /** @type {HTMLElement | null} */ (place.nextElementSibling);
  if (!line?.matches(".words-here")) line = null;
  if ((line?.dataset.listed ?? "") === listed) return;
  if (!found.size) return line.remove();
  if (!line) place.after(line = make("p", { className: "words-here" }));
  line.dataset.listed = listed;
  line.replaceChildren(span("", _("Words used here:")), ...[...found].map(([name, form]) => termNode(name, form, true)));
}
