// @ts-check
// What Python gives the widgets to show, by their elements' ids: when it is drawn, what is marked as old until it is,
// and what stands in a figure's place or below it.
import { ask, inspect } from "./page_actions.js";
import { call, Refused, visitor } from "./server_connection.js";
import { button, countDraw, find, findAll, hide, make, say, span } from "./dom.js";
import { _ } from "./translations.js";
import { ADVICE, FORMULA, HEADING, MARK, NEXT_TOKEN, PROBLEM, STAND_INS, TAB, WHAT_IFS, WHY } from "./shared_constants.js";
import { onState, setState, state } from "./page_state.js";

// Figures that a question is about are marked as old until what answers it, or a later one, is drawn; but not where that
// comes at once, as to dim all of them takes a fifth of a click's time.

const AT_ONCE = 300; // milliseconds

/** How many questions there were: the number of the last. */
export let questions = 0;
/** @type {Set<HTMLElement>} */
const old = new Set();
let query = null; // that the last question was about
const UNDRAWN = "#view > :not([hidden]) .panels > .block:not([data-drawn])"; // not once yet: those below are hidden until then, as it would move them

/**
 * Selectors of what is old once a question is asked: each begins with an id, so that a browser need not look for it in all
 * that the other tabs have.
 * @param {string} question
 * @param {string} view the open tab
 */
export function outdatedSelectors(question, view) {
  const figures = `#${view}-${TAB} .panels > [id^="${view}-"]`;
  const rest = [`#${view}-${FORMULA}`, `#${WHY}`, `#${STAND_INS}`], all = [figures, ...rest, `#${ADVICE}`];
  const old = { tune: [], token: [...all, `#${view}-${WHAT_IFS}`], pick: [`${figures}:not(.once)`, ...rest], view: [figures, ...rest], show: all }[question];
  return [`#${NEXT_TOKEN}`, ...old];
}

/** A question is asked. Gives what marks what is old. @returns {() => void} */
export function outdate(question, view) {
  const number = ++questions, before = query;
  query = state.query;
  return () => mark(number, question, view, before);
}

// What is behind says of which position it is, where that is another by now: while text is written it stays so for long.
function mark(number, question, view, before) {
  for (const block of outdatedSelectors(question, view).flatMap((selector) => findAll(document, selector))) {
    block.dataset.asked = String(number);
    const isInTab = block.id.startsWith(`${view}-`); // what stands around the tabs names its token itself
    if (isInTab && !block.dataset.oldSince && before !== null && before !== state.query) block.dataset.asOf = _("as of position {position}", { position: before });
    block.dataset.oldSince ??= String(number);
    old.add(block);
  }
  setTimeout(() => {
    for (const block of old)
      if (+block.dataset.oldSince <= number) block.classList.add("stale");
  }, AT_ONCE);
}

/** Whether a figure of the open tab that is not hidden, or the next token, is still to be drawn as it was last asked for. */
export const hasOutdatedFigures = () => [...old, ...findAll(document, UNDRAWN)].some((block) => block.checkVisibility());

/** Resolved two frames after everything is drawn that the page asked for. @param {() => boolean} isAsking */
export async function whenAllDrawn(isAsking) {
  for (let calm = 0; calm < 2;) {
    await frame();
    calm = isAsking() || isDrawing || hasOutdatedFigures() || unasked.size ? 0 : calm + 1;
  }
}

/** What a block shows has been drawn, as a question's answer has it. @param {HTMLElement | null} block @param {number} number */
export function renew(block, number) {
  if (!(+block?.dataset.asked <= number)) return;
  old.delete(block);
  delete block.dataset.oldSince;
  delete block.dataset.asOf;
  block.classList.remove("stale");
}

// What Python gives the widgets to show, by their elements' ids. A widget that starts later gets
// what came before.

const contents = {}, receivers = {};

/**
 * Has the widget with an id show a content. One that fails leaves the others as they should be.
 * @param {string} id
 * @param {any} content
 * @param {number} [number] of the question that it answers
 */
export async function give(id, content, number) {
  contents[id] = content;
  if (!receivers[id] || await isTargetVisible(id)) renew(document.getElementById(id), number);
}

async function isTargetVisible(id) {
  try { await receivers[id](contents[id]); } catch (error) {
    reportBroken(error);
    return false;
  } finally { setDrawn(document.getElementById(id)); }
  return true;
}

