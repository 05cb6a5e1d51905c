// @ts-check
// Plotly figures, and what Plotly does too slowly or badly: texts in cells, large heatmaps as bitmap files, readable text
// colours, and tick labels that do not overlap.
import { widgetBlock, reportFailure } from "./widget_contents.js";
import { colourAt, parseHexColour, find, findAll, readableTextColour, make, makeSvg, interpolatePalette, download, readOnPaper, set, currentTheme } from "./dom.js";
import { _, language, lookUpMessage, N_ } from "./text.js";
import { state } from "./page_state.js";
import { PLOTLY_URL, THEMES } from "./shared_constants.js";

/** @typedef {import("./dom.js").Channels} Channels */

// Base64. The built-in methods of browsers since 2025 are at least thirty times as fast.

/** @param {string} text base64 @returns {Uint8Array<ArrayBuffer>} */
export const decodeBase64 = (text) => /** @type {any} */ (Uint8Array).fromBase64?.(text) ?? Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/** @param {Uint8Array} bytes @returns {string} */
export function encodeBase64(bytes) {
  if ("toBase64" in bytes) return /** @type {any} */ (bytes).toBase64();
  let text = "";
  for (let i = 0; i < bytes.length; i += 1 << 15) text += String.fromCharCode(...bytes.subarray(i, i + (1 << 15)));
  return btoa(text);
}

// Small images with a byte per pixel, as bitmap files of 256 colours. The pixels are the bytes that Python sent, so nothing
// is computed per pixel here, and another theme only changes the colour table.

const PIXEL_OFFSET = 1080; // a multiple of 3, so that header and pixels are separate base64 strings

/** Return the bytes of a row, which a bitmap pads to a multiple of 4. @param {number} width pixels */
export const bitmapRowBytes = (width) => Math.ceil(width / 4) * 4;

/**
 * Return the beginning of a data URL; the base64 of the image's bytes completes it: rows of `bitmapRowBytes` from the top.
 * @param {Channels[]} colours of the bytes 0 to 255
 * @param {number} width pixels
 * @param {number} height pixels
 */
export function bitmapUrlPrefix(colours, width, height) {
  const file = new DataView(new ArrayBuffer(PIXEL_OFFSET)), size = bitmapRowBytes(width) * height;
  const setInt32s = (offset, ...numbers) => numbers.forEach((number, i) => file.setInt32(offset + 4 * i, number, true));
  file.setUint16(0, 0x424d); // "BM"
  setInt32s(2, PIXEL_OFFSET + size, 0, PIXEL_OFFSET);
  setInt32s(14, 40, width, -height); // negative: rows from the top
  file.setUint16(26, 1, true); // one plane
  file.setUint16(28, 8, true); // bits per pixel
  setInt32s(34, size, 0, 0, 256);
  colours.forEach(([red, green, blue], i) => [blue, green, red].forEach((channel, j) => file.setUint8(54 + 4 * i + j, Math.round(channel))));
  return `data:image/bmp;base64,${btoa(String.fromCharCode(...new Uint8Array(file.buffer)))}`;
}

// Colours of texts on coloured cells and bars. Plotly writes in #444 or white, by the difference in brightness; on colours
// of medium brightness neither is readable.

/** @type {CanvasRenderingContext2D} */
let colourContext;

// Parse any CSS colour; null if it is not opaque, since the background shows through.
function parseOpaqueColour(colour) {
  colourContext ??= make("canvas").getContext("2d", { willReadFrequently: true });
  colourContext.fillStyle = colour;
  const hex = String(colourContext.fillStyle);
  return hex.startsWith("#") ? parseHexColour(hex) : null;
}

/**
 * Return a function that gives the text colour, black or white, on a value's cell of a drawn heatmap.
 * @returns {(value: number) => string}
 */
function cellTextColour(plot, trace) {
  const { colorscale, cmin = trace.zmin, cmax = trace.zmax } = plot._fullLayout[trace.coloraxis] ?? trace;
  const scale = colorscale.map(([stop, colour]) => [stop, parseOpaqueColour(colour)]);
  return (value) => (Number.isFinite(value) ? readableTextColour(colourAt(scale, (value - cmin) / (cmax - cmin || 1)))
    : plot._fullLayout.font.color); // a cell without a value has the page's background
}

