// @ts-check
// User actions: they change the state at once, then request from Python what depends on it, one request at a time.
// Generated text is shown token by token.
import { button, find, findAll, make, notify, showQueueLength } from "./dom.js";
import { _ } from "./text.js";
import { responseLines, isServerLost, checkConnection, onServerReturn, RefusedError } from "./server_connection.js";
import { finishResponse, setContent, staleMarker, requestCount } from "./widget_contents.js";
import { forgetTypedPrompt, continuationsByModel, initialPrompt, setWriting } from "./history.js";
import { ABOUT, ADDRESS_DEFAULTS, COMPARING, WHOLE } from "./shared_constants.js";
import { gradioEvents, modelName, depthOfView, setState, state, deferStateListeners, notifyStateListeners } from "./page_state.js";

// Tokens arrive faster than one can read and a browser can draw. They are shown one by one at an even pace, each once the
// figures of the previous one are drawn.

const TOKEN_INTERVAL_MS = 1000 / 18, BUSY_RETRY_MS = 5;

/**
 * @param {(count: number, isLast: boolean) => void} show shows the first `count` tokens
 * @param {() => any} isBusy whether the previous token is still to be drawn
 */
export function makeTokenPlayer(show, isBusy) {
  let received = null, visibleCount = 0, dueTime = 0, timer = null;

  function showDueTokens() {
    if (isBusy()) return wait(BUSY_RETRY_MS);
    timer = null;
    const now = performance.now(), previousCount = visibleCount;
    for (; visibleCount < received.count && dueTime <= now; dueTime += TOKEN_INTERVAL_MS) visibleCount++; // catches up after a busy time
    if (visibleCount > previousCount) show(visibleCount, received.complete && visibleCount === received.count);
    if (received && visibleCount < received.count) wait(dueTime - performance.now());
  }
  function wait(ms) { timer = setTimeout(showDueTokens, ms); }

  return {
    /** Play the first `count` generated tokens. `complete` says whether no more follow. */
    play(count, complete) {
      received = { count, complete };
      if (timer !== null) return;
      dueTime = Math.max(dueTime, performance.now());
      showDueTokens();
    },
    /** Drop the tokens that are not visible yet. Return whether any were, or more were to come. */
    drop() {
      const wasPlaying = received !== null && !(received.complete && visibleCount === received.count);
      clearTimeout(timer);
      [received, visibleCount, dueTime, timer] = [null, 0, 0, null];
      return wasPlaying;
    },
  };
}

// Gradio's own controls follow changes of the state that they did not make.

/** @type {string | null} */
let pendingPrompt = null; // text for the prompt box at the next update
let isFirst = true;

/** Update the controls. @param {string | null | undefined} [text] for the prompt box */
export function syncControls(text) {
  if (typeof text === "string") {
    pendingPrompt = isFirst ? initialPrompt(text) : text;
    document.body.classList.toggle("unrun", pendingPrompt !== text); // typed before a reload
    isFirst = false;
  }
  gradioEvents?.sync();
}

/** Return the values of Gradio's prompt, settings and box "all". An undefined prompt leaves its box as it is. @param {string[]} names of the settings */
export function controlValues(names) {
  const text = pendingPrompt ?? undefined;
  pendingPrompt = null;
  return [text, ...names.map((name) => (name === "top_k" ? topKSliderValue() : state[name])), state.top_k === 0];
}

// Top-k slider. 0, which keeps all tokens, has a checkbox of its own. For a typed number above its range the slider stands
// at its end.

const MAX_TOP_K = 100; // end of the slider (state/generation_settings.py)
let sliderTopK = ADDRESS_DEFAULTS.top_k; // value of the slider while all tokens are kept

/** Return the number at which top-k's slider stands. */
function topKSliderValue() {
  sliderTopK = state.top_k || sliderTopK;
  return sliderTopK;
}

// Generated text. While tokens stream in, only the prediction follows; once they stop, for any reason, all figures do.

const CONNECTION_CHECK_MS = 2000; // interval between two checks of the connection
const PAUSE_MS = 300; // tokens count as stopped after this time without another
let generatedUpdate = null; // latest update of the generation; its first tokens are visible
let pauseTimer = null, connectionTimer = null;
let isGenerating = false, hasUnshownTokens = false; // whether Python generates; whether tokens are not visible yet
let hasReceivedUpdate = false; // whether this generation has sent anything
const tokenPlayer = makeTokenPlayer(showTokens, () => isRequestOpen() || isServerLost);