function setDrawn(block) {
  block?.toggleAttribute("data-drawn", true);
  if (!findAll(document, UNDRAWN).some((undrawn) => undrawn.checkVisibility())) find(document, "#view > :not([hidden])")?.toggleAttribute("data-drawn", true);
}

/** An answer is whole: panels of the open view that it has nothing for, as while a lesson covers them, are not waited for. */
export function finishAnswer() {
  for (const block of findAll(document, UNDRAWN)) if (!(block.id in contents)) setDrawn(block);
}

/**
 * Calls `show` with every content that Python gives the widget of an element, beginning with the last one.
 * @param {Element} element
 * @param {(content: any) => any} show it is drawn once that resolves
 * @param {string} [part] the end of the id, where a widget has several
 */
export function onContent(element, show, part = "") {
  const id = (widgetBlock(element) ?? element).id + part;
  receivers[id] = show;
  if (id in contents) isTargetVisible(id);
}

/** The element around a widget's. @param {Element} element @returns {HTMLElement} */
export const widgetBlock = (element) => element.closest("[data-widget]");

/**
 * Something of the page failed.
 * @param {unknown} error
 * @param {string} [told]
 */
export function reportBroken(error, told = _("A part of the page could not be drawn. Reload the page to try again: its address holds all you chose.")) {
  console.error(error);
  give(PROBLEM, told);
}

// Figures are drawn from the top of the page down, as many a frame as there is time for of those in sight, and one of the
// others: the first is seen before the last is drawn.

/** @type {{ element: Element, draw: () => any, resolve: () => void }[]} */
const queue = [];
const BUDGET = 30; // milliseconds of drawing after which what is drawn is shown first
let isDrawing = false;

/**
 * Draws in its turn.
 * @param {Element} element where
 * @param {() => any} draw
 * @returns {Promise<void>} resolved once it is drawn, or failed to be
 */
export function drawInTurn(element, draw) {
  return new Promise((resolve) => {
    queue.push({ element, draw, resolve });
    if (!isDrawing) drawAll();
  });
}

async function drawAll() {
  isDrawing = true;
  await null; // what came with the first one is then here, too
  let began = performance.now();
  while (queue.length) {
    const { draw, resolve } = queue.sort((a, b) => (precedes(a.element, b.element) ? -1 : 1)).shift();
    try { await draw(); } catch (error) { reportBroken(error); }
    resolve();
    if (performance.now() - began < BUDGET && queue.some(({ element }) => isInSight(element))) continue;
    await frame();
    began = performance.now();
  }
  isDrawing = false;
}

function isInSight(element) {
  const { top, bottom, height } = element.getBoundingClientRect();
  return height > 0 && top < innerHeight && bottom > 0;
}

const precedes = (a, b) => a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING;

// A hidden page has no frames.
const frame = () => new Promise((resolve) => { requestAnimationFrame(resolve); setTimeout(resolve, 100); });

// Bringing a figure into sight.

const SCROLLS = ["wheel", "touchmove", "keydown", "pointerdown"]; // what a visitor scrolls with

/** Scrolls to a figure once it is drawn; its tab may be about to open. @param {string} id of its element */
export function reveal(id) {
  unfold(id);
  const figure = find(document, `#${id} [data-draws]`);
  if (!figure?.clientWidth) return requestAnimationFrame(() => reveal(id));
  intoView(id);
  const leftAlone = new AbortController(), { signal } = leftAlone;
  for (const event of SCROLLS) window.addEventListener(event, () => leftAlone.abort(), { signal, passive: true });
  const again = () => {
    if (!signal.aborted) intoView(id);
    leftAlone.abort();
  };
  requestAnimationFrame(() => whenDrawn(again)); // what a question makes old is marked once that is on its way
}

/** @param {string} id */
function intoView(id) {
  const { matches: still } = matchMedia("(prefers-reduced-motion: reduce)");
  find(document, `#${id}`).scrollIntoView({ block: "nearest", behavior: still ? "auto" : "smooth" });
}

// Figures above it that are still to come may push it out of sight.
/** @param {() => void} act */
function whenDrawn(act) {
  if (hasOutdatedFigures()) requestAnimationFrame(() => whenDrawn(act)); else act();
}

// Which figure was looked at last: the one that was clicked, or had the keyboard.

const FIGURE = "#view .panels > .block, #next-token";
let last = "", lastView = "";