/** Set the texts on a figure's bars to black or white. */
export function setReadableBarInk(plot) {
  for (const text of findAll(plot, ".bartext-inside")) {
    const colour = parseOpaqueColour(find(text.parentElement, "path").style.fill);
    if (colour) text.style.fill = readableTextColour(colour);
  }
}

// Texts in heatmap cells. Plotly formats and measures each before it draws it, which takes about as long as the rest of the
// figure.

const LINE_HEIGHT = 1.15; // in font sizes
const CHARACTER_WIDTH = 0.65, CHARACTER_HEIGHT = 1.3, BASELINE_OFFSET = 0.35; // of a character, and from a cell's centre to the baseline, in font sizes, as Plotly assumes

/** Return traces without cell texts for Plotly. Their template is kept in `meta`, which Plotly ignores. */
export const withoutCellTexts = (traces) => traces.map((trace) => {
  if (trace.type !== "heatmap" || !trace.texttemplate) return trace;
  const { texttemplate, ...rest } = trace;
  return { ...rest, meta: texttemplate };
});

/** Write the texts into the cells of a drawn plot. Plotly removes them itself when it redraws. */
export function writeCellTexts(plot) {
  for (const cells of findAll(plot, ".hm")) {
    if (cells.querySelector(".heatmap-label")) continue;
    const { words, font } = cellTexts(plot, cells);
    if (!words) continue;
    const group = makeSvg("g", "heatmap-label");
    set(group, { "text-anchor": "middle", "font-family": font.family, "font-size": font.size, "font-weight": font.weight });
    for (const { left, top, room, written: line, colour } of words) {
      const text = makeSvg("text");
      set(text, { x: left, y: top + font.size * BASELINE_OFFSET, "data-room": room });
      text.textContent = line;
      text.style.fill = colour;
      group.append(text);
    }
    cells.append(group);
  }
}

const MONO_WIDTH = 0.602, MIN_WORD_SIZE = 8, SHORT_WORD = 4; // of a character, in font sizes; pixels; letters that are written smaller before they are cut

/** Shorten a word that is wider than its cell; a number stays whole. @param {string} word @param {number} room in font sizes */
export function shortenWord(word, room) {
  const letters = Array.from(word.replace(/[\u2066-\u2069]/g, "")), maxLetters = Math.max(2, Math.floor(room / MONO_WIDTH + 1e-6));
  return letters.length <= maxLetters || /^[−+\d]/.test(word) ? word : `${letters.slice(0, maxLetters - 1).join("")}…`;
}

/** Return the texts of a heatmap's visible cells with their positions in pixels; {} if it has none. */
function cellTexts(plot, cells) {
  const { trace, x, y, z } = cells.__data__[0], words = [];
  if (!trace.meta) return {};
  const axisOf = (letter) => plot._fullLayout[trace[`${letter}axis`].replace(letter, `${letter}axis`)], xaxis = axisOf("x"), yaxis = axisOf("y");
  const columnCentres = cellCentres(xaxis, x), rowCentres = cellCentres(yaxis, y), textColour = cellTextColour(plot, trace), columnRooms = columnCentres.map((_centre, i) => Math.abs(xaxis.c2p(x[i + 1]) - xaxis.c2p(x[i])));
  const { family, size: maxSize, weight = "normal" } = { ...plot._fullLayout.font, ...trace._input.textfont };
  const fixedSize = trace._input.textfont?.size, wordSize = Math.max(MIN_WORD_SIZE, Math.min(...columnRooms) / MONO_WIDTH / SHORT_WORD);
  const size = fixedSize ? Math.min(fixedSize, wordSize) : fittingFontSize(trace, columnCentres, rowCentres, maxSize);
  rowCentres.forEach((top, row) => columnCentres.forEach((left, column) => {
    const cellText = trace.text[row]?.[column];
    if (!cellText || !isWithin(xaxis, left) || !isWithin(yaxis, top)) return;
    const lines = cellText.split("<br>"), colour = textColour(z[row][column]);
    lines.forEach((line, i) => words.push({ left, top: top + (i - (lines.length - 1) / 2) * size * LINE_HEIGHT, room: columnRooms[column], written: shortenWord(decodeEntities(line), columnRooms[column] / size), colour }));
  }));
  return { words, font: { family, size, weight } };
}

