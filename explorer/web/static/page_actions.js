// @ts-check
// From what a person does to the answer: choices and moves change the state at once, then Python is asked for what
// follows, one question at a time; what it writes is shown token by token.
import { button, findAll, make, notify, showNumWaiting } from "./dom.js";
import { _ } from "./translations.js";
import { answerLines, isServerLost, look, onServerReturn, Refused } from "./server_connection.js";
import { finishAnswer, give, outdate, questions } from "./widget_contents.js";
import { forgetTypedPrompt, own, initialPrompt, setWriting } from "./history.js";
import { ABOUT, ADDRESS_DEFAULTS, COMPARING, PROBLEM, WHOLE } from "./shared_constants.js";
import { bus, modelName, depthOfView, setState, state, deferStateListeners, notifyStateListeners } from "./page_state.js";

// Tokens come faster than eyes and browsers follow: they are shown one after another, and each for as long, the next when
// what follows from the one before is drawn.

const MS_A_TOKEN = 1000 / 18, SOON_MS = 5;

/**
 * @param {(count: number, isLast: boolean) => void} show shows the first `count` of the tokens
 * @param {() => any} isBusy whether the one before is still to be drawn
 */
export function paced(show, isBusy) {
  let written = null, shown = 0, due = 0, timer = null;

  function advance() {
    if (isBusy()) return wait(SOON_MS);
    timer = null;
    const now = performance.now(), before = shown;
    for (; shown < written.count && due <= now; due += MS_A_TOKEN) shown++; // a page that was busy catches up
    if (shown > before) show(shown, written.complete && shown === written.count);
    if (written && shown < written.count) wait(due - performance.now());
  }
  function wait(ms) { timer = setTimeout(advance, ms); }

  return {
    /** So many tokens are written, those before among them; whether they are all. */
    play(count, complete) {
      written = { count, complete };
      if (timer !== null) return;
      due = Math.max(due, performance.now());
      advance();
    },
    /** What was not shown yet never is. Says whether there was any, or more to come. */
    drop() {
      const playing = written !== null && !(written.complete && shown === written.count);
      clearTimeout(timer);
      [written, shown, due, timer] = [null, 0, 0, null];
      return playing;
    },
  };
}

// Gradio's own controls follow the state where it changed by itself.

/** @type {string | null} */
let prompt = null; // that its box is to show
let isFirst = true;

/** Has the controls follow. @param {string | null | undefined} [text] for the prompt's box, if that is another */
export function syncControls(text) {
  if (typeof text === "string") {
    prompt = isFirst ? initialPrompt(text) : text;
    isFirst = false;
  }
  bus?.sync();
}

/** What Gradio's prompt, settings and box "all" show; of the prompt undefined for what it shows already. @param {string[]} names of the settings */
export function controls(names) {
  const text = prompt ?? undefined;
  prompt = null;
  return [text, ...names.map((name) => (name === "top_k" ? topKSlider() : state[name])), state.top_k === 0];
}

// The slider of top-k: 0, which keeps all, is a box of its own. A number that is larger than the slider reaches can be
// typed: the slider then stands at its end.

const MAX_TOP_K = 100; // that the slider reaches (layout.py)
let limit = ADDRESS_DEFAULTS.top_k; // where it stands while all are kept

/** As Gradio's own server would say it. */
function topKSlider() {
  limit = state.top_k || limit;
  return { __type__: "update", value: limit, interactive: state.top_k !== 0 };
}

// Text as it is written: while tokens stream in the prediction alone follows; once they stop coming, for whatever reason,
// all figures do.

const LOOK_MS = 2000; // between two looks whether the server is still there
const QUIET_MS = 300; // without another token until it is taken that they stopped coming
let written = null; // what Python has written so far, of which the first tokens are shown
let silence = null, looking = null;
let isMaking = false, isComing = false; // whether Python writes; whether tokens of it are still to be shown
let isHeard = false; // whether anything of it has come
const pace = paced(showTokens, () => isAsking() || isServerLost);

