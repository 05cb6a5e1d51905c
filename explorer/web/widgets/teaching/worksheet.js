// @ts-check
// Sheets to print: a whole lesson, with figures, blanks to fill in and a page of answers; or saved slides.
import { callServer, RefusedError } from "../../static/server_connection.js";
import { makeMove } from "../../static/page_actions.js";
import { unfoldFigure } from "../../static/widget_contents.js";
import { button, find, make, makeSvg, interpolatePalette, set, span, toggleTheme, visibleText } from "../../static/dom.js";
import { _ } from "../../static/text.js";
import { standaloneFigure, bitmapUrlPrefix, plotlyConfig, plotly, loadPlotly } from "../../static/plotly_figures.js";
import { THEMES } from "../../static/shared_constants.js";
import { state } from "../../static/page_state.js";
import { buildMap, partsOnSheet } from "../figure/model_map.js";
import { renderBlocks } from "./lesson.js";
import { makeSlide, slideQuery, slidesDeck } from "./presentation_pages.js";

// The map of the model on paper, in its landscape layout and light colours.

const STYLESHEET_URL = new URL("../../widgets.css", import.meta.url).href;

/** Append a map to a figure. @param {HTMLElement} parent @param {any} content as Python sends it */
async function appendMap(parent, content) {
  const layout = partsOnSheet(content, 0), sheet = make("div", { className: "sheet", inert: true }), style = new CSSStyleSheet();
  const container = make("div", { className: "map-on-paper", role: "img", ariaLabel: layout.alt }), root = container.attachShadow({ mode: "open" });
  style.replaceSync(await (await fetch(STYLESHEET_URL)).text()); // fetched, as a detached element loads no linked sheet
  root.adoptedStyleSheets = [style];
  root.append(make("div", { dataset: { widget: "model_map" } }, sheet)); // the selector of the map's rules
  sheet.style.setProperty("--ratio", layout.size.join("/"));
  buildMap(sheet, "", () => THEMES.light).draw(layout);
  parent.append(container);
}

// Questions on paper: with space for a reply, and with the answer of the run.

/** @typedef {Record<string, any>} Data */

const blankLine = () => span("blank");
const optionList = (options, isRight = (_i) => false, numbers = []) =>
  make("ul", { className: "options" }, ...options.map((label, i) => make("li", { className: isRight(i) ? "is-right" : "" }, numbers[i] ? `${label}: ${numbers[i]}` : label)));
const table = (rows) => make("table", {}, ...rows.map((cells) => make("tr", {}, ...cells)));
const cell = (...contents) => make("td", {}, ...contents);
/** Return a formula with the exponents of e raised. @param {string} formula */
const raiseExponents = (formula) => formula.split(/(?<=e)\^\(([^()]*)\)/).map((part, i) => (i % 2 ? make("sup", {}, part) : part));

/** @type {Record<string, (question: Data) => Node[]>} */
const BLANK_RENDERERS = {
  choice: ({ options }) => [optionList(options)],
  token: ({ options }) => (options.length ? [optionList(options)] : [blankLine()]),
  cell: ({ rows, columns, there }) => [table([
    [make("td", { className: "none" }), ...columns.map((name) => make("th", {}, name))],
    ...rows.map((name, i) => [make("th", {}, name), ...columns.map((_name, j) => make("td", { className: there[i][j] ? "" : "none" }))]),
  ])],
  number: ({ lowest, highest }) => [make("p", {}, blankLine(), " ", _("(from {lowest} to {highest})", { lowest, highest }))],
  curve: ({ labels, lowest, highest }) => [drawAxes(labels, lowest, highest)],
  blanks: ({ rows }) => [table(rows.map(({ says, value }) => [make("th", {}, ...raiseExponents(says)), cell(value ?? blankLine())]))],
};

/** Render a question with space for a reply. @param {Data} question */
const renderBlank = (question) => BLANK_RENDERERS[question.kind](question);

/** @type {Record<string, (question: Data, truth: Data) => Node[]>} */
const ANSWER_RENDERERS = {
  choice: ({ options }, { right, shown }) => [optionList(options, (i) => right.includes(i + 1), shown.map((value) => value?.[1]))],
  token: (_question, { bars, right }) => [optionList(bars.map(({ token }) => `“${visibleText(token)}”`), (i) => i === right, bars.map(({ number }) => number))],
  cell: () => [],
  number: (_question, { written }) => [make("p", {}, make("strong", {}, written))],
  curve: ({ labels }, { written }) => [table([labels.map((label) => make("th", {}, label)), labels.map((_label, i) => cell(written[i]))])],
  blanks: ({ rows }, { truth }) => {
    let next = 0;
    return [table(rows.map(({ says, value }) => [make("th", {}, ...raiseExponents(says)), value === null ? cell(make("strong", {}, truth[next++])) : cell(value)]))];
  },
};

/** Render the answer of the run. @param {Data} question @param {Data} answer */
const renderAnswer = (question, answer) => ANSWER_RENDERERS[question.kind](question, answer);