// Centres of the cells along an axis, in pixels; there is one more edge than cells.
const cellCentres = (axis, edges) => Array.from({ length: edges.length - 1 }, (_nothing, i) => axis.c2p((edges[i] + edges[i + 1]) / 2));
const isWithin = (axis, pixel) => pixel >= 0 && pixel <= axis._length;

// Largest font size, up to `maxSize`, at which the longest text fits into the narrowest cell.
function fittingFontSize({ text, xgap = 0, ygap = 0 }, columnCentres, rowCentres, maxSize) {
  const longest = Math.max(1, ...text.flat().map((word) => decodeEntities(word ?? "").length));
  const widthLimit = (minSpacing(columnCentres) - xgap) / longest / CHARACTER_WIDTH, heightLimit = (minSpacing(rowCentres) - ygap) / CHARACTER_HEIGHT;
  return Math.max(1, Math.min(Math.floor(widthLimit), Math.floor(heightLimit), maxSize));
}

const minSpacing = (pixels) => Math.min(Infinity, ...pixels.slice(1).map((pixel, i) => Math.abs(pixel - pixels[i])));

/** Decode the entities of a Plotly text, such as &lt;. */
export const decodeEntities = (text) => text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
const encodeEntities = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

// Heatmaps with more cells than Plotly can draw quickly: Plotly draws axes, markers and colour bar, and below them lies an
// image with a pixel per cell (widgets/figure).

const MAX_U2 = 65534; // largest quantized value (widgets/figure); larger numbers mean no value

/**
 * Decode the cells of a heatmap, row by row; of a triangular one only the lower half.
 * @returns {Uint16Array | Float32Array}
 */
function decodeCells({ kind, data }) {
  const { buffer } = decodeBase64(data);
  return kind === "u2" ? new Uint16Array(buffer) : new Float32Array(buffer);
}

const rowLength = ({ lower, columns }, row) => (lower ? row + 1 : columns);
const rowStart = ({ lower, columns }, row) => (lower ? (row * (row + 1)) / 2 : row * columns);
const decodeValue = ({ kind, least, most }, number) => (kind !== "u2" ? number : number > MAX_U2 ? NaN : least + (number * (most - least)) / MAX_U2);

/** Return the value of a cell, or NaN. */
function valueAt(cells, numbers, row, column) {
  return column < rowLength(cells, row) ? decodeValue(cells, numbers[rowStart(cells, row) + column]) : NaN;
}

/** Return an image with a pixel per cell as a data URL. Compression would take longer than everything else. */
function cellBitmap(cells, numbers, { zmin, zmax }) {
  const { rows, columns, kind } = cells, rowBytes = bitmapRowBytes(columns);
  const colours = interpolatePalette(zmin < 0 ? currentTheme().diverging : currentTheme().sequential), maxIndex = colours.length - 1;
  const emptyIndex = zmin < 0 ? colours.length >> 1 : 0; // the scales have the page's background there
  const factor = maxIndex / (zmax - zmin || 1);
  const colourIndex = (number) => {
    const share = (decodeValue(cells, number) - zmin) * factor;
    return Number.isNaN(share) ? emptyIndex : Math.max(0, Math.min(maxIndex, Math.round(share)));
  };
  const indexTable = kind === "u2" && Uint8Array.from({ length: MAX_U2 + 2 }, (_nothing, number) => colourIndex(number));
  const pixels = new Uint8Array(rowBytes * rows).fill(emptyIndex);
  for (let row = 0; row < rows; row++) {
    const start = rowStart(cells, row), count = rowLength(cells, row), left = row * rowBytes;
    if (indexTable) for (let i = 0; i < count; i++) pixels[left + i] = indexTable[numbers[start + i]];
    else for (let i = 0; i < count; i++) pixels[left + i] = colourIndex(numbers[start + i]);
  }
  return bitmapUrlPrefix(colours, columns, rows) + encodeBase64(pixels);
}

/** Return the first position on an axis with numeric labels, or 0. */
export const firstPosition = (labels) => (typeof labels?.[0] === "number" ? labels[0] : 0);

const COLORBAR = { thickness: 10, xref: "container", x: 1, xanchor: "right", xpad: 2, ypad: 0, outlinewidth: 0, tickfont: { size: 11 }, ticksuffix: "\u2003" }; // as in the template for heatmaps

