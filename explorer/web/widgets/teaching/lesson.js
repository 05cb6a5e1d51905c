// @ts-check
// A lesson's step: its words, its question with the reply, and the truth; and the list of lessons.
import { call, Refused } from "../../static/server_connection.js";
import { onContent, scrollToFigure, reportFailure } from "../../static/widget_contents.js";
import { button, countDraw, dropDown, find, findAll, make, makeSvg, focusableWhileScrolling, addRovingFocus, setText, set, span, setTabStop, tokenNodes } from "../../static/dom.js";
import { finishLesson, forgetReply, goToStep, leaveLesson, lessonPositions, sendReply, showAnswer, notifyLessonStep } from "../../static/history.js";
import { _, ngettext } from "../../static/translations.js";
import { onState, state } from "../../static/page_state.js";
import { openSheet } from "./worksheet.js";

// A lesson's words, which come as a small tree (lessons/lesson.py), as elements of text.

/** @typedef {string | { kind: string, text?: string, parts?: Part[] }} Part */
/** @typedef {{ kind: string, text?: string, parts?: Part[], ordered?: boolean, items?: Part[][], head?: Part[][], rows?: Part[][][] }} Block */

/** @type {Record<string, (block: Block) => HTMLElement>} */
const BLOCKS = {
  paragraph: ({ parts }) => make("p", {}, ...inline(parts)),
  list: ({ ordered, items }) => make(ordered ? "ol" : "ul", {}, ...items.map((item) => make("li", {}, ...inline(item)))),
  table: ({ head, rows }) => make("table", {}, row("th", head), ...rows.map((cells) => row("td", cells))),
  code: ({ text }) => focusableWhileScrolling(make("pre", {}, make("code", {}, text))),
};
const TAGS = /** @type {Record<string, "strong" | "em" | "code" | "b">} */ ({ strong: "strong", emphasis: "em", code: "code", number: "b" });

/** @param {Block[]} tree @returns {HTMLElement[]} */
export const prose = (tree) => tree.map((block) => BLOCKS[block.kind](block));

/** @param {Part[]} parts @returns {(string | Node)[]} */
const inline = (parts) => parts.map((part) => (typeof part === "string" ? part : make(TAGS[part.kind], {}, ...(part.parts ? inline(part.parts) : [part.text]))));

/** @param {"th" | "td"} tag @param {Part[][]} cells */
const row = (tag, cells) => make("tr", {}, ...cells.map((cell) => make(tag, {}, ...inline(cell))));

// What would tell the answer to a lesson's question is covered until there is a reply.

const FIGURES = "#view .panels > .block", TOLD = ["-formula", "-written", "-in-full", "-walk"];
// What names the likeliest next tokens outside of figures, or writes them.
const NAMING = ["#next-token-more", "body:not(.lesson-writes) :is(#bar .buttons, #again)", "#view :is(label:has(> :is([data-field=target], [data-field=rival])), .what-ifs)"];
/** @type {CSSStyleSheet | null} */
let sheet = null; // that covers them

/**
 * The selectors of what is covered: what is named, all figures of other tabs, and what is told in words in any.
 * @param {{ ids: string[], view: string }} hides
 */
const covered = ({ ids, view }) => ({
  figures: [...ids.map((id) => `#${id}`), `${FIGURES}:not([id^="${view}-"])`],
  words: [...TOLD.map((end) => `#view [id$="${end}"]`), ...(ids.includes("next-token") ? NAMING : [])],
});

/** Covers that, or nothing. @param {{ ids: string[], view: string } | null | undefined} hides */
function cover(hides) {
  if (!sheet) document.adoptedStyleSheets.push(sheet = new CSSStyleSheet());
  if (!hides) return sheet.replaceSync("");
  const { figures, words } = covered(hides), sentence = JSON.stringify(_("Shown once you have replied."));
  const all = [...figures, ...words].join();
  sheet.replaceSync(`:is(${all}), :is(${all}) :is(*, ::before, ::after) { visibility: hidden !important; }
:is(${figures.join()}) { --covered: ${sentence}; }
.panels > .block:is(${figures.join()}) { height: 96px; overflow: hidden; }`);
}

