// @ts-check
// The page's state: what is asked, and never an answer. Widgets, Gradio's controls and the style sheet follow it.
import { listenFor } from "./dom.js";
import { language } from "./translations.js";
import { DEEPER_VIEWS, FULL_TABS, SIMPLE_TABS, STORY_TABS } from "./shared_constants.js";

// Checkpoints of one training, by their names (tracing/training_history.py).

/** The name of the model, which all checkpoints of its training share. @param {string} [checkpoint] */
export const modelName = (checkpoint = "") => checkpoint.replace(/\/step-\d{1,9}$/, "");

// The page's state: what is asked, and never an answer. What is in it, page_state.py and generation_settings.py say.

/** @typedef {Record<string, any>} State */

/** The present state; every change makes a new one. @type {State} */
export let state = { lang: language };

const told = new EventTarget(), keepers = [];
let isUntold = false;

/** A state in which the key is no later than the query, which looks at its own position and before. @param {State} any */
export const causal = (any) => (any.key > any.query ? { ...any, key: any.query } : any);

/** A state whose depth its view has. @param {State} any */
const deep = (any) => {
  const depth = depthOfView(any.view, any.depth) === "story" ? "story" : DEPTHS.includes(any.depth) && any.depth !== "story" ? any.depth : depthChosen;
  return any.view && depth !== any.depth ? { ...any, depth } : any;
};

/** @param {State} change @param {boolean} [tell] or else the widgets follow at the next `notifyStateListeners` */
export function setState(change, tell = true) {
  const before = state;
  state = deep(causal({ ...state, ...change }));
  isUntold = true;
  if (tell) notifyStateListeners();
  for (const keep of keepers) keep(state, before);
}

/** Has the widgets follow at the next `notifyStateListeners` what is no part of the state. */
export const deferStateListeners = () => { isUntold = true; };

/** Has the widgets follow a change that they have not been told of. */
export function notifyStateListeners() {
  if (!isUntold) return;
  isUntold = false;
  told.dispatchEvent(new Event("change"));
}

/** Calls `listener` where the state is another, until the widget's element has left the page. */
export const onState = (element, listener) => listenFor(element, told, "change", listener);

/** Calls `keep` with the state and the one before at every change, told or not. @param {(now: State, before: State) => void} keep */
export const onEveryState = (keep) => void keepers.push(keep);

// How much the page explains: a story; numbers; or formulas or code, too. A view is of the story or not, or both. What a visitor
// chose last outlives a reload; an address goes first.

const CHOSEN = "explorer:mode"; // its place in the browser's storage

const DEPTHS = ["story", "numbers", "formula", "code"];
let depthChosen = "numbers"; // of a view that is not of the story

/** Which depth a view is of: "story" or "numbers". @param {string} view @param {string} [depth] that one of both has */
export const depthOfView = (view, depth = state.depth) => (SIMPLE_TABS.includes(view) || (STORY_TABS.includes(view) && depth === "story") ? "story" : "numbers");

/** The change that tells the same so deep. @param {string} depth @returns {State} */
export function changeToDepth(depth) {
  const { view } = state;
  if (depth !== "story") depthChosen = depth;
  const isSame = (depth === "story" ? STORY_TABS : FULL_TABS).includes(view);
  const step = STORY_TABS.find((one) => DEEPER_VIEWS[one]?.includes(view)) ?? STORY_TABS[0];
  return { depth, view: isSame ? view : depth === "story" ? step : DEEPER_VIEWS[view]?.[0] ?? FULL_TABS[0] };
}

const OF_GRADIO = ["api", "api-recorder", "settings"]; // its own panels, which an address of before may name in a tab's place
const inAddress = new URLSearchParams(globalThis.location?.search).get("view");
const named = OF_GRADIO.includes(inAddress) ? null : inAddress;

/** Whether the page's address named a tab. */
export const urlNamesView = named !== null;

/** The view and depth that the page opens with. */
export function initialView() {
  const asked = new URLSearchParams(location.search).get("depth"), kept = chosen() === "full" ? "numbers" : chosen();
  const depth = DEPTHS.includes(asked) ? asked : urlNamesView && kept === "story" ? "numbers" : DEPTHS.includes(kept) ? kept : urlNamesView ? "numbers" : "story";
  if (depth !== "story") depthChosen = depth;
  const view = named ?? (depth === "story" ? STORY_TABS : FULL_TABS)[0];
  return { view, depth: depthOfView(view, depth) === "story" ? "story" : depthChosen };
}

/** @param {string} mode a depth */
export function rememberDepth(mode) {
  try { localStorage.setItem(CHOSEN, mode); } catch { /* for this visit, then */ }
}

