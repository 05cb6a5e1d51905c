// @ts-check
// The panel of a lesson's step (text, question, reply, correct answer) and the menu of lessons.
import { callServer, RefusedError } from "../../static/server_connection.js";
import { onContent, scrollToFigure, reportFailure } from "../../static/widget_contents.js";
import { button, countDraw, makeDropdown, find, findAll, make, makeSvg, makeFocusableWhileScrolling, addRovingFocus, setText, set, span, setTabStop, tokenNodes } from "../../static/dom.js";
import { finishLesson, forgetReply, goToStep, leaveLesson, lessonPositions, showAnswer, notifyLessonStep } from "../../static/history.js";
import { _, ngettext } from "../../static/text.js";
import { onState, state } from "../../static/page_state.js";
import { heldReply, isAnswerHeld, onRoom, replyToStep } from "../../static/room_client.js";
import { openSheet } from "./worksheet.js";

// Rendering a lesson's text, which arrives as a small tree (lessons/lesson.py).

/** @typedef {string | { kind: string, text?: string, parts?: Part[] }} Part */
/** @typedef {{ kind: string, text?: string, parts?: Part[], ordered?: boolean, items?: Part[][], head?: Part[][], rows?: Part[][][] }} Block */

/** @type {Record<string, (block: Block) => HTMLElement>} */
const BLOCKS = {
  paragraph: ({ parts }) => make("p", {}, ...renderParts(parts)),
  list: ({ ordered, items }) => make(ordered ? "ol" : "ul", {}, ...items.map((item) => make("li", {}, ...renderParts(item)))),
  table: ({ head, rows }) => make("table", {}, row("th", head), ...rows.map((cells) => row("td", cells))),
  code: ({ text }) => makeFocusableWhileScrolling(make("pre", {}, make("code", {}, text))),
};
const TAGS = /** @type {Record<string, "strong" | "em" | "code" | "b">} */ ({ strong: "strong", emphasis: "em", code: "code", number: "b" });

/** Render a lesson's blocks of text as elements. @param {Block[]} tree @returns {HTMLElement[]} */
export const renderBlocks = (tree) => tree.map((block) => BLOCKS[block.kind](block));

/** @param {Part[]} parts @returns {(string | Node)[]} */
const renderParts = (parts) => parts.map((part) => (typeof part === "string" ? part : make(TAGS[part.kind], {}, ...(part.parts ? renderParts(part.parts) : [part.text]))));

/** @param {"th" | "td"} tag @param {Part[][]} cells */
const row = (tag, cells) => make("tr", {}, ...cells.map((cell) => make(tag, {}, ...renderParts(cell))));

// Covering what would reveal the answer to a question, until the student has replied.

const FIGURE_BLOCKS = "#view .panels > .block", TEXT_ID_SUFFIXES = ["-formula", "-written", "-in-full", "-walk"];
// Elements outside of figures that name the most likely next tokens, or append them.
const PREDICTION_CONTROLS = ["#next-token-more", "#likeliest", "body:not(.lesson-writes) :is(#bar .buttons, #again)", "#view :is(label:has(> :is([data-field=target], [data-field=rival])), .what-ifs)"];
/** @type {CSSStyleSheet | null} */
let coverSheet = null;

/**
 * Return the selectors of covered elements: the named ids, all figures of other tabs, and the sentences of every tab.
 * @param {{ ids: string[], view: string }} hides
 */
const coveredSelectors = ({ ids, view }) => ({
  figures: [...ids.map((id) => `#${id}`), `${FIGURE_BLOCKS}:not([id^="${view}-"])`],
  words: [...TEXT_ID_SUFFIXES.map((end) => `#view [id$="${end}"]`), ...(ids.includes("next-token") ? PREDICTION_CONTROLS : [])],
});

/** Cover the elements that reveal a step's answer; null uncovers all. @param {{ target?: string, hides?: { ids: string[], view: string } | null } | null} step */
function coverAnswers(step) {
  const { hides, target } = step ?? {};
  if (!coverSheet) document.adoptedStyleSheets.push(coverSheet = new CSSStyleSheet());
  if (!hides) return coverSheet.replaceSync("");
  const { figures, words } = coveredSelectors(hides), coverText = JSON.stringify(isAnswerHeld() ? _("Shown with the answer.") : _("Shown once you have replied."));
  const selectors = [...figures, ...words].join(), named = hides.ids.includes(target) && target !== "strip" ? figures.filter((figure) => figure !== "#strip") : figures; // one cover says it
  coverSheet.replaceSync(`:is(${selectors}), :is(${selectors}) :is(*, ::before, ::after) { visibility: hidden !important; }
:is(${named.join()}) { --covered: ${coverText}; }
.panels > .block:is(${figures.join()}) { height: 96px; overflow: hidden; }`);
}

