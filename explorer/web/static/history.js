// @ts-check
// Browser history: the URL, Back and Forward, Undo, reloads, links, state files, and the positions in lessons.
import { runAction, requestUpdate, dropUnshownTokens, isWriting, makeMove, select, setInterventions, changeSettings } from "./page_actions.js";
import { callServer, isServerLost, onServerReturn, RefusedError } from "./server_connection.js";
import { currentFigure, visibleFigures, scrollToFigure, widgetBlock } from "./widget_contents.js";
import { showBanner, find, make, notify, download, readStorage, readStoredObject, setText, writeStorage } from "./dom.js";
import { saveFigure, saveNumbers } from "./plotly_figures.js";
import { _ } from "./text.js";
import { ADDRESS_DEFAULTS } from "./shared_constants.js";
import { gradioEvents, onEveryState, modelName, setState, state } from "./page_state.js";

/** @typedef {import("./page_state.js").State} State */

// The URL holds the state. Tabs and runs are entries of the browser's history; clicks and sliders replace the current one.

export const ROOM = "room"; // URL field with the code of the class that this page belongs to
export const ROOM_STORAGE_KEY = "explorer:room"; // sessionStorage key of the class that this page leads
const URL_DELAY_MS = 250;
const statesByRun = new Map(); // run id -> its last state
let run = 0, timer = null;
/** @type {State | null} */
let currentState = null;

/** Model name -> the continuations of its text. Stored in the history, so it survives a reload. @type {Record<string, State>} */
export const continuationsByModel = {};

const RUN_FIELDS = ["checkpoint", "prompt", "b.checkpoint", "b.prompt", "b.edits", "lesson", "step"]; // a change of one of these adds an entry
// Steps of one training count as one model, since a slider moves through them.
const runFieldValue = (state, name) => (name.endsWith("checkpoint") ? modelName(state[name]) : String(state[name] ?? ""));
const isDifferentRun = (a, b) => RUN_FIELDS.some((name) => runFieldValue(a, name) !== runFieldValue(b, name));

/** Return a URL with all fields of a state that differ from the defaults. @param {State} state @param {string} address */
export function urlOfState(state, address) {
  const url = new URL(address);
  for (const [name, value] of Object.entries(state)) {
    if (name === "lang") continue; // stays as the user chose it
    const text = Array.isArray(value) ? value.join(".") : String(value);
    if (text && text !== String(ADDRESS_DEFAULTS[name])) url.searchParams.set(name, text);
    else url.searchParams.delete(name);
  }
  for (const text of ["text", "b.text"]) url.searchParams.delete(text); // the token ids contain them
  url.searchParams.delete("turn");
  return url;
}

/** Remove the class from a URL, so that a shared link does not join it. @param {URL} url */
export function urlWithoutRoom(url) {
  url.searchParams.delete(ROOM);
  return url;
}

/** Restore what the history kept over a reload, and listen to Back and Forward. @param {(target: State, isSameRun: boolean) => void} goToState */
export function startHistory(goToState) {
  // Gradio's panel "Use via API" writes a `view` of its own into the URL and clears the entry's state; it does not read
  // it again.
  window.navigation?.addEventListener("currententrychange", () => history.state === null && writeUrl());
  Object.assign(continuationsByModel, history.state?.own);
  run = history.state?.run ?? 0;
  // Back to another run restores its last state; within a run only the tab changes.
  window.addEventListener("popstate", ({ state: entryState }) => {
    if (!entryState?.state) return;
    if (!currentState) return location.reload(); // the page is still loading the state of the entry that was left
    statesByRun.set(run, currentState);
    const isSameRun = entryState.run === run;
    [run, currentState] = [entryState.run, { ...(statesByRun.get(entryState.run) ?? entryState.state), view: entryState.state.view, depth: entryState.state.depth }];
    writeUrl();
    goToState(currentState, isSameRun);
  });
}

/** Write the current state into the URL. */
export function writeUrl() {
  clearTimeout(timer);
  timer = null;
  if (currentState) history.replaceState(...historyEntry());
}

/** Return the query of the URL, with changes that are not written yet. */
export const latestQuery = () => (timer && currentState ? urlOfState(currentState, location.href) : location).search;

