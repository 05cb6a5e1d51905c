// @ts-check
// The page around the figures: model menu, depth switch, language menu, explanatory texts and the glossary.
import { changeModel, nextStepButton, select } from "../../static/page_actions.js";
import { callServer } from "../../static/server_connection.js";
import { widgetBlock, onContent } from "../../static/widget_contents.js";
import { button, find, findAll, setHidden, make, setText, span, toggleFold } from "../../static/dom.js";
import { makeLink, storeUndoStates, writeUrl } from "../../static/history.js";
import { _, language, storeLanguage } from "../../static/translations.js";
import { modelName, onState, storeDepth, state, changeToDepth } from "../../static/page_state.js";
import { IN_FULL } from "../../static/shared_constants.js";
import { explainTerms } from "../../static/glossary_terms.js";

/** The menu of models. @param {HTMLElement} element */
export function picker(element) {
  const box = find(element, ".picker"), list = box.querySelector("select");
  const canOpenModels = JSON.parse(box.dataset.opens);
  let models = JSON.parse(box.dataset.models);

  function show(checkpoint) {
    list.replaceChildren(...models.map(([name]) => new Option(name, name)));
    if (canOpenModels) list.append(new Option(_("Open a model…"), ""));
    list.value = modelName(checkpoint);
  }

  const update = () => show(state.checkpoint ?? "");
  // A chosen model opens at its last checkpoint.
  list.addEventListener("change", () => {
    if (!list.value) {
      update();
      return find(document, "#open-model").dispatchEvent(new Event("wanted"));
    }
    changeModel(models.find(([name]) => name === list.value)[1]);
  });
  onState(element, update);
  onContent(element, (content) => { models = content; update(); });
  update();
}

/** What each story step's link selects in the view with the numbers. @type {Map<string, Record<string, any>>} */
const numbersLooks = new Map();

/** The switch of depths. @param {HTMLElement} element */
export function modeSwitch(element) {
  const buttons = /** @type {HTMLButtonElement[]} */ (findAll(element, "button"));
  for (const button of buttons)
    button.addEventListener("click", () => {
      const { mode } = button.dataset;
      storeDepth(mode);
      const change = changeToDepth(mode), look = numbersLooks.get(state.view);
      select({ ...(look?.view === change.view ? look : {}), ...change }); // with the head that the story shows
    });

  function update() {
    for (const button of buttons) {
      button.ariaPressed = String(button.dataset.mode === (state.depth ?? document.body.dataset.depth));
      button.disabled = !state.checkpoint; // until a model is loaded
    }
  }

  onState(element, update);
  update();
}

/** The menu of languages. @param {HTMLElement} element */
export function languageList(element) {
  const list = /** @type {HTMLSelectElement} */ (find(element, "select"));
  list.value = language;
  setText(find(document, "#page-menu .tag"), list.selectedOptions[0].text.slice(0, 2).toUpperCase()); // EN
  list.addEventListener("change", () => {
    writeUrl();
    storeLanguage(list.value);
    storeUndoStates();
    const url = new URL(location.href);
    url.searchParams.set("lang", list.value);
    location.assign(url);
  });
}

/** @type {EventTarget | null} */
let pressedElement = null;
addEventListener("pointerdown", ({ target }) => { pressedElement = target; }, { capture: true, passive: true });

const VECTOR_NAMES = /(?<![A-Za-z0-9_‑-])([qkv])(?:_proj)?(?![A-Za-z0-9_‑-])/g; // not the k of top-k

/** Return a text in which q, k and v have the colours of the figures. @param {string} text @returns {(string | HTMLElement)[]} */
export function colourVectorNames(text) {
  const pieces = [];
  let start = 0;
  for (const { 0: word, 1: vector, index } of text.matchAll(VECTOR_NAMES)) {
    pieces.push(text.slice(start, index), span(`of-${vector}`, word));
    start = index + word.length;
  }
  return [...pieces, text.slice(start)].filter(Boolean);
}

const MAX_RESERVED_PX = 45; // two lines

/**
 * Keep the pressed element under the pointer while the formula above it changes: a formula shorter by one or two lines
 * keeps its height, if its width is the same; for a taller one the page scrolls.
 * @param {HTMLElement} text
 * @param {DOMRect} boxBefore
 */