/** Return whether text is being generated or shown, which can be stopped. */
export const isWriting = () => isGenerating || hasUnshownTokens;

/** Set whether Python generates text. @param {boolean} now */
export function setGenerating(now) {
  isGenerating = now;
  clearInterval(connectionTimer);
  hasReceivedUpdate = false;
  if (now) connectionTimer = setInterval(() => { // Gradio's stream does not report a broken connection
    checkConnection();
    // Gradio 6.31 closes its stream once nothing is due, and does not reopen it for a request made before it has read that.
    if (!hasReceivedUpdate && !isServerLost) gradioEvents?.wake();
  }, CONNECTION_CHECK_MS);
  deferStateListeners();
  notifyStateListeners();
}

/** @param {boolean} now */
function setHasUnshownTokens(now) {
  hasUnshownTokens = now;
  setWriting(now);
}

/** Return the change of the state that shows the first `count` tokens of an update. */
export function changeUpTo({ change, steps }, count) {
  const generated = change.generated.slice(0, change.generated.length - steps.length + count), query = steps[count - 1];
  return { ...change, generated, query, key: Math.max(0, query - 1) };
}

function showTokens(count, isLast) {
  clearTimeout(pauseTimer);
  setState(changeUpTo(generatedUpdate, count), false); // listeners follow once the token is drawn
  setHasUnshownTokens(!isLast);
  requestUpdate(isLast ? "show" : "token");
  if (!isLast && count === generatedUpdate.steps.length) pauseTimer = setTimeout(() => requestUpdate("show"), PAUSE_MS);
}

/**
 * Apply Python's update of the state during generation, and request what depends on it.
 * @param {object} update
 * @param {import("./page_state.js").State} [update.change]
 * @param {string} [update.ask] scope of the request
 * @param {number[]} [update.steps] position of each generated token; they are shown one by one
 * @param {string[]} [update.notices]
 */
export function applyUpdate({ change, ask: request, steps, notices }) {
  hasReceivedUpdate = true;
  const isApplied = change && applyChange(change, Boolean(steps));
  notices?.forEach((notice) => notify(notice)); // after the change: another view removes earlier notices
  if (!isApplied) return;
  if ("seed" in change) syncControls();
  if (!steps) return requestUpdate(request);
  generatedUpdate = { change, steps };
  tokenPlayer.play(steps.length, request === "show");
}

/**
 * Apply Python's change of the state. While tokens of it are not visible yet, only record that it began.
 * @param {import("./page_state.js").State} change
 * @param {boolean} [isComing]
 * @returns {boolean} whether it still applies
 */
function applyChange(change, isComing = false) {
  if (change.turn < state.turn) return false; // from a turn that was stopped
  if (change.turn > state.turn) tokenPlayer.drop();
  if (state.prompt && change.prompt) { // otherwise the page has just loaded, and keeps the banner of the page before
    setHasUnshownTokens(isComing);
    if (String(change.prompt) !== String(state.prompt)) forgetTypedPrompt();
  }
  clearTimeout(pauseTimer);
  if (!isComing) setState(change, false);
  return true;
}

/** Stop generating, on the server too. */
function haltGeneration() {
  if (isWriting()) gradioEvents?.halt();
  stopWriting();
}

/** Stop generating at the visible tokens. Later updates of this turn are ignored. */
export function stopWriting() {
  if (!state.checkpoint) return;
  const wasPlaying = tokenPlayer.drop();
  clearTimeout(pauseTimer);
  setGenerating(false);
  setHasUnshownTokens(false);
  setState({ turn: state.turn + 2 });
  if (wasPlaying) requestUpdate("show");
}

/** Drop the tokens that are not visible yet, and stop generating. */
export function dropUnshownTokens() {
  tokenPlayer.drop();
  clearTimeout(pauseTimer);
  setGenerating(false);
  setHasUnshownTokens(false);
}

// Requests to Python. Only one is open at a time, about the current state, so that no response overtakes a newer one.
// Actions, such as running a prompt, run one after another. A response comes in parts, visible figures first; the rest is
// dropped once a newer request waits.

/** Action that changes the state on the server (actions/page_actions.py). @typedef {{ kind: string } & Record<string, any>} Action */