const AXES_FIGURE = "attention-pattern"; // covered, it keeps its title, its frame and the tokens at its axes (lessons_and_presenting.css), which reveal nothing

/** Return the id of the figure that a step shows, if it is covered; "" otherwise, and null before its view is there. @param {{ target?: string, task: any, view: any, hides?: { ids: string[] } | null }} step */
function coveredFigure(step) {
  const subject = visibleSubject(step), { ids } = step.hides ?? { ids: [] };
  if (!ids.length || ids.includes("strip")) return "";
  const first = subject === "view" ? find(document, `#view > [id^="${step.view}-"] .panels > .block:not(.hidden)`) : null;
  if (subject === "view" && !first?.matches("[data-drawn]")) return null;
  const id = first?.id ?? { figure: step.target, answer: "next-token" }[subject] ?? "";
  return ids.includes(id) ? id : "";
}

/** @type {QuestionRenderer} */
function askChoice({ options }, judged, reply) {
  if (!judged) return [make("div", { className: "options" }, ...options.map((label, i) => optionButton(label, String(i + 1), reply)))];
  const { right, shown: values, are_shares: areShares } = judged.truth, max = areShares ? 1 : Math.max(...values.map((value) => Math.abs(value?.[0] ?? 0)));
  return [make("ol", { className: "options" }, ...options.map((label, i) => {
    const isRight = right.includes(i + 1), isYours = judged.reply === String(i + 1);
    const row = markOption(make("li", { className: "option" }, span("says", label)), isRight, isYours);
    if (values[i]) row.append(shareBar(Math.abs(values[i][0]) / (max || 1)), span("number", values[i][1]));
    row.append(...resultLabels(isRight, isYours));
    return row;
  }))];
}

/** @param {string} label @param {string} value its reply @param {(reply: string) => void} reply */
function optionButton(label, value, reply) {
  const option = button("", () => reply(value), { className: "option" });
  option.dataset.reply = value;
  option.append(span("says", label));
  return option;
}

/** Return a bar whose length is a share from 0 to 1. @param {number} share */
function shareBar(share) {
  const filled = make("i", { className: "filled" });
  filled.style.width = `${100 * Math.max(0, Math.min(1, share))}%`;
  return make("span", { className: "bar", ariaHidden: "true" }, filled);
}

/**
 * Mark an element as the correct answer, as the student's reply, or both, and return it.
 * @template {HTMLElement} Made
 * @param {Made} element @param {boolean} isRight @param {boolean} isYours @returns {Made}
 */
function markOption(element, isRight, isYours) {
  element.classList.toggle("is-right", isRight);
  element.classList.toggle("is-yours", isYours);
  return element;
}

/** @param {boolean} isRight @param {boolean} isYours */
const resultLabels = (isRight, isYours) => [
  ...(isRight ? [span("says-right", _("✓ right"))] : []),
  ...(isYours ? [span("says-yours", _("your reply"))] : []),
];

const QUESTION_BESIDE = "(min-width: 601px) and (max-width: 1099px)"; // widths at which the question stands beside its text (teaching.css)
const MAX_REPLY_CHARACTERS = 40; // the limit of lessons/questions.py

/** @type {QuestionRenderer} */
function askToken({ options }, judged, reply) {
  if (judged) {
    const { bars, right, yours } = judged.truth;
    return [make("ol", { className: "options" }, ...bars.map(({ token, rank, share, number }, i) => {
      const row = markOption(make("li", { className: "option" }, span("token", ...tokenNodes(token))), i === right, i === yours);
      row.style.setProperty("--rank", String(rank)); // the reply's rank may be far below the others'
      row.append(shareBar(share), span("number", number), ...resultLabels(i === right, i === yours));
      return row;
    }))];
  }
  if (options.length) return [make("div", { className: "options" }, ...options.map((word) => optionButton(word, word, reply)))];
  const box = make("input", { maxLength: MAX_REPLY_CHARACTERS, autocomplete: "off", spellcheck: false, ariaLabel: _("your reply") });
  const refusal = make("p", { className: "wrong", role: "alert" });
  const form = make("form", { className: "line" }, box, make("button", { type: "submit", className: "reply" }, _("Reply")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const word = box.value.trim();
    refusal.textContent = word ? "" : _("Write a word first.");
    if (!word) return box.focus();
    reply(word);
  });
  return [form, refusal];
}

