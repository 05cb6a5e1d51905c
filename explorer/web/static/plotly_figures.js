// @ts-check
// Figures by Plotly, and what it does too slowly or not well: words in cells, large heatmaps as bitmap files, and
// black or white ink.
import { widgetBlock, reportFailure } from "./widget_contents.js";
import { colourAt, parseHexColour, find, findAll, readableTextColour, make, makeSvg, interpolatePalette, saveText, set, theme } from "./dom.js";
import { _, language, lookUpMessage, N_ } from "./translations.js";
import { state } from "./page_state.js";
import { PLOTLY_URL } from "./shared_constants.js";

/** @typedef {import("./dom.js").Channels} Channels */

// Bytes as text. Browsers since 2025 do it themselves, thirty times as fast and more.

/** @param {string} text base64 @returns {Uint8Array<ArrayBuffer>} */
export const decodeBase64 = (text) => /** @type {any} */ (Uint8Array).fromBase64?.(text) ?? Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/** @param {Uint8Array} bytes @returns {string} */
export function encodeBase64(bytes) {
  if ("toBase64" in bytes) return /** @type {any} */ (bytes).toBase64();
  let text = "";
  for (let i = 0; i < bytes.length; i += 1 << 15) text += String.fromCharCode(...bytes.subarray(i, i + (1 << 15)));
  return btoa(text);
}

// Small images of a byte a pixel, as bitmap files of 256 colours: the pixels are the bytes as Python sent them, so that
// nothing is computed for each of them here, and another theme is other colours alone.

const START = 1080; // of the pixels: a multiple of 3, so that what is before and what follows are each base64 of their own

/** Bytes of a row, which a bitmap has filled up to a multiple of 4. @param {number} width pixels */
export const bitmapRowBytes = (width) => Math.ceil(width / 4) * 4;

/**
 * The beginning of a data URL, which the base64 of an image's bytes ends: row by row from the top, `bitmapRowBytes` each.
 * @param {Channels[]} colours of the bytes 0 to 255
 * @param {number} width pixels
 * @param {number} height pixels
 */
export function bitmapUrlPrefix(colours, width, height) {
  const file = new DataView(new ArrayBuffer(START)), size = bitmapRowBytes(width) * height;
  const little = (at, ...numbers) => numbers.forEach((number, i) => file.setInt32(at + 4 * i, number, true));
  file.setUint16(0, 0x424d); // "BM"
  little(2, START + size, 0, START);
  little(14, 40, width, -height); // from the top
  file.setUint16(26, 1, true); // one plane
  file.setUint16(28, 8, true); // bits a pixel
  little(34, size, 0, 0, 256);
  colours.forEach(([red, green, blue], i) => [blue, green, red].forEach((channel, j) => file.setUint8(54 + 4 * i + j, Math.round(channel))));
  return `data:image/bmp;base64,${btoa(String.fromCharCode(...new Uint8Array(file.buffer)))}`;
}

// The ink of words on coloured cells and bars. Plotly writes in #444 or white, whichever the colour is farther from in
// brightness; on colours of middling brightness neither can be read well.

/** @type {CanvasRenderingContext2D} */
let probe;

// Channels of any colour that a style sheet may name; null where it is not opaque: what is below shows through.
function channelsOf(colour) {
  probe ??= make("canvas").getContext("2d", { willReadFrequently: true });
  probe.fillStyle = colour;
  const hex = String(probe.fillStyle);
  return hex.startsWith("#") ? parseHexColour(hex) : null;
}

/**
 * Of a heatmap that Plotly has drawn: black or white, on the colour of a value.
 * @returns {(value: number) => string}
 */
function inkOf(plot, trace) {
  const { colorscale, cmin = trace.zmin, cmax = trace.zmax } = plot._fullLayout[trace.coloraxis] ?? trace;
  const scale = colorscale.map(([stop, colour]) => [stop, channelsOf(colour)]);
  return (value) => (Number.isFinite(value) ? readableTextColour(colourAt(scale, (value - cmin) / (cmax - cmin || 1)))
    : plot._fullLayout.font.color); // a cell without a value is the page's background
}

