// @ts-check
// How much the page explains: a story, or numbers. The open view says which. What a visitor chose last outlives a reload; an address that names a tab goes
// first.
import { FULL_TABS, SIMPLE_TABS } from "./protocol.js";
import { keptBy } from "./state.js";

const CHOSEN = "explorer:mode"; // its place in the browser's storage

const opened = { story: SIMPLE_TABS[0], numbers: FULL_TABS[0] }; // view of each depth

/** Which depth a view is of: "story" or "numbers". @param {string} view */
export const modeOf = (view) => (SIMPLE_TABS.includes(view) ? "story" : "numbers");

/** The tab that is open in a page, or was when it was last seen. @param {string} mode */
export const openedIn = (mode) => opened[mode];

const OF_GRADIO = ["api", "api-recorder", "settings"]; // its own panels, which an address of before may name in a tab's place
const inAddress = new URLSearchParams(globalThis.location?.search).get("view");
const named = OF_GRADIO.includes(inAddress) ? null : inAddress;

/** Whether the page's address named a tab. */
export const isNamed = named !== null;

/** The tab that the page opens with. */
export function viewAtFirst() {
  const depth = new URLSearchParams(location.search).get("depth") ?? chosen();
  return named ?? opened[depth === "numbers" || depth === "full" ? "numbers" : "story"];
}

/** @param {string} mode "story" or "numbers" */
export function rememberMode(mode) {
  try { localStorage.setItem(CHOSEN, mode); } catch { /* for this visit, then */ }
}

/** Has the style sheet know which it is, and whether what was typed is yet to be run. */
export function followMode() {
  const { classList } = document.body;
  document.addEventListener("input", ({ target }) => {
    if (/** @type {Element} */ (target).closest("#prompt")) classList.add("unrun");
  });
  const tell = (view) => {
    document.body.dataset.depth = modeOf(view);
    classList.toggle("simple", modeOf(view) === "story");
  };
  tell(viewAtFirst());
  keptBy((now, before) => {
    if (now.prompt !== before.prompt) classList.remove("unrun");
    if (now.view === before.view) return;
    opened[modeOf(now.view)] = now.view;
    tell(now.view);
  });
}

function chosen() {
  try { return localStorage.getItem(CHOSEN); } catch { return null; } // not every frame has a storage
}