/** @returns {[State, string, URL]} */
const historyEntry = () => [{ run, own: continuationsByModel, state: currentState }, "", urlOfState(currentState, location.href)];

/** Record a new state in the URL and the history. @param {State} state */
export function recordInHistory(state) {
  if (!state.checkpoint) return; // after a reload the entry keeps its state until the first response
  const previous = currentState;
  if (!previous || (previous.view === state.view && !isDifferentRun(previous, state))) {
    timer ??= setTimeout(writeUrl, URL_DELAY_MS); // not restarted, so that it also runs while tokens stream in
    currentState = state;
    return;
  }
  if (timer) writeUrl(); // only if needed: each write takes the browser milliseconds
  if (isDifferentRun(previous, state)) {
    statesByRun.set(run, previous);
    run = Date.now();
  }
  currentState = state;
  history.pushState(...historyEntry());
}

const COPIED_MS = 2000;
const NOTICE_KIND = "copied"; // each such notice replaces the last

/** Close the menu around a button. @param {HTMLElement} button */
function closeMenuAround(button) {
  const menu = button.closest("details");
  if (!menu) return;
  if (menu.open) find(menu, "summary").focus();
  menu.open = false;
}

/** Show "Copied" for a moment on the menu, or on a button outside of it. @param {HTMLElement} button */
function confirmCopied(button) {
  const menu = button.closest("details"), label = menu ? find(menu, "summary") : button, oldText = menu ? _("Share") : _("Copy as Python");
  label.ariaLive = "polite";
  setText(label, _("Copied"));
  setTimeout(() => setText(label, oldText), COPIED_MS);
}

/** Copy the URL. Where there is no clipboard (browsers have it on https and localhost only), show the URL in a prompt. Save a
 * state that is too long for a link as a file. @param {HTMLElement} button */
export async function copyLink(button) {
  closeMenuAround(button);
  writeUrl();
  const link = urlWithoutRoom(new URL(location.href));
  link.searchParams.delete("lang"); // recipients choose their own language
  if (link.href.length > MAX_LINK_LENGTH) return saveFile(currentState, link.href.length);
  try { await navigator.clipboard.writeText(link.href); } catch { return void prompt(_("Copy this link:"), link.href); }
  confirmCopied(button);
  notify(_("Link copied."), NOTICE_KIND);
}

/** Return the id of the figure to share. In a grid of heads one chooses a head, whose figure follows. */
function sharedFigure() {
  const id = currentFigure(), visible = visibleFigures(), grid = visible.findIndex((block) => block.id === id && block.dataset.widget === "head_grid");
  return (grid >= 0 && visible[grid + 1]?.id) || id;
}

/** Copy Python code for the current figure, or save it as a file. @param {HTMLElement} button */
export async function copyPython(button) {
  closeMenuAround(button);
  notify(_("Python for this figure is being written …"), NOTICE_KIND);
  try {
    const id = sharedFigure(), script = await callServer("python_script", [state, id]), title = document.querySelector(`#${id || "view"} h2`)?.textContent;
    try { await navigator.clipboard.writeText(script); } catch { return download(script, "explorer_figure.py", "text/x-python"); }
    confirmCopied(button);
    if (title) notify(_("Python for the figure “{figure}” is copied.", { figure: title }), NOTICE_KIND);
  } catch (error) { if (error instanceof RefusedError) showBanner(error.message); } // a lost connection has its own banner
}

/** Find the current figure, or else the first one that is drawn. @param {string} selector what is drawn */
const findDrawing = (selector) => [document.getElementById(sharedFigure()), ...visibleFigures()].map((block) => block?.querySelector(selector)).find((drawing) => drawing?.clientWidth);

/** Save the numbers of a figure. @param {HTMLElement} button */
export function saveNumbersInSight(button) {
  closeMenuAround(button);
  const plot = findDrawing(".js-plotly-plot");
  if (!plot) return showBanner(_("No figure with numbers is drawn here."));
  saveNumbers(plot);
  notify(_("The numbers of the figure “{figure}” are saved.", { figure: widgetBlock(plot).querySelector("h2")?.textContent ?? "" }), NOTICE_KIND);
}

const findFigureInSight = () => findDrawing(".plot:has(.main-svg), .drawing > svg, .map svg");

