// @ts-check
// Glossary terms: finds and marks them in the page's text, and explains a term that is hovered, tapped, or focused by the
// key T.
import { callServer } from "./server_connection.js";
import { findAll, isKeyForFocus, make, span } from "./dom.js";
import { _ } from "./text.js";
import { onState, state } from "./page_state.js";

// Texts that cannot contain marks: SVG texts and selected options.

/** @typedef {{ element: Element, text: string }} TextPart */

const TOKENS = ":is([data-field=query], [data-field=key], [data-field=target], [data-field=rival])"; // lists of tokens

/**
 * Return the texts of a place, without its tokens, which are drawn in a mono font.
 * @param {Element} place
 * @returns {TextPart[]}
 */
function textParts(place) {
  if (place.matches("button, .clauses, .in-full, .changes")) return [{ element: place, text: place.textContent }];
  const lists = /** @type {HTMLSelectElement[]} */ (findAll(place, `select:not(${TOKENS})`));
  const selectedOptions = lists.map((list) => ({ element: list, text: list.selectedOptions[0]?.text ?? "" }));
  const svgTexts = findAll(place, "text").filter((text) => text.textContent.trim() && !getComputedStyle(text).fontFamily.includes("mono"));
  return [...selectedOptions, ...svgTexts.map((text) => ({ element: text, text: text.textContent }))];
}

/**
 * Return the term at a point, or the first one of the text there; null if there is none.
 * @param {Element} place
 * @param {{ clientX: number, clientY: number }} point
 * @param {(text: string) => TermMatch[]} findTerms
 */
function termIn(place, { clientX: x, clientY: y }, findTerms) {
  for (const { element, text } of textParts(place)) {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    if (x < left || x > right || y < top || y > bottom || element.closest(".part")) continue; // the map explains its components itself
    const terms = findTerms(text), index = characterAt(element, x, y);
    const term = terms.find(({ from, to }) => from <= index && index < to) ?? terms[0];
    if (term) return term;
  }
  return null;
}

// Return the index of the character at a point of an SVG text, or -1.
function characterAt(element, x, y) {
  if (!(element instanceof SVGTextContentElement)) return -1;
  const screenToSvg = element.getScreenCTM()?.inverse(), { x: svgX, y: svgY } = new DOMPoint(x, y).matrixTransform(screenToSvg);
  const point = element.ownerSVGElement.createSVGPoint();
  [point.x, point.y] = [svgX, svgY];
  return element.getCharNumAtPosition(point);
}

// Terms in a text, in all forms in which the page writes them.

/** Term in a text: its glossary entry and its range. @typedef {{ name: string, form: string, from: number, to: number }} TermMatch */

/**
 * Return a function that finds the terms in a text. It skips quoted text, such as tokens, and a dot between spaces, which
 * separates items, or between brackets, which multiplies.
 * @param {Record<string, string>} forms each form -> the name of its entry
 * @returns {(text: string) => TermMatch[]}
 */
export function makeTermFinder(forms) {
  const pattern = wholeWordPattern(Object.keys(forms));
  const names = new Map(Object.entries(forms).map(([form, name]) => [form.toLowerCase(), name]));
  return (text) => [...text.matchAll(pattern)]
    .map(({ 0: form, index }) => ({ name: names.get(form.toLowerCase()), form, from: index, to: index + form.length }))
    .filter(({ name, from, to }) => name && !isQuoted(text, from) && ![" · ", ")·("].includes(text.slice(from - 1, to + 1)));
}

/**
 * Return a pattern that matches some words, the longest first, as whole words.
 * @param {string[]} forms
 */
export function wholeWordPattern(forms) {
  const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const isWordCharacter = (character) => /[\p{Script=Latin}\p{N}·]/u.test(character);
  const asSingleCharacter = (text) => `(?<!\\p{Script=Han})${text}(?!\\p{Script=Han})`; // a Han character alone is often a part of other words
  const wordPattern = (text) => /^\p{Script=Han}$/u.test(text) ? asSingleCharacter(text) : `${isWordCharacter(text[0]) ? "(?<![\\p{Script=Latin}\\p{N}_.-])" : ""}${escaped(text)}${isWordCharacter(text.at(-1)) ? "(?![\\p{Script=Latin}\\p{N}_-])" : ""}`;
  return new RegExp([...forms].sort((a, b) => b.length - a.length).map(wordPattern).join("|"), "giu");
}

const isQuoted = (text, index) => text.lastIndexOf("“", index) > text.lastIndexOf("”", index - 1);

// Marks. A term is marked once per tab in sentences, and once more in labels, headings and buttons, where users look for it.
// Figures and buttons cannot contain marks; their terms are listed in a line below.

