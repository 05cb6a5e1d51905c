// @ts-check
// A Plotly figure in its panel, with lines between tokens, narrow figures and moving points; the grid of a small figure for
// each head, and the table of their scores.
import { chooseCheckpoint, interventions, select, toggleIntervention } from "../../static/page_actions.js";
import { showEvidence, queueDraw, onFigureContent } from "../../static/widget_contents.js";
import { button, countDraw, find, findAll, hide, make, onThemeChange, interpolatePalette, addRovingFocus, setText, span, scrollSidewaysTo, setTabStop, markSidewaysScroll, theme } from "../../static/dom.js";
import { _ } from "../../static/translations.js";
import { bitmapUrlPrefix, plotlyConfig, decodeBase64, encodeBase64, firstPosition, followPointerCells, heatmapImage, setReadableBarInk, plotly, loadPlotly, bitmapRowBytes, thinTicks, withHeatmapImage, withoutCellTexts, writeCellTexts } from "../../static/plotly_figures.js";
import { figureInWidth, figureOnStage, gridInSize, hasLegend } from "./figure_fit.js";
import { checkpointOfShownRun, changeInA, onState, seen, shownRun, state } from "../../static/page_state.js";

// Lines between tokens at the left and at the right of a figure: pointing at a token, or at a line, shows its lines alone
// and all others faint. A tap does so, too, and the arrow keys go from token to token. Nothing is drawn anew: copies of
// the lines' own paths are laid over them.

/** @typedef {{ query?: number, key?: number }} Chosen the tokens whose lines are shown */

const NEAR = 8; // pixels from a line
const EDGE = 0.12; // of the way across, where tokens are pointed at
const SIDES = ["query", "key"];
/** What is known of a figure: what is shown, the length of the text, the tokens that have lines. */
const known = new WeakMap();

