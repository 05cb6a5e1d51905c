// @ts-check
// What is too long for a link: the state as a file, to be saved and opened.
import { announce } from "./banner.js";
import { make } from "./dom.js";
import { _ } from "./language.js";

/** @typedef {import("./state.js").State} State */

export const MOST_LINK = 6000; // characters that every mail and chat passes on
const KIND = "transformerlm-explorer", OWN = ["lang", "turn", "version"]; // of this page alone

/** Saves the state as a file, and says so. @param {State} state @param {number} count characters that a link would have */
export function saveFile(state, count) {
  const kept = Object.fromEntries(Object.entries(state).filter(([name]) => !OWN.includes(name)));
  const href = URL.createObjectURL(new Blob([JSON.stringify({ [KIND]: 1, state: kept })], { type: "application/json" }));
  make("a", { href, download: `${KIND}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(href));
  const told = _("All this is too long for a link ({count} characters): it was saved as a file. “Open a saved file”, at the end of the page, brings it back.", { count });
  announce(told);
}

/** The state in a file's text; null where it holds none. @param {string} text @returns {State | null} */
export function stateIn(text) {
  let read = null;
  try { read = JSON.parse(text); } catch { return null; }
  const state = read?.[KIND] && read.state;
  return state && typeof state === "object" && !Array.isArray(state) ? state : null;
}

/** Asks for a file, and goes to the state in it. @param {(there: State) => void} goTo */
export function chooseFile(goTo) {
  const input = make("input", { type: "file", accept: "application/json,.json" });
  input.addEventListener("change", async () => {
    const state = stateIn(await input.files[0].text());
    if (!state) return announce(_("This file holds nothing that this page saved: choose one whose name ends in {ending}.", { ending: ".json" }));
    announce("");
    goTo(state);
  });
  input.click();
}
