// @ts-check
// Where the page has been and how it is left: its address, Back and Forward, reloads, links, files, and where each
// lesson was left.
import { runAction, requestUpdate, dropUnshownTokens, isWriting, makeMove, select, setInterventions, changeSettings } from "./page_actions.js";
import { call, isServerLost, onServerReturn, Refused } from "./server_connection.js";
import { currentFigure, visibleFigures, scrollToFigure, widgetBlock } from "./widget_contents.js";
import { showBanner, find, make, notify, saveText, setText } from "./dom.js";
import { saveNumbers } from "./plotly_figures.js";
import { _ } from "./translations.js";
import { ADDRESS_DEFAULTS } from "./shared_constants.js";
import { bus, onEveryState, modelName, setState, state } from "./page_state.js";

/** @typedef {import("./page_state.js").State} State */

// The address of the page holds all that is chosen. Tabs and runs are steps that the browser's Back goes through; clicks
// and sliders replace the step they are made at.

export const ROOM = "room"; // names in the address the class that this page is in
export const KEPT_ROOM = "explorer:room"; // place in the tab's storage of the one that it leads
const SOON_MS = 250;
const left = new Map(); // run of the history -> the state it was left in
let run = 0, timer = null;
/** @type {State | null} */
let seen = null;

/** A model's name -> its continuations of a text; it outlives a reload. @type {Record<string, State>} */
export const own = {};

const OF_RUNS = ["checkpoint", "prompt", "b.checkpoint", "b.prompt", "b.edits", "lesson", "step"]; // what makes another step of the history
// Steps of one training replace one another, as a slider goes through them.
const ofRun = (state, name) => (name.endsWith("checkpoint") ? modelName(state[name]) : String(state[name] ?? ""));
const isOtherRun = (a, b) => OF_RUNS.some((name) => ofRun(a, name) !== ofRun(b, name));

/** An address with all of a state in it that differs from the defaults. @param {State} state @param {string} address */
export function urlOfState(state, address) {
  const url = new URL(address);
  for (const [name, value] of Object.entries(state)) {
    if (name === "lang") continue; // only where somebody chose it, who wrote it there
    const text = Array.isArray(value) ? value.join(".") : String(value);
    if (text && text !== String(ADDRESS_DEFAULTS[name])) url.searchParams.set(name, text);
    else url.searchParams.delete(name);
  }
  for (const text of ["text", "b.text"]) url.searchParams.delete(text); // the ids say the same, exactly
  url.searchParams.delete("turn");
  return url;
}

/** An address as it is passed on: who opens it is in no class. @param {URL} url */
export function urlWithoutRoom(url) {
  url.searchParams.delete(ROOM);
  return url;
}

/** Takes up what the browser kept over a reload. @param {(there: State, isSameRun: boolean) => void} goToState where it leads */
export function startHistory(goToState) {
  // Gradio's panel "Use via API" writes a `view` of its own into the address and forgets the state of the step; it does
  // not read it again.
  window.navigation?.addEventListener("currententrychange", () => history.state === null && writeUrl());
  Object.assign(own, history.state?.own);
  run = history.state?.run ?? 0;
  // Going back to a run finds it as it was left, with all that was written since; among its own steps only tabs change.
  window.addEventListener("popstate", ({ state: step }) => {
    if (!step?.state) return;
    if (!seen) return location.reload(); // what is being loaded is of the step that was left
    left.set(run, seen);
    const isSameRun = step.run === run;
    [run, seen] = [step.run, { ...(left.get(step.run) ?? step.state), view: step.state.view }];
    writeUrl();
    goToState(seen, isSameRun);
  });
}

/** Has the address say what is seen, now. */
export function writeUrl() {
  clearTimeout(timer);
  timer = null;
  if (seen) history.replaceState(...entry());
}

/** The query of the address as it is, or will be soon. */
export const latestQuery = () => (timer && seen ? urlOfState(seen, location.href) : location).search;

/** @returns {[State, string, URL]} */
const entry = () => [{ run, own, state: seen }, "", urlOfState(seen, location.href)];