/** Writes what Plotly wrote on the bars of a figure in black or white. */
export function setReadableBarInk(plot) {
  for (const text of findAll(plot, ".bartext-inside")) {
    const colour = channelsOf(find(text.parentElement, "path").style.fill);
    if (colour) text.style.fill = readableTextColour(colour);
  }
}

// Words in the cells of heatmaps. Plotly formats and measures each before it writes it, which takes about as long as all
// else of such an image.

const LINE_STEP = 1.15; // from one line of a cell to the next, in sizes
const WIDE = 0.65, HIGH = 1.3, DOWN = 0.35; // of a letter, of a line, and from a cell's middle to the line, in sizes, as Plotly reckons

/** Traces as Plotly draws them, without words in cells. Those are kept in `meta`, which it reads nothing from. */
export const withoutCellTexts = (traces) => traces.map((trace) => {
  if (trace.type !== "heatmap" || !trace.texttemplate) return trace;
  const { texttemplate, ...rest } = trace;
  return { ...rest, meta: texttemplate };
});

/** Writes the words into the cells of what Plotly has drawn, which it takes away itself when it draws them anew. */
export function writeCellTexts(plot) {
  for (const cells of findAll(plot, ".hm")) {
    if (cells.querySelector(".heatmap-label")) continue;
    const { words, font } = wordsOf(plot, cells);
    if (!words) continue;
    const group = makeSvg("g", "heatmap-label");
    set(group, { "text-anchor": "middle", "font-family": font.family, "font-size": font.size, "font-weight": font.weight });
    for (const { left, top, written, colour } of words) {
      const text = makeSvg("text");
      set(text, { x: left, y: top + font.size * DOWN });
      text.textContent = plain(written);
      text.style.fill = colour;
      group.append(text);
    }
    cells.append(group);
  }
}