/** @type {QuestionRenderer} */
function askCell({ rows, columns, there }, judged, reply) {
  const cells = rows.map((row, i) => columns.map((column, j) => cell(i, j, row, column)));
  const head = make("tr", {}, make("td"), ...columns.map((column) => make("th", { scope: "col" }, make("span", {}, column))));
  const table = make("table", { className: "cells" }, head, ...rows.map((row, i) => make("tr", {}, make("th", { scope: "row" }, row), ...cells[i].map((node) => make("td", {}, node)))));
  if (!judged) {
    const buttons = cells.flat().filter((node) => node.tagName === "BUTTON");
    setTabStop(buttons, buttons[0]);
    addRovingFocus(table, {
      at: ({ target }) => cellPosition(target),
      size: () => ({ rows: rows.length, columns: columns.length }),
      go: ({ row, column }) => { if (there[row][column]) { setTabStop(buttons, cells[row][column]); cells[row][column].focus(); } },
    });
  }
  const box = make("div", { className: "scrolls" }, table);
  return [judged ? makeFocusableWhileScrolling(box) : box]; // before the reply, its buttons take the focus

  function cellPosition(target) {
    const row = cells.findIndex((cellsOfRow) => cellsOfRow.includes(target));
    return row < 0 ? null : { row, column: cells[row].indexOf(target) };
  }

  function cell(i, j, row, column) {
    if (!there[i][j]) return make("span", { className: "none" });
    if (!judged) {
      const node = make("button", { type: "button", className: "cell", ariaLabel: _("row {row}, column {column}", { row, column }), onclick: () => reply(`${i}_${j}`) });
      node.dataset.reply = `${i}_${j}`;
      return node;
    }
    const { values, right, are_shares: areShares } = judged.truth, max = areShares ? 1 : Math.max(...values.flat().map((value) => Math.abs(value?.[0] ?? 0)));
    const isRight = right[0] === i && right[1] === j, isYours = judged.reply === `${i}_${j}`, [value, written] = values[i][j];
    const node = markOption(make("span", { className: "cell", title: written }, isRight ? "✓" : isYours ? "•" : ""), isRight, isYours);
    node.style.setProperty("--share", String(Math.max(0, value) / (max || 1)));
    return node;
  }
}

const SLIDER_STEPS = 200;

/** @type {QuestionRenderer} */
function askNumber({ lowest, highest, is_count: isCount }, judged, reply) {
  if (judged) return [resultTrack(judged)];
  const step = isCount ? 1 : (highest - lowest) / SLIDER_STEPS, formatValue = () => (isCount ? input.value : formatWithPrecision(+input.value, highest - lowest));
  const input = make("input", { type: "range", min: String(lowest), max: String(highest), step: String(step), ariaLabel: _("your reply") });
  input.value = String((lowest + highest) / 2);
  const output = make("output", {}, formatValue());
  input.addEventListener("input", () => { output.textContent = formatValue(); });
  const ends = make("div", { className: "ends", ariaHidden: "true" }, span("", String(lowest)), span("", String(highest)));
  const line = make("div", { className: "line" }, output, button(_("Reply"), () => reply(output.textContent.replace("−", "-")), { className: "reply" }));
  return [make("div", { className: "slider" }, input, ends), line];
}

/** Format a number with the decimals that a slider of this range can distinguish. @param {number} value @param {number} length */
function formatWithPrecision(value, length) {
  const decimals = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(length))));
  return value.toFixed(decimals).replace("-", "−");
}