/** Whether something is being written, which can be stopped. */
export const isWriting = () => isMaking || isComing;

/** Python begins to write, or has ended. @param {boolean} now */
export function setGenerating(now) {
  isMaking = now;
  clearInterval(looking);
  isHeard = false;
  if (now) looking = setInterval(() => { // what Gradio streams says nothing where it breaks off
    look();
    // Gradio 6.31 closes its stream once nothing more is due, and does not open it for what is asked before it has read so.
    if (!isHeard && !isServerLost) bus?.wake();
  }, LOOK_MS);
  deferStateListeners();
  notifyStateListeners();
}

/** @param {boolean} now */
function setComing(now) {
  isComing = now;
  setWriting(now);
}

/** The change that shows the first `count` tokens of what is written. */
export function changeTo({ change, steps }, count) {
  const generated = change.generated.slice(0, change.generated.length - steps.length + count), query = steps[count - 1];
  return { ...change, generated, query, key: Math.max(0, query - 1) };
}

function showTokens(count, isLast) {
  clearTimeout(silence);
  setState(changeTo(written, count), false); // what is said of a new token is as it is drawn
  setComing(!isLast);
  ask(isLast ? "show" : "token");
  if (!isLast && count === written.steps.length) silence = setTimeout(() => ask("show"), QUIET_MS);
}

/**
 * Python's change of the state while it writes, and what to ask then.
 * @param {object} update
 * @param {import("./page_state.js").State} [update.change]
 * @param {string} [update.ask]
 * @param {number[]} [update.steps] the place of each token that was written: they are shown one by one
 * @param {string[]} [update.notices]
 */
export function merge({ change, ask: question, steps, notices }) {
  isHeard = true;
  notices?.forEach((notice) => notify(notice));
  if (!change || !applyChange(change, Boolean(steps))) return;
  if ("seed" in change) syncControls();
  if (!steps) return ask(question);
  written = { change, steps };
  pace.play(steps.length, question === "show");
}

/**
 * Python's change of the state is made, or is only known of where tokens of it are still to be shown.
 * @param {import("./page_state.js").State} change
 * @param {boolean} [isComing]
 * @returns {boolean} whether it still applies
 */
function applyChange(change, isComing = false) {
  if (change.turn < state.turn) return false; // of what has been stopped since
  if (change.turn > state.turn) pace.drop();
  if (state.prompt && change.prompt) { // or else the page has just been loaded, and what was before is still told
    setComing(isComing);
    if (String(change.prompt) !== String(state.prompt)) forgetTypedPrompt();
  }
  clearTimeout(silence);
  if (!isComing) setState(change, false);
  return true;
}

/** What is being written ends, and its writer is told. */
function halt() {
  if (isWriting()) bus?.halt();
  stop();
}

/** What is being written ends with what is seen: all that is on its way comes too late. */
export function stop() {
  if (!state.checkpoint) return;
  const playing = pace.drop();
  clearTimeout(silence);
  setGenerating(false);
  setComing(false);
  setState({ turn: state.turn + 2 });
  if (playing) ask("show");
}

/** What was written and not shown yet never is, and nothing more is written. */
export function dropUnshownTokens() {
  pace.drop();
  clearTimeout(silence);
  setGenerating(false);
  setComing(false);
}

// The page's one way to ask Python. One question at a time, about the state as it then is, so that no answer is overtaken
// by an older one; actions, such as running a prompt, are done one after another. An answer comes in parts, those in sight
// first; what is left of it is not waited for once something newer is asked.

/** What is done to the state (actions/page_actions.py). @typedef {{ kind: string } & Record<string, any>} Action */