let pendingScope = -1; // index in ABOUT of the widest scope requested since the last was sent; -1 for none
/** @type {{ action: Action, resolve: (isDone: boolean) => void, isWanted: () => boolean }[]} */
const actions = []; // the first one is running
/** @type {{ figure: string, point: Record<string, any>, tell: (words: string) => void } | null} */
let clickedPoint = null; // clicked point that the next request includes
let allActions = Promise.resolve();
/** @type {{ hasBegun: boolean, abort: () => void } | null} */
let openRequest = null;
let modelVersion = ""; // version of the model's files behind the visible figures
let isReady = false;

/** Send the pending requests, now that widgets can show the responses. */
export function enableRequests() {
  isReady = true;
  sendPending();
}

/** Request what depends on a change of the state. @param {string} scope one of `ABOUT` */
export function requestUpdate(scope) {
  pendingScope = Math.max(pendingScope, ABOUT.indexOf(scope));
  queueMicrotask(staleMarker(scope, state.view)); // after sending, which it must not delay
  sendPending();
}

/**
 * Let Python change the state by an action, and update everything that depends on it.
 * @param {Action} action
 * @param {() => boolean} [isWanted] checked when its turn comes
 * @returns {Promise<boolean>} whether it was done
 */
export function runAction(action, isWanted = () => true) {
  const result = /** @type {Promise<boolean>} */ (new Promise((resolve) => { actions.push({ action, resolve, isWanted }); }));
  allActions = allActions.then(() => result).then(() => {});
  sendPending();
  return result;
}

/**
 * Request the derivation of the number at a clicked point, together with what the click selects right after this call.
 * @param {string} figure
 * @param {Record<string, any>} point
 * @returns {Promise<string>} "" if there is none
 */
export function requestDerivation(figure, point) {
  clickedPoint?.tell("");
  const derivation = /** @type {Promise<string>} */ (new Promise((resolve) => { clickedPoint = { figure, point, tell: resolve }; }));
  queueMicrotask(() => { if (clickedPoint) requestUpdate("tune"); }); // the click selected nothing
  return derivation;
}

/** Return a promise that resolves once all actions are done. */
export const actionsDone = () => allActions;

/** Return whether a request is open. */
export const isRequestOpen = () => openRequest !== null;

/** Return whether a request is open or pending. */
export const isBusy = () => isRequestOpen() || actions.length > 0 || settingsTimer !== null;

onServerReturn(() => { if (state.checkpoint) requestUpdate("show"); });

async function sendPending() {
  if (openRequest?.hasBegun) openRequest.abort();
  if (openRequest || !isReady) return;
  while (!isServerLost && (actions.length || (pendingScope >= 0 && state.checkpoint))) {
    const next = actions[0];
    if (next && !next.isWanted()) endAction(false);
    else if (next) endAction(await sendRequest(ABOUT.length - 1, next.action));
    else await sendRequest(pendingScope);
  }
  while (isServerLost && actions.length) endAction(false);
}

/** End the first action. @param {boolean} isDone */
const endAction = (isDone) => actions.shift().resolve(isDone);

/** Send a request and show its response. @param {number} scope index in ABOUT @param {Action} [action] @returns {Promise<boolean>} whether the action was done */
async function sendRequest(scope, action) {
  const abortController = new AbortController(), previousScope = pendingScope, { tell, ...inspected } = clickedPoint ?? {};
  let isDone = !action, isComplete = false, number = requestCount;
  const isNewer = () => pendingScope >= 0 || actions.length > (action ? 1 : 0);
  clearTimeout(settingsTimer);
  settingsTimer = null;
  openRequest = { hasBegun: false, abort: () => abortController.abort() };
  setBusy(true);
  pendingScope = -1;
  clickedPoint = null;
  try {
    for await (const line of responseLines({ about: ABOUT[scope], state: { ...state, version: modelVersion }, ...(action && { action }), ...(tell && { inspect: inspected }) }, abortController.signal)) {
      showQueueLength(line.waiting ?? null);
      if (line.change) isDone = line.done && applyChange(line.change);
      line.notices?.forEach((notice) => notify(notice));
      if (line.change && isDone) {
        staleMarker("show", state.view)();
        number = requestCount;
        syncControls(line.prompt);
      }
      if ("inspection" in line) tell?.(line.inspection);
      if (!line.contents || !isDone) continue;
      openRequest.hasBegun = true;
      modelVersion = line.version ?? modelVersion;
      for (const [id, content] of Object.entries(line.contents)) setContent(id, content, number);
      notifyStateListeners();
      if (isNewer()) break;
    }
    isComplete = !isNewer();
  } catch (error) {
    isComplete = error.name !== "AbortError";
    if (error instanceof RefusedError) setContent("problem", error.message);
  }
  tell?.("");
  showQueueLength(null);
  if (!isDone) {
    pendingScope = Math.max(pendingScope, previousScope);
    deferStateListeners(); // the controls return to the unchanged state
    notifyStateListeners();
  } else if (!isComplete) pendingScope = Math.max(pendingScope, scope); // the next request includes the rest
  else finishResponse();
  openRequest = null;
  setBusy(false);
  return isDone;
}