/** Draw the reply and the correct value on one track. @param {Judged} judged */
function resultTrack({ truth: { truth, written, yours, within, lowest, highest }, reply, is_right: isRight }) {
  const replied = reply === null ? null : +reply, low = Math.min(lowest, replied ?? lowest), high = Math.max(highest, replied ?? highest);
  const percent = (value) => `${(100 * (value - low)) / (high - low)}%`;
  const tolerance = make("i", { className: "near" }), line = make("div", { className: "track" }, tolerance);
  tolerance.style.left = percent(Math.max(low, truth - within));
  tolerance.style.right = `calc(100% - ${percent(Math.min(high, truth + within))})`;
  const addPin = (value, className, label) => {
    const pinNode = make("span", { className: "pin" }, make("span", { className: "flag" }, label));
    pinNode.classList.add(className);
    if (className === "of-visitor") pinNode.classList.toggle("right", Boolean(isRight));
    pinNode.style.left = percent(value);
    if ((value - low) / (high - low) > 0.5) pinNode.classList.add("to-left");
    line.append(pinNode);
  };
  addPin(truth, "of-run", `${_("✓ right")}: ${written}`);
  if (replied !== null) addPin(replied, "of-visitor", `${_("your reply")} ${yours}`);
  return line;
}

const WIDTH = 320, HEIGHT = 160, LEFT = 44, BOTTOM = 24, PADDING = 10;

/** @type {QuestionRenderer} */
function askCurve({ labels, lowest, highest }, judged, reply) {
  const low = judged?.truth.lowest ?? lowest, high = judged?.truth.highest ?? highest;
  const x = (i) => LEFT + PADDING + (i * (WIDTH - LEFT - 2 * PADDING)) / (labels.length - 1);
  const y = (value) => PADDING + ((high - value) * (HEIGHT - BOTTOM - 2 * PADDING)) / (high - low);
  const valueAtY = (coordinate) => Math.max(low, Math.min(high, high - ((coordinate - PADDING) * (high - low)) / (HEIGHT - BOTTOM - 2 * PADDING)));
  const svg = makeSvg("svg", "curve");
  set(svg, { viewBox: `0 0 ${WIDTH} ${HEIGHT}` });
  const addText = (label, labelX, labelY, anchor) => {
    const node = makeSvg("text");
    node.textContent = label;
    set(node, { x: labelX, y: labelY, "text-anchor": anchor });
    svg.append(node);
  };
  const addLine = (values, className) => {
    const node = makeSvg("polyline", className);
    set(node, { points: values.map((value, i) => `${x(i)},${y(value)}`).join(" ") });
    svg.append(node);
    return node;
  };
  for (const end of [low, high]) addText(formatWithPrecision(end, high - low), LEFT - 4, y(end) + 4, "end");
  labels.forEach((label, i) => addText(label, x(i), HEIGHT - 6, "middle"));
  if (judged) {
    const replied = judged.reply?.split("_").map(Number);
    set(svg, { role: "img", "aria-label": labels.map((label, i) => `${label}: ${judged.truth.written[i]}`).join(", ") });
    const markCorrectness = (/** @type {Element} */ element) => (element.classList.toggle("right", Boolean(judged.is_right)), element);
    if (replied) markCorrectness(addLine(replied, "of-visitor"));
    addLine(judged.truth.truth, "of-run");
    return [svg, make("p", { className: "legend" }, ...(replied ? [markCorrectness(span("of-visitor", `╌╌ ${_("your reply")}`)), " "] : []), span("of-run", `── ${_("✓ right")}`))];
  }
  const values = labels.map(() => (low + high) / 2), replyLine = addLine(values, "of-visitor");
  const points = values.map((_value, i) => {
    const point = makeSvg("circle", "point");
    set(point, { r: 8, cx: x(i), tabindex: 0, role: "slider", "aria-label": labels[i], "aria-valuemin": low, "aria-valuemax": high });
    point.addEventListener("keydown", (event) => {
      const step = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 }[/** @type {KeyboardEvent} */ (event).key];
      if (!step) return;
      event.preventDefault();
      setValue(i, Math.max(low, Math.min(high, values[i] + (step * (high - low)) / 20)));
    });
    svg.append(point);
    return point;
  });
  function setValue(i, value) {
    values[i] = value;
    set(points[i], { cy: y(value), "aria-valuenow": formatWithPrecision(value, high - low) });
    set(replyLine, { points: values.map((other, j) => `${x(j)},${y(other)}`).join(" ") });
  }
  values.forEach((value, i) => setValue(i, value));
  const moveNearestPoint = (/** @type {PointerEvent} */ event) => {
    if (!event.buttons && event.type !== "pointerdown") return;
    const box = svg.getBoundingClientRect(), scale = WIDTH / box.width, pointerX = (event.clientX - box.left) * scale;
    const nearest = labels.map((_label, i) => Math.abs(x(i) - pointerX)).reduce((best, distance, i, distances) => (distance < distances[best] ? i : best), 0);
    setValue(nearest, valueAtY((event.clientY - box.top) * scale));
  };
  svg.addEventListener("pointerdown", moveNearestPoint);
  svg.addEventListener("pointermove", moveNearestPoint);
  const sendCurve = () => reply(values.map((value) => formatWithPrecision(value, high - low).replace("−", "-")).join("_"));
  return [make("p", { className: "legend" }, _("Drag the points, or move them with the arrow keys.")), svg, button(_("Reply"), sendCurve, { className: "reply" })];
}

