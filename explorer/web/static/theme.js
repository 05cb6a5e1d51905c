// @ts-check
// Light or dark: what the visitor chose last, which outlives a reload. `?__theme=` in the address goes first, which Gradio
// reads, and without either it is the system's.
import { listenFor } from "./dom.js";
import { THEMES } from "./themes.js";

const CHOSEN = "explorer:theme"; // its place in the browser's storage
const changed = new EventTarget(), { classList } = document.body;

/** Colours and Plotly's template of the theme that the page has (style.py). */
export const theme = () => THEMES[classList.contains("dark") ? "dark" : "light"];

/** Calls `listener` when the page takes the other theme, until the widget's element has left the page. */
export const onTheme = (element, listener) => listenFor(element, changed, "change", listener);

/** Chooses the other theme. */
export function toggleTheme() {
  const isDark = classList.toggle("dark"), url = new URL(location.href);
  url.searchParams.delete("__theme");
  history.replaceState(history.state, "", url);
  try { localStorage.setItem(CHOSEN, isDark ? "dark" : "light"); } catch { /* for this visit, then */ }
}

function applyChosen() {
  let chosen = null;
  try { chosen = localStorage.getItem(CHOSEN); } catch { return; } // not every frame has a storage
  if (chosen && !new URL(location.href).searchParams.has("__theme")) classList.toggle("dark", chosen === "dark");
}

applyChosen(); // before anything is drawn
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTimeout(applyChosen)); // Gradio follows it first
new MutationObserver(() => changed.dispatchEvent(new Event("change"))).observe(document.body, { attributeFilter: ["class"] });