/** Has the style sheet know which it is, and whether what was typed is yet to be run. */
export function applyDepth() {
  const { classList } = document.body;
  document.addEventListener("input", ({ target }) => {
    if (/** @type {Element} */ (target).closest("#prompt")) classList.add("unrun");
  });
  const tell = (view, depth) => {
    Object.assign(document.body.dataset, { depth, view });
    classList.toggle("simple", depth === "story");
  };
  const first = initialView();
  tell(first.view, first.depth);
  onEveryState((now, before) => {
    document.body.dataset.shown = (now["b.checkpoint"] && now.shown) || "a"; // a link may name it without a second run
    if (now.prompt !== before.prompt) classList.remove("unrun");
    if (now.view === before.view && now.depth === before.depth) return;
    if (now.depth !== "story") depthChosen = now.depth;
    tell(now.view, now.depth);
  });
}

function chosen() {
  try { return localStorage.getItem(CHOSEN); } catch { return null; } // not every frame has a storage
}

// Of two runs, which token of the one stands for which of the other. The state names tokens of A; in figures of B they are
// its partners.

/** @typedef {{ partners: (number | null)[], back: (number | null)[] }} Two */

/** @type {Two | null} */
let two = null;
let choosing = false; // whether the next token of B is to be put beside the chosen one of A

/** @param {Two | null} now */
export function setAlignment(now) {
  const isSame = JSON.stringify(now?.partners) === JSON.stringify(two?.partners);
  two = now;
  if (isSame) return; // it may come of a click before
  choosing = false;
  deferStateListeners();
}

/** The next token that is chosen of B is to stand beside the chosen one of A. */
export const awaitPartnerToken = () => { choosing = true; };

export const isPartnerAwaited = () => choosing;

/** Whether that is awaited; it no longer is. */
export function takeAwaitedPartner() {
  const awaited = choosing;
  choosing = false;
  return awaited;
}

/** The position that stands for another, or for the nearest before that has one. */
function nearest(positions, position) {
  for (let i = Math.min(position, positions.length - 1); i >= 0; i--) if (positions[i] !== null) return positions[i];
  return 0;
}

/** Of a position in A the one in B. @param {number} position @returns {number} */
export const positionInB = (position) => (two ? nearest(two.partners, position) : position);

/** @param {string} [of] the run that a figure's tokens are of: "b", or another word for A */
const isB = (of = state.shown) => two && of === "b";

/** The run that a figure shows, or "difference". @param {Element} element */
export const shownRun = (element) => (state.shown !== "both" ? state.shown : element.closest(".of-b") ? "b" : "a");

/** Which checkpoint of the state is that of the run that a figure shows; of a difference it is A's. @param {Element} element */
export const checkpointOfShownRun = (element) => (isB(shownRun(element)) ? "b.checkpoint" : "checkpoint");

/**
 * A change of the selection as the state has it, of one that was made in a figure.
 * @param {Record<string, any>} change
 * @param {string} [of] the run that the figure's tokens are of
 */
export function changeInA(change, of) {
  if (!isB(of)) return change;
  const mapped = { ...change };
  for (const name of ["query", "key"]) if (name in mapped) mapped[name] = nearest(two.back, mapped[name]);
  return mapped;
}

/** The same of a token of B, wherever it was chosen. @param {number} position @returns {number} */
export const positionFromB = (position) => (two ? nearest(two.back, position) : position);

/** The state as a figure shows it. @param {string} [of] the run that its tokens are of @returns {State} */
export const seen = (of) => (isB(of) ? { ...state, query: positionInB(state.query), key: positionInB(state.key) } : state);

// The state in Gradio: the value of an invisible component, which generation starts from, and whose events have Gradio's
// controls follow.

/**
 * What Gradio gives the script of a component (layout.py).
 * @typedef {object} Gradio
 * @property {Record<string, any>} props
 * @property {(name: string, act: () => void) => void} watch calls `act` when Python has changed the prop
 * @property {Record<string, () => void>} emit its events
 */

/** Null until Gradio has built it. @type {{ sync: () => void, halt: () => void, localize: () => void, wake: () => void } | null} */
export let bus = null;
/** @type {(nothing?: any) => void} */
let tellReady;
/** Resolved once it is built. */
export const ready = new Promise((resolve) => { tellReady = resolve; });

/** @param {Gradio} gradio */
export function connectState({ props, emit }) {
  bus = /** @type {any} */ (emit);
  const write = () => { props.value = state; };
  onEveryState(write);
  write();
  tellReady();
}