/** The state is another now. @param {State} state */
export function recordInHistory(state) {
  if (!state.checkpoint) return; // nothing has come yet: the step keeps what it had before a reload
  const before = seen;
  if (!before || (before.view === state.view && !isOtherRun(before, state))) {
    timer ??= setTimeout(writeUrl, SOON_MS); // also while tokens come without a pause
    seen = state;
    return;
  }
  if (timer) writeUrl(); // each takes the browser some milliseconds
  if (isOtherRun(before, state)) {
    left.set(run, before);
    run = Date.now();
  }
  seen = state;
  history.pushState(...entry());
}

const COPIED_MS = 2000; // that the menu says so
const COPIED = "copied"; // the kind of notice, of which the last one stays

/** Closes the menu of what can be copied. @param {HTMLElement} button in it */
function closeAround(button) {
  const menu = button.closest("details");
  if (!menu) return;
  if (menu.open) find(menu, "summary").focus();
  menu.open = false;
}

/** Has the menu, or a button outside of it, say that it is copied. @param {HTMLElement} button */
function tellCopied(button) {
  const menu = button.closest("details"), told = menu ? find(menu, "summary") : button, before = menu ? _("Share") : _("Copy as Python");
  told.ariaLive = "polite";
  setText(told, _("Copied"));
  setTimeout(() => setText(told, before), COPIED_MS);
}

/** Copies the address, and has the menu say so; or shows it to be copied: browsers lend the clipboard to https and
 * localhost alone. What is too long for a link is saved as a file. @param {HTMLElement} button */
export async function copyLink(button) {
  closeAround(button);
  writeUrl();
  const link = urlWithoutRoom(new URL(location.href));
  link.searchParams.delete("lang"); // who opens it reads their own
  if (link.href.length > MOST_LINK) return saveFile(seen, link.href.length);
  try { await navigator.clipboard.writeText(link.href); } catch { return void prompt(_("Copy this link:"), link.href); }
  tellCopied(button);
  notify(_("Link copied."), COPIED);
}

/** Copies a script that shows the figure in sight, and says which; or saves it as a file. @param {HTMLElement} button */
export async function copyPython(button) {
  closeAround(button);
  try {
    const id = currentFigure(), script = await call("python_script", [state, id]), title = document.querySelector(`#${id || "view"} h2`)?.textContent;
    try { await navigator.clipboard.writeText(script); } catch { return saveText(script, "explorer_figure.py", "text/x-python"); }
    tellCopied(button);
    if (title) notify(_("Python for the figure “{figure}” is copied.", { figure: title }), COPIED);
  } catch (error) { if (error instanceof Refused) showBanner(error.message); } // where nobody answers, the page says so itself
}

/** Saves the numbers of the figure in sight, or else of the first that is drawn, and says which. @param {HTMLElement} button */
export function saveNumbersInSight(button) {
  closeAround(button);
  const blocks = [document.getElementById(currentFigure()), ...visibleFigures()], plot = blocks.map((block) => block?.querySelector(".js-plotly-plot")).find(Boolean);
  if (!plot) return showBanner(_("No figure with numbers is drawn here."));
  saveNumbers(plot);
  notify(_("The numbers of the figure “{figure}” are saved.", { figure: widgetBlock(plot).querySelector("h2")?.textContent ?? "" }), COPIED);
}

// What is too long for a link: the state as a file, to be saved and opened.

export const MOST_LINK = 6000; // characters that every mail and chat passes on
const KIND = "transformerlm-explorer", OWN = ["lang", "turn", "version"]; // of this page alone

/** Has the browser save a file that `chooseFile` opens. @param {Record<string, any>} content */
export const download = (content) => saveText(JSON.stringify({ [KIND]: 1, ...content }), `${KIND}.json`, "application/json");

/** Saves the state as a file, and says so. @param {State} state @param {number} count characters that a link would have */
function saveFile(state, count) {
  download({ state: Object.fromEntries(Object.entries(state).filter(([name]) => !OWN.includes(name))) });
  const told = _("This is too long for a link ({count} characters), so it was saved as a file. “Open a saved file”, at the page’s end, brings it back.", { count });
  showBanner(told);
}

