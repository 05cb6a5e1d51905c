// @ts-check
// What is too long for a link: the state as a file, to be saved and opened.
import { announce } from "./banner.js";
import { make } from "./dom.js";
import { _ } from "./language.js";

/** @typedef {import("./state.js").State} State */

export const MOST_LINK = 6000; // characters that every mail and chat passes on
const KIND = "transformerlm-explorer", OWN = ["lang", "turn", "version"]; // of this page alone

/** Has the browser save a file that `chooseFile` opens. @param {Record<string, any>} content */
export function download(content) {
  const href = URL.createObjectURL(new Blob([JSON.stringify({ [KIND]: 1, ...content })], { type: "application/json" }));
  make("a", { href, download: `${KIND}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(href));
}

/** Saves the state as a file, and says so. @param {State} state @param {number} count characters that a link would have */
export function saveFile(state, count) {
  download({ state: Object.fromEntries(Object.entries(state).filter(([name]) => !OWN.includes(name))) });
  const told = _("All this is too long for a link ({count} characters): it was saved as a file. “Open a saved file”, at the end of the page, brings it back.", { count });
  announce(told);
}

/** What a file's text holds of ours; nothing where it is another's. @param {string} text @returns {Record<string, any>} */
function contentIn(text) {
  let read = null;
  try { read = JSON.parse(text); } catch { return {}; }
  return read?.[KIND] ? read : {};
}

/** The state in a file's text; null where it holds none. @param {string} text @returns {State | null} */
export function stateIn(text) {
  const { state } = contentIn(text);
  return state && typeof state === "object" && !Array.isArray(state) ? state : null;
}

/** Asks for a file, and goes to the state in it, or takes the places. @param {(there: State) => void} goTo @param {(places: any[]) => void} take */
export function chooseFile(goTo, take) {
  const input = make("input", { type: "file", accept: "application/json,.json" });
  input.addEventListener("change", async () => {
    const text = await input.files[0].text(), state = stateIn(text), { places } = contentIn(text);
    if (Array.isArray(places)) return take(places);
    if (!state) return announce(_("This file holds nothing that this page saved: choose one whose name ends in {ending}.", { ending: ".json" }));
    announce("");
    goTo(state);
  });
  input.click();
}