/** Name the figure in the buttons that save it. */
export function nameFigureInSight() {
  const titleOf = (drawing) => widgetBlock(drawing ?? document.body)?.querySelector("h2")?.textContent, figure = titleOf(findFigureInSight()), plot = titleOf(findDrawing(".js-plotly-plot"));
  if (plot) setText(find(document, "#save-numbers"), _("Save “{figure}” as CSV", { figure: plot }));
  if (!figure) return;
  setText(find(document, "#save-png"), _("Save “{figure}” as PNG", { figure }));
  setText(find(document, "#save-svg"), _("Save “{figure}” as SVG", { figure }));
}

/** Save a figure as an image, which the button names. @param {HTMLElement} button */
export async function saveFigureInSight(button) {
  closeMenuAround(button);
  const figure = findFigureInSight();
  if (!figure) return showBanner(_("No figure is drawn here."));
  await saveFigure(figure, button.id === "save-svg" ? "svg" : "png");
  notify(_("The figure “{figure}” is saved.", { figure: widgetBlock(figure).querySelector("h2")?.textContent ?? "" }), NOTICE_KIND);
}

// State files, for states that are too long for a link.

export const MAX_LINK_LENGTH = 6000; // characters that every mail and chat program passes on
const FILE_KIND = "transformerlm-explorer", UNSAVED_FIELDS = ["lang", "turn", "version"]; // belong to this page only

/** Save a JSON file that `openFile` reads. @param {Record<string, any>} content */
export const saveJsonFile = (content) => download(JSON.stringify({ [FILE_KIND]: 1, ...content }), `${FILE_KIND}.json`, "application/json");

/** Save the state as a file and show a message. @param {State} state @param {number} count characters of the link */
function saveFile(state, count) {
  saveJsonFile({ state: Object.fromEntries(Object.entries(state).filter(([name]) => !UNSAVED_FIELDS.includes(name))) });
  const message = _("This is too long for a link ({count} characters), so it was saved as a file. “Open a saved file”, at the page’s end, brings it back.", { count });
  showBanner(message);
}

/** Parse a file's text; {} if this page did not save it. @param {string} text @returns {Record<string, any>} */
function parseFile(text) {
  let content = null;
  try { content = JSON.parse(text); } catch { return {}; }
  return content?.[FILE_KIND] ? content : {};
}

/** Return the state in a file's text, or null. @param {string} text @returns {State | null} */
export function parseStateFile(text) {
  const { state } = parseFile(text);
  return state && typeof state === "object" && !Array.isArray(state) ? state : null;
}

/** Ask for a file, then go to its state or take its slides. @param {(target: State) => void} goToState @param {(places: any[]) => void} take */
function openFile(goToState, take) {
  const input = make("input", { type: "file", accept: "application/json,.json" });
  input.addEventListener("change", async () => {
    const text = await input.files[0].text(), state = parseStateFile(text), { places } = parseFile(text);
    if (Array.isArray(places)) return take(places);
    if (!state) return showBanner(_("This file holds nothing that this page saved: choose one whose name ends in {ending}.", { ending: ".json" }));
    showBanner("");
    goToState(state);
  });
  input.click();
}

// The browser's Back and Forward.

/** Connect the state and the browser's history. */
export function followBrowserHistory() {
  startHistory(goToState);
  onEveryState((now, before) => {
    const leftModel = modelName(before.checkpoint); // shared by all training steps
    if (leftModel && leftModel !== modelName(now.checkpoint)) continuationsByModel[leftModel] = continuationsOf(before);
    recordUndoState(now, before);
    recordStateBeforeLesson(now, before);
    recordInHistory(now);
  });
}

// Undo reverts the last action: the tokens that it wrote, an intervention or a prompt. A reverted prompt comes back with
// its continuation, and the abandoned one stays in the history for Back.

const MAX_UNDO_STATES = 50;
const DRAG_PAUSE_MS = 1000; // slider moves with shorter pauses are one intervention
/** Interventions field of each run -> fields that identify the run. @type {Record<"edits" | "b.edits", string[]>} */
const RUN_FIELDS_BY_EDITS = { edits: ["checkpoint", "prompt"], "b.edits": ["b.checkpoint", "b.prompt"] };
const EDIT_FIELDS = /** @type {("edits" | "b.edits")[]} */ (Object.keys(RUN_FIELDS_BY_EDITS));
/** @type {State[]} */
const undoStates = [];
let isUndoing = false, editedAt = 0, writingTurn = -1; // turn of the action that wrote last

