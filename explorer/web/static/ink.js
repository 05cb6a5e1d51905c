// @ts-check
// The ink of words on coloured cells and bars. Plotly writes in #444 or white, whichever the colour is farther from in
// brightness; on colours of middling brightness neither can be read well.
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

/**
 * Of a heatmap that Plotly has drawn: black or white, on the colour of a value.
 * @returns {(value: number) => string}
 */
export function inkOf(plot, trace) {
  const { colorscale, cmin = trace.zmin, cmax = trace.zmax } = plot._fullLayout[trace.coloraxis] ?? trace;
  const scale = colorscale.map(([stop, colour]) => [stop, channelsOf(colour)]);
  return (value) => (Number.isFinite(value) ? legibleOn(along(scale, (value - cmin) / (cmax - cmin || 1)))
    : plot._fullLayout.font.color); // a cell without a value is the page's background
}

/** Writes what Plotly wrote on the bars of a figure in black or white. */
export function makeLegible(plot) {
  for (const text of findAll(plot, ".bartext-inside")) {
    const colour = channelsOf(find(text.parentElement, "path").style.fill);
    if (colour) text.style.fill = legibleOn(colour);
  }
}
