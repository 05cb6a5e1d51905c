// @ts-check
// Going where another page is: all that its state says, but what stays each person's own.
import { ask } from "./asking.js";
import { bus } from "./bus.js";
import { askForView } from "./choosing.js";
import { goTo } from "./going_back.js";
import { leftAt } from "./lessons.js";
import { setState, state } from "./state.js";

/** @typedef {import("./state.js").State} State */

const OWN = ["lang", "turn", "version", "move", "own", "reply", "guess"];
const OF_RUN = ["checkpoint", "prompt", "generated", "dropped", "edits", "branches", "began", "lesson", "step"];
const OF_VIEW = ["view", "shown"];
const SETTINGS = ["temperature", "top_k", "max_new_tokens", "seed", "top_p", "min_p", "repetition_penalty", "stop_strings"];

/** What of a state others follow. @param {State} state @returns {State} */
export const shared = (state) => Object.fromEntries(Object.entries(state).filter(([name]) => !OWN.includes(name)));

/** What of another's state is another here: a name that this page has not, or a value that no address has, is left out. @param {State} theirs @param {State} mine @returns {State} */
export function changeTo(theirs, mine) {
  const isWord = (value) => ["string", "number", "boolean"].includes(typeof value) || (Array.isArray(value) && value.every((one) => typeof one === "number"));
  const isOther = ([name, value]) => Object.hasOwn(mine, name) && !OWN.includes(name) && isWord(value) && String(value) !== String(mine[name]);
  return Object.fromEntries(Object.entries(theirs).filter(isOther));
}

/** What a change asks for: another run, another tab or picture, a place in it; null for nothing. @param {State} change @returns {"run" | "view" | "pick" | null} */
export function kindOf(change) {
  const names = Object.keys(change);
  if (names.some((name) => OF_RUN.includes(name) || name.startsWith("b."))) return "run";
  if (names.some((name) => OF_VIEW.includes(name))) return "view";
  return names.length ? "pick" : null;
}

/** Goes where another page is, with the reply that was given here to the step of a lesson. @param {State} theirs */
export function goAlong(theirs) {
  const change = changeTo(theirs, state), kind = kindOf(change);
  if (!kind) return;
  if (kind === "run") {
    const isOtherStep = "lesson" in change || "step" in change, { lesson, step } = { ...state, ...change };
    return goTo({ ...change, ...(isOtherStep ? { reply: leftAt()[lesson]?.replies[step] ?? "" } : {}) }, false);
  }
  const before = state.view;
  setState(change);
  if (SETTINGS.some((name) => name in change)) bus.sync();
  if (kind === "view") askForView(before);
  else ask(kind);
}
