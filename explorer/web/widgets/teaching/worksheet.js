// @ts-check
// A whole lesson as a sheet to print: figures, blanks to fill in, and the answers on a page of their own. And slides.
import { call, Refused } from "../../static/server_connection.js";
import { makeMove } from "../../static/page_actions.js";
import { unfoldFigure } from "../../static/widget_contents.js";
import { button, find, make, makeSvg, interpolatePalette, set, span, toggleTheme } from "../../static/dom.js";
import { _ } from "../../static/translations.js";
import { alone, bitmapUrlPrefix, config, plotly, plotlyLoaded } from "../../static/plotly_figures.js";
import { THEMES } from "../../static/shared_constants.js";
import { state } from "../../static/page_state.js";
import { buildMap, partsOnSheet } from "../model_map/model_map.js";
import { prose } from "./lesson.js";
import { makeSlide, slideQuery, slidesDeck } from "./presentation_pages.js";

// The map of the model on paper: as on a wide page, with the style sheet that it has there, in the colours of paper.

const STYLE = new URL("../../widgets.css", import.meta.url).href;

/** Puts a map into a figure. @param {HTMLElement} into @param {any} content as Python sends it */
async function addMap(into, content) {
  const wide = partsOnSheet(content, 0), sheet = make("div", { className: "sheet", inert: true }), style = new CSSStyleSheet();
  const made = make("div", { className: "map-on-paper", role: "img", ariaLabel: wide.alt }), root = made.attachShadow({ mode: "open" });
  style.replaceSync(await (await fetch(STYLE)).text()); // fetched, as what is in no document yet loads nothing
  root.adoptedStyleSheets = [style];
  root.append(make("div", { dataset: { widget: "model_map" } }, sheet)); // which the map's rules hold within
  sheet.style.setProperty("--ratio", wide.size.join("/"));
  buildMap(sheet, "", () => THEMES.light).draw(wide);
  into.append(made);
}

// Questions on paper: with room for a reply, and as the run answers them.

/** @typedef {Record<string, any>} Data */

const line = () => span("blank");
const choices = (options, isRight = (_i) => false, numbers = []) =>
  make("ul", { className: "options" }, ...options.map((says, i) => make("li", { className: isRight(i) ? "is-right" : "" }, numbers[i] ? `${says}: ${numbers[i]}` : says)));
const table = (rows) => make("table", {}, ...rows.map((cells) => make("tr", {}, ...cells)));
const cell = (...contents) => make("td", {}, ...contents);

/** @type {Record<string, (question: Data) => Node[]>} */
const BLANKS = {
  choice: ({ options }) => [choices(options)],
  token: ({ options }) => (options.length ? [choices(options)] : [line()]),
  cell: ({ rows, columns, there }) => [table([
    [make("td", { className: "none" }), ...columns.map((name) => make("th", {}, name))],
    ...rows.map((name, i) => [make("th", {}, name), ...columns.map((_name, j) => make("td", { className: there[i][j] ? "" : "none" }))]),
  ])],
  number: ({ lowest, highest }) => [make("p", {}, line(), " ", _("(from {lowest} to {highest})", { lowest, highest }))],
  curve: ({ labels, lowest, highest }) => [axes(labels, lowest, highest)],
  blanks: ({ rows }) => [table(rows.map(({ says, value }) => [make("th", {}, says), cell(value ?? line())]))],
};

/** A question with room for a reply. @param {Data} question */
const blank = (question) => BLANKS[question.kind](question);

/** @type {Record<string, (question: Data, truth: Data) => Node[]>} */
const TRUTHS = {
  choice: ({ options }, { right, shown }) => [choices(options, (i) => right.includes(i + 1), shown.map((value) => value?.[1]))],
  token: (_question, { bars, right }) => [choices(bars.map(({ token }) => `“${token}”`), (i) => i === right, bars.map(({ number }) => number))],
  cell: () => [],
  number: (_question, { written }) => [make("p", {}, make("strong", {}, written))],
  curve: ({ labels }, { written }) => [table([labels.map((label) => make("th", {}, label)), labels.map((_label, i) => cell(written[i]))])],
  blanks: ({ rows }, { truth }) => {
    let next = 0;
    return [table(rows.map(({ says, value }) => [make("th", {}, says), value === null ? cell(make("strong", {}, truth[next++])) : cell(value)]))];
  },
};

/** What the run answers. @param {Data} question @param {Data} found */
const truth = (question, found) => TRUTHS[question.kind](question, found);