/** @type {Ask} */
function askChoice({ options }, judged, reply) {
  if (!judged) return [make("div", { className: "options" }, ...options.map((says, i) => optionButton(says, () => reply(String(i + 1)))))];
  const { right, shown, are_shares: areShares } = judged.truth, most = areShares ? 1 : Math.max(...shown.map((value) => Math.abs(value?.[0] ?? 0)));
  return [make("ol", { className: "options" }, ...options.map((says, i) => {
    const isRight = right.includes(i + 1), isYours = judged.reply === String(i + 1);
    const row = marked(make("li", { className: "option" }, span("says", says)), isRight, isYours);
    if (shown[i]) row.append(bar(Math.abs(shown[i][0]) / (most || 1)), span("number", shown[i][1]));
    row.append(...marks(isRight, isYours));
    return row;
  }))];
}

/** @param {string} says @param {() => void} act */
function optionButton(says, act) {
  const made = button("", act, { className: "option" });
  made.append(span("says", says));
  return made;
}

/** A bar as long as a share. @param {number} share */
function bar(share) {
  const filled = make("i", { className: "filled" });
  filled.style.width = `${100 * Math.max(0, Math.min(1, share))}%`;
  return make("span", { className: "bar", ariaHidden: "true" }, filled);
}

/**
 * The same element, as what is right, or what was replied.
 * @template {HTMLElement} Made
 * @param {Made} made @param {boolean} isRight @param {boolean} isYours @returns {Made}
 */
function marked(made, isRight, isYours) {
  made.classList.toggle("is-right", isRight);
  made.classList.toggle("is-yours", isYours);
  return made;
}

/** @param {boolean} isRight @param {boolean} isYours */
const marks = (isRight, isYours) => [
  ...(isRight ? [span("says-right", _("✓ right"))] : []),
  ...(isYours ? [span("says-yours", _("your reply"))] : []),
];

const LONGEST = 40; // characters of a reply (lessons/questions.py)

