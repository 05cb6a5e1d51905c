// @ts-check
// Heatmaps of more cells than Plotly draws while somebody waits: it has the axes, the marks and the scale of colours, and
// below them an image of a pixel a cell (cells.py).
import { bitmapBefore, rowBytes } from "./bitmap.js";
import { along, channels } from "./colour.js";
import { make } from "./dom.js";
import { theme } from "./theme.js";

const STEPS = 65534, COLOURS = 256;

/** The values of a heatmap, row by row; NaN where there is none. */
function valuesOf({ rows, columns, lower, least, most, kind, data }) {
  const text = atob(data), bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  const packed = kind === "u2" ? new Uint16Array(bytes.buffer) : new Float32Array(bytes.buffer);
  const values = new Float32Array(rows * columns).fill(NaN);
  const step = (most - least) / STEPS;
  for (let row = 0, i = 0; row < rows; row++)
    for (let column = 0; column < (lower ? row + 1 : columns); column++, i++)
      if (kind !== "u2") values[row * columns + column] = packed[i];
      else if (packed[i] <= STEPS) values[row * columns + column] = least + packed[i] * step;
  return values;
}

/** An image of a pixel a cell as a data address; without compression, which would take longer than all else. */
function imageOf(values, { rows, columns }, { zmin, zmax }) {
  const scale = zmin < 0 ? theme().diverging : theme().sequential;
  /** @type {[number, import("./colour.js").Channels][]} */
  const stops = scale.map((hex, i) => [i / (scale.length - 1), channels(hex)]);
  const colours = Array.from({ length: COLOURS }, (nothing, i) => along(stops, i / (COLOURS - 1)));
  const wide = rowBytes(columns), pixels = new Uint8Array(wide * rows);
  const nothing = zmin < 0 ? COLOURS >> 1 : 0; // the scales have the page's background there
  const factor = (COLOURS - 1) / (zmax - zmin || 1);
  for (let row = 0, i = 0; row < rows; row++)
    for (let column = 0; column < columns; column++, i++) {
      const share = (values[i] - zmin) * factor;
      pixels[row * wide + column] = share >= 0 ? Math.min(COLOURS - 1, share + 0.5) : share < 0 ? 0 : nothing;
    }
  let text = "";
  for (let i = 0; i < pixels.length; i += 1 << 15) text += String.fromCharCode(...pixels.subarray(i, i + (1 << 15)));
  return bitmapBefore(colours, columns, rows) + btoa(text);
}

/** What the first of an axis's places is, where they are numbers. */
export const firstOf = (labels) => (typeof labels?.[0] === "number" ? labels[0] : 0);

const COLORBAR = { thickness: 10, outlinewidth: 0, tickfont: { size: 11 } }; // as the template has heatmaps

/**
 * What Plotly draws in the place of a heatmap of `cells`: a point that is not seen, for the scale of colours, and the
 * image.
 * @returns {{data: any[], layout: any, values: Float32Array}}
 */
export function withImage(trace, layout) {
  const { cells, zmin, zmax, colorbar, showscale = true } = trace, { rows, columns } = cells;
  const values = valuesOf(cells), left = firstOf(trace.x) - 0.5, top = firstOf(trace.y) - 0.5;
  const marker = { color: [zmin], cmin: zmin, cmax: zmax, autocolorscale: true, showscale, opacity: 0, colorbar: { ...COLORBAR, ...colorbar } };
  const point = { type: "scatter", mode: "markers", x: [trace.x?.[0] ?? 0], y: [trace.y?.[0] ?? 0], marker, hoverinfo: "skip", showlegend: false };
  const { autorange, ...yaxis } = layout.yaxis ?? {};
  const xaxis = { range: [left, left + columns], ...layout.xaxis };
  yaxis.range ??= autorange === "reversed" ? [top + rows, top] : [top, top + rows];
  const image = {
    source: imageOf(values, cells, trace), xref: "x", yref: "y", sizing: "stretch", layer: "below", xanchor: "left",
    yanchor: yaxis.range[0] > yaxis.range[1] ? "top" : "bottom", x: left, y: top, sizex: columns, sizey: rows,
  };
  return { data: [point], layout: { ...layout, xaxis, yaxis, images: [image] }, values };
}

/**
 * Tells of the cell under the pointer what Plotly's template says, and calls `click` with its place.
 * @param {any} plot
 * @param {() => {trace: any, values: Float32Array} | null} drawn what is drawn so, if anything is
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
    return x >= 0 && y >= 0 && x < columns && y < rows ? { ...shown, x, y, value: shown.values[y * columns + x] } : null;
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
  const label = (labels, place) => String(labels?.[place] ?? place).replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
  const number = (kind, digits) => (kind === "f" ? value.toFixed(digits) : String(Number(value.toPrecision(digits))));
  return trace.hovertemplate.replace("<extra></extra>", "").split("<br>").map((line) => line
    .replace(/%\{z:\.(\d)([fg])\}/g, (whole, digits, kind) => number(kind, +digits))
    .replace("%{z}", String(value)).replace("%{x}", () => label(trace.x, x)).replace("%{y}", () => label(trace.y, y)));
}
