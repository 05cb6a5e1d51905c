// @ts-check
// The page's terms of art: found in all that is written, marked, and explained to whoever points at one, moves to it
// with the key T, or taps it.
import { call } from "./server_connection.js";
import { findAll, isKeyForFocus, make, span } from "./dom.js";
import { _ } from "./translations.js";
import { onState, state } from "./page_state.js";

// Words that no mark can be in: those drawn in SVG, and what a list has chosen.

/** @typedef {{ element: Element, text: string }} Words */

const TOKENS = ":is([data-field=query], [data-field=key], [data-field=target], [data-field=rival])"; // lists of them

/**
 * All words of a place, without its tokens, which are typed in mono wherever they are drawn.
 * @param {Element} place
 * @returns {Words[]}
 */
function wordsOf(place) {
  if (place.matches("button, .clauses, .in-full, .changes")) return [{ element: place, text: place.textContent }];
  const lists = /** @type {HTMLSelectElement[]} */ (findAll(place, `select:not(${TOKENS})`));
  const chosen = lists.map((list) => ({ element: list, text: list.selectedOptions[0]?.text ?? "" }));
  const drawn = findAll(place, "text").filter((text) => text.textContent.trim() && !getComputedStyle(text).fontFamily.includes("mono"));
  return [...chosen, ...drawn.map((text) => ({ element: text, text: text.textContent }))];
}

/**
 * The term at a point of a place, or else the first of the words that are there; null where there is none.
 * @param {Element} place
 * @param {{ clientX: number, clientY: number }} point
 * @param {(text: string) => Found[]} findTerms
 */
function termIn(place, { clientX: x, clientY: y }, findTerms) {
  for (const { element, text } of wordsOf(place)) {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    if (x < left || x > right || y < top || y > bottom || element.closest(".part")) continue; // the map tells of its parts
    const terms = findTerms(text), at = characterAt(element, x, y);
    const term = terms.find(({ from, to }) => from <= at && at < to) ?? terms[0];
    if (term) return term;
  }
  return null;
}

// Which character of a text drawn in SVG is at a point, -1 for none.
function characterAt(element, x, y) {
  if (!(element instanceof SVGTextContentElement)) return -1;
  const to = element.getScreenCTM()?.inverse(), { x: across, y: down } = new DOMPoint(x, y).matrixTransform(to);
  const point = element.ownerSVGElement.createSVGPoint();
  [point.x, point.y] = [across, down];
  return element.getCharNumAtPosition(point);
}

// Terms of art in a text, by all forms in which the page writes them.

/** @typedef {{ name: string, form: string, from: number, to: number }} Found a term: its entry's name, and where it stands */

/**
 * Gives the function that finds the terms in a text, but for what stands between quotation marks, as tokens do, and for
 * a dot between spaces, which parts items of a line, or between brackets, which multiplies.
 * @param {Record<string, string>} forms each form -> the name of its entry
 * @returns {(text: string) => Found[]}
 */