let wanted = -1; // the most important question since the last was sent, by its place in ABOUT
/** @type {{ action: Action, resolve: (isDone: boolean) => void, isWanted: () => boolean }[]} */
const actions = []; // of which the first is being done
/** @type {{ figure: string, point: Record<string, any>, tell: (words: string) => void } | null} */
let clicked = null; // a point that the next question is about, too
let done = Promise.resolve(); // all of them
/** @type {{ hasBegun: boolean, abort: () => void } | null} */
let waiting = null; // for an answer
let version = ""; // of the model's files that what is on show was computed with
let isReady = false;

/** From now on there are widgets to show what was asked before. */
export function enableRequests() {
  isReady = true;
  askAll();
}

/** @param {string} question of `ABOUT` */
export function ask(question) {
  wanted = Math.max(wanted, ABOUT.indexOf(question));
  queueMicrotask(outdate(question, state.view)); // once it is asked, which nothing is to hold up
  askAll();
}

/**
 * Has Python do something to the state, and answer with all that follows.
 * @param {Action} action
 * @param {() => boolean} [isWanted] whether it is still to be done, asked when its turn comes
 * @returns {Promise<boolean>} whether it was done
 */
export function act(action, isWanted = () => true) {
  const acted = /** @type {Promise<boolean>} */ (new Promise((resolve) => { actions.push({ action, resolve, isWanted }); }));
  done = done.then(() => acted).then(() => {});
  askAll();
  return acted;
}

/**
 * How the number at a clicked point comes about: asked with what the click chooses, which is to be chosen next.
 * @param {string} figure
 * @param {Record<string, any>} point
 * @returns {Promise<string>} "" where nobody tells
 */
export function inspect(figure, point) {
  clicked?.tell("");
  const told = /** @type {Promise<string>} */ (new Promise((tell) => { clicked = { figure, point, tell }; }));
  queueMicrotask(() => { if (clicked) ask("tune"); }); // or else it chooses nothing
  return told;
}

/** Resolved once every action is done. */
export const actionsDone = () => done;

/** Whether an answer is on its way. */
export const isAsking = () => waiting !== null;

/** Whether anything is to be asked, or on its way. */
export const isBusy = () => isAsking() || actions.length > 0 || tuning !== null;

onServerReturn(() => { if (state.checkpoint) ask("show"); });

async function askAll() {
  if (waiting?.hasBegun) waiting.abort();
  if (waiting || !isReady) return;
  while (!isServerLost && (actions.length || (wanted >= 0 && state.checkpoint))) {
    const next = actions[0];
    if (next && !next.isWanted()) end(false);
    else if (next) end(await answered(ABOUT.length - 1, next.action));
    else await answered(wanted);
  }
  while (isServerLost && actions.length) end(false);
}

/** The first action has ended. @param {boolean} isDone */
const end = (isDone) => actions.shift().resolve(isDone);

/** Asks, and shows what comes. @param {number} about by its place in ABOUT @param {Action} [action] @returns {Promise<boolean>} whether the action was done */
async function answered(about, action) {
  const unwanted = new AbortController(), before = wanted, { tell, ...inspected } = clicked ?? {};
  let isDone = !action, isWhole = false, number = questions;
  const isNewer = () => wanted >= 0 || actions.length > (action ? 1 : 0);
  clearTimeout(tuning);
  tuning = null;
  waiting = { hasBegun: false, abort: () => unwanted.abort() };
  setBusy(true);
  wanted = -1;
  clicked = null;
  try {
    for await (const line of answerLines({ about: ABOUT[about], state: { ...state, version }, ...(action && { action }), ...(tell && { inspect: inspected }) }, unwanted.signal)) {
      showNumWaiting(line.waiting ?? null);
      line.notices?.forEach((notice) => notify(notice));
      if (line.change) isDone = line.done && applyChange(line.change);
      if (line.change && isDone) {
        outdate("show", state.view)();
        number = questions;
        syncControls(line.prompt);
      }
      if ("inspection" in line) tell?.(line.inspection);
      if (!line.contents || !isDone) continue;
      waiting.hasBegun = true;
      version = line.version ?? version;
      for (const [id, content] of Object.entries(line.contents)) give(id, content, number);
      notifyStateListeners();
      if (isNewer()) break;
    }
    isWhole = !isNewer();
  } catch (error) {
    isWhole = error.name !== "AbortError";
    if (error instanceof Refused) give(PROBLEM, error.message);
  }
  tell?.("");
  showNumWaiting(null);
  if (!isDone) {
    wanted = Math.max(wanted, before);
    deferStateListeners(); // what was chosen is not so
    notifyStateListeners();
  } else if (!isWhole) wanted = Math.max(wanted, about); // its rest is asked for with what is newer
  else finishAnswer();
  waiting = null;
  setBusy(false);
  return isDone;
}

