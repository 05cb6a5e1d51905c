// @ts-check
// Plotly as the page has it: its own copy, its words in the page's language, its ways with addresses.
import { N_, language, lookUp } from "./language.js";

// What Plotly says by itself, which it looks up in a dictionary.
const PLOTLYS = [
  N_("Download plot as a PNG"), N_("Zoom"), N_("Pan"), N_("Zoom in"), N_("Zoom out"), N_("Reset axes"),
  N_("Double-click to zoom back out"), N_("Double-click on legend to isolate one trace"),
  N_("Preparing image - this may take a few seconds"), N_("Image download succeeded"),
  N_("Sorry, there was a problem downloading your image!"),
];
const dictionary = Object.fromEntries(PLOTLYS.map((words) => [words, lookUp(words)]));

export const CONFIG = {
  responsive: false, displaylogo: false, showSendToCloud: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  locale: language, locales: { [language]: { dictionary } },
};

/** A classic script that can only leave a global (assets.py). */
export const plotly = () => /** @type {any} */ (window).ExplorerPlotly;

// Where a page has a <base>, as Gradio's have, Plotly refers to its gradients and clip paths by the page's whole address,
// and loses them as soon as the selection changes that. It asks the first <base> alone, and the browser the first that has
// an address.
document.head.prepend(document.createElement("base"));