const MAX_REPLY_NUMBER = 1e12; // the limit of lessons/questions.py

/** @type {QuestionRenderer} */
function askBlanks({ rows }, judged, reply) {
  const replied = judged?.reply?.split("_") ?? [];
  let blankCount = 0;
  const boxes = [];
  const table = make("table", { className: "working" }, ...rows.map(({ says: label, value }) => {
    const row = make("tr", {}, make("th", { scope: "row" }, label));
    if (value !== null) {
      row.append(make("td", {}, value));
      return row;
    }
    const i = blankCount++;
    if (judged) {
      const isRight = judged.truth.are_right?.[i];
      const yours = replied[i] === undefined ? [] : [span(isRight ? "says-yours right" : "says-yours wrong", `${isRight ? "✓" : "✗"} ${replied[i].replace("-", "−")}`), " "];
      row.append(make("td", {}, ...yours, span("says-right", judged.truth.truth[i])));
    } else {
      const box = make("input", { inputMode: "decimal", autocomplete: "off", size: 8, ariaLabel: label });
      boxes.push(box);
      row.append(make("td", {}, box));
    }
    return row;
  }));
  if (!boxes.length) return [make("div", { className: "scrolls" }, table)];
  const refusal = make("p", { className: "wrong", role: "alert" });
  const form = make("form", {}, make("div", { className: "scrolls" }, table), refusal, make("button", { type: "submit", className: "reply" }, _("Reply")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const invalidBox = boxes.find((box) => parseNumber(box.value) === null), text = invalidBox?.value.trim();
    refusal.textContent = !invalidBox ? "" : text ? _("“{reply}” is no number: write one, such as 0.25.", { reply: text }) : _("A blank is empty: write a number into each.");
    if (invalidBox) return invalidBox.focus();
    reply(boxes.map((box) => String(parseNumber(box.value))).join("_"));
  });
  return [form];
}

/** Parse a reply as a number; null if it is none. @param {string} text */
export function parseNumber(text) {
  const normalized = text.trim().replace("−", "-").replace(",", ".");
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(normalized) && Math.abs(+normalized) < MAX_REPLY_NUMBER ? +normalized : null;
}

// A lesson's question; after the reply, the same figure shows the reply and the correct answer.

/** @typedef {{ is_right: boolean | null, words: string, truth: Record<string, any>, reply: string | null }} Judged */
/**
 * Renders a question: with inputs, or, once judged, with the reply and the correct answer.
 * @typedef {(question: Record<string, any>, judged: Judged | undefined, reply: (reply: string) => void) => Node[]} QuestionRenderer
 */

/** @type {Record<string, QuestionRenderer>} */
const QUESTION_RENDERERS = { choice: askChoice, token: askToken, cell: askCell, number: askNumber, curve: askCurve, blanks: askBlanks };

/** Render a question with its buttons. @param {Record<string, any>} question @param {Judged | undefined} judged */
function renderQuestion(question, judged) {
  const nodes = [make("p", { className: "words" }, question.words), ...QUESTION_RENDERERS[question.kind](question, judged, replyToStep)];
  if (question.is_example) return nodes;
  if (judged) return [...nodes, button(_("Ask me again"), forgetReply, { className: "quiet" })];
  return [...nodes, button(_("Just show me"), showAnswer, { className: "quiet" })];
}