function setBusy(is) { document.querySelector("#view")?.setAttribute("aria-busy", is); }

// What a person chooses: it is shown at once, then Python is asked for what follows from it.

/** Something of the selection, in another tab perhaps. @param {import("./page_state.js").State} change */
export function pick(change) {
  if (!state.checkpoint) return; // nothing runs yet: what runs first brings what is chosen of it
  const before = state.view, mode = depthOfView(before), view = change.view ?? before;
  setState(change);
  if (view === before && depthOfView(view) === mode) return ask("pick");
  goToTop();
  requestView(mode);
}

/** A button to the story's step after a view; null after the last. @param {string} view */
export function nextStepButton(view) {
  const tabs = findAll(document, "#steps [data-view]"), next = tabs[tabs.findIndex(({ dataset }) => dataset.view === view) + 1];
  return next ? button(_("Next: {step} →", { step: next.textContent ?? "" }), () => pick({ view: next.dataset.view }), { className: "next-step" }) : null;
}

/** What is shown next is seen from the top of the page. */
export const goToTop = () => scrollTo({ top: 0, behavior: "instant" });

/** Asks for the tab that the state names. The simple page shows one run and the full one two: from one to the other all is
 * another that stands around the tabs. @param {string} mode "story" or "numbers", of the tab that was open */
export function requestView(mode) {
  if (COMPARING.includes(state.view) && !state["b.checkpoint"]) return act({ kind: "example_pair" });
  ask(state["b.checkpoint"] && mode !== depthOfView(state.view) ? "show" : "view");
}

/** Which of two runs all figures show, those that follow no selection too. @param {string} shown */
export function show(shown) {
  setState({ shown });
  ask("view");
}

/** Settings that the next token's distribution follows. Of a box that is empty, as while another number is typed, what it
 * had is kept; of one for whole numbers what is before the point. @param {import("./page_state.js").State} change */
export function tune(change) {
  const told = Object.entries(change).filter(([_name, value]) => value !== null);
  const read = told.map(([name, value]) => [name, WHOLE.includes(name) ? Math.trunc(value) : value]);
  const others = read.filter(([name, value]) => state[name] !== value); // a slider that is left says its value again
  if (!others.length) return void (state.top_k > MAX_TOP_K && syncControls()); // Gradio shortens what is left in the box
  const keptAll = state.top_k === 0;
  setState(Object.fromEntries(others));
  limit = state.top_k || limit;
  if (keptAll !== (state.top_k === 0)) syncControls();
  if (!isTunedHere(Object.fromEntries(others))) return ask("tune");
  clearTimeout(tuning);
  tuning = setTimeout(() => ask("tune"), TUNED_MS);
}

const TUNED_MS = 150; // from the last move of a slider that the page follows by itself until Python is asked for the rest
let tuning = null;
/** @type {(change: import("./page_state.js").State) => boolean} */
let isTunedHere = () => false;

/** Has `draw` show what it can of other settings by itself; it says whether it did. @param {(change: import("./page_state.js").State) => boolean} draw */
export function setLocalPreview(draw) { isTunedHere = draw; }