/** @type {Ask} */
function askToken({ options }, judged, reply) {
  if (judged) {
    const { bars, right, yours } = judged.truth;
    return [make("ol", { className: "options" }, ...bars.map(({ token, share, number }, i) => {
      const row = marked(make("li", { className: "option" }, span("token", ...tokenNodes(token))), i === right, i === yours);
      row.append(bar(share), span("number", number), ...marks(i === right, i === yours));
      return row;
    }))];
  }
  if (options.length) return [make("div", { className: "options" }, ...options.map((word) => optionButton(word, () => reply(word))))];
  const box = make("input", { maxLength: LONGEST, autocomplete: "off", spellcheck: false, ariaLabel: _("your reply") });
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

/** @type {Ask} */
function askCell({ rows, columns, there }, judged, reply) {
  const cells = rows.map((row, i) => columns.map((column, j) => cell(i, j, row, column)));
  const head = make("tr", {}, make("td"), ...columns.map((column) => make("th", { scope: "col" }, make("span", {}, column))));
  const table = make("table", { className: "cells" }, head, ...rows.map((row, i) => make("tr", {}, make("th", { scope: "row" }, row), ...cells[i].map((one) => make("td", {}, one)))));
  if (!judged) {
    const all = cells.flat().filter((one) => one.tagName === "BUTTON");
    setTabStop(all, all[0]);
    addRovingFocus(table, {
      at: ({ target }) => savedPlace(target),
      size: () => ({ rows: rows.length, columns: columns.length }),
      go: ({ row, column }) => { if (there[row][column]) { setTabStop(all, cells[row][column]); cells[row][column].focus(); } },
    });
  }
  const box = make("div", { className: "scrolls" }, table);
  return [judged ? focusableWhileScrolling(box) : box]; // or else its buttons are reached

  function savedPlace(target) {
    const row = cells.findIndex((ones) => ones.includes(target));
    return row < 0 ? null : { row, column: cells[row].indexOf(target) };
  }

  function cell(i, j, row, column) {
    if (!there[i][j]) return make("span", { className: "none" });
    if (!judged) return make("button", { type: "button", className: "cell", ariaLabel: _("row {row}, column {column}", { row, column }), onclick: () => reply(`${i}_${j}`) });
    const { values, right, are_shares: areShares } = judged.truth, most = areShares ? 1 : Math.max(...values.flat().map((value) => Math.abs(value?.[0] ?? 0)));
    const isRight = right[0] === i && right[1] === j, isYours = judged.reply === `${i}_${j}`, [value, written] = values[i][j];
    const made = marked(make("span", { className: "cell", title: written }, isRight ? "✓" : isYours ? "•" : ""), isRight, isYours);
    made.style.setProperty("--share", String(Math.max(0, value) / (most || 1)));
    return made;
  }
}

const STEPS = 200; // of the slider

/** @type {Ask} */
function askNumber({ lowest, highest, is_count: isCount }, judged, reply) {
  if (judged) return [track(judged)];
  const step = isCount ? 1 : (highest - lowest) / STEPS, text = () => (isCount ? input.value : short(+input.value, highest - lowest));
  const input = make("input", { type: "range", min: String(lowest), max: String(highest), step: String(step), ariaLabel: _("your reply") });
  input.value = String((lowest + highest) / 2);
  const told = make("output", {}, text());
  input.addEventListener("input", () => { told.textContent = text(); });
  const ends = make("div", { className: "ends", ariaHidden: "true" }, span("", String(lowest)), span("", String(highest)));
  const line = make("div", { className: "line" }, told, button(_("Reply"), () => reply(told.textContent.replace("−", "-")), { className: "reply" }));
  return [make("div", { className: "slider" }, input, ends), line];
}

/** A number with as many places as a slider of some length tells apart. @param {number} value @param {number} length */
function short(value, length) {
  const places = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(length))));
  return value.toFixed(places).replace("-", "−");
}

/** Reply and truth on one track. @param {Judged} judged */
function track({ truth: { truth, written, yours, within, lowest, highest }, reply, is_right: isRight }) {
  const given = reply === null ? null : +reply, low = Math.min(lowest, given ?? lowest), high = Math.max(highest, given ?? highest);
  const place = (value) => `${(100 * (value - low)) / (high - low)}%`;
  const near = make("i", { className: "near" }), line = make("div", { className: "track" }, near);
  near.style.left = place(Math.max(low, truth - within));
  near.style.right = `calc(100% - ${place(Math.min(high, truth + within))})`;
  const pin = (value, className, words) => {
    const made = make("span", { className: "pin" }, make("span", { className: "flag" }, words));
    made.classList.add(className);
    if (className === "of-visitor") made.classList.toggle("right", Boolean(isRight));
    made.style.left = place(value);
    if ((value - low) / (high - low) > 0.5) made.classList.add("to-left");
    line.append(made);
  };
  pin(truth, "of-run", `${_("✓ right")}: ${written}`);
  if (given !== null) pin(given, "of-visitor", `${_("your reply")} ${yours}`);
  return line;
}

const WIDTH = 320, HEIGHT = 160, LEFT = 44, BOTTOM = 24, EDGE = 10;