/** Return which controls a step shows: above the figures those that it points out or that its words name; the sliders if it sets them. @param {Record<string, any>} step @param {HTMLElement} column */
function namedTools({ target, sets_sampling: setsSampling }, column) {
  const labels = { "what-ifs": _("Change"), walks: _("▶ Step by step").replace("▶ ", "") }, named = findAll(column, "em").map((node) => node.textContent);
  return [...Object.keys(labels).filter((tool) => target?.endsWith(`-${tool}`) || named.includes(labels[tool])), ...(setsSampling ? ["sampling"] : [])].join(" ");
}

const TARGET_CLASS = "pointed-out", MAX_FRAMES = 600; // animation frames to wait for a figure

/** Return the part of the page that a step shows: one figure (for a task with the next one), the tokens, the next token, the first figure of a view, or the whole page in another view. */
function visibleSubject({ target = "", task, view }) {
  if (view !== state.view) return "page";
  if (target === "prompt") return !task ? "view" : view === "tokens" ? "strip" : "answer";
  if (task) return "task";
  if (["next-token", "generation", "stand-ins"].includes(target)) return "answer";
  if (target === "strip") return target;
  return !target || target === "series" || target.endsWith("-what-ifs") ? "view" : "figure";
}

/** Show that part alone. On a phone the buttons at the bottom stay for a step that generates text, or in another view. @param {{ target?: string, task: any, view: any }} step */
function showSubject(step) {
  document.body.dataset.lessonOn = visibleSubject(step);
  document.body.classList.toggle("lesson-types", step.target === "prompt");
  document.body.classList.toggle("lesson-writes", step.target === "generation" || step.view !== state.view);
}

