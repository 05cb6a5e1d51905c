// @ts-check
// Fitting a figure to its width, to presentation mode, and to top-k.
import { _ } from "../../static/text.js";

// Figures narrower than on a phone, as beside a lesson's text when presenting: without a colour bar, and with the axis
// title and the names of rows in several lines.

const NARROW_WIDTH = 300, LETTER_WIDTH = 6.5, TITLE_MARGIN = 40; // pixels: of a figure; of a title's letter, approximately; left of an axis, below whose middle its title stands
const MIN_FONT_SIZE = 10, LINE_NAME_WIDTH = 40, MAX_ROW_LETTERS = 16; // pixels: letters beside an axis; the name at a line's end; of a row's name in a line

const TOP_MARGIN = 8; // pixels above a presented figure, as the stage shows its title

const SIDES_WIDTH = 195, MAX_COLUMN_LETTERS = 8, CELL_LETTER_WIDTH = 6.6; // pixels beside the cells; letters of a word that a column has room for; pixels

/**
 * Return a figure for presentation: without a margin for its title, and without a colour bar beside cells with numbers.
 * Of columns of words only as many as have room are visible, among them the chosen one.
 * @template {{ data: Record<string, any>[], layout: Record<string, any> }} Figure
 * @param {Figure} figure
 * @param {{ width: number, column: number | null, isBesideBars?: boolean }} [space] of the figure; the chosen column of an axis of tokens; whether bars beside it have the lines' names and colours
 * @returns {Figure}
 */
export function figureOnStage(figure, { width, column, isBesideBars } = { width: Infinity, column: null }) {
  const { data } = figure, layout = isBesideBars ? { ...figure.layout, showlegend: false } : figure.layout, hasTop = hasLegend({ data, layout }) || layout.title?.text || layout.annotations?.length || Object.values(layout).some((part) => part?.side === "top");
  const margin = hasTop ? layout.margin : { ...layout.margin, t: TOP_MARGIN }, [words] = data.map(cellWords), range = column === null || !words?.length ? null : visibleColumns(data[0].text[0].length, words, width, column);
  return { ...figure, data: data.map((trace) => (trace.type === "heatmap" && trace.meta && !cellWords(trace).length ? { ...trace, showscale: false } : trace)), layout: { ...layout, ...(range && { xaxis: { ...layout.xaxis, range } }), ...(margin && { margin }), ...(layout.legend && { legend: { ...layout.legend, font: { ...layout.legend.font, size: MIN_FONT_SIZE } } }) } };
}

/** Return the texts in a heatmap's cells that are no numbers. @param {Record<string, any>} trace @returns {string[]} */
const cellWords = ({ type, meta, text }) => (type === "heatmap" && meta ? (text ?? []).flat().filter((word) => word && Number.isNaN(Number(word.replaceAll("−", "-").replace("∞", "Infinity")))) : []);

/** Return the range of the columns that have room for their words, up to the chosen one or more; null for all. @param {number} count @param {string[]} words @param {number} width @param {number} column */
function visibleColumns(count, words, width, column) {
  const letters = Math.min(MAX_COLUMN_LETTERS, Math.max(...words.map((word) => word.length)));
  const columns = Math.max(1, Math.floor((width - SIDES_WIDTH) / (letters * CELL_LETTER_WIDTH))), last = Math.max(column, columns - 1);
  return columns < count ? [last - columns + 0.5, last + 0.5] : null;
}

/**
 * Fit a figure to its size; a large figure stays as it is.
 * @template {{ data: Record<string, any>[], layout: Record<string, any> }} Figure
 * @param {Figure} figure
 * @param {number} width
 * @param {number} height
 * @returns {Figure}
 */
export const figureInSize = (figure, width, height) => wrapSideTitles(figureInWidth(figure, width), width, height);

const ABOVE_PLOT = 36, BELOW_PLOT = 44; // pixels: the usual margin; level names and a title

