// @ts-check
// The page's state: what is asked, and never an answer. What is in it, page_state.py and settings.py say.
import { listenFor } from "./dom.js";
import { language } from "./language.js";

/** @typedef {Record<string, any>} State */

/** The present state; every change makes a new one. @type {State} */
export let state = { lang: language };

const told = new EventTarget(), keepers = [];
let isUntold = false;

/** A state in which the key is no later than the query, which looks at its own position and before. @param {State} any */
export const causal = (any) => (any.key > any.query ? { ...any, key: any.query } : any);

/** @param {State} change @param {boolean} [tell] or else the widgets follow at the next `tellState` */
export function setState(change, tell = true) {
  const before = state;
  state = causal({ ...state, ...change });
  isUntold = true;
  if (tell) tellState();
  for (const keep of keepers) keep(state, before);
}

/** Has the widgets follow at the next `tellState` what is no part of the state. */
export const tellLater = () => { isUntold = true; };

/** Has the widgets follow a change that they have not been told of. */
export function tellState() {
  if (!isUntold) return;
  isUntold = false;
  told.dispatchEvent(new Event("change"));
}

/** Calls `listener` where the state is another, until the widget's element has left the page. */
export const onState = (element, listener) => listenFor(element, told, "change", listener);

/** Calls `keep` with the state and the one before at every change, told or not. @param {(now: State, before: State) => void} keep */
export const keptBy = (keep) => void keepers.push(keep);