/** The panel of a lesson's step. @param {HTMLElement} element */
export function lesson(element) {
  const column = find(element, ".lesson"), fold = find(column, ".fold"), heading = find(column, "h2");
  const back = /** @type {HTMLButtonElement} */ (find(column, ".back")), next = find(column, ".next");
  const partData = new Map(); // selector of a part of the column -> its data as JSON
  let content = null, currentStep = "", isAtEnd = false;

  function show(step) {
    const stepKey = `${step.name} ${step.step}`, isNew = stepKey !== currentStep, isAnswered = !isNew && step.judged && !content?.judged;
    content = step;
    currentStep = stepKey;
    if (isAtEnd && !isNew) return;
    isAtEnd = false;
    column.classList.remove("at-end");
    coverAnswers(step);
    column.classList.toggle("covers", Boolean(step.hides && (!step.target || step.hides.ids.includes(step.target)))); // the question takes the space of its covered figure
    showSubject(step);
    markCovered(step, stepKey, MAX_FRAMES);
    setText(heading, step.heading ?? "");
    setText(find(column, ".of"), step.steps ? _("{title} · {step} of {steps}", { title: step.title, step: step.step, steps: step.steps }) : "");
    setText(find(column, ".note"), step.note ?? "");
    setText(find(column, ".against"), step.step === 1 ? _("You may think that {belief}. It is not so.", { belief: step.against }) : "");
    updatePart(".before", step.before, renderBlocks, []);
    updatePart(".question", [step.question, step.judged?.truth, step.judged?.reply, step.missing, step.problem], () => renderQuestionPart(step));
    updateVerdict();
    updatePart(".after", step.after, renderBlocks, []);
    document.body.dataset.lessonTools = namedTools(step, column);
    back.disabled = !(step.step > 1);
    const isSkipped = step.question && !step.question.is_example && !step.judged;
    next.textContent = step.step === step.steps ? _("Finish") : isSkipped ? _("Skip") : _("Next");
    next.classList.toggle("skips", Boolean(isSkipped));
    if (isNew) startStep(step.target);
    if (isAnswered && !matchMedia(QUESTION_BESIDE).matches) for (const part of [".after", ".verdict"]) find(column, part).scrollIntoView({ block: "nearest" }); // the verdict, and its explanation as far as it fits
    notifyLessonStep(step);
    countDraw(column);
  }

  /** Show the end of the lesson: the misconception that it corrects, and the next lesson. */
  async function close() {
    isAtEnd = true;
    finishLesson();
    column.classList.add("at-end");
    const { name, title, against, steps } = content;
    setText(heading, _("Done: {title}", { title }));
    for (const selector of [".against", ".note"]) setText(find(column, selector), "");
    for (const selector of [".question", ".verdict", ".after"]) updatePart(selector, null, () => [], []);
    const sentences = [ngettext("You went through its {count} step.", "You went through all {count} steps.", steps), ...(against ? [_("You may have thought that {belief}. You have seen that it is not so.", { belief: against })] : [])];
    updatePart(".before", ["done", name], () => sentences.map((text) => make("p", {}, text)));
    next.textContent = _("Close");
    back.disabled = false;
    heading.focus({ preventScroll: true });
    const allLessons = await callServer("listed_lessons", [state]), nextLesson = allLessons.slice(allLessons.findIndex((other) => other.name === name) + 1).find(({ needs }) => !needs);
    if (!isAtEnd || !nextLesson) return;
    updatePart(".after", ["next", nextLesson.name], () => [make("p", {}, _("The next lesson:")), button(nextLesson.title, () => goToStep(nextLesson.name, lessonPositions()[nextLesson.name]?.step ?? 1), { className: "reply" })]);
  }

  function reopen() {
    isAtEnd = false;
    show(content);
  }

  // Replace a part only if its data changed, so that the keyboard focus stays.
  function updatePart(selector, data, render, fallback) {
    const json = JSON.stringify(data ?? null);
    if (partData.get(selector) === json) return;
    partData.set(selector, json);
    find(column, selector).replaceChildren(...render(data ?? fallback));
  }

  function renderQuestionPart({ question, judged, missing, problem }) {
    if (missing) {
      const offer = button(_("Use {model} instead", { model: missing.offered }), () => goToStep(content.name, content.step, missing.offered), { className: "reply" });
      return [make("p", {}, missing.words), offer];
    }
    if (problem) return [make("p", {}, problem)];
    return question ? renderQuestion(question, judged) : [];
  }

  /** Show the verdict, or whether the reply waits for the teacher to show the answer. */
  function updateVerdict() {
    const { judged, task } = content, held = judged ? null : heldReply();
    updatePart(".verdict", [judged?.is_right, judged?.words, task, held !== null], () => (held === null ? renderVerdict(content) : [make("p", { className: "open" }, _("Reply sent. The teacher shows the answer later; until then you can change your reply."))]));
    for (const node of findAll(column, ":is(button.option, button.cell)")) node.ariaPressed = held === null ? null : String(node.dataset.reply === held);
  }

  function renderVerdict({ judged, task }) {
    if (task) return [make("p", { className: task.is_done ? "right" : "open" }, task.is_done ? `✓ ${task.words}` : task.words)];
    if (!judged?.words) return [];
    const { is_right: isRight, words } = judged;
    if (isRight === null) return [make("p", { className: "open" }, words)];
    return [make("p", { className: isRight ? "right" : "wrong" }, make("strong", {}, isRight ? _("✓ Right, well done.") : _("✗ Not quite.")), ` ${words}`)];
  }

  function startStep(target) {
    clearHighlight();
    find(column, ".told").scrollTop = 0;
    scrollTo(0, 0); // the previous step may have been scrolled
    if (column.contains(document.activeElement)) heading.focus({ preventScroll: true });
    if (target) highlightTarget(target, currentStep, MAX_FRAMES);
  }

  /** Highlight a figure; wait for it, as its tab may still be opening. @param {string} id @param {string} stepKey the step that asks for it @param {number} framesLeft */
  function highlightTarget(id, stepKey, framesLeft) {
    const figure = document.getElementById(id);
    if (stepKey !== currentStep || !framesLeft) return;
    if (!figure) return requestAnimationFrame(() => highlightTarget(id, stepKey, framesLeft - 1));
    figure.classList.add(TARGET_CLASS);
    if (figure.closest(".panels")) scrollToFigure(id);
    else figure.scrollIntoView({ block: "nearest" });
  }

  /** Let the style sheet show, in place of a covered figure, its axes or the tokens in large letters; wait for its view. @param {any} step @param {string} stepKey @param {number} framesLeft */
  function markCovered(step, stepKey, framesLeft) {
    const id = coveredFigure(step);
    if (stepKey !== currentStep || step !== content || !framesLeft) return;
    if (id === null) return requestAnimationFrame(() => markCovered(step, stepKey, framesLeft - 1));
    document.body.dataset.lessonCovers = id === AXES_FIGURE ? "axes" : id ? "tokens" : "";
  }

  function clearHighlight() {
    for (const former of findAll(document, `.${TARGET_CLASS}`)) former.classList.remove(TARGET_CLASS);
  }

  function updateOpen() {
    const isOpen = Boolean(state.lesson);
    if (isOpen && content) showSubject(content);
    if (isOpen !== column.hidden) return;
    column.hidden = !isOpen;
    isAtEnd = false;
    document.body.classList.toggle("in-lesson", isOpen);
    window.dispatchEvent(new Event("resize")); // the width of figures changed
    if (isOpen) return;
    coverAnswers(null);
    currentStep = "";
    clearHighlight();
  }

  back.addEventListener("click", () => (isAtEnd ? reopen() : goToStep(state.lesson, content.step - 1)));
  next.addEventListener("click", () => {
    if (isAtEnd || !content?.steps) return leaveLesson();
    return content.step < content.steps ? goToStep(state.lesson, content.step + 1) : close();
  });
  find(column, ".leave").addEventListener("click", leaveLesson);
  find(column, ".print").addEventListener("click", () => { if (content?.steps) openSheet(content.name, content.steps); });
  fold.addEventListener("click", () => {
    fold.ariaExpanded = String(fold.ariaExpanded !== "true");
    document.body.classList.toggle("lesson-folded", fold.ariaExpanded !== "true");
  });
  new ResizeObserver(() => { if (column.offsetHeight) document.body.style.setProperty("--sheet", `${column.offsetHeight}px`); }).observe(column); // the figure above fills the rest
  onState(updateOpen);
  onContent(element, show);
  let wasHeld = false;
  onRoom(() => {
    if (!content || isAtEnd) return;
    updateVerdict();
    if (wasHeld === isAnswerHeld()) return;
    wasHeld = !wasHeld;
    coverAnswers(content);
  });
  updateOpen();
}