function limitLayoutShift(text, boxBefore) {
  const isBelow = pressedElement instanceof Node && pressedElement.isConnected && text.compareDocumentPosition(pressedElement) & Node.DOCUMENT_POSITION_FOLLOWING;
  text.style.minHeight = "";
  const boxAfter = text.getBoundingClientRect(), difference = boxBefore.height - boxAfter.height;
  if (boxAfter.width !== boxBefore.width || !isBelow || boxAfter.bottom < 0) return;
  if (difference > 0 && difference < MAX_RESERVED_PX) text.style.minHeight = `${boxBefore.height}px`;
  if (difference < 0) scrollBy({ top: -difference, behavior: "instant" });
}

/** Return code with the arrow's line (source_code.py) highlighted. @param {string} code */
function markArrowLine(code) {
  const [before, line, after] = code.split(/^(→.*)$/m);
  return line ? [...colourVectorNames(before), make("mark", {}, ...colourVectorNames(line)), ...colourVectorNames(after)] : colourVectorNames(code);
}

/** Scroll a listing, within its box, to a line that is not in sight; its first line in sight is a whole one. @param {HTMLElement} text @param {HTMLElement} line */
function scrollToLine(text, line) {
  const { top, bottom } = line.getBoundingClientRect(), box = text.getBoundingClientRect(), { lineHeight, paddingTop } = getComputedStyle(text);
  const index = Math.floor((top - box.top + text.scrollTop - parseFloat(paddingTop)) / parseFloat(lineHeight));
  if (top < box.top || bottom > box.bottom) text.scrollTop = parseFloat(paddingTop) + Math.max(0, index - 4) * parseFloat(lineHeight);
}

/** A sentence, formula or listing of code, which the server sends. @param {HTMLElement} element */
export function words(element) {
  const text = find(element, ".prose, .formula, .code");
  const writeText = (content) => {
    const boxBefore = text.classList.contains("formula") && text.checkVisibility() ? text.getBoundingClientRect() : null;
    const isPlain = text.classList.contains("prose"), newText = content || "";
    if (isPlain) setText(text, newText); // keeps the marked terms in it
    else if (text.textContent !== newText) text.replaceChildren(...(text.classList.contains("code") ? markArrowLine(newText) : colourVectorNames(newText)));
    setHidden(element, !content);
    const markedLine = text.querySelector("mark");
    if (markedLine) scrollToLine(text, markedLine);
    if (boxBefore?.height && content) limitLayoutShift(text, boxBefore);
  };
  setHidden(element, !text.textContent);
  onContent(element, writeText);
}

/** The end of a story step: the next step, and a link to the view with the numbers. @param {HTMLElement} element */
export function numbersViewLink(element) {
  const line = find(element, ".in-full"), view = widgetBlock(element).id.slice(0, -`-${IN_FULL}`.length), next = nextStepButton(view);
  line.replaceChildren(next);
  onContent(element, (content) => {
    numbersLooks.set(view, content?.look ?? {});
    line.replaceChildren(next, ...(content ? [makeLink(_("In Numbers: {words} →", { words: content.words }), content.look)] : []));
    if (content?.opens) find(line, "a").dataset.opens = content.opens;
  });
}

/** A button that unfolds a part of the page. @param {HTMLElement} element */
export function fold(element) {
  const button = find(element, ".fold");
  button.addEventListener("click", () => {
    toggleFold(button);
    document.body.classList.toggle(`unfolded-${widgetBlock(element).id}`, button.ariaExpanded === "true");
  });
}

/** The list of terms. @param {HTMLElement} element */
export function glossary(element) {
  const [forms, meanings] = JSON.parse(find(element, "dl").dataset.known), details = find(element, "details");
  explainTerms(forms, meanings);
  // The first entries contain numbers of the run, updated whenever the list opens.
  details.addEventListener("toggle", () => {
    if (!(/** @type {HTMLDetailsElement} */ (details)).open || !state.checkpoint) return;
    for (const meaning of findAll(element, ".first dd"))
      callServer("define", [state, meaning.dataset.entry]).then((definition) => setText(meaning, definition), () => {}); // on failure the general definition stays
  });
}
