// @ts-check
// Pictures that a question is about are marked as old until what answers it, or a later one, is drawn; but not where that
// comes at once, as to dim all of them takes a fifth of a click's time.
import { findAll } from "./dom.js";
import { _ } from "./language.js";
import { ADVICE, FORMULA, NEXT_TOKEN, STAND_INS, TAB, WHAT_IFS, WHY } from "./protocol.js";
import { state } from "./state.js";

const AT_ONCE = 300; // milliseconds

/** How many questions there were: the number of the last. */
export let questions = 0;
/** @type {Set<HTMLElement>} */
const old = new Set();
let query = null; // that the last question was about

/**
 * Selectors of what is old once a question is asked: each begins with an id, so that a browser need not look for it in all
 * that the other tabs have.
 * @param {string} question
 * @param {string} view the open tab
 */
export function outdatedBy(question, view) {
  const pictures = `#${view}-${TAB} .panels > [id^="${view}-"]`;
  const rest = [`#${view}-${FORMULA}`, `#${WHY}`, `#${STAND_INS}`], all = [pictures, ...rest, `#${ADVICE}`];
  const old = { tune: [], token: [...all, `#${view}-${WHAT_IFS}`], pick: [`${pictures}:not(.once)`, ...rest], view: [pictures, ...rest], show: all }[question];
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
  for (const block of outdatedBy(question, view).flatMap((selector) => findAll(document, selector))) {
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

/** Whether a picture of the open tab, or the next token, is still to be drawn as it was last asked for. */
export const areOld = () => [...old].some((block) => block.isConnected);

/** What a block shows has been drawn, as a question's answer has it. @param {HTMLElement | null} block @param {number} number */
export function renew(block, number) {
  if (!(+block?.dataset.asked <= number)) return;
  old.delete(block);
  delete block.dataset.oldSince;
  delete block.dataset.asOf;
  block.classList.remove("stale");
}