/** What a file's text holds of ours; nothing where it is another's. @param {string} text @returns {Record<string, any>} */
function contentIn(text) {
  let read = null;
  try { read = JSON.parse(text); } catch { return {}; }
  return read?.[KIND] ? read : {};
}

/** The state in a file's text; null where it holds none. @param {string} text @returns {State | null} */
export function parseStateFile(text) {
  const { state } = contentIn(text);
  return state && typeof state === "object" && !Array.isArray(state) ? state : null;
}

/** Asks for a file, and goes to the state in it, or takes the places. @param {(there: State) => void} goToState @param {(places: any[]) => void} take */
function chooseFile(goToState, take) {
  const input = make("input", { type: "file", accept: "application/json,.json" });
  input.addEventListener("change", async () => {
    const text = await input.files[0].text(), state = parseStateFile(text), { places } = contentIn(text);
    if (Array.isArray(places)) return take(places);
    if (!state) return showBanner(_("This file holds nothing that this page saved: choose one whose name ends in {ending}.", { ending: ".json" }));
    showBanner("");
    goToState(state);
  });
  input.click();
}

// The browser's Back and Forward.

/** Has the state go where the history leads, and the history know every state. */
export function followBrowserHistory() {
  startHistory(goToState);
  onEveryState((now, before) => {
    const left = modelName(before.checkpoint); // its steps share them
    if (left && left !== modelName(now.checkpoint)) own[left] = continuationsOf(before);
    keepFormer(now, before);
    keepStateBeforeLesson(now, before);
    recordInHistory(now);
  });
}

// Undo takes back what was done last: a token, a change of the model's computation, or the prompt, which comes back with
// its answer as it was left; what it leaves is a step of the history, for Back.

const MAX_FORMER = 50; // prompts and changes
const DRAG_MS = 1000; // between two moves of a slider that are one change
/** The changes of each run -> what else it is made of. @type {Record<"edits" | "b.edits", string[]>} */
const EDITS_OF = { edits: ["checkpoint", "prompt"], "b.edits": ["b.checkpoint", "b.prompt"] };
const EDITS = /** @type {("edits" | "b.edits")[]} */ (Object.keys(EDITS_OF));
/** @type {State[]} */
const former = [];
let isUndoing = false, editedAt = 0;

const isSame = (names, a, b) => names.every((name) => ofRun(a, name) === ofRun(b, name));
const kinds = (state) => EDITS.map((name) => String(state[name] ?? "").replace(/\*[-\d.e]+(?=~|$)/g, "")).join(); // without amounts
/** Whose changes alone differ. @param {State} a @param {State} b */
const changedEdits = (a, b) => EDITS.filter((of) => isSame(["lesson", "step", ...EDITS_OF[of]], a, b) && !isSame([of], a, b));

/** @param {State} now @param {State} before */
function keepFormer(now, before) {
  if (isUndoing || !before.checkpoint) return;
  const isEdit = changedEdits(now, before).length > 0;
  if (!isEdit && (before.lesson || now.lesson || isSame(["prompt"], now, before))) return;
  const isDrag = isEdit && kinds(now) === kinds(before) && performance.now() - editedAt < DRAG_MS;
  if (isEdit) editedAt = performance.now();
  if (isDrag) return;
  former.push(before);
  if (former.length > MAX_FORMER) former.shift();
}

/** What `undo` takes back: the last token, the last change of the model, or the last one of the prompt; null for nothing. @returns {"token" | "edit" | "prompt" | null} */
export function lastAction() {
  while (former.length && isSame(["prompt", "lesson"], former.at(-1), state) && !changedEdits(former.at(-1), state).length) former.pop(); // of another model
  const there = former.at(-1);
  if (there && changedEdits(there, state).length && (!state.generated?.length || isSame(["generated"], there, state))) return "edit";
  if (state.generated?.length) return "token";
  return there && !there.lesson && !state.lesson && !isSame(["prompt"], there, state) ? "prompt" : null;
}

/** Takes back what was done last. */
export function undo() {
  const action = lastAction();
  if (action === "token" || !action) return void makeMove({ kind: "undo" });
  const { view, depth } = state, there = former.pop();
  isUndoing = true;
  if (action === "prompt") goToState({ ...there, view, depth }, false);
  else for (const of of changedEdits(there, state)) setInterventions(there[of] ? there[of].split("~") : [], of);
  isUndoing = false;
}