/**
 * Wrap titles that are longer than the axis or the colour bar beside which they stand upright.
 * @template {{ data: Record<string, any>[], layout: Record<string, any> }} Figure
 * @param {Figure} figure
 * @param {number} width
 * @param {number} height
 * @returns {Figure}
 */
function wrapSideTitles(figure, width, height) {
  const { data, layout } = figure, { xaxis, yaxis, margin } = layout;
  const names = xaxis?.ticktext ?? [], areUpright = names.length > 0 && xaxis.tickangle !== 0 && !fitHorizontally(names, width);
  const room = height - (margin?.t ?? ABOVE_PLOT) - BELOW_PLOT - (areUpright ? longestName(names) * LETTER_WIDTH : 0);
  const wrap = (title) => wrapTitle(title, room + TITLE_MARGIN);
  if (![yaxis?.title, ...data.map(({ colorbar }) => colorbar?.title)].some((title) => title?.text && wrap(title).text !== title.text)) return figure;
  const bars = data.map((trace) => (trace.colorbar?.title ? { ...trace, colorbar: { ...trace.colorbar, title: wrap(trace.colorbar.title) } } : trace));
  return { ...figure, data: bars, layout: { ...layout, ...(yaxis && { yaxis: { ...yaxis, ...(yaxis.title && { title: wrap(yaxis.title) }) } }) } };
}

/**
 * Fit a figure to a width; a wide figure stays as it is.
 * @template {{ data: Record<string, any>[], layout: Record<string, any> }} Figure
 * @param {Figure} figure
 * @param {number} width
 * @returns {Figure}
 */
export function figureInWidth(figure, width) {
  const { xaxis } = figure.layout, [first] = figure.data;
  if (figure.layout.annotations?.some(isChip)) return chipsInWidth(figure, width);
  if (xaxis?.tickangle && fitHorizontally(xaxis.ticktext ?? first?.x, width)) return { ...figure, layout: { ...figure.layout, xaxis: { ...xaxis, tickangle: 0 } } };
  if (width >= NARROW_WIDTH) {
    const title = wrapTitle(xaxis?.title, width);
    return title?.text === xaxis?.title?.text ? figure : { ...figure, layout: { ...figure.layout, xaxis: { ...xaxis, title } } };
  }
  const data = figure.data.map((trace) => (trace.type === "heatmap" ? { ...trace, showscale: false } : trace));
  const layout = Object.entries(figure.layout).map(([name, part]) => [name, /^[xy]axis/.test(name) ? fitAxis(part, width) : part]), rows = rowNames(first, figure.layout.yaxis);
  if (rows) layout.push(["yaxis", { ...fitAxis(figure.layout.yaxis, width), tickvals: rows, ticktext: rows.map((name) => wrapLine(name, MAX_ROW_LETTERS)) }]);
  const { margin } = figure.layout, hasLineNames = data.some(({ textposition }) => textposition === "middle right");
  return { ...figure, data, layout: { ...Object.fromEntries(layout), ...(hasLineNames && { margin: { ...margin, r: Math.max(LINE_NAME_WIDTH, margin?.r ?? 0) } }) } };
}

const CHIP_LETTER_WIDTH = 7.3, CHIP_PADDING = 14, MIN_NUMBER_SIZE = 9; // pixels
const NUMBER_WIDTH = 3.2; // of “>99%” and a gap, in letter sizes

const isChip = ({ name }) => name === "chip";

/**
 * Set the chips below a figure's columns on end, and the numbers above in small letters, if they have no room side by side.
 * @template {{ data: Record<string, any>[], layout: Record<string, any> }} Figure
 * @param {Figure} figure
 * @param {number} width
 * @returns {Figure}
 */
