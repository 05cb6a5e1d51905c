// @ts-check
// Words on coloured cells and bars. Plotly writes them in #444 or white, whichever the cell is farther from in brightness;
// on colours of middling brightness neither can be read well.
import { along, channels, legibleOn } from "./colour.js";
import { find, findAll, make } from "./dom.js";

/** @type {CanvasRenderingContext2D} */
let probe;

// Channels of any colour that a style sheet may name; null where it is not opaque: what is below shows through.
function channelsOf(colour) {
  probe ??= make("canvas").getContext("2d", { willReadFrequently: true });
  probe.fillStyle = colour;
  const hex = String(probe.fillStyle);
  return hex.startsWith("#") ? channels(hex) : null;
}

/** Writes the words on a Plotly figure in black or white. */
export function makeLegible(plot) {
  const scales = new Map();
  for (const label of plot.querySelectorAll(".heatmap-label")) {
    const { trace } = label.closest(".hm").__data__[0], { z } = label.__data__;
    const { colorscale, cmin = trace.zmin, cmax = trace.zmax } = plot._fullLayout[trace.coloraxis] ?? trace;
    if (!scales.has(colorscale)) scales.set(colorscale, colorscale.map(([stop, colour]) => [stop, channelsOf(colour)]));
    find(label, "text").style.fill = Number.isFinite(z) ? legibleOn(along(scales.get(colorscale), (z - cmin) / (cmax - cmin || 1)))
      : plot._fullLayout.font.color; // a cell without a value is the page's background
  }
  for (const text of findAll(plot, ".bartext-inside")) {
    const colour = channelsOf(find(text.parentElement, "path").style.fill);
    if (colour) text.style.fill = legibleOn(colour);
  }
}