const SENTENCES = [
  ":is(#facts, #next-token-words, #view) :is(.prose, .formula, .evidence-mark)",
  ":is(.panels, #generation) h2", "#answer small", "#guess output", "#branches :is(.legend, thead th)", ".falls", ".parts", ".sum", ".measured", ".advice", ".changes",
  "#lesson .told :is(.before, .after, .against, .words, .note)", ":is(#walk, #why-token) .says",
].join();
const LABELS = [":is(.choosers, .what-ifs, .tools) label > span", ":is(#sampling, #more-settings) [data-testid=block-info]"].join();
const HEADINGS = ".distribution th[tabindex]:not([scope])"; // focusable headings of a grid
const BUTTONS = "#compare, #stand-ins .asked, :is(#why-token, #stand-ins) a, .in-full a, .changes button";
/** Elements whose texts are drawn or selected, so that they cannot contain marks. */
const FIGURES = "#view :is(.plot, .map), .choosers, #strip label";
const WITH_LINES = `${FIGURES}, #compare, #why-token .clauses, #stand-ins .clauses, .in-full, .changes`;
const PLACES = [SENTENCES, LABELS, HEADINGS, BUTTONS, WITH_LINES].join();

/**
 * Mark all visible terms.
 * @param {(text: string) => TermMatch[]} findTerms
 */
function markAll(findTerms) {
  const knownTerms = termsByArea(), visiblePlaces = visiblePlaceFinder();
  for (const place of visiblePlaces(SENTENCES)) markTerms(place, findTerms, knownTerms(place));
  for (const places of [LABELS, HEADINGS, BUTTONS]) {
    const labelTerms = termsByArea();
    for (const place of visiblePlaces(places)) markTerms(place, findTerms, labelTerms(place), places === LABELS);
    if (places === LABELS) for (const place of visiblePlaces(places)) for (const term of findAll(place, ".term")) knownTerms(place).add(term.dataset.term);
  }
  for (const place of visiblePlaces(WITH_LINES)) listTerms(place, findTerms, knownTerms(place));
  underlineFew();
}

const MAX_UNDERLINED = 3; // at a time: more would look like a page of links

/** Underline the first terms in sight, each once, sentences before labels; the others only when pointed at. */
function underlineFew() {
  const names = new Set(), ordered = [".lesson .term, .walk .term", "[role=tabpanel] .prose .term", ".term:not(#strip *)"].flatMap((kind) => findAll(document, kind));
  const underlined = ordered.filter((term) => {
    if (names.size === MAX_UNDERLINED || names.has(term.dataset.term) || !term.checkVisibility({ visibilityProperty: true })) return false;
    return names.add(term.dataset.term);
  });
  for (const term of findAll(document, ".term")) term.classList.toggle("not-underlined", !underlined.includes(term));
}

// Return a function that gives the set of terms marked so far in a place's area: tab, lesson, walkthrough, or the rest.
function termsByArea() {
  const termSets = new Map();
  return (place) => {
    const area = place.closest("[role=tabpanel], #lesson .lesson, #walk .walk") ?? document.body;
    if (!termSets.has(area)) termSets.set(area, new Set());
    return termSets.get(area);
  };
}

// Return a function that finds the visible places of a kind. The page is searched once for all kinds.
function visiblePlaceFinder() {
  const places = visibleParts(document.body).flatMap((part) => [...(part.matches(PLACES) ? [part] : []), ...findAll(part, PLACES)]);
  const visible = places.filter((place) => place.offsetWidth && place.checkVisibility()); // a closed fold has a width, too
  return (/** @type {string} */ kind) => visible.filter((place) => place.matches(kind));
}

/**
 * Return the page's parts without hidden tabs, in document order, since hidden tabs contain most elements.
 * @param {Element} box
 * @returns {HTMLElement[]}
 */
function visibleParts(box) {
  const hidden = new Set([...box.getElementsByClassName("tabitem")].filter((tab) => !(/** @type {HTMLElement} */ (tab).offsetWidth) && getComputedStyle(tab).display !== "contents"));
  const ancestors = new Set();
  for (const tab of hidden) for (let ancestor = tab.parentElement; ancestor; ancestor = ancestor.parentElement) ancestors.add(ancestor);
  const parts = (part) => {
    if (ancestors.has(part)) return [...part.children].flatMap(parts);
    return hidden.has(part) ? [] : [part];
  };
  return parts(box);
}