const isSame = (names, a, b) => names.every((name) => runFieldValue(a, name) === runFieldValue(b, name));
const editKinds = (state) => EDIT_FIELDS.map((name) => String(state[name] ?? "").replace(/\*[-\d.e]+(?=~|$)/g, "")).join(); // without strengths
/** Return the interventions fields that differ between two states of the same run. @param {State} a @param {State} b */
const changedEdits = (a, b) => EDIT_FIELDS.filter((field) => isSame(["lesson", "step", ...RUN_FIELDS_BY_EDITS[field]], a, b) && !isSame([field], a, b));

/** Return whether a text begins with another, and is longer. @param {number[]} longer @param {number[]} start */
const extendsText = (longer = [], start = []) => longer.length > start.length && start.every((id, i) => id === longer[i]);

/** Record where an action begins to write: at the end of the text, or where it replaces tokens. @param {State} now @param {State} before */
function recordWritingStart(now, before) {
  if (now.turn === writingTurn || isSame(["generated"], now, before) || !now.generated?.length || extendsText(before.generated, now.generated)) return;
  writingTurn = now.turn;
  const isAppended = now.turn !== before.turn && extendsText(now.generated, before.generated);
  const start = isAppended ? before.generated.length : Math.min(now.began ?? 0, now.generated.length - 1);
  pushUndoState({ ...before, generated: now.generated.slice(0, start) });
}

/** @param {State} now @param {State} before */
function recordUndoState(now, before) {
  if (isUndoing || !before.checkpoint) return;
  const isEdit = changedEdits(now, before).length > 0;
  if (!isEdit && isSame(["prompt"], now, before)) return recordWritingStart(now, before);
  if (!isEdit && (before.lesson || now.lesson)) return;
  const isDrag = isEdit && editKinds(now) === editKinds(before) && performance.now() - editedAt < DRAG_PAUSE_MS;
  if (isEdit) editedAt = performance.now();
  if (!isDrag) pushUndoState(before);
}

/** @param {State} target */
function pushUndoState(target) {
  undoStates.push(target);
  if (undoStates.length > MAX_UNDO_STATES) undoStates.shift();
}

/** Return whether a state differs from the current one only by tokens that were written since. @param {State} [target] */
const isBeforeWriting = (target) => target && isSame(["prompt", "lesson"], target, state) && !changedEdits(target, state).length && extendsText(state.generated, target.generated);

/** Return the index of the state that Undo leads to, -1 for none. Others are reverted already, or of another model. */
const undoIndex = () => undoStates.findLastIndex((target) => !isSame(["prompt", "lesson"], target, state) || changedEdits(target, state).length || isBeforeWriting(target));

/** Return how many tokens the last action wrote; 1 if it is not known, as after a reload. */
export function undoableTokens() {
  const target = undoStates[undoIndex()];
  return isBeforeWriting(target) ? state.generated.length - target.generated.length : 1;
}

/** Return the interventions of one run that `undo` would bring back; empty if it does not add any. */
export function restorableEdits() {
  const target = undoStates[undoIndex()], texts = (edits) => String(edits || "").split("~").filter(Boolean);
  for (const field of changedEdits(target, state)) {
    const [before, now] = [texts(target[field]), texts(state[field])];
    if (before.length > now.length) return before.filter((edit) => !now.includes(edit));
  }
  return [];
}

/** Return what `undo` reverts; null for nothing. @returns {"token" | "edit" | "prompt" | null} */
export function undoableAction() {
  const target = undoStates[undoIndex()];
  if (target && changedEdits(target, state).length && (!state.generated?.length || isSame(["generated"], target, state))) return "edit";
  if (state.generated?.length) return "token";
  return target && !target.lesson && !state.lesson && !isSame(["prompt"], target, state) ? "prompt" : null;
}

/** Revert the last action. */
export function undo() {
  const action = undoableAction();
  if (action === "token" || !action) return void makeMove({ kind: "undo", get count() { return undoableTokens(); } }); // counted when its turn comes
  const { view, depth, lang } = state, [target] = undoStates.splice(undoIndex());
  isUndoing = true;
  if (action === "prompt") goToState({ ...target, view, depth, lang }, false);
  else for (const field of changedEdits(target, state)) setInterventions(target[field] ? target[field].split("~") : [], field);
  isUndoing = false;
}