/**
 * Return the image of a heatmap with `cells`, in the theme's colours.
 * @typedef {{trace: any, numbers: Uint16Array | Float32Array, source: string}} CellImage
 * @returns {CellImage}
 */
export function heatmapImage(trace) {
  const numbers = decodeCells(trace.cells);
  return { trace, numbers, source: cellBitmap(trace.cells, numbers, trace) };
}

/**
 * Return Plotly's data for a heatmap image: an invisible point, which has the colour bar, and the image.
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
 * Show the hover text of the cell under the pointer, and call `click` with the position of a clicked cell.
 * @param {any} plot
 * @param {() => CellImage | null} visibleImage returns the image drawn in the plot, if any
 * @param {(place: {x: number, y: number}, event: MouseEvent) => void} click
 */
export function followPointerCells(plot, visibleImage, click) {
  const tooltip = make("div", { className: "cell-words", hidden: true });
  function cellAt(event) {
    const image = visibleImage(), layout = plot._fullLayout;
    if (!image || !layout?.xaxis) return null;
    const box = plot.getBoundingClientRect(), { xaxis, yaxis } = layout, { rows, columns } = image.trace.cells;
    const pointerX = event.clientX - box.left - xaxis._offset, pointerY = event.clientY - box.top - yaxis._offset;
    if (pointerX < 0 || pointerY < 0 || pointerX > xaxis._length || pointerY > yaxis._length) return null;
    const position = (axis, pixel, labels) => Math.round(axis.p2l(pixel)) - firstPosition(labels);
    const x = position(xaxis, pointerX, image.trace.x), y = position(yaxis, pointerY, image.trace.y);
    return x >= 0 && y >= 0 && x < columns && y < rows ? { ...image, x, y, value: valueAt(image.trace.cells, image.numbers, y, x) } : null;
  }
  plot.addEventListener("pointermove", (event) => {
    const cell = cellAt(event);
    tooltip.hidden = !cell || Number.isNaN(cell.value);
    if (!tooltip.isConnected) plot.append(tooltip);
    if (tooltip.hidden) return;
    tooltip.replaceChildren(...hoverLines(cell).flatMap((line, i) => (i ? [make("br"), line] : [line])));
    const box = plot.getBoundingClientRect(), left = event.clientX - box.left;
    tooltip.style.top = `${event.clientY - box.top + 14}px`;
    tooltip.style.left = `${Math.max(0, Math.min(left + 10, box.width - tooltip.offsetWidth - 4))}px`;
  });
  plot.addEventListener("pointerleave", () => { tooltip.hidden = true; });
  plot.addEventListener("click", (event) => {
    const cell = cellAt(event);
    if (cell && !Number.isNaN(cell.value)) click(cell, event);
  });
}

// Fill in Plotly's hover template for one cell.
function hoverLines({ trace, x, y, value }) {
  const label = (labels, index) => decodeEntities(String(labels?.[index] ?? index));
  const general = (digits) => String(Number(trace.cells.kind === "u2" ? value.toFixed(4) : value.toPrecision(digits))); // precision of 16 bits
  const number = (kind, digits) => (kind === "f" ? value.toFixed(digits) : general(digits)).replace("-", "−");
  return trace.hovertemplate.replace("<extra></extra>", "").split("<br>").map((line) => line
    .replace(/%\{z:\.(\d)([fg])\}/g, (match, digits, kind) => number(kind, +digits))
    .replace("%{z}", String(value)).replace("%{x}", () => label(trace.x, x)).replace("%{y}", () => label(trace.y, y)));
}

// Tick labels. Plotly draws all of them at any width; some are hidden so that none overlap.

const MIN_TICK_SPACING = 1.1; // in font sizes

/** Hide tick labels that would overlap others. Call it again after each redraw, which may leave more room. */
export function thinTicks(plot) {
  for (const axis of plotAxes(plot)) {
    const labels = findAll(plot, `.${axis._id}tick text`);
    if (!labels.length) continue; // an invisible axis has no font size either
    const isVisible = spacedPositions(labels.map((word) => axis.l2p(/** @type {any} */ (word).__data__.x)), MIN_TICK_SPACING * axis.tickfont.size);
    labels.forEach((word, i) => { word.style.visibility = isVisible[i] ? "" : "hidden"; });
  }
}

