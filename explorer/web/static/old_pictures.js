// @ts-check
// Pictures that a question is about are marked as old until what answers it, or a later one, is drawn; but not where that
// comes at once, as to dim all of them takes a fifth of a click's time.
import { findAll } from "./dom.js";
import { ADVICE, FORMULA, NEXT_TOKEN, STAND_INS, TAB, WHY } from "./protocol.js";

const AT_ONCE = 300; // milliseconds

/** How many questions there were: the number of the last. */
export let questions = 0;
/** @type {Set<HTMLElement>} */
const old = new Set();

/**
 * Selectors of what is old once a question is asked: each begins with an id, so that a browser need not look for it in all
 * that the other tabs have.
 * @param {string} question
 * @param {string} view the open tab
 */
export function outdatedBy(question, view) {
  const pictures = `#${view}-${TAB} .panels > [id^="${view}-"]`;
  const rest = [`#${view}-${FORMULA}`, `#${WHY}`, `#${STAND_INS}`], all = [pictures, ...rest, `#${ADVICE}`];
  const old = { tune: [], token: all, pick: [`${pictures}:not(.once)`, ...rest], view: [pictures, ...rest], show: all }[question];
  return [`#${NEXT_TOKEN}`, ...old];
}

/** A question is asked. Gives what marks what is old. @returns {() => void} */
export function outdate(question, view) {
  const number = ++questions;
  return () => mark(number, question, view);
}

function mark(number, question, view) {
  for (const block of outdatedBy(question, view).flatMap((selector) => findAll(document, selector))) {
    block.dataset.asked = String(number);
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
  block.classList.remove("stale");
}
