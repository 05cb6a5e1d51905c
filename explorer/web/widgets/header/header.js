// @ts-check
// What stands around the figures: models, how much is explained, the language, plain words and the glossary.
import { changeModel, goToTop, nextStepButton, select } from "../../static/page_actions.js";
import { call } from "../../static/server_connection.js";
import { widgetBlock, onContent } from "../../static/widget_contents.js";
import { button, find, findAll, hide, make, setText, span, toggleFold } from "../../static/dom.js";
import { makeLink, writeUrl } from "../../static/history.js";
import { _, language, rememberLanguage } from "../../static/translations.js";
import { modelName, onState, rememberDepth, state, changeToDepth } from "../../static/page_state.js";
import { IN_FULL } from "../../static/shared_constants.js";
import { explainTerms } from "../../static/glossary_terms.js";

/** @param {HTMLElement} element */
export function picker(element) {
  const box = find(element, ".picker"), list = box.querySelector("select");
  const opens = JSON.parse(box.dataset.opens);
  let models = JSON.parse(box.dataset.models);

  function show(checkpoint) {
    list.replaceChildren(...models.map(([name]) => new Option(name, name)));
    if (opens) list.append(new Option(_("Open a model…"), ""));
    list.value = modelName(checkpoint);
  }

  const follow = () => show(state.checkpoint ?? "");
  // A model's last checkpoint is the one that is trained furthest.
  list.addEventListener("change", () => {
    if (!list.value) {
      follow();
      return find(document, "#open-model").dispatchEvent(new Event("wanted"));
    }
    changeModel(models.find(([name]) => name === list.value)[1]);
  });
  onState(element, follow);
  onContent(element, (content) => { models = content; follow(); });
  follow();
}

/** @param {HTMLElement} element */
export function modeSwitch(element) {
  const buttons = /** @type {HTMLButtonElement[]} */ (findAll(element, "button"));
  for (const button of buttons)
    button.addEventListener("click", () => {
      const { mode } = button.dataset;
      rememberDepth(mode);
      select(changeToDepth(mode));
    });

  function follow() {
    for (const button of buttons) {
      button.ariaPressed = String(button.dataset.mode === (state.depth ?? document.body.dataset.depth));
      button.disabled = !state.checkpoint; // until there is something to show
    }
  }

  onState(element, follow);
  follow();
}

/** @param {HTMLElement} element */
export function languageList(element) {
  const list = /** @type {HTMLSelectElement} */ (find(element, "select"));
  list.value = language;
  setText(find(document, "#page-menu .tag"), list.selectedOptions[0].text.slice(0, 2).toUpperCase()); // EN
  list.addEventListener("change", () => {
    writeUrl();
    rememberLanguage(list.value);
    const address = new URL(location.href);
    address.searchParams.set("lang", list.value);
    location.assign(address);
  });
}

/** @type {EventTarget | null} */
let pressed = null;
addEventListener("pointerdown", ({ target }) => { pressed = target; }, { capture: true, passive: true });

const VECTORS = /(?<![A-Za-z0-9_‑-])([qkv])(?:_proj)?(?![A-Za-z0-9_‑-])/g; // not of top-k

/** A text in which q, k and v have the tints that figures give them. @param {string} text @returns {(string | HTMLElement)[]} */
export function tinted(text) {
  const pieces = [];
  let from = 0;
  for (const { 0: word, 1: vector, index } of text.matchAll(VECTORS)) {
    pieces.push(text.slice(from, index), span(`of-${vector}`, word));
    from = index + word.length;
  }
  return [...pieces, text.slice(from)].filter(Boolean);
}

const MOST_KEPT = 45; // pixels, of two lines

/**
 * Keeps what was pressed below a formula under the pointer: it keeps the room of a line or two less, in the same width,
 * and for more lines the page scrolls.
 * @param {HTMLElement} text
 * @param {DOMRect} before where it was
 */
function keepBelow(text, before) {
  const isBelow = pressed instanceof Node && pressed.isConnected && text.compareDocumentPosition(pressed) & Node.DOCUMENT_POSITION_FOLLOWING;
  text.style.minHeight = "";
  const after = text.getBoundingClientRect(), less = before.height - after.height;
  if (after.width !== before.width || !isBelow || after.bottom < 0) return;
  if (less > 0 && less < MOST_KEPT) text.style.minHeight = `${before.height}px`;
  if (less < 0) scrollBy({ top: -less, behavior: "instant" });
}

/** Code, the line with the arrow marked (source_code.py). @param {string} code */
function withMarkedLine(code) {
  const [before, line, after] = code.split(/^(→.*)$/m);
  return line ? [...tinted(before), make("mark", {}, ...tinted(line)), ...tinted(after)] : tinted(code);
}

/** @param {HTMLElement} element */
export function words(element) {
  const text = find(element, ".prose, .formula, .code"), details = element.querySelector("details");
  const open = () => { details.open = ["formula", "code"].includes(state.depth); };
  let depth = state.depth;
  if (details) {
    open();
    onState(element, () => {
      if (depth !== state.depth) open();
      depth = state.depth;
    });
  }
  const write = (content) => {
    const before = text.classList.contains("formula") && text.checkVisibility() ? text.getBoundingClientRect() : null; // folded, it is as high as a narrow column
    const isPlain = text.classList.contains("prose"), shown = content || "";
    if (isPlain) setText(text, shown); // or else what is marked in it would be lost
    else if (text.textContent !== shown) text.replaceChildren(...(text.classList.contains("code") ? withMarkedLine(shown) : tinted(shown)));
    hide(element, !content);
    const marked = text.querySelector("mark");
    if (marked) text.scrollTop += marked.getBoundingClientRect().top - text.getBoundingClientRect().top - text.clientHeight / 2; // within its box
    if (before?.height && content) keepBelow(text, before);
  };
  hide(element, !text.textContent);
  onContent(element, write);
}

/** @param {HTMLElement} element */
export function numbersViewLink(element) {
  const line = find(element, ".in-full"), next = nextStepButton(widgetBlock(element).id.slice(0, -`-${IN_FULL}`.length));
  const ways = next ? [next] : [ // after the last step
    button(_("Another sentence"), () => find(document, "#guess .another").click(), { className: "next-step" }),
    button(_("A lesson"), () => { goToTop(); find(document, "#lessons .open").click(); }, { className: "plain" }),
  ];
  line.replaceChildren(...ways);
  onContent(element, (content) => line.replaceChildren(...ways, ...(content ? [makeLink(`${content.words} →`, content.look)] : [])));
}

/** @param {HTMLElement} element */
export function fold(element) {
  const button = find(element, ".fold");
  button.addEventListener("click", () => {
    toggleFold(button);
    document.body.classList.toggle(`unfolded-${widgetBlock(element).id}`, button.ariaExpanded === "true");
  });
}

/** @param {HTMLElement} element */
export function glossary(element) {
  const [forms, meanings] = JSON.parse(find(element, "dl").dataset.known), details = find(element, "details");
  explainTerms(forms, meanings);
  // The first have the numbers of the run, each time that the list is opened.
  details.addEventListener("toggle", () => {
    if (!(/** @type {HTMLDetailsElement} */ (details)).open || !state.checkpoint) return;
    for (const meaning of findAll(element, ".first dd"))
      call("define", [state, meaning.dataset.entry]).then((whole) => setText(meaning, whole), () => {}); // its meaning stands
  });
}