function markTerms(place, findTerms, knownTerms, isStop = !place.matches(`${HEADINGS}, ${BUTTONS}`)) {
  const markedTerms = findAll(place, ".term");
  for (const term of markedTerms) knownTerms.add(term.dataset.term);
  if (place.dataset.marked === place.textContent && markedTerms.length) return;
  place.dataset.marked = place.textContent;
  const texts = document.createTreeWalker(place, NodeFilter.SHOW_TEXT), nodes = /** @type {Text[]} */ ([]);
  const skipped = isStop ? ".term, button, a" : ".term";
  while (texts.nextNode()) if (!texts.currentNode.parentElement.closest(skipped)) nodes.push(/** @type {Text} */ (texts.currentNode));
  for (const node of nodes) {
    const parts = [];
    let end = 0;
    for (const { name, form, from, to } of findTerms(node.data)) {
      if (knownTerms.has(name)) continue;
      knownTerms.add(name);
      if (from > end) parts.push(node.data.slice(end, from));
      parts.push(termNode(name, form, isStop));
      end = to;
    }
    if (end && end < node.data.length) parts.push(node.data.slice(end));
    const isInButton = node.parentElement.matches("button"); // Gradio lays out a button's children side by side
    if (end) node.replaceWith(...(isInButton ? [span("", ...parts)] : parts));
  }
}

const termNode = (name, form, isStop) =>
  make("span", { className: "term", dataset: { term: name }, ...(isStop && { tabIndex: -1 }) }, form);

// List the terms of a figure that its tab has not marked yet in a line below it.
function listTerms(place, findTerms, knownTerms) {
  const formByName = new Map();
  for (const part of textParts(place)) for (const { name, form } of findTerms(part.text)) if (!knownTerms.has(name) && !formByName.has(name)) formByName.set(name, form);
  for (const name of formByName.keys()) knownTerms.add(name);
  const listedTerms = [...formByName].join();
  let line = /** @type {HTMLElement | null} */ (place.nextElementSibling);
  if (!line?.matches(".words-here")) line = null;
  if ((line?.dataset.listed ?? "") === listedTerms) return;
  if (!formByName.size) return line.remove();
  if (!line) place.after(line = make("p", { className: "words-here" }));
  line.dataset.listed = listedTerms;
  line.replaceChildren(span("", _("Words used here:")), ...[...formByName].map(([name, form]) => termNode(name, form, true)));
}

// Explanations: the term's general meaning at once, then its meaning in this run from Python.

/**
 * Explained term, its element, and that element's box in the viewport.
 * @typedef {{ name: string, element: Element, box: () => DOMRect }} ShownTerm
 */

const MARK_DELAY_MS = 120;
const HOVER_DELAY_MS = 250;
const CLOSE_DELAY_MS = 300; // time for the pointer to move from the term to its tooltip, which stays open under the pointer
/** @type {HTMLElement} */
let tooltip;
/** @type {ShownTerm | null} */
let currentTerm = null;
let closeTimer = null;
let openTimer = null; // cancelled if the pointer moves on
let isFetching = false; // whether the meaning in this run is being requested

/**
 * Mark the terms in the page, now and after each change, and explain them.
 * @param {Record<string, string>} forms each form -> the name of its entry
 * @param {Record<string, string>} meanings of each entry, until Python sends more
 */
export function explainTerms(forms, meanings) {
  const findTerms = makeTermFinder(forms);
  let timer = null;
  const update = () => {
    if (!currentTerm?.element.checkVisibility()) showTerm(null);
    delete tooltip.dataset.behind;
    markAll(findTerms);
  };
  const scheduleUpdate = () => { tooltip.dataset.behind = "true"; clearTimeout(timer); timer = setTimeout(update, MARK_DELAY_MS); };
  tooltip = make("div", { id: "definition", role: "tooltip", popover: "manual" });
  const isInDialog = ({ target }) => Boolean((target instanceof Element ? target : target.parentElement)?.closest("dialog"));
  new MutationObserver((changes) => { if (!changes.every(isInDialog)) scheduleUpdate(); }).observe(document.body, { childList: true, characterData: true, subtree: true });
  document.body.append(tooltip);
  onState(() => { if (currentTerm) showMeaningInRun(); });
  let pointerPosition = ""; // a term that moves under a resting pointer is not explained
  const explain = (event) => {
    const { clientX: x, clientY: y } = event, previousPosition = pointerPosition;
    if (x !== undefined) pointerPosition = `${x} ${y}`;
    if (event.type === "pointerover" && pointerPosition === previousPosition) return;
    if (tooltip.contains(event.target)) return keepOpen();
    if (isControlOfCurrentTerm(event.target)) return;
    if (event.buttons) return; // during a drag
    const term = termAt(event, findTerms);
    clearTimeout(openTimer);
    if (event.type === "focusin" || event.type === "click") showTerm(term, meanings);
    else if (!term) closeTimer ??= setTimeout(() => showTerm(null), CLOSE_DELAY_MS);
    else if (term.name === currentTerm?.name && term.element === currentTerm.element) showTerm(term);
    else openTimer = setTimeout(() => showTerm(term, meanings), HOVER_DELAY_MS);
  };
  for (const type of ["pointerover", "focusin", "click"]) document.addEventListener(type, explain);
  document.addEventListener("pointermove", (event) => { // figures have no elements to enter; a term may have moved under the pointer
    const position = `${event.clientX} ${event.clientY}`;
    if (position === pointerPosition) return;
    pointerPosition = position;
    if (figureAt(event) || (event.target instanceof Element && event.target.closest(".term"))) explain(event);
  });
  for (const type of ["click", "change"]) document.addEventListener(type, scheduleUpdate); // which may reveal other texts
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") showTerm(null); });
  document.addEventListener("keydown", (event) => { if (event.key.toLowerCase() === "t" && !isKeyForFocus(event)) goToTerm(event.shiftKey); });
  document.addEventListener("scroll", placeTooltip, { capture: true, passive: true });
  scheduleUpdate();
}

