// @ts-check
// How many people come before, where somebody waits for a turn (http/turns.py): asked for once they have waited a while.
import { call, onAsked } from "./connection.js";
import { find, make, say } from "./dom.js";
import { _, ngettext } from "./language.js";

const AFTER = 1200, EVERY = 1000; // milliseconds until the first look, and between two

/** @type {HTMLElement} */
let box;
let isLooking = false;

/** Has the page tell, below the prompt. */
export function tellPlaces() {
  box = make("div", { id: "place", role: "status" });
  find(document, "#prompt-row").append(box);
  onAsked((answered) => {
    let isDone = false;
    answered.finally(() => { isDone = true; });
    setTimeout(() => { if (!isDone) look(); }, AFTER);
  });
}

async function look() {
  if (isLooking) return;
  isLooking = true;
  for (let before; before !== null;) {
    before = await call("people_before", []).catch(() => null);
    say(box, before === null ? "" : words(before));
    if (before !== null) await new Promise((resolve) => { setTimeout(resolve, EVERY); });
  }
  isLooking = false;
}

/** @param {number} before */
export function words(before) {
  if (!before) return _("Many people use this server: you are next.");
  return ngettext("Many people use this server: {count} person before you.", "Many people use this server: {count} people before you.", before);
}
