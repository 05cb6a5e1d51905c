// @ts-check
// What stands around the pictures: models, how much is explained, the language, plain words and the glossary.
import { ask, changeModel, pick } from "../../static/page_actions.js";
import { call, Refused, visitor } from "../../static/server_connection.js";
import { widgetBlock, duration, followJob, isJobRunning, leave, onContent } from "../../static/widget_contents.js";
import { button, countDraw, find, findAll, hide, make, say, span, toggleFold } from "../../static/dom.js";
import { linkTo, writeUrl } from "../../static/history.js";
import { _, language, rememberLanguage } from "../../static/translations.js";
import { modelName, onState, rememberDepth, state, changeToDepth } from "../../static/page_state.js";
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
export function openModel(element) {
  const box = find(element, ".open-model"), form = find(box, "form"), input = box.querySelector("input");
  const opening = find(box, ".opening"), check = find(box, ".check"), begun = new Set();

  // Of the page's list of models the last entry asks for it (header.js).
  element.closest("#open-model").addEventListener("wanted", () => {
    form.hidden = false;
    seen();
    input.focus();
  });
  find(form, ".close").addEventListener("click", close);
  form.addEventListener("keydown", ({ key }) => { if (key === "Escape") close(); });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const name = input.value.trim();
    if (!name) return;
    opening.replaceChildren(_("looking it up…"));
    try { offer(name, await call("model_needs", [name])); }
    catch (error) { opening.replaceChildren(span("error", error instanceof Refused ? error.message : "")); }
  });

  const seen = () => { box.hidden = Boolean(form.hidden && check.hidden); };
  function close() {
    form.hidden = true;
    opening.replaceChildren();
    seen();
  }

  /** @param {string} name @param {{ words: string, job: string }} needs */
  function offer(name, { words, job }) {
    if (input.value.trim() !== name) return;
    opening.replaceChildren(span("needs", words), button(_("Open"), () => open(name, job)), button(_("Cancel"), close));
  }

  /** @param {string} name @param {string} job */
  function open(name, job) {
    /** @param {import("../../static/widget_contents.js").Progress | null} progress */
    function show(progress) {
      if (progress?.error) return opening.replaceChildren(span("error", progress.error));
      if (!progress || !isJobRunning(progress)) return opening.replaceChildren();
      const { done, of, seconds } = progress, loads = done >= of;
      const bar = make("progress", { ariaLabel: _("fetched"), ...(loads ? {} : { max: of, value: done }) });
      const words = loads ? _("loading…") : _("{done} of {of}, about {time} left", { done: megabytes(done), of: megabytes(of), time: duration(seconds) });
      opening.replaceChildren(bar, words, button(_("Cancel"), () => { leave(job); opening.replaceChildren(); }));
    }
    show({ state: "waiting", done: 0, of: 1, seconds: 0, error: "" });
    followJob(job, ["begin_opening", [name, visitor]], show, () => {
      close();
      changeModel(name);
    });
  }

  // The model shown is compared once with another implementation, where there is one; whoever will not wait ends it.
  function compare(job, words) {
    begun.add(job);
    const instead = () => check.replaceChildren(words);
    followJob(job, ["begin_check", [state.checkpoint, visitor]], (progress) => {
      if (!progress || !isJobRunning(progress)) return instead();
      check.replaceChildren(_("being compared with another implementation… "), button(_("Cancel"), () => leave(job)));
    }, () => ask("show"));
  }

  onContent(element, ({ names, words, differs, check: job }) => {
    find(form, "datalist").replaceChildren(...names.map((name) => make("option", { value: name })));
    check.hidden = !words;
    check.classList.toggle("differs", differs);
    if (!job || begun.has(job)) check.replaceChildren(words);
    else compare(job, words);
    seen();
    countDraw(box);
  });
}

/** Bytes in words. @param {number} bytes */
const megabytes = (bytes) => (bytes >= 1e9 ? _("{size} GB", { size: (bytes / 1e9).toFixed(1) }) : _("{size} MB", { size: Math.ceil(bytes / 1e6) }));

/** @param {HTMLElement} element */
export function modeSwitch(element) {
  const buttons = /** @type {HTMLButtonElement[]} */ (findAll(element, "button"));
  for (const button of buttons)
    button.addEventListener("click", () => {
      const { mode } = button.dataset;
      rememberDepth(mode);
      pick(changeToDepth(mode));
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
  const isBelow = pressed instanceof Node && text.compareDocumentPosition(pressed) & Node.DOCUMENT_POSITION_FOLLOWING;
  text.style.minHeight = "";
  const after = text.getBoundingClientRect(), less = before.height - after.height;
  if (after.width !== before.width || !isBelow || after.bottom < 0) return;
  if (less > 0 && less < MOST_KEPT) text.style.minHeight = `${before.height}px`;
  if (less < 0) scrollBy({ top: -less, behavior: "instant" });
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
    const before = text.classList.contains("formula") ? text.getBoundingClientRect() : null;
    const isPlain = text.classList.contains("prose"), shown = content || "";
    if (isPlain) say(text, shown); // or else what is marked in it would be lost
    else if (text.textContent !== shown) text.replaceChildren(...tinted(shown));
    hide(element, !content);
    if (before?.height && content) keepBelow(text, before);
  };
  hide(element, !text.textContent);
  onContent(element, write);
}

/** @param {HTMLElement} element */
export function numbersViewLink(element) {
  onContent(element, (content) => {
    find(element, ".in-full").replaceChildren(...(content ? [linkTo(`${content.words} →`, content.look)] : []));
  });
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
      call("define", [state, meaning.dataset.entry]).then((whole) => say(meaning, whole), () => {}); // its meaning stands
  });
}
