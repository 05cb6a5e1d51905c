// @ts-check
// A figure as it fits where it is drawn: in a narrow place, or before a class.

// Figures narrower than a telephone has them, as beside a lesson's words on the stage: there the figure itself has the
// room of its scale of colours, and what is written below it goes on in another line.

const NARROW = 300, LETTER = 6.5, BESIDE_TITLE = 40; // pixels: of a figure; of a letter of a title, about; left of an axis, below whose middle its title stands
const SMALLEST = 10, NAME = 40; // pixels of letters beside an axis; that the name of a line takes at its end

const UPPER_MARGIN = 8; // pixels above a figure on the stage, which says its title

/**
 * A figure as a class sees it: no margin for a title, and no scale of colours beside cells with words in them.
 * @template {{ data: Record<string, any>[], layout: Record<string, any> }} Figure
 * @param {Figure} figure
 * @returns {Figure}
 */
export function figureOnStage(figure) {
  const { data, layout } = figure, hasTop = hasLegend(figure) || layout.title?.text || layout.annotations?.length || Object.values(layout).some((part) => part?.side === "top");
  const margin = hasTop ? layout.margin : { ...layout.margin, t: UPPER_MARGIN };
  return { ...figure, data: data.map((trace) => (trace.type === "heatmap" && trace.meta ? { ...trace, showscale: false } : trace)), layout: { ...layout, ...(margin && { margin }), ...(layout.legend && { legend: { ...layout.legend, font: { ...layout.legend.font, size: SMALLEST } } }) } };
}

/**
 * A figure as it is drawn in a width: as it is, where it has the room.
 * @template {{ data: Record<string, any>[], layout: Record<string, any> }} Figure
 * @param {Figure} figure
 * @param {number} width
 * @returns {Figure}
 */
export function figureInWidth(figure, width) {
  const { xaxis } = figure.layout, [first] = figure.data;
  if (xaxis?.tickangle && areLevel(xaxis.ticktext ?? first?.x, width)) return { ...figure, layout: { ...figure.layout, xaxis: { ...xaxis, tickangle: 0 } } };
  if (width >= NARROW) {
    const title = titleIn(xaxis?.title, width);
    return title?.text === xaxis?.title?.text ? figure : { ...figure, layout: { ...figure.layout, xaxis: { ...xaxis, title } } };
  }
  const data = figure.data.map((trace) => (trace.type === "heatmap" ? { ...trace, showscale: false } : trace));
  const layout = Object.entries(figure.layout).map(([name, part]) => [name, /^[xy]axis/.test(name) ? axisIn(part, width) : part]);
  const { margin } = figure.layout, urlNamesView = data.some(({ textposition }) => textposition === "middle right");
  return { ...figure, data, layout: { ...Object.fromEntries(layout), ...(urlNamesView && { margin: { ...margin, r: Math.max(NAME, margin?.r ?? 0) } }) } };
}

const CELL = { width: 2.2, height: 2.6 }, BESIDE_GRID = { width: 16, height: 60 }; // radii of a circle and its name; pixels of margins and the legend

/**
 * A figure of circles in rows that are all full, in as many columns as make them largest, as far apart as there is room.
 * @template {{ data: Record<string, any>[], layout: Record<string, any> }} Figure
 * @param {Figure} figure
 * @param {{ count: number, columns: number, spacing: number }} grid the circles, and where they are before
 * @param {number} width
 * @param {number} height
 * @returns {Figure}
 */
export function gridInSize(figure, grid, width, height) {
  const { count, spacing } = grid, across = width - BESIDE_GRID.width, down = height - BESIDE_GRID.height;
  const radius = (columns) => Math.min(across / columns / CELL.width, (down * columns) / count / CELL.height);
  const divisors = Array.from({ length: count }, (_none, i) => i + 1).filter((columns) => count % columns === 0);
  const columns = divisors.reduce((best, other) => (radius(other) > radius(best) ? other : best)), rows = count / columns;
  const stepX = across / columns / radius(columns), stepY = down / rows / radius(columns);
  const shifts = Array.from({ length: count }, (_none, i) => ({
    x: (i % columns) * stepX - (i % grid.columns) * spacing, y: Math.floor(i / grid.columns) * spacing - Math.floor(i / columns) * stepY,
  }));
  const move = (values, axis) => numbersIn(values).map((number, i, { length }) => number === null ? null : number + shifts[Math.floor((i * count) / length)][axis]);
  const data = figure.data.map((trace) => ({ ...trace, x: move(trace.x, "x"), y: move(trace.y, "y") }));
  const { xaxis, yaxis, annotations } = figure.layout, notes = annotations.map((note, i) => ({ ...note, x: note.x + shifts[i].x, y: note.y + shifts[i].y }));
  const ranges = { xaxis: { ...xaxis, range: [-stepX / 2, (columns - 0.5) * stepX] }, yaxis: { ...yaxis, range: [(0.5 - rows) * stepY + 0.2, stepY / 2 + 0.2] } };
  return { ...figure, data, layout: { ...figure.layout, ...ranges, annotations: notes } };
}

/** An array that Plotly has as text, or as it is. @param {any} values @returns {(number | null)[]} */
const numbersIn = (values) => (Array.isArray(values) ? values : Array.from(new Float64Array(Uint8Array.from(atob(values.bdata), (letter) => letter.charCodeAt(0)).buffer)));

/** Whether Plotly draws a legend, above a figure. @param {{ data: Record<string, any>[], layout: Record<string, any> }} figure */
export const hasLegend = ({ data, layout }) => layout.showlegend ?? (data.some(({ showlegend }) => showlegend) || data.filter(({ type, showlegend }) => type !== "heatmap" && showlegend !== false).length > 1);

const BESIDE = 140; // pixels beside an axis: its labels, margins and the scale of colours

/** Whether labels fit side by side without being turned. @param {unknown} labels @param {number} width of the figure */
function areLevel(labels, width) {
  if (!Array.isArray(labels) || !labels.length) return false;
  const longest = Math.max(...labels.map((label) => String(label).replace(/[\u2066-\u2069]/g, "").length));
  return labels.length * (longest * LETTER + LETTER) <= width - BESIDE;
}

function axisIn({ tickfont, title, ...axis }, width) {
  return { ...axis, tickfont: { ...tickfont, size: SMALLEST }, ...(title && { title: titleIn(title, width) }) };
}

/** The title of an axis in as many lines as it takes. */
function titleIn(title, width) {
  return title?.text ? { ...title, text: title.text.split("<br>").map((line) => wrapped(line, (width - BESIDE_TITLE) / LETTER)).join("<br>") } : title;
}

/** A line in as many as its words take, about equally long. @param {string} line @param {number} most letters of each */
export function wrapped(line, most) {
  const { length } = linesOf(line, most);
  let width = Math.min(most, Math.ceil(line.length / length));
  while (width < most && linesOf(line, width).length > length) width++;
  return linesOf(line, width).join("<br>");
}

/** @param {string} line @param {number} most */
function linesOf(line, most) {
  const lines = [""];
  for (const word of line.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (longer.length <= most || !lines.at(-1)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