/** The figures that the open tab shows now, folded ones too. */
export const figures = () => findAll(document, "#view .panels > .block").filter((figure) => figure.checkVisibility() && figure.querySelector("[data-draws], .unfold"));

/** The element id of the figure that a visitor looks at: the last one clicked, or else the first in sight. */
export function figureInSight() {
  const all = figures(), ids = all.map(({ id }) => id);
  if (ids.includes(last) || (last === NEXT_TOKEN && lastView === state.view)) return last;
  const inSight = all.find((figure) => figure.getBoundingClientRect().bottom > innerHeight / 4);
  return (inSight ?? all[0])?.id ?? "";
}

/** Has the page remember what is looked at. */
export function watchViewedFigures() {
  for (const kind of ["pointerdown", "focusin"])
    document.addEventListener(kind, ({ target }) => {
      const figure = /** @type {Element} */ (target).closest?.(FIGURE);
      if (figure) [last, lastView] = [figure.id, state.view];
    });
}

// Figures that wait for what takes long: a button that has it worked out, how far that is, and a button that ends it. What
// several figures wait for is one job, by its name.

/** @typedef {{ name: string, seconds: number }} Job */
/** @typedef {"begin_job" | "begin_opening" | "begin_check"} Begins of a function that begins a job */
/** @typedef {{ state: string, done: number, of: number, seconds: number, error: string }} Progress */
/** @typedef {{ progress: Progress }} Attempt at a job: one that was left is not the one that is begun after it */

const SOONEST = 200, LATEST = 2000; // milliseconds between two looks at how far it is
const UNASKED_S = 10; // what takes less is worked out without a button

/** Name of a job -> how the figures that wait for it show how far it is. @type {Map<string, Set<(progress: Progress | null) => void>>} */
const shown = new Map();
/** Name of a job that is being worked out -> how far it is. @type {Map<string, Attempt>} */
const running = new Map();
/** Names of jobs that began without a button and are being worked out. @type {Set<string>} */
const unasked = new Set();
/** Names of jobs that were cancelled or failed: they begin at a button alone. @type {Set<string>} */
const ended = new Set();
/** That Python knows of all that was left: it would take what is begun again before for left, too. @type {Promise<unknown>} */
let leaving = Promise.resolve();

/**
 * Shows in a figure's widget what it waits for. Gives the function to call with that, or with null where it waits for
 * nothing.
 * @param {HTMLElement} element
 * @returns {(job: Job | null) => void}
 */
function jobsIn(element) {
  const box = find(element, ".job"), { id } = widgetBlock(element);
  /** @type {Job | null} */
  let job = null;
  let view = "";

  /** @param {Progress | null} progress */
  function show(progress) {
    if (progress?.state === "done") return; // the figure comes
    element.classList.toggle("coming", Boolean(progress && isJobRunning(progress)));
    if (progress && isJobRunning(progress)) return showProgress(progress);
    const press = button(_("work it out (about {time})", { time: duration(job.seconds) }), start);
    box.replaceChildren(press, span("error", progress?.error ?? ""));
  }
  const start = () => begin(job, ["begin_job", [state, id, visitor]], () => ask("view"));
  function showProgress({ state: stands, done, of, seconds }) {
    const bar = find(box, "progress") ?? make("progress", { ariaLabel: _("worked out") }), words = find(box, ".left") ?? span("left");
    Object.assign(bar, of ? { max: of, value: done } : {});
    words.textContent = stands === "waiting" && !done ? _("waiting for its turn: about {time}", { time: duration(seconds) })
      : _("{done} of {of}, about {time} left", { done, of, time: duration(seconds) });
    if (!bar.isConnected) box.replaceChildren(bar, words, button(_("Cancel"), () => { ended.add(job.name); leave(job.name); }));
  }

  onState(element, () => { if (job && view !== state.view) drop(); }); // nobody looks any more
  function drop() {
    const figures = shown.get(job.name);
    figures?.delete(show);
    if (!figures?.size) shown.delete(job.name), leave(job.name);
  }

  return (next) => {
    if (job && job.name !== next?.name) drop();
    job = next;
    view = state.view;
    box.hidden = !job;
    if (!job) {
      element.classList.remove("coming");
      return box.replaceChildren();
    }
    if (!shown.has(job.name)) shown.set(job.name, new Set());
    shown.get(job.name).add(show);
    if (job.seconds > 0 && job.seconds < UNASKED_S && !ended.has(job.name)) {
      unasked.add(job.name);
      start();
    }
    else show(running.get(job.name)?.progress ?? null);
  };
}