function setBusy(value) { document.querySelector("#view")?.setAttribute("aria-busy", value); }

// Choices: they change the page at once, then request what depends on them.

/** Change the selection, and perhaps the tab. @param {import("./page_state.js").State} change */
export function select(change) {
  if (!state.checkpoint) return; // the first run brings a selection
  const previousView = state.view, mode = depthOfView(previousView), view = change.view ?? previousView;
  const { target, rival } = { ...state, ...change };
  setState(rival === target ? { ...change, rival: 0 } : change); // a token's contrast is another
  if (view === previousView && depthOfView(view) === mode) return requestUpdate("pick");
  goToTop();
  requestView(mode);
}

/** Create the button to the story's step after a view; after the last, to the lessons. @param {string} view */
export function nextStepButton(view) {
  const tabs = findAll(document, "#steps [data-view]"), next = tabs[tabs.findIndex(({ dataset }) => dataset.view === view) + 1];
  const openLessons = () => {
    const opener = find(document, "#lessons .open");
    goToTop();
    if (!opener.checkVisibility()) find(document, "#more-of-header .fold").click(); // on a phone it is in the menu
    opener.click();
  };
  return next ? button(_("Next: {step} →", { step: next.textContent ?? "" }), () => select({ view: next.dataset.view }), { className: "next-step" })
    : button(_("Next: a lesson →"), openLessons, { className: "next-step" });
}

/** Scroll to the top of the page; on a phone, in the story after the guess, to its card, so that Next stays where it is. */
export function goToTop() {
  if (matchMedia("(max-width: 600px)").matches && document.body.matches(".simple.guessed")) find(document, "#columns").scrollIntoView({ behavior: "instant" });
  else scrollTo({ top: 0, behavior: "instant" });
}

/** Request the state's tab. The story shows one run and the other depths two, so a change between them also updates what
 * stands around the tabs. @param {string} mode "story" or "numbers", depth of the tab that was open */
export function requestView(mode) {
  if (COMPARING.includes(state.view) && !state["b.checkpoint"]) return runAction({ kind: "example_pair" });
  requestUpdate(state["b.checkpoint"] && mode !== depthOfView(state.view) ? "show" : "view");
}

/** Choose which of two runs all figures show, including those without a selection. @param {string} runs */
export function showRuns(runs) {
  setState({ shown: runs });
  requestUpdate("view");
}

/** Change settings of the next token's distribution. An empty box, as while a number is typed, keeps the old value. Whole
 * numbers are truncated. @param {import("./page_state.js").State} change @param {boolean} [isReleased] whether a slider or its box was left */
export function changeSettings(change, isReleased = false) {
  const filled = Object.entries(change).filter(([_name, value]) => value !== null);
  const values = filled.map(([name, value]) => [name, WHOLE.includes(name) ? Math.trunc(value) : value]);
  if (isReleased && values.every(([name, value]) => beforePreset[name] === value)) return;
  if (isReleased && "top_k" in change && !state.top_k) return syncControls(); // of a typed 0, which keeps all, Gradio makes 1
  const changed = values.filter(([name, value]) => state[name] !== value); // a slider repeats its value when it is left
  if (!changed.length) return void (state.top_k > MAX_TOP_K && syncControls()); // Gradio shortens the number left in the box
  const hadAllTokens = state.top_k === 0;
  setState(Object.fromEntries(changed));
  sliderTopK = state.top_k || sliderTopK;
  if (hadAllTokens !== (state.top_k === 0)) syncControls();
  if (!drawPreview(Object.fromEntries(changed))) return requestUpdate("tune");
  clearTimeout(settingsTimer);
  settingsTimer = setTimeout(() => requestUpdate("tune"), PREVIEWED_DELAY_MS);
}

// Settings before a preset was pressed, until the user's next action: only after that click Gradio tells that the box with
// the focus was left, and with its old value.
let beforePreset = {};

