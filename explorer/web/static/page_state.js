// @ts-check
// The page's state. It holds the request, never the result. Widgets, Gradio's controls and the style sheet follow it.
import { readStorage, writeStorage } from "./dom.js";
import { language } from "./text.js";
import { DEEPER_VIEWS, FULL_TABS, SIMPLE_TABS, STORY_TABS } from "./shared_constants.js";

/** Return the model's name, which all checkpoints of one training share (tracing/training_history.py). @param {string} [checkpoint] */
export const modelName = (checkpoint = "") => checkpoint.replace(/\/step-\d{1,9}$/, "");

// Its fields are defined in page_state.py and generation_settings.py.

/** @typedef {Record<string, any>} State */

/** Current state; each change creates a new object. @type {State} */
export let state = { lang: language };

const stateEvents = new EventTarget(), stateListeners = [];
let hasPendingChange = false;

/** Return a state whose key position is not after its query position. @param {State} candidate */
export const withCausalKey = (candidate) => (candidate.key > candidate.query ? { ...candidate, key: candidate.query } : candidate);

/** Return a state with a depth that its view has. @param {State} candidate */
const withDepth = (candidate) => {
  const depth = depthOfView(candidate.view, candidate.depth) === "story" ? "story" : DEPTHS.includes(candidate.depth) && candidate.depth !== "story" ? candidate.depth : chosenDepth;
  return candidate.view && depth !== candidate.depth ? { ...candidate, depth } : candidate;
};

/** Return a change that also forgets what holds only at the place that it leaves: the guess, and what is open of the whole
 * model. A new text closes it; another token leaves the head open, without its cell. @param {State} change @param {State} previous @returns {State} */
export function withFieldsOfPlace(change, previous) {
  const moves = (...names) => names.some((name) => name in change && String(change[name]) !== String(previous[name]));
  const open = previous.open && moves("prompt") ? { open: "" } : previous.open === "cell" && moves("query") ? { open: "head" } : {};
  return { ...open, ...(previous.guess && moves("prompt", "generated", "query", "lesson") && { guess: "" }), ...change };
}

/** @param {State} change @param {boolean} [notify] false defers the widgets to the next `notifyStateListeners` */
export function setState(change, notify = true) {
  const previous = state;
  state = withDepth(withCausalKey({ ...state, ...withFieldsOfPlace(change, state) }));
  hasPendingChange = true;
  if (notify) notifyStateListeners();
  for (const listener of stateListeners) listener(state, previous);
}

/** Make the next `notifyStateListeners` notify, for a change outside the state. */
export const deferStateListeners = () => { hasPendingChange = true; };

/** Notify the widgets of a change that they do not know yet. */
export function notifyStateListeners() {
  if (!hasPendingChange) return;
  hasPendingChange = false;
  stateEvents.dispatchEvent(new Event("change"));
}

/** Call `listener` when the state changes. @param {() => void} listener */
export const onState = (listener) => stateEvents.addEventListener("change", listener);

/** Call `listener` with the new and the previous state at every change, also a deferred one. @param {(now: State, before: State) => void} listener */
export const onEveryState = (listener) => void stateListeners.push(listener);

// Depth of explanation: story, numbers, formula or code. A view belongs to the story, to the other depths, or to both. The
// last choice survives a reload; the URL takes precedence.

const STORAGE_KEY = "explorer:mode";

const DEPTHS = ["story", "numbers", "formula", "code"];
let chosenDepth = "numbers"; // of views outside the story

/** Return whether a view belongs to the "story" or to "numbers". @param {string} view @param {string} [depth] decides for a view of both */
export const depthOfView = (view, depth = state.depth) => (SIMPLE_TABS.includes(view) || (STORY_TABS.includes(view) && depth === "story") ? "story" : "numbers");

/** Return the change that shows the current subject at another depth. @param {string} depth @returns {State} */
export function changeToDepth(depth) {
  const { view } = state;
  if (depth !== "story") chosenDepth = depth;
  const isSame = (depth === "story" ? STORY_TABS : FULL_TABS).includes(view);
  const step = STORY_TABS.find((storyView) => DEEPER_VIEWS[storyView]?.includes(view)) ?? STORY_TABS[0];
  return { depth, view: isSame ? view : depth === "story" ? step : DEEPER_VIEWS[view]?.[0] ?? FULL_TABS[0] };
}

const GRADIO_PANELS = ["api", "api-recorder", "settings"]; // Gradio's own panels, which an old URL may name as the view
const urlView = new URLSearchParams(globalThis.location?.search).get("view");
const initialTab = GRADIO_PANELS.includes(urlView) ? null : urlView;

/** True if the URL names a tab. */
export const urlNamesView = initialTab !== null;

/** Return the view and depth that the page opens with. */
export function initialView() {
  const urlDepth = new URLSearchParams(location.search).get("depth"), storedText = readStorage(STORAGE_KEY), storedDepth = storedText === "full" ? "numbers" : storedText;
  const depth = DEPTHS.includes(urlDepth) ? urlDepth : urlNamesView && storedDepth === "story" ? "numbers" : DEPTHS.includes(storedDepth) ? storedDepth : urlNamesView ? "numbers" : "story";
  if (depth !== "story") chosenDepth = depth;
  const view = initialTab ?? (depth === "story" ? STORY_TABS : FULL_TABS)[0];
  return { view, depth: depthOfView(view, depth) === "story" ? "story" : chosenDepth };
}