// Draw empty axes for a curve.
function drawAxes(labels, lowest, highest) {
  const svg = makeSvg("svg", "axes"), width = 320, height = 160, left = 44, bottom = 24;
  set(svg, { viewBox: `0 0 ${width} ${height}` });
  const addShape = (tag, attributes, text = "") => {
    const node = makeSvg(tag);
    node.textContent = text;
    set(node, attributes);
    svg.append(node);
  };
  addShape("path", { d: `M${left} 6V${height - bottom}H${width - 4}`, fill: "none", stroke: "#222" });
  addShape("text", { x: left - 5, y: 14, "text-anchor": "end" }, String(highest));
  addShape("text", { x: left - 5, y: height - bottom, "text-anchor": "end" }, String(lowest));
  labels.forEach((label, i) => {
    const x = left + 14 + (i * (width - left - 30)) / Math.max(1, labels.length - 1);
    addShape("path", { d: `M${x} ${height - bottom}v4`, stroke: "#222" });
    addShape("text", { x, y: height - 8, "text-anchor": "middle" }, label);
  });
  return svg;
}

// A lesson on paper, requested step by step, as each may take a while.

const WIDTH = 580, MAX_HEIGHT = 330, COPY_WIDTH = 560; // pixels of a figure drawn for paper, within its margins, and of one copied from the page

/** Open an empty sheet. @param {string} name of its content @param {() => void} [onClose] */
function openPaper(name, onClose) {
  const previousFocus = /** @type {HTMLElement} */ (document.activeElement), abortController = new AbortController();
  const status = span("told"), print = button(_("Print"), () => window.print(), { disabled: true });
  const sheet = make("div", { id: "sheet", role: "dialog", ariaModal: "true", ariaLabel: name });
  const close = () => {
    abortController.abort();
    sheet.remove();
    document.body.classList.remove("with-sheet");
    previousFocus?.focus();
    onClose?.();
  };
  const paper = make("main", { className: "paper" });
  status.role = "status";
  sheet.append(make("div", { className: "bar" }, print, button(_("Close"), close), status), paper);
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") close(); }, { signal: abortController.signal });
  document.body.append(sheet);
  document.body.classList.add("with-sheet");
  find(sheet, ".bar button:not([disabled])").focus();
  return {
    paper, status, signal: abortController.signal,
    /** Mark the sheet as complete, ready to print. */
    finish() {
      status.textContent = "";
      print.disabled = false;
      print.focus();
      sheet.dataset.ready = "true";
    },
  };
}

/** Open the sheet of a lesson. @param {string} name @param {number} steps */
export async function openSheet(name, steps) {
  const { paper, status, signal, finish } = openPaper(_("sheet of the lesson"));
  const answers = make("section", { className: "answers" }, make("h2", {}, _("Answers")));
  for (let stepNumber = 1; stepNumber <= steps; stepNumber++) {
    status.textContent = _("step {step} of {steps}", { step: stepNumber, steps });
    try {
      const step = await callServer("lesson_sheet", [state, name, stepNumber], signal);
      if (stepNumber === 1) paper.append(...titleBlock(step));
      paper.append(await renderStep(step));
      const answerSection = await renderStepAnswer(step);
      if (answerSection) answers.append(answerSection);
    } catch (error) {
      if (signal.aborted) return;
      status.textContent = error instanceof RefusedError ? error.message : _("The server does not answer.");
      return;
    }
  }
  if (answers.children.length > 1) {
    const box = make("input", { type: "checkbox" });
    answers.hidden = true;
    box.addEventListener("change", () => { answers.hidden = !box.checked; });
    status.before(make("label", {}, box, " ", _("with the answers")));
    paper.append(answers);
  }
  finish();
}

// Slides on paper: the page opens each slide, and its drawn figure is copied.

/**
 * Open the sheet of slides; closing it restores the page.
 * @param {import("./presentation_pages.js").Slide[]} slides
 */
export async function openSlideSheet(slides) {
  const previousSlide = makeSlide(state, "", ""), isDark = document.body.classList.contains("dark"); // paper is light
  const { paper, status, signal, finish } = openPaper(_("Slides"), () => {
    if (isDark) toggleTheme();
    if (previousSlide) makeMove({ kind: "place", words: slideQuery(previousSlide) });
  });
  if (isDark) toggleTheme();
  const slideEvents = new EventTarget(), deck = slidesDeck(slides, 0, () => slideEvents.dispatchEvent(new Event("slide")));
  for (let i = 0; i < slides.length && !signal.aborted; i++) {
    status.textContent = _("slide {slide} of {slides}", { slide: i + 1, slides: slides.length });
    while (!deck.currentPage().figure && !deck.currentPage().problem) await new Promise((resolve) => slideEvents.addEventListener("slide", resolve, { once: true, signal }));
    const { heading, figure, problem } = deck.currentPage();
    const section = make("section", { className: "step" }, make("h2", {}, `${i + 1}. ${heading}`), make("p", { className: "text" }, _("Text: “{text}”", { text: /** @type {HTMLTextAreaElement} */ (find(document, "#prompt textarea")).value })));
    section.append(problem ? make("p", {}, problem) : await copyFigure(figure));
    if (slides[i].notes) section.append(make("p", {}, slides[i].notes));
    paper.append(section);
    deck.go(1);
  }
  finish();
}