/**
 * Another step of the training of the run's model, or of the second run's. All steps share a tokenizer, so text, selection
 * and continuations go along.
 * @param {string} checkpoint
 * @param {"checkpoint" | "b.checkpoint"} [of]
 */
export function chooseStep(checkpoint, of = "checkpoint") {
  if (state[of] === checkpoint) return;
  halt(); // what is being written would bring the step before back
  setState({ [of]: checkpoint });
  ask("show");
}

/** @typedef {"edits" | "b.edits"} Edits which run's: the run's or the second one's */

/** The changes to a model's computation, as texts (explorer/interventions). @param {Edits} [of] @returns {string[]} */
export const edits = (of = "edits") => (state[of] ? state[of].split("~") : []);

/**
 * Other changes to it. What is being written under the ones before ends.
 * @param {string[]} changed
 * @param {Edits} [of]
 * @param {import("./page_state.js").State} [change] of the selection with them
 */
export function setEdits(changed, of = "edits", change = {}) {
  halt();
  tellChances();
  setState({ ...change, [of]: changed.join("~") });
  ask("show");
}

/**
 * One change more; none where it is there already.
 * @param {string} edit
 * @param {{ of: Edits, adds: boolean }} how `adds`: beside all others, and not in place of those of its kind
 * @param {import("./page_state.js").State} [change]
 */
export function toggleEdit(edit, { of, adds }, change) {
  const before = edits(of), kind = edit.slice(edit.lastIndexOf("*"));
  const others = before.filter((other) => (adds ? other !== edit : !other.endsWith(kind)));
  setEdits(before.includes(edit) ? others : addEdit(others, edit), of, change);
}

/** The layer and the head of an edit that ablates one head everywhere; null of another. @param {string} edit */
export function ablatedHead(edit) {
  const [, layer, head] = /^blocks\.(\d+)\.attn\.z\.(\d+)\*zero$/.exec(edit) ?? [];
  return head ? { layer, head } : null;
}

let chances = ""; // of the token that was likeliest, before the changes and now

/** Has every line of `switchedOff` say what the changes did. @param {string} [told] */
export function tellChances(told = "") {
  chances = told;
  for (const part of findAll(document, ".switched-off .chances")) part.textContent = chancesOf(part.dataset.of);
}

const chancesOf = (of) => (chances && of === "edits" && edits().length === 1 ? `: ${chances}` : ".");

/** What stands where a head was switched off: that it is, what that did, and the way back. @param {string} edit @param {Edits} of @param {{ layer: string, head: string }} where */
export function switchedOff(edit, of, where) {
  const told = make("span", { className: "chances", dataset: { of } }, chancesOf(of));
  return make("span", { className: "switched-off" }, make("span", {}, _("Layer {layer} head {head} is off", where), told), " ",
    button(_("Put it back"), () => setEdits(edits(of).filter((other) => other !== edit), of), { className: "plain" }));
}

/** The button that switches a head off, and in its place, once it is off, that it is and the way back. */
export function headSwitch() {
  let edit = "", of = /** @type {Edits} */ ("edits"), written = "";
  const press = button(_("Switch this head off"), () => toggleEdit(edit, { of, adds: true }), { className: "plain" }), line = make("span");
  return {
    nodes: [press, line],
    /** @param {{ layer: number, head: number }} where @param {string} ablation @param {Edits} run */
    show({ layer, head }, ablation, run) {
      [edit, of] = [ablation, run];
      const isOff = edits(of).includes(edit), now = isOff ? `${of} ${edit}` : "", hadFocus = document.activeElement === press || line.contains(document.activeElement);
      if (now !== written) line.replaceChildren(...(isOff ? [switchedOff(edit, of, { layer: String(layer), head: String(head) })] : []));
      press.hidden = isOff;
      if (hadFocus && now !== written) (line.querySelector("button") ?? press).focus({ preventScroll: true });
      written = now;
    },
  };
}