/** @type {Ask} */
function askCurve({ labels, lowest, highest }, judged, reply) {
  const low = judged?.truth.lowest ?? lowest, high = judged?.truth.highest ?? highest;
  const x = (i) => LEFT + EDGE + (i * (WIDTH - LEFT - 2 * EDGE)) / (labels.length - 1);
  const y = (value) => EDGE + ((high - value) * (HEIGHT - BOTTOM - 2 * EDGE)) / (high - low);
  const valueAt = (at) => Math.max(low, Math.min(high, high - ((at - EDGE) * (high - low)) / (HEIGHT - BOTTOM - 2 * EDGE)));
  const svg = makeSvg("svg", "curve");
  set(svg, { viewBox: `0 0 ${WIDTH} ${HEIGHT}` });
  const text = (words, at, up, anchor) => {
    const made = makeSvg("text");
    made.textContent = words;
    set(made, { x: at, y: up, "text-anchor": anchor });
    svg.append(made);
  };
  const line = (values, className) => {
    const made = makeSvg("polyline", className);
    set(made, { points: values.map((value, i) => `${x(i)},${y(value)}`).join(" ") });
    svg.append(made);
    return made;
  };
  for (const end of [low, high]) text(short(end, high - low), LEFT - 4, y(end) + 4, "end");
  labels.forEach((label, i) => text(label, x(i), HEIGHT - 6, "middle"));
  if (judged) {
    const given = judged.reply?.split("_").map(Number);
    set(svg, { role: "img", "aria-label": labels.map((label, i) => `${label}: ${judged.truth.written[i]}`).join(", ") });
    const colour = (/** @type {Element} */ made) => (made.classList.toggle("right", Boolean(judged.is_right)), made);
    if (given) colour(line(given, "of-visitor"));
    line(judged.truth.truth, "of-run");
    return [svg, make("p", { className: "legend" }, ...(given ? [colour(span("of-visitor", `╌╌ ${_("your reply")}`)), " "] : []), span("of-run", `── ${_("✓ right")}`))];
  }
  const values = labels.map(() => (low + high) / 2), drawn = line(values, "of-visitor");
  const points = values.map((_value, i) => {
    const point = makeSvg("circle", "point");
    set(point, { r: 8, cx: x(i), tabindex: 0, role: "slider", "aria-label": labels[i], "aria-valuemin": low, "aria-valuemax": high });
    point.addEventListener("keydown", (event) => {
      const step = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 }[/** @type {KeyboardEvent} */ (event).key];
      if (!step) return;
      event.preventDefault();
      place(i, Math.max(low, Math.min(high, values[i] + (step * (high - low)) / 20)));
    });
    svg.append(point);
    return point;
  });
  function place(i, value) {
    values[i] = value;
    set(points[i], { cy: y(value), "aria-valuenow": short(value, high - low) });
    set(drawn, { points: values.map((one, j) => `${x(j)},${y(one)}`).join(" ") });
  }
  values.forEach((value, i) => place(i, value));
  const follow = (/** @type {PointerEvent} */ event) => {
    if (!event.buttons && event.type !== "pointerdown") return;
    const box = svg.getBoundingClientRect(), scale = WIDTH / box.width, at = (event.clientX - box.left) * scale;
    const nearest = labels.map((_label, i) => Math.abs(x(i) - at)).reduce((best, off, i, all) => (off < all[best] ? i : best), 0);
    place(nearest, valueAt((event.clientY - box.top) * scale));
  };
  svg.addEventListener("pointerdown", follow);
  svg.addEventListener("pointermove", follow);
  const given = () => reply(values.map((value) => short(value, high - low).replace("−", "-")).join("_"));
  return [make("p", { className: "legend" }, _("Drag the points, or move them with the arrow keys.")), svg, button(_("Reply"), given, { className: "reply" })];
}

const MOST = 1e12; // that a reply may be (lessons/questions.py)