function chipsInWidth(figure, width) {
  const { annotations, margin } = figure.layout, chips = annotations.filter(isChip);
  const longest = CHIP_PADDING + CHIP_LETTER_WIDTH * Math.max(...chips.map(({ text }) => text.replace(/[\u2066-\u2069]/g, "").length));
  if (longest * chips.length <= width - margin.l - margin.r) return figure;
  const upright = annotations.map((note) => (isChip(note) ? { ...note, textangle: -90, borderpad: 2 } : note));
  const size = Math.max(MIN_NUMBER_SIZE, Math.floor(width / chips.length / NUMBER_WIDTH));
  const data = figure.data.map((trace) => ({ ...trace, textfont: { ...trace.textfont, size: Math.min(size, trace.textfont.size) } }));
  return { ...figure, data, layout: { ...figure.layout, annotations: upright, margin: { ...margin, b: longest + 8 } } };
}

const CELL_SIZE = { width: 2.2, height: 2.6 }, GRID_MARGINS = { width: 16, height: 60 }; // in radii: a circle with its name; in pixels: margins and the legend
const FULL_ROWS_WORTH = 0.85; // radius of circles in full rows that is as good as 1 without

/**
 * Arrange a figure's circles in the number of columns that makes them largest, spread over the space; in full rows
 * unless others make them much larger.
 * @template {{ data: Record<string, any>[], layout: Record<string, any> }} Figure
 * @param {Figure} figure
 * @param {{ count: number, columns: number, spacing: number }} grid the circles in their original arrangement
 * @param {number} width
 * @param {number} height
 * @returns {Figure}
 */
export function gridInSize(figure, grid, width, height) {
  const { count, spacing } = grid, availableWidth = width - GRID_MARGINS.width, availableHeight = height - GRID_MARGINS.height;
  const radius = (columns) => Math.min(availableWidth / columns / CELL_SIZE.width, availableHeight / Math.ceil(count / columns) / CELL_SIZE.height);
  const merit = (columns) => radius(columns) * (count % columns ? FULL_ROWS_WORTH : 1);
  const columns = Array.from({ length: count }, (_none, i) => i + 1).reduce((best, other) => (merit(other) > merit(best) ? other : best)), rows = Math.ceil(count / columns);
  const stepX = availableWidth / columns / radius(columns), stepY = availableHeight / rows / radius(columns);
  const shifts = Array.from({ length: count }, (_none, i) => ({
    x: (i % columns) * stepX - (i % grid.columns) * spacing, y: Math.floor(i / grid.columns) * spacing - Math.floor(i / columns) * stepY,
  }));
  const shifted = (values, axis) => decodeNumbers(values).map((number, i, { length }) => number === null ? null : number + shifts[Math.floor((i * count) / length)][axis]);
  const data = figure.data.map((trace) => ({ ...trace, x: shifted(trace.x, "x"), y: shifted(trace.y, "y") }));
  const { xaxis, yaxis, annotations } = figure.layout, notes = annotations.map((note, i) => ({ ...note, x: note.x + shifts[i].x, y: note.y + shifts[i].y }));
  const ranges = { xaxis: { ...xaxis, range: [-stepX / 2, (columns - 0.5) * stepX] }, yaxis: { ...yaxis, range: [(0.5 - rows) * stepY + 0.2, stepY / 2 + 0.2] } };
  return { ...figure, data, layout: { ...figure.layout, ...ranges, annotations: notes } };
}

/** Return an array, decoded if it is in Plotly's base64 format. @param {any} values @returns {(number | null)[]} */
const decodeNumbers = (values) => (Array.isArray(values) ? values : Array.from(new Float64Array(Uint8Array.from(atob(values.bdata), (letter) => letter.charCodeAt(0)).buffer)));

/** Return whether Plotly draws a legend above a figure. @param {{ data: Record<string, any>[], layout: Record<string, any> }} figure */
export const hasLegend = ({ data, layout }) => layout.showlegend ?? (data.some(({ showlegend }) => showlegend) || data.filter(({ type, showlegend }) => type !== "heatmap" && showlegend !== false).length > 1);