/** Open a file that the page saved. @param {(places: any[]) => void} take gets the slides of a file with slides */
export const openStateFile = (take) => openFile((saved) => goToState(saved, false), take);

/** Go to a state. @param {import("./page_state.js").State} target @param {boolean} isSameRun whether its run is the current one */
export function goToState(target, isSameRun) {
  if (isSameRun) setState({ view: target.view, depth: target.depth });
  else {
    if (isWriting()) gradioEvents.halt();
    dropUnshownTokens();
    setState({ ...target, turn: state.turn + 2 });
  }
  if (isSameRun) requestUpdate("show");
  else runAction({ kind: "follow" });
}

/** @param {import("./page_state.js").State} state */
const continuationsOf = ({ prompt, dropped, generated, branches, began, chat }) => ({ prompt, dropped, generated, branches, began, chat });

// sessionStorage: whether generation was interrupted, the typed prompt that was not run, and the query of the last URL.

const UNDO_KEY = "explorer:undo", TYPED_KEY = "explorer:typed", INTERRUPTED_KEY = "explorer:interrupted", QUERY_KEY = "explorer:query";
let isStreaming = false, isInterrupted = false, isReloaded = false;

function showInterrupted() {
  isInterrupted = true;
  showBanner(_("Writing was interrupted: press Generate to go on."));
}

/** Store what can be undone for the same page in another language. */
export const storeUndoStates = () => writeStorage(UNDO_KEY, undoStates, "sessionStorage");

/** Tell the user if the reloaded page was interrupted, and store what a reload of this page needs. */
export function watchReloads() {
  const [opened] = performance.getEntriesByType("navigation");
  isReloaded = /** @type {PerformanceNavigationTiming} */ (opened)?.type === "reload";
  if (isReloaded && readStorage(INTERRUPTED_KEY, "sessionStorage")) showInterrupted();
  writeStorage(INTERRUPTED_KEY, null, "sessionStorage");
  undoStates.push(...(readStoredObject(UNDO_KEY, "sessionStorage") ?? []));
  writeStorage(UNDO_KEY, null, "sessionStorage");
  const query = isReloaded && readStorage(QUERY_KEY, "sessionStorage");
  if (query) history.replaceState(history.state, "", location.pathname + query + location.hash);
  writeStorage(QUERY_KEY, null, "sessionStorage");
  onServerReturn(() => { if (isStreaming) showInterrupted(); });
  window.addEventListener("pagehide", () => {
    if (isStreaming || isInterrupted) writeStorage(INTERRUPTED_KEY, "true", "sessionStorage");
    writeStorage(QUERY_KEY, latestQuery(), "sessionStorage"); // otherwise a reload uses the URL of the time when it began
  });
  document.addEventListener("input", ({ target }) => {
    const box = /** @type {HTMLTextAreaElement} */ (target);
    if (box.closest("#prompt")) writeStorage(TYPED_KEY, box.value, "sessionStorage");
  });
}

/** Record whether tokens are streaming in, to report an interruption. @param {boolean} now */
export function setWriting(now) {
  isStreaming = now;
  isInterrupted = false;
  if (!isServerLost) showBanner("");
}

/** Forget the typed prompt once it has run. */
export function forgetTypedPrompt() { writeStorage(TYPED_KEY, null, "sessionStorage"); }

/** Return the first text of the prompt box: typed before a reload, or else the prompt that ran. @param {string} runText */
export function initialPrompt(runText) {
  const typed = isReloaded && readStorage(TYPED_KEY, "sessionStorage");
  if (!isReloaded) forgetTypedPrompt();
  return typed || runText;
}

// Links within the page: a click changes the state at once, while the browser's own actions on links work too.

/**
 * Create a link.
 * @param {string} words
 * @param {import("./page_state.js").State} change of the selection, with `edits` if the interventions change
 * @param {string} [figure] element id of a figure to scroll to
 */
