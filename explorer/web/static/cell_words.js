// @ts-check
// Words in the cells of heatmaps. Plotly formats and measures each before it writes it, which takes about as long as all
// else of such a picture; it writes them only into the picture that is downloaded.
import { findAll } from "./dom.js";
import { inkOf } from "./ink.js";
import { makeSvg, set } from "./svg.js";

const WIDE = 0.65, HIGH = 1.3, DOWN = 0.35; // of a letter, of a line, and from a cell's middle to the line, in sizes, as Plotly reckons

/** Traces as Plotly draws them, without words in cells. Those are kept in `meta`, which it reads nothing from. */
export const withoutWords = (traces) => traces.map((trace) => {
  if (trace.type !== "heatmap" || !trace.texttemplate) return trace;
  const { texttemplate, ...rest } = trace;
  return { ...rest, meta: texttemplate };
});

/** The same with them. */
export const withWords = (traces) => traces.map(({ meta, ...trace }) => (meta ? { ...trace, texttemplate: meta } : trace));

/** Writes the words into the cells of what Plotly has drawn, which it takes away itself when it draws them anew. */
export function writeInCells(plot) {
  for (const cells of findAll(plot, ".hm")) {
    const { trace, x, y, z } = /** @type {any} */ (cells).__data__[0];
    if (!trace.meta || cells.querySelector(".heatmap-label")) continue;
    const { xaxis, yaxis } = plot._fullLayout, across = middles(xaxis, x), down = middles(yaxis, y);
    const { family, size, weight } = { ...plot._fullLayout.font, ...trace._input.textfont };
    const fitted = trace._input.textfont?.size ?? fitting(trace, across, down, size), words = makeSvg("g", "heatmap-label");
    set(words, { "text-anchor": "middle", "font-family": family, "font-size": fitted, "font-weight": weight ?? "normal" });
    const ink = inkOf(plot, trace);
    down.forEach((top, row) => across.forEach((left, column) => {
      const written = trace.text[row]?.[column];
      if (!written || !isWithin(xaxis, left) || !isWithin(yaxis, top)) return;
      const text = makeSvg("text");
      set(text, { x: left, y: top + fitted * DOWN });
      text.textContent = plain(written);
      text.style.fill = ink(z[row][column]);
      words.append(text);
    }));
    cells.append(words);
  }
}

// Of the cells along an axis, in pixels; `edges` are one more than they.
const middles = (axis, edges) => Array.from({ length: edges.length - 1 }, (_nothing, i) => axis.c2p((edges[i] + edges[i + 1]) / 2));
const isWithin = (axis, pixel) => pixel >= 0 && pixel <= axis._length;

// The largest size, up to one, in which the longest word has room in the narrowest cell.
function fitting({ text, xgap = 0, ygap = 0 }, across, down, largest) {
  const longest = Math.max(1, ...text.flat().map((word) => plain(word ?? "").length));
  const wide = (narrowest(across) - xgap) / longest / WIDE, high = (narrowest(down) - ygap) / HIGH;
  return Math.max(1, Math.min(Math.floor(wide), Math.floor(high), largest));
}

const narrowest = (pixels) => Math.min(Infinity, ...pixels.slice(1).map((pixel, i) => Math.abs(pixel - pixels[i])));

/** What a Plotly text says, in which &lt; stands for <. */
export const plain = (text) => text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