// An empty coordinate system, to draw a curve in.
function axes(labels, lowest, highest) {
  const svg = makeSvg("svg", "axes"), width = 320, height = 160, left = 44, bottom = 24;
  set(svg, { viewBox: `0 0 ${width} ${height}` });
  const add = (tag, attributes, words = "") => {
    const made = makeSvg(tag);
    made.textContent = words;
    set(made, attributes);
    svg.append(made);
  };
  add("path", { d: `M${left} 6V${height - bottom}H${width - 4}`, fill: "none", stroke: "#222" });
  add("text", { x: left - 5, y: 14, "text-anchor": "end" }, String(highest));
  add("text", { x: left - 5, y: height - bottom, "text-anchor": "end" }, String(lowest));
  labels.forEach((label, i) => {
    const x = left + 14 + (i * (width - left - 30)) / Math.max(1, labels.length - 1);
    add("path", { d: `M${x} ${height - bottom}v4`, stroke: "#222" });
    add("text", { x, y: height - 8, "text-anchor": "middle" }, label);
  });
  return svg;
}

// A lesson on paper: its words and figures, its questions with room to reply, and on a page of their own the answers that
// the run gives now. Asked for step by step, as each may take a while.

const WIDTH = 640, MOST_HEIGHT = 330, COPY_WIDTH = 560; // pixels of a figure on paper, and of one copied from the page

/** Opens an empty sheet. @param {string} name of what is on it @param {() => void} [closed] is called once it is left */
function openPaper(name, closed) {
  const focused = /** @type {HTMLElement} */ (document.activeElement), closing = new AbortController();
  const told = span("told"), print = button(_("Print"), () => window.print(), { disabled: true });
  const sheet = make("div", { id: "sheet", role: "dialog", ariaModal: "true", ariaLabel: name });
  const close = () => {
    closing.abort();
    sheet.remove();
    document.body.classList.remove("with-sheet");
    focused?.focus();
    closed?.();
  };
  const paper = make("main", { className: "paper" });
  told.role = "status";
  sheet.append(make("div", { className: "bar" }, print, button(_("Close"), close), told), paper);
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") close(); }, { signal: closing.signal });
  document.body.append(sheet);
  document.body.classList.add("with-sheet");
  find(sheet, ".bar button:not([disabled])").focus();
  return {
    paper, told, signal: closing.signal,
    /** All is there to be printed. */
    finish() {
      told.textContent = "";
      print.disabled = false;
      print.focus();
      sheet.dataset.ready = "true";
    },
  };
}

/** Opens the sheet of a lesson. @param {string} name @param {number} steps */
export async function openSheet(name, steps) {
  const { paper, told, signal, finish } = openPaper(_("sheet of the lesson"));
  const answers = make("section", { className: "answers" }, make("h2", {}, _("Answers")));
  for (let place = 1; place <= steps; place++) {
    told.textContent = _("step {step} of {steps}", { step: place, steps });
    try {
      const step = await call("lesson_sheet", [state, name, place], signal);
      if (place === 1) paper.append(...titled(step));
      paper.append(await stepOnPaper(step));
      const answer = await answerTo(step);
      if (answer) answers.append(answer);
    } catch (error) {
      if (signal.aborted) return;
      told.textContent = error instanceof Refused ? error.message : _("The server does not answer.");
      return;
    }
  }
  if (answers.children.length > 1) paper.append(answers);
  finish();
}

// Slides on paper: the page goes to each, and its figure is copied as it is drawn.

/**
 * Opens the sheet of slides; the page is as before once it is left.
 * @param {import("./presentation_pages.js").Slide[]} slides
 */
export async function openSlideSheet(slides) {
  const before = makeSlide(state, "", ""), isDark = document.body.classList.contains("dark"); // paper is light
  const { paper, told, signal, finish } = openPaper(_("Slides"), () => {
    if (isDark) toggleTheme();
    if (before) makeMove({ kind: "place", words: slideQuery(before) });
  });
  if (isDark) toggleTheme();
  const changed = new EventTarget(), deck = slidesDeck(slides, 0, () => changed.dispatchEvent(new Event("slide")));
  signal.addEventListener("abort", () => deck.leave());
  for (let i = 0; i < slides.length && !signal.aborted; i++) {
    told.textContent = _("slide {slide} of {slides}", { slide: i + 1, slides: slides.length });
    while (!deck.shown().figure && !deck.shown().problem) await new Promise((resolve) => changed.addEventListener("slide", resolve, { once: true, signal }));
    const { heading, figure, problem } = deck.shown();
    const made = make("section", { className: "step" }, make("h2", {}, `${i + 1}. ${heading}`), make("p", { className: "text" }, _("Text: “{text}”", { text: /** @type {HTMLTextAreaElement} */ (find(document, "#prompt textarea")).value })));
    made.append(problem ? make("p", {}, problem) : await figureOnPaper(figure));
    if (slides[i].notes) made.append(make("p", {}, slides[i].notes));
    paper.append(made);
    deck.go(1);
  }
  finish();
}