/** The words of a heatmap's cells in sight, with their places in pixels; none where it has no words. */
function wordsOf(plot, cells) {
  const { trace, x, y, z } = cells.__data__[0], words = [];
  if (!trace.meta) return {};
  const axisOf = (letter) => plot._fullLayout[trace[`${letter}axis`].replace(letter, `${letter}axis`)], xaxis = axisOf("x"), yaxis = axisOf("y");
  const across = middles(xaxis, x), down = middles(yaxis, y), ink = inkOf(plot, trace);
  const { family, size: largest, weight = "normal" } = { ...plot._fullLayout.font, ...trace._input.textfont };
  const size = trace._input.textfont?.size ?? fitting(trace, across, down, largest);
  down.forEach((top, row) => across.forEach((left, column) => {
    const written = trace.text[row]?.[column];
    if (!written || !isWithin(xaxis, left) || !isWithin(yaxis, top)) return;
    const lines = written.split("<br>"), colour = ink(z[row][column]);
    lines.forEach((line, i) => words.push({ left, top: top + (i - (lines.length - 1) / 2) * size * LINE_STEP, written: line, colour }));
  }));
  return { words, font: { family, size, weight } };
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
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

// Heatmaps of more cells than Plotly draws while somebody waits: it has the axes, the marks and the scale of colours, and
// below them an image of a pixel a cell (widgets/figure).

const STEPS = 65534; // between the least and the largest value (widgets/figure)

/**
 * The numbers of a heatmap as they were sent, row by row, of a triangle the lower half alone.
 * @returns {Uint16Array | Float32Array}
 */
function numbersOf({ kind, data }) {
  const { buffer } = decodeBase64(data);
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
  const { rows, columns, kind } = cells, wide = bitmapRowBytes(columns);
  const colours = interpolatePalette(zmin < 0 ? theme().diverging : theme().sequential), last = colours.length - 1;
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
  return bitmapUrlPrefix(colours, columns, rows) + encodeBase64(pixels);
}

/** What the first of an axis's places is, where they are numbers. */
export const firstPosition = (labels) => (typeof labels?.[0] === "number" ? labels[0] : 0);

const COLORBAR = { thickness: 10, outlinewidth: 0, tickfont: { size: 11 } }; // as the template has heatmaps

/**
 * The image of a heatmap of `cells`, in the theme's colours.
 * @typedef {{trace: any, numbers: Uint16Array | Float32Array, source: string}} CellImage
 * @returns {CellImage}
 */
export function heatmapImage(trace) {
  const numbers = numbersOf(trace.cells);
  return { trace, numbers, source: bitmapOf(trace.cells, numbers, trace) };
}

/**
 * What Plotly draws in the place of a heatmap: a point that is not seen, for the scale of colours, and the image.
 * @param {CellImage} image
 * @returns {{data: any[], layout: any, images: any[]}}
 */
export function withHeatmapImage({ trace, source }, layout) {
  const { cells, zmin, zmax, colorbar, showscale = true } = trace, { rows, columns } = cells;
  const left = firstPosition(trace.x) - 0.5, top = firstPosition(trace.y) - 0.5;
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
export function followPointerCells(plot, drawn, click) {
  const words = make("div", { className: "cell-words", hidden: true });
  function at(event) {
    const shown = drawn(), layout = plot._fullLayout;
    if (!shown || !layout?.xaxis) return null;
    const box = plot.getBoundingClientRect(), { xaxis, yaxis } = layout, { rows, columns } = shown.trace.cells;
    const across = event.clientX - box.left - xaxis._offset, down = event.clientY - box.top - yaxis._offset;
    if (across < 0 || down < 0 || across > xaxis._length || down > yaxis._length) return null;
    const place = (axis, pixel, labels) => Math.round(axis.p2l(pixel)) - firstPosition(labels);
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
  const general = (digits) => String(Number(trace.cells.kind === "u2" ? value.toFixed(4) : value.toPrecision(digits))); // 16 bits tell no more
  const number = (kind, digits) => (kind === "f" ? value.toFixed(digits) : general(digits)).replace("-", "−");
  return trace.hovertemplate.replace("<extra></extra>", "").split("<br>").map((line) => line
    .replace(/%\{z:\.(\d)([fg])\}/g, (whole, digits, kind) => number(kind, +digits))
    .replace("%{z}", String(value)).replace("%{x}", () => label(trace.x, x)).replace("%{y}", () => label(trace.y, y)));
}

// Words beside an axis. Plotly writes all it is given, however narrow their place: of those that would lie on one another
// some are hidden.

const APART = 1.1; // from one to the next, in sizes of their letters

/** Hides what has no room beside the axes that Plotly has drawn; it may have more when the plot is drawn anew. */
export function thinTicks(plot) {
  for (const axis of axesOf(plot)) {
    const words = findAll(plot, `.${axis._id}tick text`);
    if (!words.length) continue; // an axis that is not to be seen has no letters of a size either
    const shown = spacedPlaces(words.map((word) => axis.l2p(/** @type {any} */ (word).__data__.x)), APART * axis.tickfont.size);
    words.forEach((word, i) => { word.style.visibility = shown[i] ? "" : "hidden"; });
  }
}

const axesOf = ({ _fullLayout: layout }) => Object.keys(layout).filter((name) => /^[xy]axis\d*$/.test(name)).map((name) => layout[name]);

/**
 * Which of some places to keep, from the first on, so that each is as far from the one before as it must be.
 * @param {number[]} places pixels, in any order
 * @param {number} apart
 * @returns {boolean[]}
 */
export function spacedPlaces(places, apart) {
  const order = places.map((_place, i) => i).sort((a, b) => places[a] - places[b]), shown = places.map(() => false);
  let last = -Infinity;
  for (const i of order) {
    if (places[i] - last < apart) continue;
    shown[i] = true;
    last = places[i];
  }
  return shown;
}

// Plotly as the page has it: its own copy, its words in the page's language, its ways with addresses.

// What Plotly says by itself, which it looks up in a dictionary.
const PLOTLYS = [
  N_("Zoom"), N_("Pan"), N_("Zoom in"), N_("Zoom out"), N_("Reset axes"), N_("Double-click to zoom back out"),
  N_("Double-click on legend to isolate one trace"),
];
const dictionary = Object.fromEntries(PLOTLYS.map((words) => [words, lookUpMessage(words)]));

/** A classic script that can only leave a global (assets.py). */
export const plotly = () => /** @type {any} */ (window).ExplorerPlotly;

/** The address of its script. */
export const PLOTLY = new URL(PLOTLY_URL, import.meta.url).href;

/** Has the browser fetch that script, for a view that begins with a figure. */
export const fetchPlotly = () => document.head.append(make("link", { rel: "preload", as: "script", href: PLOTLY }));

/** @type {Promise<void> | null} */
let coming = null;
/** Whether figures wait for that script. */
export let isPlotlyLoading = false;

/** Resolved once that script is there. It takes a second to run: what is not Plotly's is shown before. */
export function plotlyLoaded() {
  if (coming) return coming;
  isPlotlyLoading = true;
  coming = new Promise((resolve) => {
    document.head.append(make("script", { src: PLOTLY, onload: () => resolve() }));
  });
  coming.then(() => setTimeout(() => { isPlotlyLoading = false; })); // those that waited have begun by then
  return coming;
}

let made;

/** What Plotly is to do besides drawing; always the same, as it draws all anew for another. */
export const config = () => made ??= {
  responsive: false, displaylogo: false, modeBarButtons: [[download("png"), download("svg"), numbers()], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]],
  locale: language, locales: { [language]: { dictionary } },
};

// A figure as a file, which Plotly draws anew: with the words and inks that are written over its own in the page, and
// with what the page says around it.

/** @param {"png" | "svg"} format */
const download = (format) => ({
  name: `download-${format}`, title: format === "png" ? _("Save figure as PNG") : _("Save figure as SVG"),
  icon: format === "png" ? plotly().Icons.camera : plotly().Icons.pencil, click: (plot) => saveFigure(plot, format),
});

const numbers = () => ({ name: "numbers", title: _("Numbers (CSV)"), icon: plotly().Icons.disk, click: saveNumbers });

/** Has the browser save the numbers that a figure draws, a row for each. @param {any} plot */
export const saveNumbers = (plot) => saveText(toCsv(drawnNumbers(plot)), `${fileName(plot)}.csv`, "text/csv");

/** Rows of a table as CSV. @param {any[][]} rows */
const toCsv = (rows) => rows.map((row) => row.map((cell) => (/[",\n]/.test(`${cell}`) ? `"${`${cell}`.replaceAll('"', '""')}"` : cell)).join() + "\n").join("");

/** What a figure draws: names of its axes, then a row for each number, with its place. @param {any} plot @returns {any[][]} */
export function drawnNumbers({ _fullData, _fullLayout }) {
  const traces = _fullData.filter(({ visible }) => visible === true), isNamed = traces.length > 1;
  const plain = (text) => `${text ?? ""}`.replaceAll("<br>", " ").replace(/[\u2066-\u2069]/g, "");
  const axisOf = (trace, letter) => _fullLayout[`${letter}axis${(trace[`${letter}axis`] ?? letter).slice(1)}`] ?? {};
  const place = (trace, letter, i) => {
    const at = trace[letter]?.[i] ?? i, { tickvals, ticktext } = axisOf(trace, letter), said = ticktext?.[tickvals?.indexOf(at)];
    return typeof at === "string" ? plain(at) : said === undefined || said === `${at}` ? at : `${at} ${plain(said)}`;
  };
  const title = (letter) => traces.map((trace) => plain(axisOf(trace, letter).title?.text)).find(Boolean) ?? letter;
  const cells = (trace) => Array.from(trace.z, (row, r) => Array.from(row, (number, c) => [place(trace, "x", c), place(trace, "y", r), Number.isNaN(number) ? "" : number ?? ""])).flat();
  const points = (trace) => Array.from(trace.y ?? trace.x ?? [], (_number, i) => [place(trace, "x", i), place(trace, "y", i)]);
  const rows = traces.flatMap((trace, n) => (trace.z ? cells(trace) : points(trace)).map((row) => (isNamed ? [plain(trace.name) || n, ...row] : row)));
  const scale = traces.find(({ z }) => z), of = scale ? [plain(scale.colorbar?.title?.text) || _("value")] : [];
  return [[...(isNamed ? [_("line")] : []), title("x"), title("y"), ...of], ...rows];
}

/** Has the browser save a figure as a file. @param {any} plot @param {"png" | "svg"} format */
export const saveFigure = (plot, format) =>
  plotly().downloadImage(alone(plot), { format, scale: format === "png" ? 2 : 1, filename: fileName(plot) }).catch(tellUnsaved);

const LINE = 17, CHARACTER = 6.2; // pixels of a line above the figure, and of a letter in it, about

/** The figure under its heading, what it shows and the model. */
export function alone(plot) {
  const { data, layout, _fullLayout: { width, height, margin } } = plot, longest = Math.floor(width / CHARACTER);
  const heading = inLines(widgetBlock(plot)?.querySelector("h2")?.textContent ?? "", longest);
  const rest = [plot.ariaLabel ?? "", models().join(", ")].flatMap((text) => inLines(text, longest));
  const texts = [...heading.map((line) => `<b>${escaped(line)}</b>`), ...rest.map(escaped)], above = texts.length * LINE + LINE;
  const title = {
    text: texts.join("<br>"), font: { size: 12 }, x: 0, xref: "container", xanchor: "left", y: 1, yref: "container", yanchor: "top",
    pad: { l: 8, t: LINE },
  };
  const annotations = [...(layout.annotations ?? []), ...findAll(plot, ".hm").flatMap((cells) => annotationsOf(plot, cells))];
  const room = { height: height + above, margin: { ...layout.margin, t: margin.t + above } };
  const paper_bgcolor = getComputedStyle(document.body).getPropertyValue("--body-background-fill"); // which is seen through the figure in the page
  return { data: data.map((trace, i) => ({ ...trace, ...inksOf(plot, i) })), layout: { ...layout, ...room, paper_bgcolor, annotations, title } };
}

// Of both runs, where two are compared.
const models = () => [...new Set([state.checkpoint, state["b.checkpoint"]])].filter(Boolean);
const fileName = (plot) => [...models(), widgetBlock(plot)?.id].filter(Boolean).join("-").replace(/[^\p{L}\p{N}.-]+/gu, "-");

/** A text in lines of at most so many letters, where its words allow it. */
function inLines(text, longest) {
  const lines = [""];
  for (const word of text.split(/\s+/)) {
    if (lines.at(-1) && lines.at(-1).length + 1 + word.length > longest) lines.push(word);
    else lines[lines.length - 1] = `${lines.at(-1)} ${word}`.trim();
  }
  return lines.filter(Boolean);
}

function annotationsOf(plot, cells) {
  const { words = [], font } = wordsOf(plot, cells), { xaxis, yaxis } = plot._fullLayout;
  return words.map(({ left, top, written, colour }) => (
    { x: xaxis.p2l(left), y: yaxis.p2l(top), text: written, font: { ...font, color: colour }, showarrow: false }));
}

/** The inks of the words on a trace's bars, as they are in the page. */
function inksOf(plot, index) {
  const bars = findAll(plot, ".trace.bars").map((group) => /** @type {any} */ (group)).find((group) => group.__data__[0].trace.index === index);
  const inks = [];
  for (const point of bars ? findAll(bars, ".point") : []) {
    const text = /** @type {HTMLElement} */ (point.querySelector(".bartext-inside"));
    if (text) inks[/** @type {any} */ (point).__data__.i] = text.style.fill;
  }
  const other = plot._fullLayout.font.color;
  return inks.length ? { insidetextfont: { ...plot.data[index].insidetextfont, color: Array.from(inks, (ink) => ink ?? other) } } : {};
}
const tellUnsaved = (error) => reportFailure(error, _("The browser could not save the figure as a file."));

// Where a page has a <base>, as Gradio's have, Plotly refers to its gradients and clip paths by the page's whole address,
// and loses them as soon as the selection changes that. It asks the first <base> alone, and the browser the first that has
// an address.
/** Has Plotly refer to parts of its figures by their names alone. */
export const addBaseElement = () => document.head.prepend(document.createElement("base"));