/** @param {string} mode a depth */
export const storeDepth = (mode) => writeStorage(STORAGE_KEY, mode);

/** Set the attributes and classes by which the style sheet follows the depth, the view, and a typed prompt that has not run. */
export function applyDepth() {
  const { classList } = document.body;
  document.addEventListener("input", ({ target }) => {
    if (/** @type {Element} */ (target).closest("#prompt")) classList.add("unrun");
  });
  const showDepth = (view, depth) => {
    Object.assign(document.body.dataset, { depth, view });
    classList.toggle("simple", depth === "story");
  };
  const first = initialView();
  showDepth(first.view, first.depth);
  onEveryState((now, before) => {
    document.body.dataset.shown = (now["b.checkpoint"] && now.shown) || "a"; // a link may name it without a second run
    if (before.prompt && String(now.prompt) !== String(before.prompt)) classList.remove("unrun"); // a token more leaves what is typed
    if (now.view === before.view && now.depth === before.depth) return;
    if (now.depth !== "story") chosenDepth = now.depth;
    showDepth(now.view, now.depth);
  });
}

// Aligned tokens of two runs. The state names tokens of A; figures of B show the aligned ones.

/** @typedef {{ partners: (number | null)[], back: (number | null)[] }} TokenAlignment */

/** @type {TokenAlignment | null} */
let alignment = null;
let isAwaitingPartner = false; // whether the next selected token of B is to be aligned with A's selected one

/** @param {TokenAlignment | null} next */
export function setAlignment(next) {
  const isSame = JSON.stringify(next?.partners) === JSON.stringify(alignment?.partners);
  alignment = next;
  if (isSame) return; // a click in between stays pending
  isAwaitingPartner = false;
  deferStateListeners();
}

/** Align the next selected token of B with A's selected one. */
export const awaitPartnerToken = () => { isAwaitingPartner = true; };

export const isPartnerAwaited = () => isAwaitingPartner;

/** Return whether a partner token is awaited, and stop waiting. */
export function takeAwaitedPartner() {
  const wasAwaiting = isAwaitingPartner;
  isAwaitingPartner = false;
  return wasAwaiting;
}

/** Return the aligned position, or that of the nearest token before that has one. */
function nearestPartner(positions, position) {
  for (let i = Math.min(position, positions.length - 1); i >= 0; i--) if (positions[i] !== null) return positions[i];
  return 0;
}

/** Return the position in B of a token's partner; null for a gap, or without a second run. @param {number} position */
export const partnerInB = (position) => alignment?.partners[position] ?? null;

/** Return the position in B aligned with one in A. @param {number} position @returns {number} */
export const positionInB = (position) => (alignment ? nearestPartner(alignment.partners, position) : position);

/** @param {string} [run] of a figure's tokens: "b"; anything else is A */
const isB = (run = state.shown) => alignment && run === "b";

/** Return the run that a figure shows, or "difference". @param {Element} element */
export const shownRun = (element) => (state.shown !== "both" ? state.shown : element.closest(".of-b") ? "b" : "a");

/** Return the state field with the checkpoint of the run that a figure shows; A's for a difference. @param {Element} element */
export const checkpointOfShownRun = (element) => (isB(shownRun(element)) ? "b.checkpoint" : "checkpoint");

/**
 * Translate a change of the selection in a figure to positions of A.
 * @param {Record<string, any>} change
 * @param {string} [run] of the figure's tokens
 */
export function changeInA(change, run) {
  if (!isB(run)) return change;
  const mapped = { ...change };
  for (const name of ["query", "key"]) if (name in mapped) mapped[name] = nearestPartner(alignment.back, mapped[name]);
  return mapped;
}

/** Return the position in A aligned with one in B. @param {number} position @returns {number} */
export const positionFromB = (position) => (alignment ? nearestPartner(alignment.back, position) : position);

/** Return the state with the selection in the positions of a figure's run. @param {string} [run] of its tokens @returns {State} */
export const stateInRun = (run) => (isB(run) ? { ...state, query: positionInB(state.query), key: positionInB(state.key) } : state);

// State in Gradio: the value of an invisible component. Generation starts from it, and its events update Gradio's controls.

/**
 * Arguments of a component's script (layout.py).
 * @typedef {object} Gradio
 * @property {Record<string, any>} props
 * @property {(name: string, act: () => void) => void} watch calls `act` when Python has changed the prop
 * @property {Record<string, () => void>} emit its events
 */

/** Events of Gradio's component; null until Gradio has built it. @type {{ sync: () => void, halt: () => void, localize: () => void, wake: () => void } | null} */
export let gradioEvents = null;
/** @type {(nothing?: any) => void} */
let resolveReady;
/** Resolves once Gradio has built the component. */
export const gradioReady = new Promise((resolve) => { resolveReady = resolve; });

/** @param {Gradio} gradio */
export function connectState({ props, emit }) {
  gradioEvents = /** @type {any} */ (emit);
  const write = () => { props.value = state; };
  onEveryState(write);
  write();
  resolveReady();
}