/** @type {Ask} */
function askBlanks({ rows }, judged, reply) {
  const given = judged?.reply?.split("_") ?? [];
  let blank = 0;
  const boxes = [];
  const table = make("table", { className: "working" }, ...rows.map(({ says, value }) => {
    const line = make("tr", {}, make("th", { scope: "row" }, says));
    if (value !== null) {
      line.append(make("td", {}, value));
      return line;
    }
    const i = blank++;
    if (judged) {
      const isRight = judged.truth.are_right?.[i];
      const yours = given[i] === undefined ? [] : [span(isRight ? "says-yours right" : "says-yours wrong", `${isRight ? "✓" : "✗"} ${given[i].replace("-", "−")}`), " "];
      line.append(make("td", {}, ...yours, span("says-right", judged.truth.truth[i])));
    } else {
      const box = make("input", { inputMode: "decimal", autocomplete: "off", size: 8, ariaLabel: says });
      boxes.push(box);
      line.append(make("td", {}, box));
    }
    return line;
  }));
  if (!boxes.length) return [make("div", { className: "scrolls" }, table)];
  const refusal = make("p", { className: "wrong", role: "alert" });
  const form = make("form", {}, make("div", { className: "scrolls" }, table), refusal, make("button", { type: "submit", className: "reply" }, _("Reply")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const wrong = boxes.find((box) => numberOf(box.value) === null), written = wrong?.value.trim();
    refusal.textContent = !wrong ? "" : written ? _("“{reply}” is no number: write one, such as 0.25.", { reply: written }) : _("A blank is empty: write a number into each.");
    if (wrong) return wrong.focus();
    reply(boxes.map((box) => String(numberOf(box.value))).join("_"));
  });
  return [form];
}

/** The number in a reply; null where it is none. @param {string} text */
export function numberOf(text) {
  const written = text.trim().replace("−", "-").replace(",", ".");
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(written) && Math.abs(+written) < MOST ? +written : null;
}

// A lesson's question, and afterwards the reply and the truth in the same figure.

/** @typedef {{ is_right: boolean | null, words: string, truth: Record<string, any>, reply: string | null }} Judged */
/**
 * Makes the nodes of a question: to be replied to, or with the reply and the truth.
 * @typedef {(asked: Record<string, any>, judged: Judged | undefined, reply: (reply: string) => void) => Node[]} Ask
 */

/** @type {Record<string, Ask>} */
const ASKS = { choice: askChoice, token: askToken, cell: askCell, number: askNumber, curve: askCurve, blanks: askBlanks };

/** @param {Record<string, any>} asked @param {Judged | undefined} judged */
function questionNodes(asked, judged) {
  const nodes = [make("p", { className: "words" }, asked.words), ...ASKS[asked.kind](asked, judged, sendReply)];
  if (asked.is_example) return nodes;
  if (judged) return [...nodes, button(_("Ask me again"), forgetReply, { className: "quiet" })];
  return [...nodes, button(_("Just show me"), showAnswer, { className: "quiet" })];
}

const POINTED_OUT = "pointed-out", FRAMES = 600; // until a figure is taken not to come

/** What of the page a step leaves in sight: one figure, the tokens, the next token, what is above a view's figures, or, for a task without a prompt or in another view, all. */
function subjectOf({ target = "", task, view }) {
  if (view !== state.view || (task && target !== "prompt") || (target === "prompt" && !task)) return "page";
  if (target === "prompt") return view === "tokens" ? "strip" : "answer";
  if (["next-token", "generation", "stand-ins"].includes(target)) return "answer";
  if (target === "strip") return target;
  return !target || target === "series" || target.endsWith("-what-ifs") ? "view" : "figure";
}

/** Has the page leave that in sight; with the buttons that a telephone has at the bottom for a step that writes, or in another view. @param {{ target?: string, task: any, view: any }} step */
function leaveInSight(step) {
  document.body.dataset.lessonOn = subjectOf(step);
  document.body.classList.toggle("lesson-types", step.target === "prompt");
  document.body.classList.toggle("lesson-writes", step.target === "generation" || step.view !== state.view);
}