/** Set several settings at once. @param {Record<string, number>} settings */
export function applyPreset(settings) {
  beforePreset = Object.fromEntries(Object.keys(settings).map((name) => [name, state[name]]));
  for (const name of ["pointerdown", "keydown"]) document.addEventListener(name, () => { beforePreset = {}; }, { capture: true, once: true });
  changeSettings(settings);
  syncControls();
}

const PREVIEWED_DELAY_MS = 150; // delay from the last move of a slider with a local preview to the request
let settingsTimer = null;
/** @type {(change: import("./page_state.js").State) => boolean} */
let drawPreview = () => false;

/** Set the function that draws a preview of changed settings in the browser. It returns whether it could. @param {(change: import("./page_state.js").State) => boolean} draw */
export function setLocalPreview(draw) { drawPreview = draw; }

/**
 * Choose another training step of the run's model, or of the second run's. All steps share a tokenizer, so text, selection
 * and continuations stay.
 * @param {string} checkpoint
 * @param {"checkpoint" | "b.checkpoint"} [field]
 */
export function chooseCheckpoint(checkpoint, field = "checkpoint") {
  if (state[field] === checkpoint) return;
  haltGeneration(); // later tokens would bring the old step back
  setState({ [field]: checkpoint });
  requestUpdate("show");
}

/** State field with the interventions of the run or of the second one. @typedef {"edits" | "b.edits"} Edits */

/** Return a run's interventions as texts (explorer/interventions). @param {Edits} [run] @returns {string[]} */
export const interventions = (run = "edits") => (state[run] ? state[run].split("~") : []);

/**
 * Set a run's interventions, and stop generating under the old ones.
 * @param {string[]} texts
 * @param {Edits} [run]
 * @param {import("./page_state.js").State} [change] of the selection
 */
export function setInterventions(texts, run = "edits", change = {}) {
  haltGeneration();
  showProbabilityChange();
  setState({ ...change, [run]: texts.join("~") });
  requestUpdate("show");
}

/**
 * Add an intervention, or remove it if it is there.
 * @param {string} text
 * @param {{ of: Edits, adds: boolean }} how `adds`: keep others of its kind
 * @param {import("./page_state.js").State} [change]
 */
export function toggleIntervention(text, { of: run, adds }, change) {
  const current = interventions(run), kind = text.slice(text.lastIndexOf("*"));
  const others = current.filter((other) => (adds ? other !== text : !other.endsWith(kind)));
  setInterventions(current.includes(text) ? others : addIntervention(others, text), run, change);
}

/** Parse an intervention that ablates one head at all positions into layer and head; null for any other. @param {string} edit */
export function ablatedHead(edit) {
  const [, layer, head] = /^blocks\.(\d+)\.attn\.z\.(\d+)\*zero$/.exec(edit) ?? [];
  return head ? { layer, head } : null;
}

let probabilityChange = ""; // probability of the most likely token before and after the interventions

/** Show in each ablation note how the probability changed. @param {string} [text] */
export function showProbabilityChange(text = "") {
  probabilityChange = text;
  for (const element of findAll(document, ".switched-off .chances")) element.textContent = probabilityText(element.dataset.of);
}

const probabilityText = (run) => (probabilityChange && run === "edits" && interventions().length === 1 ? `: ${probabilityChange}` : ".");

/** Create the note that a head is ablated, with the probability's change and a button to restore it. @param {string} text @param {Edits} run @param {{ layer: string, head: string }} head */
export function makeAblationNote(text, run, head) {
  const probability = make("span", { className: "chances", dataset: { of: run } }, probabilityText(run));
  return make("span", { className: "switched-off" }, make("span", {}, _("Layer {layer} head {head} is off", head), probability), " ",
    button(_("Put it back"), () => setInterventions(interventions(run).filter((other) => other !== text), run), { className: "plain" }));
}

/** Create the button that ablates a head. The ablation note takes its place while the head is off. */
export function makeHeadSwitch() {
  let ablationText = "", currentRun = /** @type {Edits} */ ("edits"), visibleNote = "";
  const switchButton = button(_("Switch this head off"), () => toggleIntervention(ablationText, { of: currentRun, adds: true }), { className: "plain" }), line = make("span");
  return {
    nodes: [switchButton, line],
    /** @param {{ layer: number, head: number }} where @param {string} ablation @param {Edits} run */
    show({ layer, head }, ablation, run) {
      [ablationText, currentRun] = [ablation, run];
      const isOff = interventions(currentRun).includes(ablationText), note = isOff ? `${currentRun} ${ablationText}` : "", hadFocus = document.activeElement === switchButton || line.contains(document.activeElement);
      if (note !== visibleNote) line.replaceChildren(...(isOff ? [makeAblationNote(ablationText, currentRun, { layer: String(layer), head: String(head) })] : []));
      switchButton.hidden = isOff;
      if (hadFocus && note !== visibleNote) (line.querySelector("button") ?? switchButton).focus({ preventScroll: true });
      visibleNote = note;
    },
  };
}