// What a place of the pointer means: { query }, { key }, both of a line, or null.
function under(plot, event) {
  const { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect();
  const across = xaxis.p2c(event.clientX - box.left - xaxis._offset), down = event.clientY - box.top - yaxis._offset;
  const token = Math.round(yaxis.p2c(down)), { tokens } = known.get(plot);
  if (across < EDGE || across > 1 - EDGE) return tokens.has(token) ? { [SIDES[+(across > 0.5)]]: token } : null;
  let nearest = null, least = NEAR;
  for (const { query, key } of lineTraces(plot).flatMap(segmentsOf)) {
    const far = Math.abs(yaxis.c2p(query + (key - query) * across) - down);
    if (far <= least) [nearest, least] = [{ query, key }, far];
  }
  return nearest;
}

const lineTraces = (plot) => plot.calcdata.filter(([{ trace }]) => trace.mode === "lines");

/** Every line of a trace as its query and key. @param {{ x: number, y: number }[]} points */
function segmentsOf(points) {
  const found = [];
  for (let i = 0; i + 1 < points.length; i++)
    if (points[i].x === 0 && points[i + 1].x === 1) found.push({ query: points[i].y, key: points[i + 1].y });
  return found;
}

/** Shows the lines of what is chosen alone; all where that is null. */
function show(plot, chosen) {
  known.get(plot).chosen = chosen;
  for (const copy of plot.querySelectorAll(".alone")) copy.remove();
  plot.classList.toggle("isolating", Boolean(chosen));
  if (!chosen) return;
  const { xaxis, yaxis } = plot._fullLayout;
  for (const points of lineTraces(plot)) {
    const path = points[0].node3?.node?.()?.querySelector("path.js-line") ?? null;
    const d = segmentsOf(points).filter((line) => SIDES.every((side) => !(side in chosen) || line[side] === chosen[side]))
      .map(({ query, key }) => `M${xaxis.c2p(0)},${yaxis.c2p(query)}L${xaxis.c2p(1)},${yaxis.c2p(key)}`).join("");
    if (!path || !d) continue;
    const copy = path.cloneNode();
    copy.setAttribute("class", "alone");
    copy.setAttribute("d", d);
    path.after(copy);
  }
}

function listen(plot) {
  const point = (event) => show(plot, under(plot, event)), isMouse = ({ pointerType }) => pointerType === "mouse";
  plot.setAttribute("role", "application");
  plot.addEventListener("pointermove", (event) => { if (isMouse(event)) point(event); });
  plot.addEventListener("pointerleave", (event) => { if (isMouse(event)) show(plot, null); });
  plot.addEventListener("pointerdown", (event) => { if (!isMouse(event)) point(event); });
  plot.addEventListener("focus", () => { if (plot.matches(":focus-visible")) show(plot, { query: state.query }); });
  plot.addEventListener("blur", () => show(plot, null));
  plot.addEventListener("keydown", ({ key }) => { if (key === "Escape") show(plot, null); });
  addRovingFocus(plot, {
    at: () => ({ row: state.query, column: 0 }),
    size: () => ({ rows: known.get(plot).length, columns: 1 }),
    go: ({ row }) => {
      show(plot, { query: row });
      select({ query: row });
    },
  });
}

/** To be called after every drawing of such a figure. @param {any} plot @param {number} length of the text */
function followLines(plot, length) {
  const dots = plot.calcdata.at(-1), before = known.get(plot);
  known.set(plot, { chosen: before?.chosen ?? null, length, tokens: new Set(dots.map(({ y }) => y)) });
  if (!before) listen(plot);
  show(plot, known.get(plot).chosen);
}

// What a point of a figure, as Plotly names it in an event, stands for.

/** Of several points at a place of an axis the one under the pointer: each of a group's bars has its own part of the place. */
function pointUnder(plot, points, { clientX, clientY }) {
  const { left, top, width } = plot.getBoundingClientRect(), scale = plot.offsetWidth / width;
  const distance = ({ curveNumber, pointNumber, xaxis, yaxis }) => {
    const { x, y } = plot.calcdata[curveNumber][pointNumber], { type, orientation } = plot.data[curveNumber];
    const across = xaxis.c2p(x) + xaxis._offset - (clientX - left) * scale, down = yaxis.c2p(y) + yaxis._offset - (clientY - top) * scale;
    return type !== "bar" ? Math.hypot(across, down) : Math.abs(orientation === "h" ? down : across);
  };
  return points.length > 1 ? points.reduce((nearest, point) => (distance(point) < distance(nearest) ? point : nearest)) : points[0];
}

/** On an axis of tokens a point's coordinate is its label; the label's place on the axis is the position. */
export const tokenPosition = (point, axis) => point[`${axis}axis`].d2c(point[axis]);

/**
 * The fields of the state that a click on a point changes.
 * @param {Record<string, string | string[]>} selects by what a point has (an axis, its customdata), the field or fields
 */
export function fieldsSelectedBy(point, selects) {
  const change = {};
  for (const [source, field] of Object.entries(selects))
    if (Array.isArray(field)) field.forEach((name, i) => { change[name] = point.customdata[i]; });
    else change[field] = source === "customdata" ? point.customdata : tokenPosition(point, source);
  return change;
}

/** Has numbers in the texts under a pointer, which Plotly formats, the page's minus sign. @param {MutationRecord[]} changes */
function writeMinusSigns(changes) {
  for (const { addedNodes } of changes) {
    for (const node of addedNodes) {
      const before = node.textContent ?? "", text = before.replace(/(^|[\s(])-(?=\d)/g, "$1−");
      if (node.nodeType === Node.TEXT_NODE && text !== before) node.textContent = text;
    }
  }
}

/** A line across the figure. */
const lineAt = ({ at, color }) => ({ type: "line", x0: at, x1: at, y0: 0, y1: 1, yref: "paper", line: { color, width: 2 } });

/** @param {HTMLElement} element */
export function figure(element) {
  /** @type {any} */
  const plot = find(element, ".plot"); // to which Plotly adds what it knows of the figure
  const selects = JSON.parse(plot.dataset.selects), inspect = showEvidence(element);
  let value, drawing = null, isOwed = false, isHeard = false; // [data, layout] as JSON; null where the figure has no place
  let read = [], data = []; // the data as they came, and the template they were read for; what they are
  let written = []; // what is drawn but for marks and images, which are drawn anew without all else
  let named; // whose tokens it is about, if not the seen run's
  let shownColumn = -1; // to which it was scrolled
  let image = null; // of more cells than Plotly draws
  let changes = null; // what points make of a run (graph_objects.py)
  let settingLine = null; // a line at the value of a setting, which follows its slider: its name, its colour, and where it is
  let sighted = () => {}; // called once the figure has a width

  // One draw at a time; what arrives meanwhile is drawn once, at the end, in its latest state, and what arrives while the
  // figure's tab is hidden when it is seen again. Resolved when the latest is drawn.
  function draw() {
    isOwed = true;
    if (!value) sighted(); // it has no place: nothing to wait for
    drawing ||= drawOwed().finally(() => { drawing = null; });
    return drawing;
  }

  // Where the plot is hidden, a title to press or a sentence stands in its place, which came after this was asked for.
  const place = () => { if (!plot.hidden) hide(element, value === null); };

  async function drawOwed() {
    while (isOwed) {
      place();
      const tab = element.closest(".tabitem");
      tab?.classList.toggle("without-figures", !find(tab, ".panels > .block:not(.hidden)"));
      if (value && !plot.clientWidth) await new Promise((resolve) => { sighted = () => resolve(null); });
      await loadPlotly();
      await queueDraw(element, drawOnce);
    }
  }

  const markLegend = (drawn) => element.classList.toggle("with-legend", hasLegend(drawn)); // the heading stands above it

  async function drawOnce() {
    if (value && !plot.clientWidth) return; // hidden since
    isOwed = false;
    place();
    if (!value) return;
    const [dataText, layoutText] = value, { template } = theme(), width = plot.clientWidth, height = plot.clientHeight, isOnStage = Boolean(element.closest(".presented"));
    const isOther = dataText !== read[0];
    if (isOther) data = withoutCellTexts(JSON.parse(dataText)); // Plotly skips data it has drawn already
    if (isOther || template !== read[1]) image = data[0]?.cells ? heatmapImage(data[0]) : null; // in the theme's colours
    plot.cellImage = image;
    read = [dataText, template];
    const { shapes, meta, ...layout } = JSON.parse(layoutText);
    const sized = meta.grid ? gridInSize({ data, layout }, meta.grid, width, height) : { data, layout };
    const drawn = image ? withHeatmapImage(image, layout) : { ...sized, images: [] };
    settingLine = meta.setting_line ? { ...meta.setting_line, at: state[meta.setting_line.setting] } : null;
    const moving = { shapes: settingLine ? [...(shapes ?? []), lineAt(settingLine)] : shapes, images: drawn.images };
    const rest = [image ? JSON.stringify(drawn.data) : dataText, JSON.stringify(drawn.layout), template, width, height, isOnStage];
    if (rest.every((part, i) => part === written[i])) await plotly().relayout(plot, moving);
    else {
      const { data: traces, layout: fitting } = figureInWidth(isOnStage ? figureOnStage(drawn) : drawn, width);
      markLegend(drawn);
      await plotly().react(plot, traces, { ...fitting, ...moving, template, width, height, uirevision: "kept" }, plotlyConfig());
    }
    written = rest;
    plot.ariaLabel = meta.alt;
    ({ of: named, changes = null } = meta);
    for (const svg of plot.querySelectorAll(".main-svg")) svg.ariaHidden = "true"; // the label says it in a sentence
    write();
    if (!isHeard) firstDrawn();
    isHeard = true;
    if (meta.lines) followLines(plot, meta.lines);
    if (selects.x === "query") showColumn(seen(run()).query);
    countDraw(plot);
  }

  /** Scrolls a figure that is wider than its place to the chosen column, once; on a telephone its rows' names come first. @param {number} column */
  function showColumn(column) {
    const box = element.closest(".html-container"), { xaxis } = plot._fullLayout;
    if (column === shownColumn || matchMedia("(max-width: 600px)").matches || box.scrollWidth <= box.clientWidth) return;
    shownColumn = column;
    const { left } = plot.getBoundingClientRect(), [start, end] = [column - 0.5, column + 0.5].map((at) => left + xaxis._offset + xaxis.l2p(at));
    scrollSidewaysTo(box, { left: start, right: end });
  }

  function firstDrawn() {
    followPointerCells(plot, () => image, clickCell);
    new MutationObserver(writeMinusSigns).observe(find(plot, ".hoverlayer"), { childList: true, subtree: true });
    plot.on("plotly_click", click);
    plot.on("plotly_afterplot", write); // after a zoom
    markSidewaysScroll(element.closest(".html-container"), find(plot, ".svg-container")); // as wide as it was drawn last
  }

  function write() {
    writeCellTexts(plot);
    setReadableBarInk(plot);
    thinTicks(plot);
  }

  const editAt = (place) => place.reduce((texts, at) => texts[at], changes.texts); // not every point has one

  /** Has a run changed by what a point stands for, or no longer. @param {number[]} place */
  function toggle(place) {
    const edit = editAt(place);
    if (edit) toggleIntervention(edit, changes, lookingFrom());
  }

  /** What is offered beside a point's derivation: the change that it stands for. @param {number[]} place */
  function changeAt(place) {
    const edit = changes && editAt(place);
    if (!edit) return null;
    const how = changes, look = lookingFrom();
    const patch = how.of === "edits" ? _("Patch this into A") : _("Patch this into B");
    const [make, takeBack] = how.adds ? [_("Ablate this"), _("Give it back")] : [patch, _("Remove this patch")];
    const label = () => (interventions(how.of).includes(edit) ? takeBack : make);
    return { label, act: () => toggleIntervention(edit, how, look) };
  }

  // Where what follows of a change is seen; a key that is chosen by itself must not be after the query either.
  const lookingFrom = () => (changes?.looks_from === undefined ? {} : { query: changes.looks_from });
  const run = () => named ?? shownRun(element);
  const pickHere = (change) => select({ ...changeInA(change, run()), ...("key" in change && !("query" in change) && lookingFrom()) });

  // A click with Shift adds a change to others. Where a click opens another tab or goes to another step, one with Shift
  // stays and tells.
  function click({ points, event }) {
    const point = pointUnder(plot, points, event);
    const place = [point.pointNumber].flat();
    if (changes?.adds && event.shiftKey) return toggle(place);
    const change = fieldsSelectedBy(point, selects);
    const opens = "view" in change && change.view !== state.view;
    const item = Array.isArray(point.pointNumber) ? null : point.pointNumber; // of a heatmap the place says all
    if (!opens || event.shiftKey) {
      if ("toSteps" in plot.dataset && point.customdata && !event.shiftKey) chooseCheckpoint(point.customdata, checkpointOfShownRun(element));
      inspect({ x: tokenPosition(point, "x"), y: tokenPosition(point, "y"), curve: point.curveNumber, item }, changeAt(place));
    }
    if (Object.keys(change).length && !(opens && event.shiftKey)) select({ ...changeInA(change, run()), ...(!changes?.adds && lookingFrom()) });
  }

  function clickCell(place) {
    const { trace } = image, change = {};
    const at = { x: place.x + firstPosition(trace.x), y: place.y + firstPosition(trace.y) };
    for (const [source, field] of Object.entries(selects)) change[field] = at[source];
    inspect({ ...at, curve: 0, item: null });
    if (Object.keys(change).length) select(changeInA(change, run()));
  }

  // The arrow keys move what the axes select, Enter inspects it. Rows are counted as they are seen, from the top.
  const cells = () => plot.calcdata?.[0]?.[0].z, rows = () => image?.trace.cells.rows ?? cells()?.length ?? 1;
  const columns = () => image?.trace.cells.columns ?? cells()?.[0].length ?? plot.data?.[0].x?.length ?? 1;
  const chosen = () => ({ x: seen(run())[selects.x] ?? 0, y: seen(run())[selects.y] ?? 0 });
  const isUpward = () => !(plot._fullLayout?.yaxis.range[0] > plot._fullLayout?.yaxis.range[1]);
  const fromTop = (y) => (isUpward() ? rows() - 1 - y : y);
  addRovingFocus(plot, {
    at: () => ({ row: fromTop(chosen().y), column: chosen().x }),
    size: () => ({ rows: selects.y ? rows() : 1, columns: selects.x ? columns() : 1 }),
    go: (to, from) => pickHere(to.row === from.row ? { [selects.x]: to.column } : { [selects.y]: fromTop(to.row) }),
  });
  plot.addEventListener("keydown", (event) => {
    const { x, y } = chosen();
    if (event.key === "+" && changes?.adds && cells()) return toggle([y, x]);
    if (event.key !== "Enter") return;
    event.preventDefault();
    inspect({ x, y }, cells() ? changeAt([y, x]) : null);
  });

  new ResizeObserver(() => {
    if (plot.clientWidth) sighted();
    const { width, height } = plot._fullLayout ?? {};
    if (value && plot.clientWidth && (plot.clientWidth !== width || plot.clientHeight !== height)) draw();
  }).observe(plot);
  onThemeChange(element, draw);
  onState(element, () => { if (settingLine && state[settingLine.setting] !== settingLine.at) draw(); });
  onFigureContent(element, plot, (content) => {
    value = content;
    if (value && !written.length) markLegend({ data: JSON.parse(value[0]), layout: JSON.parse(value[1]) }); // before Plotly is there
    return draw();
  });
}

/** Heads that are seen together, as "layer.head". @returns {string[]} */
const chosenHeads = () => (state.heads ? state.heads.split("~") : []);

/** Has a head be among those that are seen together, or no longer. @param {{ layer?: number, head?: number }} head */
function toggleHead({ layer, head }) {
  const name = `${layer}.${head}`, heads = chosenHeads(), others = heads.filter((other) => other !== name);
  const pattern = state.pattern === "chosen_max" ? "chosen_max" : "chosen_mean";
  select({ heads: (others.length < heads.length ? others : [...heads, name]).join("~"), pattern });
}

const NO_DIFFERENCE = 127.5; // between the bytes of −1 and 1

/** Images of differences in which the largest of all has the strongest colour. @param {string[]} images base64 of bytes @param {number} pixels of a row */
export function stretchDifferences(images, pixels) {
  const rows = bitmapRowBytes(pixels), bytes = images.map((image) => decodeBase64(image));
  const largest = Math.max(1, ...bytes.map((all) => all.reduce((most, byte, i) => (i % rows < pixels ? Math.max(most, Math.abs(byte - NO_DIFFERENCE)) : most), 0)));
  return bytes.map((all) => encodeBase64(all.map((byte) => Math.round(NO_DIFFERENCE + ((byte - NO_DIFFERENCE) * NO_DIFFERENCE) / largest))));
}

/** @param {HTMLElement} element */
export function headGrid(element) {
  const grid = find(element, ".grid"), readout = find(element, ".readout");
  const selects = JSON.parse(grid.dataset.selects), inspect = showEvidence(element);
  let value = null, buttons = []; // of the heads, layer after layer
  let shape = [0, 0]; // layers and heads that there are buttons of

  function load(images) {
    value = images;
    hide(element, !value);
    if (!value) return;
    grid.ariaLabel = value.alt;
    if (value.layers !== shape[0] || value.heads !== shape[1]) build();
    paint();
    mark();
  }

  function build() {
    shape = [value.layers, value.heads];
    grid.style.setProperty("--heads", value.heads);
    grid.style.setProperty("--layers", value.layers);
    const layers = Array.from({ length: value.layers }, (nothing, layer) => {
      const name = span("layer", `${layer}`);
      name.title = _("layer {layer}", { layer });
      return [name, ...Array.from({ length: value.heads }, (nothing, head) => headButton(layer, head))];
    });
    buttons = layers.flatMap(([, ...heads]) => heads);
    grid.replaceChildren(...layers.flat());
  }

  function paint() {
    if (!value) return;
    const before = bitmapUrlPrefix(interpolatePalette(value.signed ? theme().diverging : theme().sequential), value.pixels, value.pixels);
    const data = value.signed ? stretchDifferences(value.data, value.pixels) : value.data;
    buttons.forEach((button, n) => { button.firstChild.src = before + data[n]; });
    countDraw(grid);
  }

  const buttonOf = (layer, head) => buttons.find(({ dataset }) => +dataset.layer === layer && +dataset.head === head) ?? null;

  function mark() {
    const chosen = buttonOf(state.layer, state.head), together = chosenHeads();
    const changed = interventions(shownRun(element) === "b" ? "b.edits" : "edits");
    for (const button of buttons) {
      const { layer, head } = button.dataset, layerOfHeads = `blocks.${layer}.attn.z`;
      const change = changed.find((edit) => [`${layerOfHeads}*`, `${layerOfHeads}.${head}*`].some((place) => edit.startsWith(place)));
      const [, kind, factor] = change?.split("*") ?? [], isOff = kind === "zero" || (kind === "scale" && !+factor);
      const words = isOff ? _("ablated") : kind === "mean" ? _("mean") : kind === "scale" ? `× ${factor.replace("-", "−")}` : "";
      button.classList.toggle("ablated", isOff);
      button.dataset.change = isOff ? "×" : words;
      button.title = words;
      button.ariaPressed = String(button === chosen);
      button.classList.toggle("among", together.includes(`${button.dataset.layer}.${button.dataset.head}`));
    }
    setTabStop(buttons, chosen);
  }

  // What of which head an event is at: from the keyboard there is no place under a pointer.
  function cellAt(event) {
    const button = event.target.closest(".head");
    if (!button) return null;
    const layer = +button.dataset.layer, head = +button.dataset.head;
    if (!event.detail && event.type === "click") return { layer, head };
    const box = button.firstChild.getBoundingClientRect();
    const pixel = (at, from, length) => Math.max(0, Math.min(value.pixels - 1, Math.floor(((at - from) / length) * value.pixels)));
    const column = pixel(event.clientX, box.left, box.width), row = pixel(event.clientY, box.top, box.height);
    const bytes = atob(value.data[layer * value.heads + head]);
    const share = bytes.charCodeAt(row * bitmapRowBytes(value.pixels) + column) / 255;
    const weight = value.signed ? 2 * share - 1 : share;
    return { layer, head, weight, x: column * value.block, y: row * value.block };
  }

  grid.addEventListener("pointermove", (event) => {
    const cell = cellAt(event);
    const told = cell && { ...cell, weight: cell.weight.toFixed(2) };
    readout.textContent = !cell ? "" : value.signed
      ? _("layer {layer} head {head}: query {y} → key {x}, weights differ by about {weight}", told)
      : _("layer {layer} head {head}: query {y} → key {x}, weight about {weight}", told);
  });
  const hint = () => { readout.textContent = matchMedia("(hover: hover)").matches ? _("Shift-click several heads to see them together.") : ""; };
  grid.addEventListener("pointerleave", hint);
  hint();
  grid.addEventListener("click", (event) => {
    const cell = cellAt(event);
    if (!cell) return;
    if (event.shiftKey) return toggleHead(cell);
    const isChosen = cell.layer === state.layer && cell.head === state.head;
    if (!isChosen || !(cell.x <= cell.y)) delete cell.x, delete cell.y; // of another head, or above the diagonal: choose the head alone
    const change = {};
    for (const [source, field] of Object.entries(selects)) if (source in cell) change[field] = cell[source];
    if ("x" in cell) inspect({ x: cell.x, y: cell.y, layer: cell.layer, head: cell.head });
    select(changeInA(change, shownRun(element)));
  });
  grid.addEventListener("keydown", ({ key }) => { if (key === "+") toggleHead(state); });
  addRovingFocus(grid, {
    at: () => ({ row: state.layer, column: state.head }),
    size: () => ({ rows: value.layers, columns: value.heads }),
    go: ({ row, column }) => {
      select({ layer: row, head: column });
      buttonOf(row, column).focus();
    },
  });
  markSidewaysScroll(grid, grid);
  onState(element, mark);
  onThemeChange(element, paint);
  onFigureContent(element, grid, load);
}

function headButton(layer, head) {
  const image = make("img", { alt: "" }); // the button has the words
  const ariaLabel = _("attention pattern of layer {layer} head {head}", { layer, head });
  return make("button", { type: "button", className: "head", ariaLabel, dataset: { layer, head } }, image);
}

/** @typedef {{ label: string, description: string, limit: number, signed: boolean, values: (number | null)[] }} HeadColumn */

/** A table of all heads; a press on a heading sorts it. @param {HTMLElement} element */
export function headTable(element) {
  const box = find(element, ".scores"), body = make("tbody"), selects = JSON.parse(box.dataset.selects), inspect = showEvidence(element);
  /** @type {{ heads: number, alt: string, note: string, columns: HeadColumn[] }} */
  let value = null;
  let built = ""; // of which heads and columns the elements are
  let rows = [], order = []; // of the heads, and as they are sorted
  let sorted = { column: -1, descending: false }; // by the heads' own order at first
  let column = 0; // where the keyboard was last
  /** The only stop of the Tab key. @type {HTMLElement | null} */
  let stop = null;

  function load(table) {
    value = table;
    hide(element, !value);
    if (!value) return;
    const shape = [value.heads, value.columns[0].values.length, value.columns.length].join();
    if (shape !== built) build();
    built = shape;
    find(box, "table").ariaLabel = value.alt;
    setText(find(box, ".measured"), value.note ?? "");
    value.columns.forEach(fill);
    arrange();
    countDraw(box);
  }

  function build() {
    sorted = { column: -1, descending: false };
    column = 0;
    const names = [_("head"), ...value.columns.map(({ label }) => label)];
    const headings = names.map((name, i) => make("th", { scope: "col" }, button(name, () => sortBy(i - 1), { tabIndex: -1 })));
    rows = value.columns[0].values.map((_value, i) => headRow(Math.floor(i / value.heads), i % value.heads, value.columns.length));
    const table = make("table", { role: "grid" }, make("thead", {}, make("tr", {}, ...headings)), body);
    box.replaceChildren(make("p", { className: "measured" }), table);
    markSidewaysScroll(box, table);
  }

  /** @param {HeadColumn} column @param {number} i */
  function fill({ label, description, limit, signed, values }, i) {
    const heading = headings()[i + 1];
    heading.title = description;
    setText(heading, label);
    rows.forEach((row, n) => {
      const cell = row.cells[i + 1], number = values[n];
      cell.textContent = formatScore(number, signed);
      cell.classList.toggle("takes", number < 0);
      cell.style.setProperty("--share", Math.min(1, Math.abs(number ?? 0) / limit).toFixed(4));
    });
  }

  /** @param {number} by column, −1 for the heads themselves */
  function sortBy(by) {
    sorted = { column: by, descending: by === sorted.column ? !sorted.descending : by >= 0 };
    arrange();
  }

  function arrange() {
    const by = sorted.column < 0 ? rows.map((_row, n) => n) : value.columns[sorted.column].values;
    const places = sortedIndices(by, sorted.descending);
    headings().forEach((heading, i) => { heading.parentElement.ariaSort = i - 1 !== sorted.column ? "none" : sorted.descending ? "descending" : "ascending"; });
    if (places.some((n, i) => rows[n] !== order[i])) {
      const focused = /** @type {HTMLElement | null} */ (document.activeElement);
      order = places.map((n) => rows[n]);
      body.replaceChildren(...order);
      if (body.contains(focused)) focused.focus({ preventScroll: true });
    }
    mark();
  }

  const headings = () => findAll(box, "thead button");
  const cellOf = (target) => /** @type {HTMLTableCellElement | null} */ (target.closest("td, th"));

  function mark() {
    if (!value) return;
    const together = chosenHeads();
    for (const row of rows) {
      const { layer, head } = row.dataset;
      row.ariaSelected = String(+layer === state.layer && +head === state.head);
      row.classList.toggle("among", together.includes(`${layer}.${head}`));
    }
    const row = rows.find(({ ariaSelected }) => ariaSelected === "true") ?? order[0];
    const focused = box.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement) : null;
    if (stop) stop.tabIndex = -1;
    stop = focused ?? row.cells[column];
    stop.tabIndex = 0;
  }

  /** Selects a row's head. @param {HTMLTableRowElement} row */
  function choose(row) {
    const change = {};
    for (const [source, field] of Object.entries(selects)) change[field] = +row.dataset[source];
    select(changeInA(change, shownRun(element)));
  }

  /** @param {HTMLTableCellElement} cell @param {boolean} isAdded among the heads that are seen together */
  function press(cell, isAdded) {
    const row = /** @type {HTMLTableRowElement} */ (cell.parentElement), layer = +row.dataset.layer, head = +row.dataset.head;
    if (isAdded) return toggleHead({ layer, head });
    if (cell.cellIndex) inspect({ x: cell.cellIndex - 1, y: 0, layer, head });
    choose(row);
  }

  body.addEventListener("click", ({ target, shiftKey }) => press(cellOf(target), shiftKey));
  body.addEventListener("mousedown", (event) => { if (event.shiftKey) event.preventDefault(); }); // or else text is selected
  body.addEventListener("keydown", (event) => {
    if (!["Enter", " ", "+"].includes(event.key)) return;
    event.preventDefault();
    press(cellOf(event.target), event.key === "+");
  });
  box.addEventListener("focusin", ({ target }) => {
    column = cellOf(target)?.cellIndex ?? column;
    mark();
  });
  addRovingFocus(box, {
    at: ({ target }) => {
      const cell = cellOf(target);
      return cell && { row: order.indexOf(cell.parentElement) + 1, column: cell.cellIndex };
    },
    size: () => ({ rows: order.length + 1, columns: value.columns.length + 1 }),
    go: (to, from) => {
      (to.row ? order[to.row - 1].cells : headings())[to.column].focus();
      if (to.row && to.row !== from.row) choose(order[to.row - 1]);
    },
  });
  onState(element, mark);
  onFigureContent(element, box, load);
}

/** @param {number} layer @param {number} head @param {number} columns */
function headRow(layer, head, columns) {
  const name = make("th", { scope: "row", tabIndex: -1, ariaLabel: _("layer {layer} head {head}", { layer, head }) }, `${layer}.${head}`);
  return make("tr", { dataset: { layer, head } }, name, ...Array.from({ length: columns }, () => make("td", { tabIndex: -1 })));
}

/** Three decimals, with a sign where positive and negative numbers mean something. @param {number | null} number @param {boolean} signed */
export const formatScore = (number, signed) => {
  if (number === null) return "–";
  const text = Math.abs(number).toFixed(3);
  return +text === 0 ? text : `${number < 0 ? "−" : signed ? "+" : ""}${text}`;
};

/** Indices of values in their order; those without a number are last in both. @param {(number | null)[]} values */
export function sortedIndices(values, isDescending) {
  const compare = (a, b) => (values[a] === null || values[b] === null ? +(values[a] === null) - +(values[b] === null) : (values[a] - values[b]) * (isDescending ? -1 : 1));
  return values.map((_value, n) => n).sort((a, b) => compare(a, b) || a - b);
}
