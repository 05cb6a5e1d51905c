// @ts-check
// Of two runs, which token of the one stands for which of the other. The state names tokens of A; in pictures of B they are
// its partners.
import { state, tellLater } from "./state.js";

/** @typedef {{ partners: (number | null)[], back: (number | null)[] }} Two */

/** @type {Two | null} */
let two = null;
let choosing = false; // whether the next token of B is to be put beside the chosen one of A

/** @param {Two | null} now */
export function followPartners(now) {
  const isSame = JSON.stringify(now?.partners) === JSON.stringify(two?.partners);
  two = now;
  if (isSame) return; // it may come of a click before
  choosing = false;
  tellLater();
}

/** The next token that is chosen of B is to stand beside the chosen one of A. */
export const awaitPartner = () => { choosing = true; };

export const isPartnerAwaited = () => choosing;

/** Whether that is awaited; it no longer is. */
export function takePartner() {
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
export const inB = (position) => (two ? nearest(two.partners, position) : position);

/** @param {string} [of] the run that a picture's tokens are of: "b", or another word for A */
const isB = (of = state.shown) => two && of === "b";

/** Which checkpoint of the state is that of the run whose pictures are shown; of a difference it is A's. */
export const checkpointOfSeen = () => (isB() ? "b.checkpoint" : "checkpoint");

/**
 * A change of the selection as the state has it, of one that was made in a picture.
 * @param {Record<string, any>} change
 * @param {string} [of] the run that the picture's tokens are of
 */
export function inA(change, of) {
  if (!isB(of)) return change;
  const mapped = { ...change };
  for (const name of ["query", "key"]) if (name in mapped) mapped[name] = nearest(two.back, mapped[name]);
  return mapped;
}

/** The same of a token of B, wherever it was chosen. @param {number} position @returns {number} */
export const ofB = (position) => (two ? nearest(two.back, position) : position);

/** The state as a picture shows it. @param {string} [of] the run that its tokens are of @returns {import("./state.js").State} */
export const seen = (of) => (isB(of) ? { ...state, query: inB(state.query), key: inB(state.key) } : state);