/** @param {HTMLElement} element */
export function lesson(element) {
  const column = find(element, ".lesson"), fold = find(column, ".fold"), heading = find(column, "h2");
  const back = /** @type {HTMLButtonElement} */ (find(column, ".back")), next = find(column, ".next");
  const drawn = new Map(); // part of the column -> what is drawn there, as text
  let content = null, place = "", isAtEnd = false;

  function show(given) {
    const here = `${given.name} ${given.step}`, isNew = here !== place, isAnswered = !isNew && given.judged && !content?.judged;
    content = given;
    place = here;
    if (isAtEnd && !isNew) return;
    isAtEnd = false;
    column.classList.remove("at-end");
    cover(given.hides);
    column.classList.toggle("covers", Boolean(given.hides && (!given.target || given.hides.ids.includes(given.target)))); // the question has the room of its figure
    leaveInSight(given);
    setText(heading, given.heading ?? "");
    setText(find(column, ".of"), given.steps ? _("{title} · {step} of {steps}", { title: given.title, step: given.step, steps: given.steps }) : "");
    setText(find(column, ".note"), given.note ?? "");
    setText(find(column, ".against"), given.step === 1 ? _("You may think that {belief}. It is not so.", { belief: given.against }) : "");
    part(".before", given.before, prose, []);
    part(".question", [given.question, given.judged?.truth, given.judged?.reply, given.missing, given.problem], () => asked(given));
    part(".verdict", [given.judged?.is_right, given.judged?.words, given.task], () => verdict(given));
    part(".after", given.after, prose, []);
    back.disabled = !(given.step > 1);
    const isSkipped = given.question && !given.question.is_example && !given.judged;
    next.textContent = given.step === given.steps ? _("Finish") : isSkipped ? _("Skip") : _("Next");
    next.classList.toggle("skips", Boolean(isSkipped));
    if (isNew) arrive(given.target);
    if (isAnswered) find(column, ".verdict").scrollIntoView({ block: "nearest" }); // below a telephone's fold
    notifyLessonStep(given);
    countDraw(column);
  }

  /** After the last step: that it is done, what it was against, and the next lesson. */
  async function close() {
    isAtEnd = true;
    finishLesson();
    column.classList.add("at-end");
    const { name, title, against, steps } = content;
    setText(heading, _("Done: {title}", { title }));
    for (const selector of [".against", ".note"]) setText(find(column, selector), "");
    for (const selector of [".question", ".verdict", ".after"]) part(selector, null, () => [], []);
    const told = [ngettext("You went through its {count} step.", "You went through all {count} steps.", steps), ...(against ? [_("You may have thought that {belief}. You have seen that it is not so.", { belief: against })] : [])];
    part(".before", ["done", name], () => told.map((text) => make("p", {}, text)));
    next.textContent = _("Close");
    back.disabled = false;
    heading.focus({ preventScroll: true });
    const all = await call("listed_lessons", [state]), following = all.slice(all.findIndex((one) => one.name === name) + 1).find(({ needs }) => !needs);
    if (!isAtEnd || !following) return;
    part(".after", ["next", following.name], () => [make("p", {}, _("The next lesson:")), button(following.title, () => goToStep(following.name, lessonPositions()[following.name]?.step ?? 1), { className: "reply" })]);
  }

  function reopen() {
    isAtEnd = false;
    show(content);
  }

  // What is drawn as it was stays, so that the keyboard's place does.
  function part(selector, data, make, otherwise) {
    const text = JSON.stringify(data ?? null);
    if (drawn.get(selector) === text) return;
    drawn.set(selector, text);
    find(column, selector).replaceChildren(...make(data ?? otherwise));
  }

  function asked({ question, judged, missing, problem }) {
    if (missing) {
      const offer = button(_("Go through it with {model}", { model: missing.offered }), () => goToStep(content.name, content.step, missing.offered), { className: "reply" });
      return [make("p", {}, missing.words), offer];
    }
    if (problem) return [make("p", {}, problem)];
    return question ? questionNodes(question, judged) : [];
  }

  function verdict({ judged, task }) {
    if (task) return [make("p", { className: task.is_done ? "right" : "open" }, task.is_done ? `✓ ${task.words}` : task.words)];
    if (!judged?.words) return [];
    const { is_right: isRight, words } = judged;
    if (isRight === null) return [make("p", { className: "open" }, words)];
    return [make("p", { className: isRight ? "right" : "wrong" }, make("strong", {}, isRight ? _("✓ Right, well done.") : _("✗ Not quite.")), ` ${words}`)];
  }

  function arrive(target) {
    pointAtNothing();
    find(column, ".told").scrollTop = 0;
    scrollTo(0, 0); // where the step before was read
    if (column.contains(document.activeElement)) heading.focus({ preventScroll: true });
    if (target) pointAt(target, place, FRAMES);
  }

  // Its tab may be about to open. @param {string} id @param {string} here the step that points @param {number} frames to wait
  function pointAt(id, here, frames) {
    const figure = document.getElementById(id);
    if (here !== place || !frames) return;
    if (!figure) return requestAnimationFrame(() => pointAt(id, here, frames - 1));
    figure.classList.add(POINTED_OUT);
    if (figure.closest(".panels")) scrollToFigure(id);
    else figure.scrollIntoView({ block: "nearest" });
  }

  function pointAtNothing() {
    for (const former of findAll(document, `.${POINTED_OUT}`)) former.classList.remove(POINTED_OUT);
  }

  function follow() {
    const isOpen = Boolean(state.lesson);
    if (isOpen && content) leaveInSight(content);
    if (isOpen !== column.hidden) return;
    column.hidden = !isOpen;
    isAtEnd = false;
    document.body.classList.toggle("in-lesson", isOpen);
    window.dispatchEvent(new Event("resize")); // figures have more room, or less
    if (isOpen) return;
    cover(null);
    place = "";
    pointAtNothing();
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
  onState(element, follow);
  onContent(element, show);
  follow();
}

/** @typedef {{ name: string, title: string, audience: string, minutes: number, steps: number, against: string, needs?: string }} Listed needs: what has to be there first */

/** @param {HTMLElement} element */
export function lessons(element) {
  const open = find(element, ".open"), list = find(element, ".list");
  /** @type {Promise<Listed[]> | null} */
  let listed = null;

  async function fill() {
    listed ??= call("listed_lessons", [state]);
    try {
      const found = await listed, left = lessonPositions();
      find(list, ".all").replaceChildren(...found.map((lesson, i) => row(lesson, left[lesson.name], !i)));
    } catch (error) {
      listed = null;
      if (error instanceof Refused) reportFailure(error);
      return false;
    }
  }
  const { hide } = dropDown(open, list, { fill, first: () => rows()[0] });
  find(list, ".to-glossary").addEventListener("click", () => {
    const details = /** @type {HTMLDetailsElement} */ (find(document, "#glossary details"));
    hide();
    details.open = true;
    details.scrollIntoView({ block: "start" });
    find(details, "summary").focus({ preventScroll: true });
  });

  /** @param {Listed} lesson @param {{ step: number, isDone?: boolean } | undefined} left @param {boolean} isFirst */
  function row({ name, title, audience, minutes, steps, needs }, left, isFirst) {
    const count = ngettext("{count} step", "{count} steps", steps); // outside of `_`, within which no message is extracted
    const length = _("{minutes} min, {steps}", { minutes, steps: count });
    const made = make("button", { type: "button", className: "one" }, span("title", left?.isDone ? `✓ ${title}` : title), span("length", length), span("audience", _("For {audience}", { audience })));
    if (needs) made.append(span("audience", needs));
    else if (left && left.step > 1) made.append(span("left", _("go on with step {step}", { step: left.step })));
    else if (left?.isDone) made.append(span("left", _("done")));
    else if (isFirst) made.append(span("left", _("Start here")));
    made.addEventListener("click", () => {
      hide();
      goToStep(name, Math.min(left?.step ?? 1, steps));
    });
    return made;
  }

  const rows = () => /** @type {HTMLElement[]} */ (findAll(list, "button"));
  addRovingFocus(list, {
    at: () => ({ row: rows().findIndex((one) => one === document.activeElement), column: 0 }),
    size: () => ({ rows: rows().length, columns: 1 }),
    go: (to) => rows()[to.row].focus(),
  });
}