export function termFinder(forms) {
  const pattern = finder(Object.keys(forms));
  const names = new Map(Object.entries(forms).map(([form, name]) => [form.toLowerCase(), name]));
  return (text) => [...text.matchAll(pattern)]
    .map(({ 0: form, index }) => ({ name: names.get(form.toLowerCase()), form, from: index, to: index + form.length }))
    .filter(({ name, from, to }) => name && !isQuoted(text, from) && ![" · ", ")·("].includes(text.slice(from - 1, to + 1)));
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

const isQuoted = (text, index) => text.lastIndexOf("“", index) > text.lastIndexOf("”", index - 1);

// Where the page's terms of art are marked. Sentences have each once a tab, and so have what is chosen from and the
// headings of tables, where it is looked for. What marks cannot be in, figures and buttons, has its words in a line below.

const SENTENCES = [
  ":is(#facts, #next-token-words, #view) :is(.prose, .formula, .evidence-mark)",
  ":is(.panels, #generation) h2", "#answer small", "#guess output", "#branches :is(.legend, thead th)", ".falls", ".parts", ".advice", ".changes",
  "#lesson .told :is(.before, .after, .against, .words, .note)", ":is(#walk, #why-token) .says",
].join();
const LABELS = [":is(.choosers, .what-ifs, .tools) label > span", ":is(#sampling, #more-settings) [data-testid=block-info]"].join();
const HEADINGS = ".distribution th[tabindex]:not([scope])"; // of a grid: they have the focus themselves
const BUTTONS = "#compare, :is(#why-token, #stand-ins) :is(.asked, a), .in-full a, .changes button";
/** What words are drawn in, or chosen: no mark can be in it. */
const FIGURES = "#view :is(.plot, .map), .choosers, #strip label";
const WITH_LINES = `${FIGURES}, #compare, #why-token .clauses, #stand-ins .clauses, .in-full, .changes`;
const PLACES = [SENTENCES, LABELS, HEADINGS, BUTTONS, WITH_LINES].join();

/**
 * Marks all terms that are seen.
 * @param {(text: string) => Found[]} findTerms
 */
function markAll(findTerms) {
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
  make("span", { className: "term", dataset: { term: name }, ...(isStop && { tabIndex: -1 }) }, form);

// The terms of a figure that its tab has not said, in a line below it.
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

// The page's terms of art, explained to whoever points at one, moves to it with the key T, or taps it: what it means, and
// then, once Python has said it, what it is in this run.

/**
 * What is explained: a term's name, what it is written in, and where that is on the screen.
 * @typedef {{ name: string, element: Element, box: () => DOMRect }} Shown
 */

const SOON_MS = 120;
const REST_MS = 250; // that the pointer rests on a term until that is explained
const GRACE_MS = 300; // for the pointer to come from a term to what is told of it, which stays as long as it is there
/** @type {HTMLElement} */
let told;
/** @type {Shown | null} */
let shown = null;
let leaving = null; // what closes it
let coming = null; // what opens it, unless the pointer goes on
let isAsked = false; // whether Python is asked what it is in this run

/**
 * Has the terms explained from now on, in all that is written.
 * @param {Record<string, string>} forms each form -> the name of its entry
 * @param {Record<string, string>} meanings of each entry, until Python says more
 */
export function explainTerms(forms, meanings) {
  const findTerms = termFinder(forms);
  let timer = null;
  const renew = () => {
    if (!shown?.element.checkVisibility()) follow(null);
    delete told.dataset.behind;
    markAll(findTerms);
  };
  const soon = () => { told.dataset.behind = "true"; clearTimeout(timer); timer = setTimeout(renew, SOON_MS); };
  told = make("div", { id: "definition", role: "tooltip", popover: "manual" });
  const isInDialog = ({ target }) => Boolean((target instanceof Element ? target : target.parentElement)?.closest("dialog"));
  new MutationObserver((changes) => { if (!changes.every(isInDialog)) soon(); }).observe(document.body, { childList: true, characterData: true, subtree: true });
  document.body.append(told);
  onState(told, () => { if (shown) tellOfRun(); });
  let at = ""; // where the pointer was: what comes to be below it, while it rests, is not asked about
  const explain = (event) => {
    const { clientX: x, clientY: y } = event, before = at;
    if (x !== undefined) at = `${x} ${y}`;
    if (event.type === "pointerover" && at === before) return;
    if (told.contains(event.target)) return stay();
    if (isControlOfShown(event.target)) return;
    if (event.buttons) return; // something is being dragged
    const term = termAt(event, findTerms);
    clearTimeout(coming);
    if (event.type === "focusin" || event.type === "click") follow(term, meanings);
    else if (!term) leaving ??= setTimeout(() => follow(null), GRACE_MS);
    else if (term.name === shown?.name && term.element === shown.element) follow(term);
    else coming = setTimeout(() => follow(term, meanings), REST_MS);
  };
  for (const type of ["pointerover", "focusin", "click"]) document.addEventListener(type, explain);
  document.addEventListener("pointermove", (event) => { // in a figure are no elements to enter; a term may have come below the pointer
    const now = `${event.clientX} ${event.clientY}`;
    if (now === at) return;
    at = now;
    if (figureAt(event) || (event.target instanceof Element && event.target.closest(".term"))) explain(event);
  });
  for (const type of ["click", "change"]) document.addEventListener(type, soon); // what they open, or choose
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") follow(null); });
  document.addEventListener("keydown", (event) => { if (event.key.toLowerCase() === "t" && !isKeyForFocus(event)) goToTerm(event.shiftKey); });
  document.addEventListener("scroll", place, { capture: true, passive: true });
  soon();
}

/** Moves the focus to the next term on the page, or the one before: they are no stops of the Tab key, as there are many. @param {boolean} isBack */
function goToTerm(isBack) {
  const all = findAll(document, ".term[tabindex]").filter((term) => term.checkVisibility()), here = document.activeElement;
  const isAfter = (term) => here.compareDocumentPosition(term) & Node.DOCUMENT_POSITION_FOLLOWING;
  const next = isBack ? all.findLast((term) => term !== here && !isAfter(term)) : all.find(isAfter);
  (next ?? all.at(isBack ? -1 : 0))?.focus();
}

/** @returns {Shown | null} */
function termAt(event, findTerms) {
  const { target, type } = event, heading = type === "focusin" && target.closest?.("th");
  const term = target.closest?.(".term") ?? (heading && heading.querySelector(".term"));
  if (term) return { name: term.dataset.term, element: term, box: () => term.getBoundingClientRect() };
  const figure = type !== "focusin" && figureAt(event), found = figure && termIn(figure, event, findTerms);
  if (!found) return null;
  const box = new DOMRect(event.clientX, event.clientY - 8, 0, 20); // at the pointer: what is drawn can be long, and upright
  return { name: found.name, element: figure, box: () => box };
}

const figureAt = ({ target }) => (target instanceof Element ? target.closest(FIGURES) : null);

// Whether it is what a click on the label that is explained leads to.
const isControlOfShown = (target) => [...(target.labels ?? [])].some((label) => label.contains(shown?.element));

function stay() {
  clearTimeout(leaving);
  leaving = null;
}

/** @param {Shown | null} next */
function follow(next, meanings = {}) {
  stay();
  if (next?.name === shown?.name && next?.element === shown?.element) return;
  shown?.element.removeAttribute("aria-describedby");
  shown = next;
  if (!next) return told.hidePopover();
  tell(meanings[next.name]);
  if (next.element.matches(".term")) next.element.setAttribute("aria-describedby", told.id);
  tellOfRun();
}

// What it is in this run, and again where that is another by the time that it is told.
async function tellOfRun() {
  if (isAsked) return;
  isAsked = true;
  for (let of = null; shown && (of?.shown !== shown || of.state !== state);) {
    of = { shown, state };
    const whole = await call("define", [state, shown.name]).catch(() => null); // its meaning stands
    if (whole !== null && of.shown === shown && of.state === state) tell(whole);
  }
  isAsked = false;
}

/** Has no term explained any more, nor the one that the pointer rests on. */
export function closeTerm() {
  clearTimeout(coming);
  if (told) follow(null);
}

function tell(words) {
  told.textContent = words;
  told.showPopover();
  place();
}

// Below the term, or above it where there is no room.
function place() {
  if (!shown) return;
  const { top, bottom, left } = shown.box();
  told.style.left = `${Math.max(8, Math.min(left, innerWidth - told.offsetWidth - 8))}px`;
  told.style.top = `${bottom + told.offsetHeight + 8 > innerHeight ? top - told.offsetHeight - 6 : bottom + 6}px`;
}