/** A change beside others, and in the place of one of the same part: the person is told of it. @param {string[]} others @param {string} edit */
export function addEdit(others, edit) {
  const changedPart = (text) => text.match(/^(.+)\*(?:zero|scale|mean|patch|patch_mean|clamp)(?:\*|$)/)?.[1] ?? text;
  const replaced = others.filter((other) => changedPart(other) === changedPart(edit));
  for (const text of replaced) {
    /** @type {HTMLElement | null} */
    const button = document.querySelector(`#changes [data-edit="${CSS.escape(text)}"]`);
    if (text !== edit) notify(_("Replaced: {change}. One part has one change at a time.", { change: button?.dataset.words ?? text }));
  }
  return [...others.filter((other) => !replaced.includes(other)), edit];
}

// What a person has Python do: run a prompt, change the model, move among the continuations, of a text's beginning and of a
// second run (actions/page_actions.py).

/**
 * Among the continuations, of the text's beginning, or of a second run.
 * @typedef {{ kind: "undo" | "step" } | { kind: "take", token: number } | { kind: "go" | "prune", path: number[] }
 *   | { kind: "compare", with: "unchanged" | "model" | "prompt", checkpoint?: string, text?: string }
 *   | { kind: "swap" | "copy" | "close" | "unpin" } | { kind: "pin", a: number, b: number }
 *   | { kind: "pair", pair: number } | { kind: "beginning" }
 *   | { kind: "lesson", lesson: string, step: number, reply: string, checkpoint?: string }
 *   | { kind: "place", words: Record<string, string> }} Move
 */

const told = new EventTarget();

/** What is being written ends; what is being done is, with what it leads to. */
const haltWriting = () => { if (isWriting()) halt(); };

/** Calls `listener` once Python has answered a move, with whether it was made. @param {(move: Move, isMade: boolean) => void} listener @param {AbortSignal} [signal] */
export const onMove = (listener, signal) => told.addEventListener("moved", (event) => listener(.../** @type {CustomEvent<[Move, boolean]>} */ (event).detail), { signal });

/** Makes a move, after those before it. What is being written stops. @param {Move} move */
export async function makeMove(move) {
  haltWriting();
  if (["compare", "pair", "place"].includes(move.kind)) goToTop();
  const isMade = await act(move, () => move.kind !== "undo" || state.generated.length > 0);
  told.dispatchEvent(new CustomEvent("moved", { detail: [move, isMade] }));
}

/** Runs a prompt, with the model that there is by then. @param {string} text @param {boolean} [isOffered] and not in its box yet */
export function runPrompt(text, isOffered = false) {
  haltWriting();
  if (isOffered) syncControls(text);
  act({ kind: "prompt", text });
}

/** Runs a conversation, as the model's chat template writes it. @param {{ role: string, content: string }[]} messages */
export function runChat(messages) {
  haltWriting();
  act({ kind: "chat", messages });
}

/** Runs an example, with that model too. @param {string} text */
export function runExample(text) {
  haltWriting();
  syncControls(text);
  act({ kind: "example", text });
}

/** Runs the same prompt with another model, which may have been here before. @param {string} checkpoint */
export function changeModel(checkpoint) {
  haltWriting();
  const { value: text } = /** @type {HTMLTextAreaElement} */ (document.querySelector("#prompt textarea"));
  act({ kind: "model", text, checkpoint, own: own[modelName(checkpoint)] ?? null });
}

/** The state that what is to be written begins with: what is seen, and before anything is what will be. The buttons
 * themselves have Gradio cancel what the others began: `halt` could cancel what now begins. */
export async function beginWriting() {
  await actionsDone();
  stop();
  setGenerating(true);
  return state;
}

// What Gradio's generation writes: changes of the state.

/** @param {import("./page_state.js").Gradio} gradio */
export function connectUpdate({ props, watch }) {
  watch("value", () => { if (props.value) merge(props.value); });
}