/** A copy of a figure of the page, in the styles that it has there. @param {string} id */
async function figureOnPaper(id) {
  const block = /** @type {HTMLElement} */ (document.getElementById(id)), made = make("figure", {}), isFolded = block.classList.contains("folded");
  if (isFolded) unfoldFigure(id);
  await window.explorer.settled();
  const plot = block.querySelector(".plot:has(.main-svg)");
  if (plot) {
    const { width, height } = plot.getBoundingClientRect(), { data, layout } = alone(plot);
    made.append(make("img", { className: "plot", alt: plot.ariaLabel ?? "", src: await plotly().toImage({ data, layout: { ...layout, paper_bgcolor: "#fff" } }, { format: "svg", width, height: Math.max(height, layout.height) }) }));
    return made;
  }
  const copy = /** @type {HTMLElement} */ (block.cloneNode(true)), style = new CSSStyleSheet(), root = make("div", { inert: true });
  for (const other of copy.querySelectorAll(".evidence-mark, .readout, .inspection, .told")) other.remove(); // what only a page is for
  const canvases = Array.from(block.querySelectorAll("canvas"));
  Array.from(copy.querySelectorAll("canvas")).forEach((canvas, i) => {
    const image = make("img", { src: canvases[i].toDataURL(), className: canvas.className, alt: "" });
    image.style.cssText = canvas.style.cssText;
    canvas.replaceWith(image);
  });
  style.replaceSync(await (await fetch(STYLE)).text()); // fetched, as what is in no document yet loads nothing
  const shadow = root.attachShadow({ mode: "open" });
  shadow.adoptedStyleSheets = [style];
  shadow.append(copy);
  root.style.zoom = String(Math.min(1, COPY_WIDTH / block.offsetWidth));
  root.style.width = `${block.offsetWidth}px`;
  made.append(root);
  return made;
}

const titled = ({ title, audience, minutes, against, model, note }) => [
  make("h1", {}, title),
  make("p", { className: "about" }, _("For {audience} · {minutes} minutes · with {model}", { audience, minutes, model })),
  make("p", { className: "about" }, _("You may think that {belief}. It is not so.", { belief: against })),
  ...(note ? [make("p", { className: "about" }, note)] : []),
];

/** What is printed before the answers. */
async function stepOnPaper(step) {
  const { step: place, heading, before, text, question, task, after, problem, missing } = step;
  const made = make("section", { className: "step" }, make("h2", {}, `${place}. ${heading}`), make("p", { className: "text" }, _("Text: “{text}”", { text })), ...prose(before));
  if (problem || missing) made.append(make("p", {}, problem ?? missing.words));
  if (!step.is_hidden) await addFigure(made, step.figure);
  if (question) made.append(make("div", { className: "asks" }, make("p", {}, question.words), ...blank(question)));
  if (task) made.append(make("p", { className: "task" }, "☐ ", _("Try it on the page, and write down what you found:"), " ", span("blank")));
  const isTold = !task && (!question || question.is_example); // what follows from a reply is no secret where there is none
  if (isTold) made.append(...prose(after ?? []));
  return made;
}

/** What is told once there is a reply; null where nothing is. */
async function answerTo({ step, heading, question, judged, after, figure, is_hidden: isHidden }) {
  if (!question || question.is_example || !judged) return null;
  const made = make("section", { className: "answer" }, make("h3", {}, `${step}. ${heading}`), ...truth(question, judged.truth));
  if (judged.words) made.append(make("p", {}, judged.words));
  made.append(...prose(after ?? []));
  if (isHidden) await addFigure(made, figure);
  return made;
}

async function addFigure(into, figure) {
  if (!figure?.content || figure.content.instead) return;
  const { kind, title, height, content } = figure, made = make("figure", {}, make("figcaption", {}, title));
  if (kind === "head_grid") made.append(grid(content));
  else if (kind === "figure") {
    await plotlyLoaded();
    const plot = make("div", { className: "plot" });
    made.append(plot);
    into.append(made);
    const [data, layout] = content.map((part) => JSON.parse(part)), { meta, ...rest } = layout;
    plot.role = "img";
    plot.ariaLabel = meta?.alt ?? "";
    const size = { width: WIDTH, height: Math.min(height, MOST_HEIGHT) };
    await plotly().newPlot(plot, data, { ...rest, template: THEMES.light.template, ...size }, { ...config(), staticPlot: true });
    return;
  } else if (kind === "model_map") {
    into.append(made);
    return addMap(made, content);
  } else return;
  into.append(made);
}

function grid({ heads, pixels, data, signed, alt }) {
  const { sequential, diverging } = THEMES.light, before = bitmapUrlPrefix(interpolatePalette(signed ? diverging : sequential), pixels, pixels);
  const made = make("div", { className: "heads", role: "img", ariaLabel: alt });
  made.style.gridTemplateColumns = `repeat(${heads}, 1fr)`;
  made.append(...data.map((bytes) => make("img", { src: before + bytes, alt: "" })));
  return made;
}
