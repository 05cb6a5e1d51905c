// @ts-check
// Pictures that a question is about are marked as old until what answers it, or a later one, is drawn; but not where that
// comes at once, as to dim all of them takes a fifth of a click's time.
import { findAll } from "./dom.js";
import { ADVICE, FORMULA, NEXT_TOKEN, STAND_INS, WHY } from "./protocol.js";

const AT_ONCE = 300; // milliseconds

/** How many questions there were: the number of the last. */
export let questions = 0;

/** A selector of what is old once a question is asked. @param {string} question @param {string} view the open tab */
export function outdatedBy(question, view) {
  const formula = `#${view}-${FORMULA}`, pictures = `.panels > [id^="${view}-"]`;
  const all = `${pictures}, ${formula}, #${ADVICE}, #${WHY}, #${STAND_INS}`;
  const rest = `${formula}, #${WHY}, #${STAND_INS}`;
  const old = { tune: "", token: all, pick: `${pictures}:not(.once), ${rest}`, view: `${pictures}, ${rest}`, show: all }[question];
  return [`#${NEXT_TOKEN}`, old].filter(Boolean).join();
}

/** A question is asked. Gives what marks what is old. @returns {() => void} */
export function outdate(question, view) {
  const number = ++questions;
  return () => mark(number, question, view);
}

function mark(number, question, view) {
  for (const { dataset } of findAll(document, outdatedBy(question, view))) {
    dataset.asked = String(number);
    dataset.oldSince ??= String(number);
  }
  setTimeout(() => {
    for (const block of findAll(document, "[data-old-since]"))
      if (+block.dataset.oldSince <= number) block.classList.add("stale");
  }, AT_ONCE);
}

/** Whether a picture of the open tab, or the next token, is still to be drawn as it was last asked for. */
export const areOld = () => document.querySelector("[data-old-since]") !== null;

/** What a block shows has been drawn, as a question's answer has it. @param {HTMLElement | null} block @param {number} number */
export function renew(block, number) {
  if (!(+block?.dataset.asked <= number)) return;
  delete block.dataset.oldSince;
  block.classList.remove("stale");
}