/** Hide numbers beside points where they would overlap larger ones. */
export function thinNumbers(plot) {
  const sizeOf = ({ textContent }) => Math.abs(parseFloat(textContent.replace("−", "-")));
  const numbers = findAll(plot, ".scatterlayer text").sort((a, b) => sizeOf(b) - sizeOf(a)), shownBoxes = /** @type {DOMRect[]} */ ([]);
  for (const number of numbers) {
    const box = number.getBoundingClientRect();
    const isFree = shownBoxes.every((other) => box.right < other.left || other.right < box.left || box.bottom < other.top || other.bottom < box.top);
    number.style.visibility = isFree ? "" : "hidden";
    if (isFree) shownBoxes.push(box);
  }
}

const plotAxes = ({ _fullLayout: layout }) => Object.keys(layout).filter((name) => /^[xy]axis\d*$/.test(name)).map((name) => layout[name]);

/**
 * Return whether each position is kept, so that neighbours have a minimum distance. The first one is kept.
 * @param {number[]} positions pixels, in any order
 * @param {number} minDistance
 * @returns {boolean[]}
 */
export function spacedPositions(positions, minDistance) {
  const order = positions.map((_place, i) => i).sort((a, b) => positions[a] - positions[b]), isKept = positions.map(() => false);
  let lastPosition = -Infinity;
  for (const i of order) {
    if (positions[i] - lastPosition < minDistance) continue;
    isKept[i] = true;
    lastPosition = positions[i];
  }
  return isKept;
}

// Our copy of Plotly, its language, and its URLs.

// Plotly's own messages, which it looks up in a dictionary.
const PLOTLY_MESSAGES = [
  N_("Zoom"), N_("Pan"), N_("Reset axes"), N_("Double-click to zoom back out"),
  N_("Double-click on legend to isolate one trace"),
];
const dictionary = Object.fromEntries(PLOTLY_MESSAGES.map((words) => [words, lookUpMessage(words)]));

/** Return Plotly, a classic script that can only set a global variable (assets.py). */
export const plotly = () => /** @type {any} */ (window).ExplorerPlotly;

/** URL of Plotly's script. */
export const PLOTLY_SCRIPT_URL = new URL(PLOTLY_URL, import.meta.url).href;

/** Preload Plotly's script, for a view that begins with a figure. */
export const fetchPlotly = () => document.head.append(make("link", { rel: "preload", as: "script", href: PLOTLY_SCRIPT_URL }));

/** @type {Promise<void> | null} */
let loading = null;
/** True while figures wait for Plotly's script. */
export let isPlotlyLoading = false;

/** Load Plotly's script. It takes a second to run, so everything else is drawn before. */
export function loadPlotly() {
  if (loading) return loading;
  isPlotlyLoading = true;
  loading = new Promise((resolve) => {
    document.head.append(make("script", { src: PLOTLY_SCRIPT_URL, onload: () => resolve() }));
  });
  loading.then(() => setTimeout(() => { isPlotlyLoading = false; })); // by then the waiting figures are being drawn
  return loading;
}

let cachedConfig;

/** Return Plotly's config, always the same object, since Plotly redraws everything for another one. */
export const plotlyConfig = () => cachedConfig ??= {
  responsive: false, displaylogo: false, modeBarButtons: [[downloadButton("png"), downloadButton("svg"), csvButton()], ["zoom2d", "pan2d"], ["resetScale2d"]],
  locale: language, locales: { [language]: { dictionary } },
};

// Figures as files. Plotly draws them again, with the texts and colours that the page writes over its own, and with the
// heading around the figure.

/** @param {"png" | "svg"} format */
const downloadButton = (format) => ({
  name: `download-${format}`, title: format === "png" ? _("Save figure as PNG") : _("Save figure as SVG"),
  icon: format === "png" ? plotly().Icons.camera : plotly().Icons.pencil, click: (plot) => saveFigure(plot, format),
});

const csvButton = () => ({ name: "numbers", title: _("Save figure’s numbers as CSV"), icon: plotly().Icons.disk, click: saveNumbers });

/** Save the numbers of a figure as CSV, one per row. @param {any} plot */
export const saveNumbers = (plot) => download(toCsv(figureRows(plot)), `${fileName(plot)}.csv`, "text/csv");