/** Opens a file that the page saved. @param {(places: any[]) => void} take gets places, where it holds those */
export const openStateFile = (take) => chooseFile((there) => goToState(there, false), take);

/** Goes to a state. @param {import("./page_state.js").State} there @param {boolean} isSameRun whether it is of the run that is seen */
export function goToState(there, isSameRun) {
  if (isSameRun) setState({ view: there.view });
  else {
    if (isWriting()) bus.halt();
    dropUnshownTokens();
    setState({ ...there, turn: state.turn + 2 });
  }
  if (isSameRun) requestUpdate("show");
  else runAction({ kind: "follow" });
}

/** @param {import("./page_state.js").State} state */
const continuationsOf = ({ prompt, dropped, generated, branches, began, chat }) => ({ prompt, dropped, generated, branches, began, chat });

// What outlives a reload: that writing was interrupted, what was typed and not run yet, and what the address
// that is loaded has not.

const TYPED = "explorer:typed", INTERRUPTED = "explorer:interrupted", QUERY = "explorer:query"; // their places in the tab's storage
let isStreaming = false, isInterrupted = false, isReloaded = false;

function tellInterrupted() {
  isInterrupted = true;
  showBanner(_("Writing was interrupted: press Generate to go on."));
}

/** Says what the page before this one left unfinished, and keeps what this one will. */
export function watchReloads() {
  const [opened] = performance.getEntriesByType("navigation");
  isReloaded = /** @type {PerformanceNavigationTiming} */ (opened)?.type === "reload";
  if (isReloaded && sessionStorage.getItem(INTERRUPTED)) tellInterrupted();
  sessionStorage.removeItem(INTERRUPTED);
  const query = isReloaded && sessionStorage.getItem(QUERY);
  if (query) history.replaceState(history.state, "", location.pathname + query + location.hash);
  sessionStorage.removeItem(QUERY);
  onServerReturn(() => { if (isStreaming) tellInterrupted(); });
  window.addEventListener("pagehide", () => {
    if (isStreaming || isInterrupted) sessionStorage.setItem(INTERRUPTED, "true");
    sessionStorage.setItem(QUERY, latestQuery()); // a reload goes to the address as it was when it began
  });
  document.addEventListener("input", ({ target }) => {
    const box = /** @type {HTMLTextAreaElement} */ (target);
    if (box.closest("#prompt")) sessionStorage.setItem(TYPED, box.value);
  });
}

/** Whether tokens are coming; where they stop by themselves, it is told. @param {boolean} now */
export function setWriting(now) {
  isStreaming = now;
  isInterrupted = false;
  if (!isServerLost) showBanner("");
}

/** What is in the prompt's box has been run. */
export function forgetTypedPrompt() { sessionStorage.removeItem(TYPED); }

/** What the prompt's box begins with: what was typed before a reload, or else what has been run. @param {string} ran */
export function initialPrompt(ran) {
  const typed = isReloaded && sessionStorage.getItem(TYPED);
  if (!isReloaded) forgetTypedPrompt();
  return typed || ran;
}

// Links to other places of the page: a click goes there at once, and what browsers do with links works, too.

/**
 * @param {string} words
 * @param {import("./page_state.js").State} look the change of the selection that leads there, and the changes to the model if they are others
 * @param {string} [figure] element id of what is to come into sight
 */
export function linkTo(words, look, figure) {
  const link = make("a", {}, words);
  const lead = () => { link.href = urlWithoutRoom(urlOfState({ ...state, ...look }, location.href)).href; };
  lead();
  for (const type of ["pointerenter", "focus"]) link.addEventListener(type, lead); // what else is chosen is another by then
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // the address in another tab or window
    event.preventDefault();
    const { edits, ...selection } = look;
    if (edits) setInterventions(edits.split("~"));
    select(selection);
    if (figure) scrollToFigure(figure);
  });
  return link;
}

// Going about in a lesson: its step and the visitor's reply are the state's; where each lesson was left, with the replies
// given, the browser keeps, so that nobody needs an account.

