// @ts-check
// Plotly as the page has it: its own copy, its words in the page's language, its ways with addresses.
import { withWords } from "./cell_words.js";
import { tellBroken } from "./contents.js";
import { N_, _, language, lookUp } from "./language.js";

// What Plotly says by itself, which it looks up in a dictionary.
const PLOTLYS = [
  N_("Zoom"), N_("Pan"), N_("Zoom in"), N_("Zoom out"), N_("Reset axes"), N_("Double-click to zoom back out"),
  N_("Double-click on legend to isolate one trace"),
];
const dictionary = Object.fromEntries(PLOTLYS.map((words) => [words, lookUp(words)]));

/** A classic script that can only leave a global (assets.py). */
export const plotly = () => /** @type {any} */ (window).ExplorerPlotly;

let made;

/** What Plotly is to do besides drawing; always the same, as it draws all anew for another. */
export const config = () => made ??= {
  responsive: false, displaylogo: false, modeBarButtons: [[download()], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]],
  locale: language, locales: { [language]: { dictionary } },
};

// A picture as a file, in which Plotly draws everything itself.
const download = () => ({
  name: "download", title: _("Download plot as a PNG"), icon: plotly().Icons.camera,
  click: ({ data, layout }) => plotly().downloadImage({ data: withWords(data), layout }, { format: "png" }).catch(tellUnsaved),
});
const tellUnsaved = (error) => tellBroken(error, _("The picture could not be saved as a file: the browser made none of it."));

// Where a page has a <base>, as Gradio's have, Plotly refers to its gradients and clip paths by the page's whole address,
// and loses them as soon as the selection changes that. It asks the first <base> alone, and the browser the first that has
// an address.
document.head.prepend(document.createElement("base"));