/** @typedef {{ name: string, title: string, audience: string, minutes: number, steps: number, against: string, needs?: string }} ListedLesson needs: the model that the lesson requires, if it is not loaded */

/** The menu of lessons. @param {HTMLElement} element */
export function lessons(element) {
  const open = find(element, ".open"), list = find(element, ".list");
  /** @type {Promise<ListedLesson[]> | null} */
  let lessonList = null;

  async function fill() {
    lessonList ??= callServer("listed_lessons", [state]);
    try {
      const allLessons = await lessonList, positions = lessonPositions();
      find(list, ".all").replaceChildren(...allLessons.map((lesson, i) => row(lesson, positions[lesson.name], !i)));
    } catch (error) {
      lessonList = null;
      if (error instanceof RefusedError) reportFailure(error);
      return false;
    }
  }
  const { hide } = makeDropdown(open, list, { fill, first: () => rows()[0] });
  find(list, ".to-glossary").addEventListener("click", () => {
    const details = /** @type {HTMLDetailsElement} */ (find(document, "#glossary details"));
    hide();
    details.open = true;
    details.scrollIntoView({ block: "start" });
    find(details, "summary").focus({ preventScroll: true });
  });
  find(list, ".to-slides").addEventListener("click", () => { hide(); find(document, "#present .open").click(); });

  /** @param {ListedLesson} lesson @param {{ step: number, isDone?: boolean } | undefined} position @param {boolean} isFirst */
  function row({ name, title, audience, minutes, steps, needs }, position, isFirst) {
    const count = ngettext("{count} step", "{count} steps", steps); // outside of `_`, as messages inside its arguments are not extracted
    const length = _("{minutes} min, {steps}", { minutes, steps: count });
    const rowButton = make("button", { type: "button", className: "one" }, span("title", position?.isDone ? `✓ ${title}` : title), span("length", length), span("audience", _("For {audience}", { audience })));
    if (needs) rowButton.append(span("audience", needs));
    else if (position && position.step > 1) rowButton.append(span("left", _("go on with step {step}", { step: position.step })));
    else if (position?.isDone) rowButton.append(span("left", _("done")));
    else if (isFirst) rowButton.append(span("left", _("Start here")));
    rowButton.addEventListener("click", () => {
      hide();
      goToStep(name, Math.min(position?.step ?? 1, steps));
    });
    return rowButton;
  }

  const rows = () => /** @type {HTMLElement[]} */ (findAll(list, "button").filter((row) => row.checkVisibility()));
  addRovingFocus(list, {
    at: () => ({ row: rows().findIndex((row) => row === document.activeElement), column: 0 }),
    size: () => ({ rows: rows().length, columns: 1 }),
    go: (to) => rows()[to.row].focus(),
  });
}