/** Format rows as CSV. @param {any[][]} rows */
const toCsv = (rows) => rows.map((row) => row.map((cell) => (/[",\n]/.test(`${cell}`) ? `"${`${cell}`.replaceAll('"', '""')}"` : cell)).join() + "\n").join("");

/** Return the names of a figure's axes, then a row per number with its coordinates; of two tokens the position and the token. @param {any} plot @returns {any[][]} */
export function figureRows({ _fullData, _fullLayout }) {
  const traces = _fullData.filter(({ visible }) => visible === true), isNamed = traces.length > 1;
  const numbersOf = (trace) => trace[_fullLayout.meta?.numbers]; // of a trace whose drawn numbers are a transform of them
  const cleanText = (text) => decodeEntities(`${text ?? ""}`.replaceAll("<br>", " ")).replace(/[\u2066-\u2069\u2007]/g, "");
  const axisOf = (trace, letter) => _fullLayout[`${letter}axis${(trace[`${letter}axis`] ?? letter).slice(1)}`] ?? {};
  const coordinate = (trace, letter, i) => {
    const value = trace[letter]?.[i] ?? i, { tickvals, ticktext } = axisOf(trace, letter), label = ticktext?.[tickvals?.indexOf(value)];
    if (label !== undefined && letter === _fullLayout.meta?.labelled_axis) return cleanText(label); // its numbers only place the bars
    return typeof value === "string" ? cleanText(value) : label === undefined || label === `${value}` ? value : `${value} ${cleanText(label)}`;
  };
  const column = (trace, i, count) => (trace.x?.length > count ? cleanText(axisOf(trace, "x").ticktext?.[i]) : coordinate(trace, "x", i)); // more edges than columns
  const cell = (number) => (Number.isNaN(number) ? "" : typeof number === "string" ? cleanText(number) : number ?? "");
  const titleOf = ({ title }, letter) => (title?.text === _fullLayout._dfltTitle?.[letter] ? "" : cleanText(title?.text).split(";")[0]); // without its note
  const title = (letter) => traces.map((trace) => titleOf(axisOf(trace, letter), letter)).find(Boolean) ?? letter;
  const isTokenPairs = traces.every(({ z }) => z) && ["x", "y"].every((letter) => _fullLayout.meta?.of_tokens?.includes(letter));
  const token = (trace, letter, i) => {
    const position = trace[letter]?.[i] ?? i, { tickvals, ticktext } = axisOf(trace, letter), [, number, label] = typeof position === "string" ? /^(\d+) (.*)$/s.exec(position) ?? [] : [];
    return [number ?? position, cleanText(label ?? ticktext?.[tickvals?.indexOf(position)])];
  };
  const location = (trace, c, r, count) => (isTokenPairs ? [...token(trace, "y", r), ...token(trace, "x", c)] : [column(trace, c, count), coordinate(trace, "y", r)]);
  const isMasked = (number) => isTokenPairs && cell(number) === "";
  const cells = (trace) => Array.from(numbersOf(trace) ?? trace.z, (row, r) => Array.from(row, (number, c) => (isMasked(number) ? [] : [[...location(trace, c, r, row.length), cell(number)]])).flat()).flat();
  const tokenTitles = (letter) => ["position", "token"].map((part) => `${title(letter).split(" (")[0].replaceAll(" ", "_")}_${part}`);
  const points = (trace) => Array.from(trace.y ?? trace.x ?? [], (_number, i) => [coordinate(trace, "x", i), numbersOf(trace)?.[i] ?? coordinate(trace, "y", i)]);
  const rows = traces.flatMap((trace, n) => (trace.z ? cells(trace) : points(trace)).map((row) => (isNamed ? [cleanText(trace.name) || n, ...row] : row)));
  const scale = traces.find(({ z }) => z), valueColumn = scale ? [cleanText(scale.colorbar?.title?.text) || _("value")] : [];
  return [[...(isNamed ? [_("line")] : []), ...(isTokenPairs ? [...tokenTitles("y"), ...tokenTitles("x")] : [title("x"), title("y")]), ...valueColumn], ...rows];
}

/** Save a figure as a file, a drawing of the page's own as well. @param {any} figure @param {"png" | "svg"} format */
export async function saveFigure(figure, format) {
  try {
    if (figure.ownerSVGElement === null) await saveDrawing(/** @type {SVGSVGElement} */ (figure), format);
    else await plotly().downloadImage(await standaloneFigure(figure), { format, scale: format === "png" ? PNG_SCALE : 1, filename: fileName(figure) });
  } catch (error) { reportFailure(error, _("The browser could not save the figure as a file.")); }
}

const LINE_PX = 17, CHARACTER_PX = 6.2, PNG_SCALE = 2, MAX_PROMPT_LENGTH = 300; // height of a line above the figure, and approximate width of its characters; characters

/** Return the lines above a figure: its heading, and the rest. @param {Element} figure @param {string} description @param {number} width @param {boolean} [isTitled] whether its heading and its text stand above it already */
function headingLines(figure, description, width, isTitled = false) {
  const maxLength = Math.floor(width / CHARACTER_PX), texts = promptLines();
  const heading = isTitled ? [] : wrapText(widgetBlock(figure)?.querySelector("h2")?.textContent ?? "", maxLength);
  return { heading, rest: [...(isTitled && texts.length === 1 ? [] : texts), description.replace(REPEATED_TITLE, ""), modelNames().join(", ")].flatMap((text) => wrapText(text, maxLength)) };
}

const REPEATED_TITLE = /^[^:：]*A − B[^:：]*[:：].*?(\. |。)/; // of a difference's description

/** Return the run's text; of two runs both, by their letters. */
function promptLines() {
  const [a, b] = ["#strip .strip", "#strip-b .strip"].map((strip) => (document.querySelector(strip)?.textContent ?? "").slice(0, MAX_PROMPT_LENGTH));
  return state["b.checkpoint"] ? [`A: ${a}`, `B: ${b}`] : [a];
}

/** Return a figure with its heading, its description and the model's name, on white paper. @param {any} plot @param {boolean} [isTitled] */
export async function standaloneFigure(plot, isTitled) {
  const paper = make("div", { className: "on-paper" });
  document.body.append(paper);
  try {
    const { data, _fullLayout: { width, height, margin } } = plot, { template } = THEMES.light;
    const layout = { ...plot.layout, template, images: readOnPaper(() => plot.cellImage ? plot.layout.images.map((image) => ({ ...image, source: heatmapImage(plot.cellImage.trace).source })) : plot.layout.images) };
    await plotly().newPlot(paper, data, { ...layout, width, height }, { staticPlot: true });
    setReadableBarInk(paper);
    const { heading, rest } = headingLines(plot, plot.ariaLabel ?? "", width, isTitled);
    const texts = [...heading.map((line) => `<b>${encodeEntities(line)}</b>`), ...rest.map(encodeEntities)], heightAbove = texts.length * LINE_PX + LINE_PX;
    const title = {
      text: texts.join("<br>"), font: { size: 12 }, x: 0, xref: "container", xanchor: "left", y: 1, yref: "container", yanchor: "top",
      pad: { l: 8, t: LINE_PX },
    };
    const annotations = [...(layout.annotations ?? []), ...findAll(paper, ".hm").flatMap((cells) => cellAnnotations(paper, cells))];
    const size = { width, height: height + heightAbove, margin: { ...layout.margin, t: margin.t + heightAbove } };
    return { data: data.map((trace, i) => ({ ...trace, ...barTextFonts(paper, i) })), layout: { ...layout, ...size, paper_bgcolor: PAPER, annotations, title } };
  } finally {
    plotly().purge(paper);
    paper.remove();
  }
}

const PAPER = "#ffffff", INK = "#1f2937";
const DRAWN = ["display", "visibility", "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "opacity", "font", "text-anchor", "dominant-baseline", "paint-order"];

/** Return a drawing of the page's own with its styles and what stands above and below it, on white paper. @param {SVGSVGElement} drawing */
function standaloneDrawing(drawing) {
  const copy = /** @type {SVGSVGElement} */ (drawing.cloneNode(true)), copies = findAll(copy, "*"), { width, height } = drawing.getBoundingClientRect();
  readOnPaper(() => findAll(drawing, "*").forEach((element, i) => {
    const style = getComputedStyle(element);
    copies[i].style.cssText = DRAWN.map((name) => `${name}: ${style.getPropertyValue(name)}`).join("; ");
  }));
  const below = findAll(widgetBlock(drawing), ".sum > *").map(({ textContent }) => textContent).join(" · ");
  const { heading, rest } = headingLines(drawing, drawing.getAttribute("aria-label") ?? "", width), top = (heading.length + rest.length + 1) * LINE_PX;
  const lines = [...heading, ...rest].map((line, i) => [line, (i + 1) * LINE_PX, i < heading.length ? "bold" : "normal"]);
  const sum = wrapText(below, Math.floor(width / CHARACTER_PX)).map((line, i) => [line, top + height + (i + 1) * LINE_PX, "normal"]);
  const texts = [...lines, ...sum].map(([line, y, weight]) => {
    const text = makeSvg("text", "", String(line));
    set(text, { x: 8, y, fill: INK, "font-family": "sans-serif", "font-size": 12, "font-weight": weight });
    return text;
  });
  const paper = makeSvg("rect"), svg = makeSvg("svg", "", paper, copy, ...texts), size = { width, height: top + height + (sum.length + 1) * LINE_PX };
  set(paper, { width: "100%", height: "100%", fill: PAPER });
  set(copy, { x: 0, y: top, width, height });
  set(svg, { ...size, viewBox: `0 0 ${size.width} ${size.height}` });
  return { text: new XMLSerializer().serializeToString(svg), ...size };
}

/** @param {SVGSVGElement} drawing @param {"png" | "svg"} format */
async function saveDrawing(drawing, format) {
  const { text, width, height } = standaloneDrawing(drawing), type = "image/svg+xml", name = `${fileName(drawing)}.${format}`;
  if (format === "svg") return download(text, name, type);
  const image = make("img", { src: URL.createObjectURL(new Blob([text], { type })) }), canvas = make("canvas", { width: width * PNG_SCALE, height: height * PNG_SCALE });
  await image.decode();
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  download(await new Promise((resolve) => canvas.toBlob(resolve)), name, "image/png");
}

const modelNames = () => [...new Set([state.checkpoint, state["b.checkpoint"]])].filter(Boolean);
/** Return the layer and head that a figure's title begins with, as in "L5H1". @param {string} title */
function titledHead(title) {
  const [layer, head] = title.match(/\d+/g) ?? [];
  return layer === String(state.layer) ? `L${layer}${head === String(state.head) ? `H${head}` : ""}` : "";
}

const shownRunName = () => (state["b.checkpoint"] ? { difference: "A-B", b: "B" }[state.shown] : "");
const fileName = (plot) => [...modelNames(), widgetBlock(plot)?.id, titledHead(widgetBlock(plot)?.querySelector("h2")?.textContent ?? ""), shownRunName()].filter(Boolean).join("-").replace(/[^\p{L}\p{N}.-]+/gu, "-");

/** Split a text at spaces into lines of at most `maxLength` characters; longer words stay whole. */
function wrapText(text, maxLength) {
  const lines = [""];
  for (const word of text.split(/\s+/)) {
    if (lines.at(-1) && lines.at(-1).length + 1 + word.length > maxLength) lines.push(word);
    else lines[lines.length - 1] = `${lines.at(-1)} ${word}`.trim();
  }
  return lines.filter(Boolean);
}

function cellAnnotations(plot, cells) {
  const { words = [], font } = cellTexts(plot, cells), { xaxis, yaxis } = plot._fullLayout;
  return words.map(({ left, top, written: line, colour }) => (
    { x: xaxis.p2l(left), y: yaxis.p2l(top), text: line, font: { ...font, color: colour }, showarrow: false }));
}

/** Return the font of the texts on a trace's bars with their colours in the page. */
function barTextFonts(plot, index) {
  const bars = findAll(plot, ".trace.bars").map((group) => /** @type {any} */ (group)).find((group) => group.__data__[0].trace.index === index);
  const colours = [];
  for (const point of bars ? findAll(bars, ".point") : []) {
    const text = /** @type {HTMLElement} */ (point.querySelector(".bartext-inside"));
    if (text) colours[/** @type {any} */ (point).__data__.i] = text.style.fill;
  }
  const defaultColour = plot._fullLayout.font.color;
  return colours.length ? { insidetextfont: { ...plot.data[index].insidetextfont, color: Array.from(colours, (colour) => colour ?? defaultColour) } } : {};
}

// In a page with a <base>, as Gradio's, Plotly refers to its gradients and clip paths by the page's full URL, and loses
// them when the selection changes that. It reads the first <base>; the browser reads the first one with an href.
/** Add an empty <base>, so that Plotly refers to parts of its figures by their ids alone. */
export const addBaseElement = () => document.head.prepend(document.createElement("base"));