const KEPT = "explorer:lessons"; // its place in the browser's storage

const told = new EventTarget();
/** @type {Record<string, any> | null} */
let step = null;

/** The step that Python told last; null outside of a lesson. */
export const shownLessonStep = () => (state.lesson ? step : null);

/** Has whoever follows the lesson know what Python told of a step. @param {Record<string, any>} now */
export function notifyLessonStep(now) {
  step = now;
  told.dispatchEvent(new Event("told"));
}

/** Calls `listener` with every step that Python tells, or tells anew. @param {(now: Record<string, any>) => void} listener @param {AbortSignal} [signal] */
export const onLessonStep = (listener, signal) => told.addEventListener("told", () => listener(step), { signal });

/** Where a lesson was left: the step, each step's reply, and whether its end was reached. @typedef {{ step: number, replies: Record<string, string>, isDone?: boolean }} Left */

/** All that were begun, by their names. @returns {Record<string, Left>} */
export function lessonPositions() {
  try { return JSON.parse(localStorage.getItem(KEPT)) ?? {}; } catch { return {}; } // not every frame has a storage
}

/** Has the browser keep where the visitor is. */
export function keepLessonPositions() {
  onEveryState((now, before) => {
    if (!now.lesson || ["lesson", "step", "reply"].every((name) => now[name] === before[name])) return;
    const all = lessonPositions(), one = (all[now.lesson] ??= { step: 1, replies: {} });
    one.step = now.step;
    const reply = storedReply(now.step, now.reply);
    if (reply) one.replies[now.step] = now.reply;
    try { localStorage.setItem(KEPT, JSON.stringify(all)); } catch { /* for this visit, then */ }
  });
}

/** The reply to a step; null where what is given is none to it. @param {number} step @param {string | undefined} reply */
export const storedReply = (step, reply) => (reply?.startsWith(`${step}:`) ? reply.slice(`${step}:`.length) : null);

/**
 * Goes to a step of a lesson, with the reply that was given there before.
 * @param {string} lesson
 * @param {number} step
 * @param {string} [checkpoint] taken in the place of a model that is not here
 */
export function goToStep(lesson, step, checkpoint) {
  const reply = lessonPositions()[lesson]?.replies[step] ?? "";
  makeMove({ kind: "lesson", lesson, step, reply, ...(checkpoint ? { checkpoint } : {}) });
}

/** Replies to the step's question. @param {string} reply */
export const sendReply = (reply) => changeSettings({ reply: `${state.step}:${reply}` });

/** Asks for the truth without a reply. */
export const showAnswer = () => sendReply("?");

/** Forgets the reply, so that the question is asked again. */
export function forgetReply() {
  const all = lessonPositions();
  delete all[state.lesson]?.replies[state.step];
  try { localStorage.setItem(KEPT, JSON.stringify(all)); } catch { /* it is asked again in this visit */ }
  changeSettings({ reply: "" });
}

/** Forgets all replies: whoever leads a class has tried the questions before, and asks them anew. */
export function forgetReplies() {
  const all = lessonPositions();
  for (const position of Object.values(all)) position.replies = {};
  try { localStorage.setItem(KEPT, JSON.stringify(all)); } catch { /* not every frame has a storage */ }
  if (state.reply) changeSettings({ reply: "" });
}

/** Has the browser keep that the lesson is done; it begins at its first step again. */
export function finishLesson() {
  const all = lessonPositions();
  all[state.lesson] = { replies: {}, ...all[state.lesson], step: 1, isDone: true };
  try { localStorage.setItem(KEPT, JSON.stringify(all)); } catch { /* not every frame has a storage */ }
}

/** What a lesson was begun from. @type {State | null} */
let beforeLesson = null;

/** @param {State} now @param {State} before */
function keepStateBeforeLesson(now, before) {
  if (now.lesson && !before.lesson) beforeLesson = before.checkpoint ? before : null;
}

/** Leaves the lesson, for the text and the view it was begun in; opened by a link, it leaves its own. */
export function leaveLesson() {
  if (beforeLesson) goToState(beforeLesson, false);
  else setState({ lesson: "", step: 0, reply: "" });
}
