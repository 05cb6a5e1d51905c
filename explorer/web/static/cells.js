// @ts-check
// Heatmaps of more cells than Plotly draws while somebody waits: it has the axes, the marks and the scale of colours, and
// below them an image of a pixel a cell (cells.py).
import { base64Of, bytesOf } from "./base64.js";
import { bitmapBefore, rowBytes } from "./bitmap.js";
import { plain } from "./cell_words.js";
import { palette } from "./colour.js";
import { make } from "./dom.js";
import { theme } from "./theme.js";

const STEPS = 65534; // between the least and the largest value (cells.py)

/**
 * The numbers of a heatmap as they were sent, row by row, of a triangle the lower half alone.
 * @returns {Uint16Array | Float32Array}
 */
function numbersOf({ kind, data }) {
  const { buffer } = bytesOf(data);
  return kind === "u2" ? new Uint16Array(buffer) : new Float32Array(buffer);
}

const cellsOfRow = ({ lower, columns }, row) => (lower ? row + 1 : columns);
const startOfRow = ({ lower, columns }, row) => (lower ? (row * (row + 1)) / 2 : row * columns);
const valueOf = ({ kind, least, most }, number) => (kind !== "u2" ? number : number > STEPS ? NaN : least + (number * (most - least)) / STEPS);

/** The value of a cell; NaN where there is none. */
function valueAt(cells, numbers, row, column) {
  return column < cellsOfRow(cells, row) ? valueOf(cells, numbers[startOfRow(cells, row) + column]) : NaN;
}

/** A pixel a cell as a data address; without compression, which would take longer than all else. */
function bitmapOf(cells, numbers, { zmin, zmax }) {
  const { rows, columns, kind } = cells, wide = rowBytes(columns);
  const colours = palette(zmin < 0 ? theme().diverging : theme().sequential), last = colours.length - 1;
  const nothing = zmin < 0 ? colours.length >> 1 : 0; // the scales have the page's background there
  const factor = last / (zmax - zmin || 1);
  const colourOf = (number) => {
    const share = (valueOf(cells, number) - zmin) * factor;
    return Number.isNaN(share) ? nothing : Math.max(0, Math.min(last, Math.round(share)));
  };
  const known = kind === "u2" && Uint8Array.from({ length: STEPS + 2 }, (_nothing, number) => colourOf(number));
  const pixels = new Uint8Array(wide * rows).fill(nothing);
  for (let row = 0; row < rows; row++) {
    const start = startOfRow(cells, row), count = cellsOfRow(cells, row), left = row * wide;
    if (known) for (let i = 0; i < count; i++) pixels[left + i] = known[numbers[start + i]];
    else for (let i = 0; i < count; i++) pixels[left + i] = colourOf(numbers[start + i]);
  }
  return bitmapBefore(colours, columns, rows) + base64Of(pixels);
}

/** What the first of an axis's places is, where they are numbers. */
export const firstOf = (labels) => (typeof labels?.[0] === "number" ? labels[0] : 0);

const COLORBAR = { thickness: 10, outlinewidth: 0, tickfont: { size: 11 } }; // as the template has heatmaps

/**
 * The image of a heatmap of `cells`, in the theme's colours.
 * @typedef {{trace: any, numbers: Uint16Array | Float32Array, source: string}} CellImage
 * @returns {CellImage}
 */
export function imageOf(trace) {
  const numbers = numbersOf(trace.cells);
  return { trace, numbers, source: bitmapOf(trace.cells, numbers, trace) };
}

/**
 * What Plotly draws in the place of a heatmap: a point that is not seen, for the scale of colours, and the image.
 * @param {CellImage} image
 * @returns {{data: any[], layout: any, images: any[]}}
 */
export function withImage({ trace, source }, layout) {
  const { cells, zmin, zmax, colorbar, showscale = true } = trace, { rows, columns } = cells;
  const left = firstOf(trace.x) - 0.5, top = firstOf(trace.y) - 0.5;
  const marker = { color: [zmin], cmin: zmin, cmax: zmax, autocolorscale: true, showscale, opacity: 0, colorbar: { ...COLORBAR, ...colorbar } };
  const point = { type: "scatter", mode: "markers", x: [trace.x?.[0] ?? 0], y: [trace.y?.[0] ?? 0], marker, hoverinfo: "skip", showlegend: false };
  const { autorange, ...yaxis } = layout.yaxis ?? {};
  const xaxis = { range: [left, left + columns], ...layout.xaxis };
  yaxis.range ??= autorange === "reversed" ? [top + rows, top] : [top, top + rows];
  const image = {
    source, xref: "x", yref: "y", sizing: "stretch", layer: "below", xanchor: "left",
    yanchor: yaxis.range[0] > yaxis.range[1] ? "top" : "bottom", x: left, y: top, sizex: columns, sizey: rows,
  };
  return { data: [point], layout: { ...layout, xaxis, yaxis }, images: [image] };
}

/**
 * Tells of the cell under the pointer what Plotly's template says, and calls `click` with its place.
 * @param {any} plot
 * @param {() => CellImage | null} drawn what is drawn so, if anything is
 * @param {(place: {x: number, y: number}, event: MouseEvent) => void} click
 */
export function followCells(plot, drawn, click) {
  const words = make("div", { className: "cell-words", hidden: true });
  function at(event) {
    const shown = drawn(), layout = plot._fullLayout;
    if (!shown || !layout?.xaxis) return null;
    const box = plot.getBoundingClientRect(), { xaxis, yaxis } = layout, { rows, columns } = shown.trace.cells;
    const across = event.clientX - box.left - xaxis._offset, down = event.clientY - box.top - yaxis._offset;
    if (across < 0 || down < 0 || across > xaxis._length || down > yaxis._length) return null;
    const place = (axis, pixel, labels) => Math.round(axis.p2l(pixel)) - firstOf(labels);
    const x = place(xaxis, across, shown.trace.x), y = place(yaxis, down, shown.trace.y);
    return x >= 0 && y >= 0 && x < columns && y < rows ? { ...shown, x, y, value: valueAt(shown.trace.cells, shown.numbers, y, x) } : null;
  }
  plot.addEventListener("pointermove", (event) => {
    const cell = at(event);
    words.hidden = !cell || Number.isNaN(cell.value);
    if (!words.isConnected) plot.append(words);
    if (words.hidden) return;
    words.replaceChildren(...told(cell).flatMap((line, i) => (i ? [make("br"), line] : [line])));
    const box = plot.getBoundingClientRect(), left = event.clientX - box.left;
    words.style.top = `${event.clientY - box.top + 14}px`;
    words.style.left = `${Math.max(0, Math.min(left + 10, box.width - words.offsetWidth - 4))}px`;
  });
  plot.addEventListener("pointerleave", () => { words.hidden = true; });
  plot.addEventListener("click", (event) => {
    const cell = at(event);
    if (cell && !Number.isNaN(cell.value)) click(cell, event);
  });
}

// The lines of a Plotly template, of one cell. Labels are Plotly's texts, in which &lt; stands for <.
function told({ trace, x, y, value }) {
  const label = (labels, place) => plain(String(labels?.[place] ?? place));
  const number = (kind, digits) => (kind === "f" ? value.toFixed(digits) : String(Number(value.toPrecision(digits))));
  return trace.hovertemplate.replace("<extra></extra>", "").split("<br>").map((line) => line
    .replace(/%\{z:\.(\d)([fg])\}/g, (whole, digits, kind) => number(kind, +digits))
    .replace("%{z}", String(value)).replace("%{x}", () => label(trace.x, x)).replace("%{y}", () => label(trace.y, y)));
}