/** Copy a figure of the page with its styles. @param {string} id */
async function copyFigure(id) {
  const block = /** @type {HTMLElement} */ (document.getElementById(id)), container = make("figure", {}), isFolded = block.classList.contains("folded");
  if (isFolded) unfoldFigure(id);
  await window.explorer.settled();
  const plot = block.querySelector(".plot:has(.main-svg)");
  if (plot) {
    const { width, height } = plot.getBoundingClientRect(), { data, layout } = await standaloneFigure(plot, true);
    container.append(make("img", { className: "plot", alt: plot.ariaLabel ?? "", src: await plotly().toImage({ data, layout }, { format: "svg", width, height: Math.max(height, layout.height) }) }));
    return container;
  }
  const copy = /** @type {HTMLElement} */ (block.cloneNode(true)), style = new CSSStyleSheet(), root = make("div", { inert: true });
  for (const removed of copy.querySelectorAll(".evidence-mark, .readout, .inspection, .told")) removed.remove(); // of no use on paper
  style.replaceSync(await (await fetch(STYLESHEET_URL)).text()); // fetched, as a detached element loads no linked sheet
  const shadow = root.attachShadow({ mode: "open" });
  shadow.adoptedStyleSheets = [style];
  shadow.append(copy);
  root.style.zoom = String(Math.min(1, COPY_WIDTH / block.offsetWidth));
  root.style.width = `${block.offsetWidth}px`;
  container.append(root);
  return container;
}

const titleBlock = ({ title, audience, minutes, against, model, note }) => [
  make("h1", {}, title),
  make("p", { className: "about" }, _("For {audience} · {minutes} minutes · with {model}", { audience, minutes, model })),
  make("p", { className: "about" }, _("You may think that {belief}. It is not so.", { belief: against })),
  ...(note ? [make("p", { className: "about" }, note)] : []),
];

/** Render a step without its answer. */
async function renderStep(step) {
  const { step: stepNumber, heading, before, text, question, task, after, problem, missing } = step;
  const section = make("section", { className: "step" }, make("h2", {}, `${stepNumber}. ${heading}`), make("p", { className: "text" }, _("Text: “{text}”", { text })), ...renderBlocks(before));
  if (problem || missing) section.append(make("p", {}, problem ?? missing.words));
  if (!step.is_hidden) await appendFigure(section, step.figure);
  if (question) section.append(make("div", { className: "asks" }, make("p", {}, question.words), ...renderBlank(question)));
  if (task) section.append(make("p", { className: "task" }, "☐ ", _("Try it on the page, and write down what you found:"), " ", blankLine(), blankLine()));
  const isAfterPublic = !task && (!question || question.is_example); // the text after a question would reveal the answer
  if (isAfterPublic) section.append(...renderBlocks(after ?? []));
  return section;
}

/** Render the answer to a step's question, and the text after it; null if it has no question. */
async function renderStepAnswer({ step, heading, question, judged, after, figure, is_hidden: isHidden }) {
  if (!question || question.is_example || !judged) return null;
  const section = make("section", { className: "answer" }, make("h3", {}, `${step}. ${heading}`), ...renderAnswer(question, judged.truth));
  if (judged.words) section.append(make("p", {}, judged.words));
  section.append(...renderBlocks(after ?? []));
  if (isHidden) await appendFigure(section, figure);
  return section;
}

async function appendFigure(parent, figure) {
  if (!figure?.content || figure.content.instead) return;
  const { kind, title, height, content } = figure, container = make("figure", {}, make("figcaption", {}, title));
  if (kind === "head_grid") container.append(renderHeadGrid(content));
  else if (kind === "figure") {
    await loadPlotly();
    const plot = make("div", { className: "plot" });
    container.append(plot);
    parent.append(container);
    const [data, layout] = content.map((part) => JSON.parse(part)), { meta, ...rest } = layout;
    plot.role = "img";
    plot.ariaLabel = meta?.alt ?? "";
    const size = { width: WIDTH, height: Math.min(height, MAX_HEIGHT) };
    await plotly().newPlot(plot, data, { ...rest, template: THEMES.light.template, ...size }, { ...plotlyConfig(), staticPlot: true });
    return;
  } else if (kind === "model_map") {
    parent.append(container);
    return appendMap(container, content);
  } else return;
  parent.append(container);
}

function renderHeadGrid({ heads, pixels, data, signed, alt }) {
  const { sequential, diverging } = THEMES.light, urlPrefix = bitmapUrlPrefix(interpolatePalette(signed ? diverging : sequential), pixels, pixels);
  const container = make("div", { className: "heads", role: "img", ariaLabel: alt });
  container.style.gridTemplateColumns = `repeat(${heads}, 1fr)`;
  container.append(...data.map((bytes) => make("img", { src: urlPrefix + bytes, alt: "" })));
  return container;
}
