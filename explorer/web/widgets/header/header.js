// @ts-check
// The page around the figures: model menu, depth switch, language menu, explanatory texts, the glossary, and the opening of models.
import { changeModel, nextStepButton, select, requestUpdate } from "../../static/page_actions.js";
import { callServer, RefusedError, clientId } from "../../static/server_connection.js";
import { widgetBlock, onContent, formatDuration, followJob, isJobRunning, cancelJob } from "../../static/widget_contents.js";
import { button, find, findAll, setHidden, make, setText, span, toggleFold, countDraw } from "../../static/dom.js";
import { makeLink, storeUndoStates, writeUrl } from "../../static/history.js";
import { _, language, storeLanguage } from "../../static/text.js";
import { modelName, onState, storeDepth, state, changeToDepth } from "../../static/page_state.js";
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
  onState(update);
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

  onState(update);
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
  const line = find(element, ".in-full"), view = widgetBlock(element).id.slice(0, -"-in-full".length), next = nextStepButton(view);
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

// Opening a model from the Hugging Face Hub, a path or a file; and the comparison of the open model with another implementation.

const HEADER_BYTES = 1 << 16; // enough for the server to identify any file type

/** The form that opens a model, and the result of its comparison. @param {HTMLElement} element */
export function openModel(element) {
  const box = find(element, ".open-model"), form = find(box, "form"), input = box.querySelector("input");
  const opening = find(box, ".opening"), comparison = find(box, ".check"), startedJobs = new Set();
  const { maxBytes, tooLarge } = box.dataset, fileInput = /** @type {HTMLInputElement | null} */ (find(form, "[type=file]"));

  // The last entry of the model menu opens this form (`picker`).
  element.closest("#open-model").addEventListener("wanted", () => {
    form.hidden = false;
    updateVisibility();
    input.focus();
  });
  find(form, ".close").addEventListener("click", close);
  form.addEventListener("keydown", ({ key }) => { if (key === "Escape") close(); });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    lookUpModel();
  });
  async function lookUpModel() {
    const name = input.value.trim();
    if (!name) return;
    opening.replaceChildren(_("looking it up…"));
    try { offerModel(name, await callServer("model_needs", [name])); } catch (error) { showError(error); }
  }
  const showError = (error) => opening.replaceChildren(span("error", error instanceof RefusedError ? error.message : ""));

  // A file that is chosen, or dropped anywhere on the page, is uploaded and opened by its path on the server.
  if (fileInput) {
    fileInput.addEventListener("change", () => { if (fileInput.files[0]) uploadFile(fileInput.files[0]); });
    find(form, ".choose").addEventListener("click", () => fileInput.click());
    const hasFiles = ({ dataTransfer }) => dataTransfer?.types.includes("Files");
    document.addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
    document.addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      form.hidden = false;
      updateVisibility();
      if (event.dataTransfer.files[0]) uploadFile(event.dataTransfer.files[0]);
    });
  }

  /** @param {File} file */
  async function uploadFile(file) {
    fileInput.value = ""; // so that choosing the same file again fires a change event
    if (file.size > +maxBytes) return opening.replaceChildren(span("error", tooLarge));
    const abortController = new AbortController();
    opening.replaceChildren(make("progress", { ariaLabel: file.name }), file.name, button(_("Cancel"), () => { abortController.abort(); opening.replaceChildren(); }));
    try {
      // The server rejects other files than GGUF by their first bytes, so only these are sent.
      const isGguf = (await file.slice(0, 4).text()) === "GGUF", body = isGguf ? file : file.slice(0, HEADER_BYTES);
      const headers = { "X-File-Name": encodeURIComponent(file.name) };
      const response = await fetch("explorer/upload", { method: "POST", headers, body, signal: abortController.signal });
      const { path, detail } = await response.json();
      if (!response.ok) throw new RefusedError(detail);
      input.value = path;
      lookUpModel();
    } catch (error) { if (!abortController.signal.aborted) showError(error); }
  }

  const updateVisibility = () => { box.hidden = Boolean(form.hidden && comparison.hidden); };
  function close() {
    form.hidden = true;
    opening.replaceChildren();
    updateVisibility();
  }

  /** @param {string} name @param {{ words: string, job: string, checkpoint: string }} needs */
  function offerModel(name, { words, job, checkpoint }) {
    if (input.value.trim() !== name) return;
    opening.replaceChildren(span("needs", words), button(_("Open"), () => startOpening(name, job, checkpoint)), button(_("Cancel"), close));
  }

  /** @param {string} name @param {string} job @param {string} checkpoint the model's name once it is open */
  function startOpening(name, job, checkpoint) {
    /** @param {import("../../static/widget_contents.js").Progress | null} progress */
    function show(progress) {
      if (progress?.error) return opening.replaceChildren(span("error", progress.error));
      if (!progress || !isJobRunning(progress)) return opening.replaceChildren();
      const { done, of, seconds } = progress, isLoading = done >= of;
      const bar = make("progress", { ariaLabel: _("fetched"), ...(isLoading || of === 1 ? {} : { max: of, value: done }) });
      const progressText = isLoading || of === 1 ? _("loading…") : _("{done} of {of}, about {time} left", { done: formatSize(done), of: formatSize(of), time: formatDuration(seconds) });
      opening.replaceChildren(bar, progressText, button(_("Cancel"), () => { cancelJob(job); opening.replaceChildren(); }));
    }
    show({ state: "waiting", done: 0, of: 1, seconds: 0, error: "" });
    followJob(job, ["begin_opening", [name, clientId]], show, () => {
      close();
      changeModel(checkpoint);
    });
  }

  // Compare the open model once with another implementation, if there is one; the user can cancel.
  function startComparison(job, words) {
    startedJobs.add(job);
    const showResult = () => comparison.replaceChildren(words);
    followJob(job, ["begin_check", [state.checkpoint, clientId]], (progress) => {
      if (!progress || !isJobRunning(progress)) return showResult();
      comparison.replaceChildren(_("being compared with another implementation… "), button(_("Cancel"), () => cancelJob(job)));
    }, () => requestUpdate("show"));
  }

  onContent(element, ({ names, words, differs, check: job }) => {
    find(form, "datalist").replaceChildren(...names.map((name) => make("option", { value: name })));
    comparison.hidden = !words;
    comparison.classList.toggle("differs", differs);
    if (!job || startedJobs.has(job)) comparison.replaceChildren(words);
    else startComparison(job, words);
    updateVisibility();
    countDraw(box);
  });
}

/** Format a file size. @param {number} bytes */
const formatSize = (bytes) => (bytes >= 1e9 ? _("{size} GB", { size: (bytes / 1e9).toFixed(1) }) : _("{size} MB", { size: Math.ceil(bytes / 1e6) }));