/** Focus the next or previous term. Terms are no tab stops, as there are many. @param {boolean} isBack */
function goToTerm(isBack) {
  const terms = findAll(document, ".term[tabindex]").filter((term) => term.checkVisibility()), focused = document.activeElement;
  const isAfter = (term) => focused.compareDocumentPosition(term) & Node.DOCUMENT_POSITION_FOLLOWING;
  const next = isBack ? terms.findLast((term) => term !== focused && !isAfter(term)) : terms.find(isAfter);
  (next ?? terms.at(isBack ? -1 : 0))?.focus();
}

/** @returns {ShownTerm | null} */
function termAt(event, findTerms) {
  const { target, type } = event, heading = type === "focusin" && target.closest?.("th");
  const term = target.closest?.(".term") ?? (heading && heading.querySelector(".term"));
  if (term) return { name: term.dataset.term, element: term, box: () => term.getBoundingClientRect() };
  const mark = type === "click" && event.pointerType !== "mouse" && target.closest?.(".mark"), sign = mark && findTerms(mark.dataset.mark)[0];
  if (sign) return { name: sign.name, element: mark, box: () => mark.getBoundingClientRect() }; // touch shows no title
  const figure = type !== "focusin" && figureAt(event), match = figure && termIn(figure, event, findTerms);
  if (!match) return null;
  const box = new DOMRect(event.clientX, event.clientY - 8, 0, 20); // at the pointer, since drawn texts can be long and upright
  return { name: match.name, element: figure, box: () => box };
}

const figureAt = ({ target }) => (target instanceof Element ? target.closest(FIGURES) : null);

// Return whether an element is the control of the explained label, to which a click on the label leads.
const isControlOfCurrentTerm = (target) => [...(target.labels ?? [])].some((label) => label.contains(currentTerm?.element));

function keepOpen() {
  clearTimeout(closeTimer);
  closeTimer = null;
}

/** @param {ShownTerm | null} next */
function showTerm(next, meanings = {}) {
  keepOpen();
  if (next?.name === currentTerm?.name && next?.element === currentTerm?.element) return;
  currentTerm?.element.removeAttribute("aria-describedby");
  currentTerm = next;
  if (!next) return tooltip.hidePopover();
  showTooltip(meanings[next.name]);
  if (next.element.matches(".term")) next.element.setAttribute("aria-describedby", tooltip.id);
  showMeaningInRun();
}

// Request the meaning in this run, and again if the state or the term changes before the response.
async function showMeaningInRun() {
  if (isFetching) return;
  isFetching = true;
  for (let request = null; currentTerm && (request?.shown !== currentTerm || request.state !== state);) {
    request = { shown: currentTerm, state };
    const wordPattern = await callServer("define", [state, currentTerm.name]).catch(() => null); // keeps the general meaning
    if (wordPattern !== null && request.shown === currentTerm && request.state === state) showTooltip(wordPattern);
  }
  isFetching = false;
}

/** Close the tooltip, and cancel one that is about to open. */
export function closeTerm() {
  clearTimeout(openTimer);
  if (tooltip) showTerm(null);
}

function showTooltip(words) {
  tooltip.textContent = words;
  tooltip.showPopover();
  placeTooltip();
}

// Place the tooltip below the term, or above it if there is no room.
function placeTooltip() {
  if (!currentTerm) return;
  const { top, bottom, left } = currentTerm.box();
  tooltip.style.left = `${Math.max(8, Math.min(left, innerWidth - tooltip.offsetWidth - 8))}px`;
  tooltip.style.top = `${bottom + tooltip.offsetHeight + 8 > innerHeight ? top - tooltip.offsetHeight - 6 : bottom + 6}px`;
}