const MAX_NUMBERED_BARS = 12, MIN_NUMBERED_WIDTH = 48; // bars; pixels of the figure for each

/**
 * Return a figure of a few upright bars with each one's number at its end; any other as it is.
 * @template {{ data: Record<string, any>[], layout: Record<string, any> }} Figure
 * @param {Figure} figure
 * @param {number} width
 * @returns {Figure}
 */
export function withBarNumbers(figure, width) {
  const { data, layout } = figure, [first] = data, count = first?.x?.length ?? Infinity;
  const isPlain = data.every(({ type, text, orientation, base }) => type === "bar" && !text && orientation !== "h" && !base) && (data.length === 1 || layout.barmode === "overlay");
  if (!isPlain || layout.yaxis?.type === "log" || count > Math.min(MAX_NUMBERED_BARS, width / MIN_NUMBERED_WIDTH)) return figure;
  return { ...figure, data: [{ ...first, texttemplate: "%{y:.3g}", textposition: "outside", textfont: { size: 11 }, cliponaxis: false }, ...data.slice(1)] };
}

const LESSON_FONT_SIZE = { tick: 12, title: 13 }; // pixels

/**
 * Return a figure with letters for a lesson, which shows it alone: beside its axes and its colour bar.
 * @template {{ data: Record<string, any>[], layout: Record<string, any> }} Figure
 * @param {Figure} figure
 * @returns {Figure}
 */
export function withLargerLetters({ data, layout, ...rest }) {
  const atLeast = (font, size) => ({ ...font, size: Math.max(size, font?.size ?? 0) });
  const enlarge = ({ tickfont, title, ...axis }) => ({ ...axis, tickfont: atLeast(tickfont, LESSON_FONT_SIZE.tick), ...(title && { title: { ...title, font: atLeast(title.font, LESSON_FONT_SIZE.title) } }) });
  const axes = Object.keys(layout).filter((name) => /^[xy]axis/.test(name)).map((name) => [name, enlarge(layout[name])]);
  return /** @type {Figure} */ ({ ...rest, data: data.map((trace) => (trace.type === "heatmap" ? { ...trace, colorbar: enlarge(trace.colorbar ?? {}) } : trace)), layout: { ...layout, ...Object.fromEntries(axes) } });
}

const MAX_CELL_RATIO = 1.15; // of a cell's longer side to its shorter one

/**
 * Return the space around a drawn heatmap's cells in which they are square: wide ones in the middle with the colour bar
 * beside them, high ones at the top; null if they are about square.
 * @typedef {{ margin: Record<string, number>, bar: number }} SquareSpace the bar's right edge, as a share of the width
 * @param {{ _size: Record<string, number>, width: number, xaxis: { range: number[] }, yaxis: { range: number[] } }} layout
 * @param {number} [bar] the bar's right edge, as drawn
 * @returns {SquareSpace | null}
 */
export function squareCellSpace({ _size: { l, r, t, b, w, h }, width, xaxis, yaxis }, bar = 1) {
  const [columns, rows] = [xaxis, yaxis].map(({ range: [start, end] }) => Math.abs(end - start)), side = Math.min(w / columns, h / rows);
  if (Math.max(w / columns, h / rows) <= MAX_CELL_RATIO * side) return null;
  const spare = w - side * columns;
  return { margin: { l: l + spare / 2, r: r + spare / 2, t, b: b + h - side * rows }, bar: bar - spare / 2 / width };
}

/**
 * Return a figure with square cells, its colour bar beside them.
 * @template {{ data: Record<string, any>[], layout: Record<string, any> }} Figure
 * @param {Figure} figure
 * @param {SquareSpace} space
 * @returns {Figure}
 */
export function withSquareCells(figure, { margin, bar }) {
  const move = (trace) => ({ ...trace, colorbar: { ...trace.colorbar, x: bar } });
  const data = figure.data.map((trace) => (trace.type === "heatmap" ? move(trace) : trace.marker?.colorbar ? { ...trace, marker: move(trace.marker) } : trace));
  return { ...figure, data, layout: { ...figure.layout, margin } };
}