/** @param {string} name @param {Progress | null} progress null where nobody works it out */
function tell(name, progress) {
  for (const show of shown.get(name) ?? []) show(progress);
}

/**
 * Has a job begun, and tells how far it is until it ends.
 * @param {string} name
 * @param {[Begins, any[]]} first what asks for it
 * @param {(progress: Progress | null) => void} show
 * @param {() => void} then is called once it is done
 */
export function followJob(name, first, show, then) {
  shown.set(name, (shown.get(name) ?? new Set()).add(show));
  return begin({ name, seconds: 0 }, first, then);
}

// Until it is worked out, fails, or is no longer wanted.
/** @param {Job} job @param {[Begins, any[]]} first @param {() => void} then */
async function begin({ name, seconds }, first, then) {
  if (running.has(name)) return;
  /** @type {Attempt} */
  const attempt = { progress: { state: "waiting", done: 0, of: 0, seconds, error: "" } };
  const isWanted = () => running.get(name) === attempt;
  running.set(name, attempt);
  tell(name, attempt.progress);
  await leaving;
  if (isWanted()) attempt.progress = await answered(...first);
  while (isWanted() && isJobRunning(attempt.progress)) {
    tell(name, attempt.progress);
    await pause(attempt.progress.seconds);
    if (isWanted()) attempt.progress = await answered("job_progress", [visitor, name]);
  }
  if (!isWanted()) return;
  running.delete(name);
  unasked.delete(name);
  tell(name, attempt.progress);
  if (attempt.progress.state === "done") then(); else ended.add(name);
}

/** @param {Progress} progress */
export const isJobRunning = (progress) => progress.state === "waiting" || progress.state === "working";

/** @param {Begins | "job_progress"} name @param {any[]} given @returns {Promise<Progress>} */
async function answered(name, given) {
  try { return await call(name, given); }
  catch (error) { return { state: "failed", done: 0, of: 0, seconds: 0, error: error instanceof Refused ? error.message : "" }; }
}

/** Nobody waits for a job any more. @param {string} name */
export function leave(name) {
  if (!running.delete(name)) return;
  unasked.delete(name);
  tell(name, null);
  const told = call("leave_job", [visitor, name]).catch(() => {}); // it ends by itself when nobody asks for it
  leaving = Promise.all([leaving, told]);
}

/** The time until the next look: a tenth of what is left. @param {number} seconds */
const pause = (seconds) => new Promise((resolve) => { setTimeout(resolve, Math.min(Math.max(seconds * 100, SOONEST), LATEST)); });

/** A time in words. @param {number} seconds */
export function duration(seconds) {
  if (seconds >= 90) return _("{minutes} min", { minutes: Math.round(seconds / 60) });
  return _("{seconds} s", { seconds: Math.max(1, Math.round(seconds)) });
}

// Below a figure: what vouches for its numbers, and how the one that was clicked comes about.

const BESIDE = ["unfolded", "find", "guess", "why", "stand_ins"]; // fields that no derivation depends on

/** @typedef {{ label: () => string, act: () => void }} PointAction a button beside a derivation, which stays when it is pressed */

/**
 * Shows both in a figure's widget. Gives the function to call with a clicked point (clicked_point.py), before the click
 * changes the state, and with what can be done with it; its answer stays until what it is about changes, or it is closed.
 * @param {Element} element
 * @returns {(point: Record<string, any>, action?: PointAction | null) => Promise<void>}
 */