/** By a new intervention's text, the words of the one that it replaced; a notice tells both once the new one is described. @type {Map<string, string>} */
export const replacedWords = new Map();

/** Add an intervention to others. It replaces one of the same component. @param {string[]} texts @param {string} text */
export function addIntervention(texts, text) {
  const changedPart = (text) => text.match(/^(.+)\*(?:zero|scale|mean|patch|patch_mean|clamp)(?:\*|$)/)?.[1] ?? text;
  const replaced = texts.filter((otherText) => changedPart(otherText) === changedPart(text));
  for (const replacedText of replaced) {
    /** @type {HTMLElement | null} */
    const chip = document.querySelector(`#changes [data-edit="${CSS.escape(replacedText)}"]`);
    if (replacedText !== text) replacedWords.set(text, chip?.dataset.words ?? replacedText);
  }
  return [...texts.filter((other) => !replaced.includes(other)), text];
}

// Moves: actions that run a prompt, change the model, or move among continuations, text beginnings and second runs
// (actions/page_actions.py).

/**
 * Move among the continuations, the text's beginnings, the second runs, or a lesson's steps.
 * @typedef {{ kind: "step" } | { kind: "undo", count?: number } | { kind: "take", token: number } | { kind: "go" | "prune", path: number[] }
 *   | { kind: "compare", with: "unchanged" | "model" | "prompt" | "similar", checkpoint?: string, text?: string }
 *   | { kind: "swap" | "copy" | "close" | "unpin" } | { kind: "pin", a: number, b: number }
 *   | { kind: "pair", pair: number } | { kind: "beginning" }
 *   | { kind: "lesson", lesson: string, step: number, reply: string, checkpoint?: string }
 *   | { kind: "place", words: Record<string, string> }} Move
 */

/** Stop generating. Running actions go on. */
const haltWriting = () => { if (isWriting()) haltGeneration(); };

/** Make a move after the pending ones, and stop generating. @param {Move} move @returns {Promise<boolean>} whether it was made */
export function makeMove(move) {
  haltWriting();
  if (["compare", "pair", "place"].includes(move.kind)) goToTop();
  return runAction(move, () => move.kind !== "undo" || state.generated.length > 0);
}

/** Run a prompt with the model of that time. @param {string} text @param {boolean} [isOffered] whether its box does not show it yet
 * @returns {Promise<boolean>} whether it ran, and was not refused */
export async function runPrompt(text, isOffered = false) {
  const { classList } = document.body;
  haltWriting();
  classList.remove("unrun");
  if (isOffered) syncControls(text);
  const isDone = await runAction({ kind: "prompt", text });
  if (!isDone) classList.add("unrun");
  return isDone;
}

/** Run a conversation in the model's chat template. @param {{ role: string, content: string }[]} messages */
export function runChat(messages) {
  haltWriting();
  runAction({ kind: "chat", messages });
}

/** Run an example with its model. @param {string} text @returns {Promise<boolean>} whether it ran */
export function runExample(text) {
  haltWriting();
  syncControls(text);
  return runAction({ kind: "example", text });
}

/** Run the same prompt with another model, with the continuations that it had here before. @param {string} checkpoint */
export function changeModel(checkpoint) {
  haltWriting();
  const { value: text } = /** @type {HTMLTextAreaElement} */ (document.querySelector("#prompt textarea"));
  runAction({ kind: "model", text, checkpoint, own: continuationsByModel[modelName(checkpoint)] ?? null });
}

/** Wait for pending actions, and return the state that generation begins with. Gradio's buttons cancel an earlier
 * generation themselves; `haltGeneration` could cancel the one that begins. */
export async function beginWriting() {
  await actionsDone();
  stopWriting();
  setGenerating(true);
  return state;
}

// Updates from Gradio's generation.

/** @param {import("./page_state.js").Gradio} gradio */
export function connectUpdate({ props, watch }) {
  watch("value", () => { if (props.value) applyUpdate(props.value); });
}