export function makeLink(words, change, figure) {
  const link = make("a", {}, words);
  const updateHref = () => { link.href = urlWithoutRoom(urlOfState({ ...state, ...change }, location.href)).href; };
  updateHref();
  for (const type of ["pointerenter", "focus"]) link.addEventListener(type, updateHref); // other fields may have changed
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // opens the URL in another tab or window
    event.preventDefault();
    const { edits, ...selection } = change;
    if (edits) setInterventions(edits.split("~"));
    select(selection);
    if (figure) scrollToFigure(figure);
  });
  return link;
}

// Lessons. Step and reply are fields of the state; the browser stores the last step and the replies of each lesson, so that
// nobody needs an account.

const LESSONS_KEY = "explorer:lessons";

const lessonEvents = new EventTarget();
/** @type {Record<string, any> | null} */
let step = null;

/** Return the latest step from Python; null outside of a lesson. */
export const shownLessonStep = () => (state.lesson ? step : null);

/** Set the lesson step from Python and notify the listeners. @param {Record<string, any>} now */
export function notifyLessonStep(now) {
  step = now;
  lessonEvents.dispatchEvent(new Event("told"));
}

/** Call `listener` with each new or updated step. @param {(now: Record<string, any>) => void} listener @param {AbortSignal} [signal] */
export const onLessonStep = (listener, signal) => lessonEvents.addEventListener("told", () => listener(step), { signal });

/** Position in a lesson: last step, reply of each step, and whether the lesson was finished. @typedef {{ step: number, replies: Record<string, string>, isDone?: boolean }} LessonPosition */

/** Return the positions of all lessons that were begun, by name. @returns {Record<string, LessonPosition>} */
export const lessonPositions = () => readStoredObject(LESSONS_KEY) ?? {};

/** Store the position in the lesson when it changes. */
export function storeLessonPositions() {
  onEveryState((now, before) => {
    if (!now.lesson || ["lesson", "step", "reply"].every((name) => now[name] === before[name])) return;
    const positions = lessonPositions(), position = (positions[now.lesson] ??= { step: 1, replies: {} });
    position.step = now.step;
    const reply = replyAtStep(now.step, now.reply);
    if (reply) position.replies[now.step] = now.reply;
    writeStorage(LESSONS_KEY, positions);
  });
}

/** Parse a reply field; null if it belongs to another step. @param {number} step @param {string | undefined} reply */
export const replyAtStep = (step, reply) => (reply?.startsWith(`${step}:`) ? reply.slice(`${step}:`.length) : null);

/**
 * Go to a step of a lesson, with the stored reply.
 * @param {string} lesson
 * @param {number} step
 * @param {string} [checkpoint] replaces a model that is not available
 */
export function goToStep(lesson, step, checkpoint) {
  const reply = lessonPositions()[lesson]?.replies[step] ?? "";
  makeMove({ kind: "lesson", lesson, step, reply, ...(checkpoint ? { checkpoint } : {}) });
}

/** Reply to the step's question. @param {string} reply */
export const sendReply = (reply) => changeSettings({ reply: `${state.step}:${reply}` });

/** Request the answer without a reply. */
export const showAnswer = () => sendReply("?");

/** Forget the step's reply, so that its question is open again. */
export function forgetReply() {
  const positions = lessonPositions();
  delete positions[state.lesson]?.replies[state.step];
  writeStorage(LESSONS_KEY, positions);
  changeSettings({ reply: "" });
}

/** Forget all replies: a teacher who tried the questions begins again with the class. */
export function forgetReplies() {
  const positions = lessonPositions();
  for (const position of Object.values(positions)) position.replies = {};
  writeStorage(LESSONS_KEY, positions);
  if (state.reply) changeSettings({ reply: "" });
}

/** Store that the lesson is finished. It begins at its first step again. */
export function finishLesson() {
  const positions = lessonPositions();
  positions[state.lesson] = { replies: {}, ...positions[state.lesson], step: 1, isDone: true };
  writeStorage(LESSONS_KEY, positions);
}

/** State in which the lesson was opened. @type {State | null} */
let beforeLesson = null;

/** @param {State} now @param {State} before */
function recordStateBeforeLesson(now, before) {
  if (now.lesson && !before.lesson) beforeLesson = before.checkpoint ? before : null;
}

/** Leave the lesson for the state in which it was opened; a lesson opened by a link keeps its own run. */
export function leaveLesson() {
  if (beforeLesson) goToState(beforeLesson, false);
  else setState({ lesson: "", step: 0, reply: "" });
}