export function showEvidence(element) {
  const mark = find(element, ".evidence-mark"), words = find(element, ".inspection"), { id } = widgetBlock(element);
  const firstLine = button("", () => {
    words.scrollIntoView({ block: "nearest" });
    find(words, ".close").focus({ preventScroll: true });
  }, { className: "first-line" });
  let about = null;
  onContent(element, (found) => {
    mark.dataset.state = found?.state ?? "";
    say(mark, found?.words ?? ""); // or else the terms marked in it would be lost
    mark.title = [found?.words, found?.details].filter(Boolean).join(" · ");
  }, MARK);
  const heading = find(element, "h2");
  if (heading) onContent(element, (title) => say(find(heading, ".unfold") ?? heading, title), HEADING);
  const isStill = () => about && Object.keys({ ...about, ...state }).every((name) => BESIDE.includes(name) || about[name] === state[name]);
  onState(element, () => { words.hidden ||= !isStill(); });
  /** @param {PointAction} action */
  function actionButton({ label, act }) {
    const press = button(label(), () => {
      act();
      about = state;
      words.hidden = false;
      press.textContent = label();
    });
    return press;
  }
  return async (point, action = null) => {
    queueMicrotask(() => { about = state; });
    const text = await inspect(id, point);
    if (!isStill()) return;
    const close = button("×", () => { words.hidden = true; }, { className: "close", ariaLabel: _("Close") });
    words.dataset.of = id;
    placeBelowRow(words, firstLine, element);
    say(firstLine, text.split("\n")[0]);
    words.replaceChildren(...(text ? [close, text] : []), ...(text && action ? ["\n", actionButton(action)] : []));
    words.hidden = !text;
  };
}

/** Has words take the whole row below a figure, with their first line, which sticks to the window's lower edge, before them. */
function placeBelowRow(words, firstLine, element) {
  const block = widgetBlock(element), { parentElement, offsetTop } = block;
  for (const line of findAll(document, ".first-line")) line.remove(); // of the latest derivation alone
  if (block.classList.contains("presented")) return element.append(words);
  const others = /** @type {HTMLElement[]} */ (Array.from(parentElement?.children ?? []));
  others.findLast((other) => other === block || (other.classList.contains("block") && other.offsetWidth && other.offsetTop === offsetTop))?.after(firstLine, words);
}

// Figures below a view's first ones are drawn once their title is pressed.

/** Has a figure's title fold it. Gives the function to call with whether it is folded. @param {HTMLElement} element */
function foldIn(element) {
  const block = widgetBlock(element), title = find(element, "h2");
  /** @type {HTMLButtonElement | null} */
  let press = null;
  return (isFolded) => {
    block.classList.toggle("folded", isFolded);
    if (!press && (isFolded || state.unfolded?.split("~").includes(block.id))) {
      press = button(title.textContent ?? "", () => toggleFigure(block.id), { className: "unfold" });
      title.replaceChildren(press);
    }
    if (press) press.ariaExpanded = String(!isFolded);
    block.classList.toggle("unfolded", Boolean(press) && !isFolded);
  };
}

/** Unfolds or folds a figure. @param {string} id of its element */
function toggleFigure(id) {
  const before = state.unfolded ? state.unfolded.split("~") : [];
  const all = before[0] === "all" ? findAll(document, "#view .unfold[aria-expanded=true]").map((press) => widgetBlock(press).id) : before;
  setState({ unfolded: (all.includes(id) ? all.filter((other) => other !== id) : [...all, id]).join("~") });
  ask("view");
}

/** Has a figure drawn, if it is folded and was not asked for yet. @param {string} id of its element */
export function unfold(id) {
  const asked = state.unfolded?.split("~") ?? [];
  if (!asked.includes("all") && !asked.includes(id) && find(document, `#${id}`)?.classList.contains("folded")) toggleFigure(id);
}

/** Has the figures folded that were before. @param {string} unfolded as the state had them */
export function restoreFolds(unfolded) {
  if ((state.unfolded ?? "") === unfolded) return;
  setState({ unfolded });
  ask("view");
}

// What a figure's widget is given: a figure, or in its place a sentence that says why there is none.

/**
 * Calls `show` with every figure that Python gives the widget of an element, and shows every sentence itself.
 * @param {HTMLElement} element
 * @param {HTMLElement} drawing what is hidden behind a sentence
 * @param {(figure: any) => any} show it is drawn once that resolves
 */
export function onFigureContent(element, drawing, show) {
  const words = find(element, ".instead"), follow = jobsIn(element), fold = foldIn(element);
  function appear() {
    hide(element, false);
    element.closest(".tabitem")?.classList.remove("without-figures");
  }
  onContent(element, (content) => {
    const instead = content?.instead ?? "", isFolded = Boolean(content?.folded);
    fold(isFolded);
    if (isFolded) {
      follow(null);
      for (const part of [drawing, words]) part.hidden = true;
      return appear();
    }
    follow(content?.job ?? null);
    words.hidden = !instead;
    drawing.hidden = Boolean(instead);
    say(words, instead);
    if (!instead) return show(content);
    appear();
    countDraw(drawing);
  });
}