/** Return a vertical line as a Plotly shape. */
export const verticalLine = ({ at, color }) => ({ type: "line", x0: at, x1: at, y0: 0, y1: 1, yref: "paper", line: { color, width: 2 } });

const AXIS_MARGINS = 140; // pixels beside an axis: its labels, margins and the colour bar

/** Return whether labels fit side by side without rotation. @param {unknown} labels @param {number} width of the figure */
function fitHorizontally(labels, width) {
  if (!Array.isArray(labels) || !labels.length) return false;
  return labels.length * (longestName(labels) * LETTER_WIDTH + LETTER_WIDTH) <= width - AXIS_MARGINS;
}

/** Return the number of letters of the longest label. @param {unknown[]} labels */
const longestName = (labels) => Math.max(...labels.map((label) => String(label).replace(/[\u2066-\u2069]/g, "").length));

/** Return the names of a heatmap's rows if one is too long for a narrow figure; null otherwise. @param {Record<string, any>} trace @param {Record<string, any>} axis @returns {string[] | null} */
const rowNames = ({ type, y }, { ticktext }) => (type === "heatmap" && !ticktext && Array.isArray(y) && y.some((name) => typeof name === "string" && name.length > MAX_ROW_LETTERS) ? y : null);

function fitAxis({ tickfont, title, ...axis }, width) {
  return { ...axis, tickfont: { ...tickfont, size: MIN_FONT_SIZE }, ...(title && { title: wrapTitle(title, width) }) };
}

/**
 * Return a figure of lines over the temperature with only the `topK` likeliest tokens kept; as it is if that is all, or more than the scores.
 * @template {{ data: Record<string, any>[], layout: Record<string, any> }} Figure
 * @param {Figure} figure each line is a token, the likeliest first
 * @param {{ temperatures: number[], scores: number[] }} source of the points; logits of the likeliest tokens, the largest first
 * @param {number} topK 0 for all
 * @returns {Figure}
 */
export function withTopK(figure, { temperatures, scores }, topK) {
  if (!topK || topK > scores.length) return figure;
  const probability = (rank, temperature) => {
    if (rank >= topK) return 0;
    if (!temperature) return Number(rank === 0);
    return 1 / scores.slice(0, topK).reduce((total, score) => total + Math.exp((score - scores[rank]) / temperature), 0);
  };
  const { data, layout } = figure, title = { ...layout.yaxis.title, text: _("probability with top-k {count}", { count: topK }) };
  return { ...figure, data: data.map((line, rank) => ({ ...line, y: temperatures.map((temperature) => probability(rank, temperature)) })), layout: { ...layout, yaxis: { ...layout.yaxis, title } } };
}

/** Wrap an axis title. */
function wrapTitle(title, width) {
  return title?.text ? { ...title, text: title.text.split("<br>").map((line) => wrapLine(line, (width - TITLE_MARGIN) / LETTER_WIDTH)).join("<br>") } : title;
}

/** Wrap a line into the fewest lines, of about equal length. @param {string} line @param {number} maxLetters per line */
export function wrapLine(line, maxLetters) {
  const { length } = splitLine(line, maxLetters);
  let width = Math.min(maxLetters, Math.ceil(line.length / length));
  while (width < maxLetters && splitLine(line, width).length > length) width++;
  return splitLine(line, width).join("<br>");
}

/** Split a line at its spaces. @param {string} line @param {number} maxLetters */
function splitLine(line, maxLetters) {
  const lines = [""];
  for (const word of line.split(" ")) {
    const extended = `${lines.at(-1)} ${word}`.trim();
    if (extended.length <= maxLetters || !lines.at(-1)) lines[lines.length - 1] = extended;
    else lines.push(word);
  }
  return lines;
}
