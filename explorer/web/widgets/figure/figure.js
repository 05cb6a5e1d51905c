// @ts-check
// A Plotly figure in its panel, also with lines between tokens; the grid of the heads' attention patterns, and the table
// of their scores.
import { chooseCheckpoint, interventions, select, toggleIntervention } from "../../static/page_actions.js";
import { showEvidence, queueDraw, onFigureContent } from "../../static/widget_contents.js";
import { button, countDraw, find, findAll, setHidden, make, onThemeChange, interpolatePalette, addRovingFocus, setText, span, setTabStop, markSidewaysScroll, currentTheme } from "../../static/dom.js";
import { _ } from "../../static/text.js";
import { bitmapUrlPrefix, plotlyConfig, decodeBase64, encodeBase64, firstPosition, followPointerCells, heatmapImage, setReadableBarInk, plotly, loadPlotly, bitmapRowBytes, thinNumbers, thinTicks, withHeatmapImage, withoutCellTexts, writeCellTexts } from "../../static/plotly_figures.js";
import { figureInSize, figureOnStage, gridInSize, hasLegend, squareCellSpace, verticalLine, withBarNumbers, withLargerLetters, withSquareCells, withTopK } from "./figure_fit.js";
import { checkpointOfShownRun, changeInA, onState, stateInRun, shownRun, state } from "../../static/page_state.js";

// Lines between the tokens at the left and at the right of a figure. Pointing at a token or a line, or tapping it,
// highlights its lines and fades all others; arrow keys move between tokens. Nothing is redrawn: copies of the lines'
// paths are laid over them.

/** @typedef {{ query?: number, key?: number }} ShownTokens tokens whose lines are highlighted */

const MAX_LINE_DISTANCE = 8; // pixels from the pointer to a line
const EDGE_SHARE = 0.12; // share of the width at each side that belongs to the tokens
const SIDES = ["query", "key"];
/** Plot -> its highlighted tokens, the length of the text, and the tokens that have lines. */
const lineFigures = new WeakMap();

// Return the token or line under the pointer: { query }, { key }, both for a line, or null.
function targetUnderPointer(plot, event) {
  const { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect();
  const acrossShare = xaxis.p2c(event.clientX - box.left - xaxis._offset), pointerY = event.clientY - box.top - yaxis._offset;
  const token = Math.round(yaxis.p2c(pointerY)), { tokens } = lineFigures.get(plot);
  if (acrossShare < EDGE_SHARE || acrossShare > 1 - EDGE_SHARE) return tokens.has(token) ? { [SIDES[+(acrossShare > 0.5)]]: token } : null;
  let nearest = null, leastDistance = MAX_LINE_DISTANCE;
  for (const { query, key } of lineTraces(plot).flatMap(linesOfTrace)) {
    const distance = Math.abs(yaxis.c2p(query + (key - query) * acrossShare) - pointerY);
    if (distance <= leastDistance) [nearest, leastDistance] = [{ query, key }, distance];
  }
  return nearest;
}

const lineTraces = (plot) => plot.calcdata.filter(([{ trace }]) => trace.mode === "lines");

/** Return the query and key of each line of a trace. @param {{ x: number, y: number }[]} points */
function linesOfTrace(points) {
  const lines = [];
  for (let i = 0; i + 1 < points.length; i++)
    if (points[i].x === 0 && points[i + 1].x === 1) lines.push({ query: points[i].y, key: points[i + 1].y });
  return lines;
}

/** Highlight the lines of these tokens; null shows all lines. */
function isolateLines(plot, shownTokens) {
  lineFigures.get(plot).shownTokens = shownTokens;
  for (const copy of plot.querySelectorAll(".alone")) copy.remove();
  plot.classList.toggle("isolating", Boolean(shownTokens));
  if (!shownTokens) return;
  const { xaxis, yaxis } = plot._fullLayout;
  for (const points of lineTraces(plot)) {
    const path = points[0].node3?.node?.()?.querySelector("path.js-line") ?? null;
    const d = linesOfTrace(points).filter((line) => SIDES.every((side) => !(side in shownTokens) || line[side] === shownTokens[side]))
      .map(({ query, key }) => `M${xaxis.c2p(0)},${yaxis.c2p(query)}L${xaxis.c2p(1)},${yaxis.c2p(key)}`).join("");
    if (!path || !d) continue;
    const copy = path.cloneNode();
    copy.setAttribute("class", "alone");
    copy.setAttribute("d", d);
    path.after(copy);
  }
}

function listenToPlot(plot) {
  const showUnderPointer = (event) => isolateLines(plot, targetUnderPointer(plot, event)), isMouse = ({ pointerType }) => pointerType === "mouse";
  plot.setAttribute("role", "application");
  plot.addEventListener("pointermove", (event) => { if (isMouse(event)) showUnderPointer(event); });
  plot.addEventListener("pointerleave", (event) => { if (isMouse(event)) isolateLines(plot, null); });
  plot.addEventListener("pointerdown", (event) => { if (!isMouse(event)) showUnderPointer(event); });
  plot.addEventListener("focus", () => { if (plot.matches(":focus-visible")) isolateLines(plot, { query: state.query }); });
  plot.addEventListener("blur", () => isolateLines(plot, null));
  plot.addEventListener("keydown", ({ key }) => { if (key === "Escape") isolateLines(plot, null); });
  addRovingFocus(plot, {
    at: () => ({ row: state.query, column: 0 }),
    size: () => ({ rows: lineFigures.get(plot).length, columns: 1 }),
    go: ({ row }) => {
      isolateLines(plot, { query: row });
      select({ query: row });
    },
  });
}

/** Restore the highlighting after a figure with lines was drawn. @param {any} plot @param {number} length of the text */
function updateLines(plot, length) {
  const points = plot.calcdata.at(-1), stored = lineFigures.get(plot);
  lineFigures.set(plot, { shownTokens: stored?.shownTokens ?? null, length, tokens: new Set(points.map(({ y }) => y)) });
  if (!stored) listenToPlot(plot);
  isolateLines(plot, lineFigures.get(plot).shownTokens);
}

// Interpreting a point of a Plotly event.

/** Return the point under the pointer, of several at one tick: grouped bars share their tick. */
function nearestPoint(plot, points, { clientX, clientY }) {
  const { left, top, width } = plot.getBoundingClientRect(), scale = plot.offsetWidth / width;
  const distance = ({ curveNumber, pointNumber, xaxis, yaxis }) => {
    const { x, y } = plot.calcdata[curveNumber][pointNumber], { type, orientation } = plot.data[curveNumber];
    const dx = xaxis.c2p(x) + xaxis._offset - (clientX - left) * scale, dy = yaxis.c2p(y) + yaxis._offset - (clientY - top) * scale;
    return type !== "bar" ? Math.hypot(dx, dy) : Math.abs(orientation === "h" ? dy : dx);
  };
  return points.length > 1 ? points.reduce((nearest, point) => (distance(point) < distance(nearest) ? point : nearest)) : points[0];
}

/** Return a point's token position on an axis, where Plotly has the token's label as coordinate. */
export const tokenPosition = (point, axis) => point[`${axis}axis`].d2c(point[axis]);

/**
 * Return the fields of the state that a click on a point changes.
 * @param {Record<string, string | string[]>} selects fields by their source, an axis or the customdata
 */
export function fieldsSelectedBy(point, selects) {
  const change = {};
  for (const [source, field] of Object.entries(selects))
    if (Array.isArray(field)) field.forEach((name, i) => { change[name] = point.customdata[i]; });
    else change[field] = source === "customdata" ? point.customdata : tokenPosition(point, source);
  return change;
}

/** Replace hyphens in hover texts, which Plotly formats, by minus signs. @param {MutationRecord[]} changes */
function writeMinusSigns(changes) {
  for (const { addedNodes } of changes) {
    for (const node of addedNodes) {
      const oldText = node.textContent ?? "", newText = oldText.replace(/(^|[\s(])-(?=\d)/g, "$1−");
      if (node.nodeType === Node.TEXT_NODE && newText !== oldText) node.textContent = newText;
    }
  }
}

/** A panel with a Plotly figure. @param {HTMLElement} element */
export function figure(element) {
  /** @type {any} */
  const plot = find(element, ".plot"); // Plotly adds properties to it
  const selects = JSON.parse(plot.dataset.selects), inspect = showEvidence(element);
  let value, drawing = null, needsDraw = false, hasListeners = false; // value: [data, layout] as JSON; null if the figure is not shown
  let parsedFor = [], data = []; // JSON and template that `data` and `image` were made from; the parsed data
  let drawnKey = []; // inputs of the last full draw; only shapes and images are updated without one
  let namedRun; // run that the figure's tokens belong to, if it is not the shown one
  let hasNumbers = false; // beside its points
  let image = null; // heatmap with too many cells for Plotly
  let changes = null; // interventions that points stand for (graph_objects.py)
  let squareSpace = null; // around square cells of pairs of tokens, as long as only the data change
  let settingLine = null; // line at the value of a setting, which follows its slider: setting, colour, value
  let onVisible = () => {}; // called when the figure gets a width

  // One draw runs at a time; content that arrives meanwhile is drawn once, in its latest state, and content of a hidden
  // tab when the tab is visible again. Resolves when the latest content is drawn.
  function draw() {
    needsDraw = true;
    if (!value) onVisible(); // a figure that is not shown never gets a width
    drawing ||= drawPending().finally(() => { drawing = null; });
    return drawing;
  }

  // A hidden plot was replaced by a sentence or a button since this draw was requested.
  const updateVisibility = () => { if (!plot.hidden) setHidden(element, value === null); };

  async function drawPending() {
    while (needsDraw) {
      updateVisibility();
      const tab = element.closest(".tabitem");
      tab?.classList.toggle("without-figures", !find(tab, ".panels > .block:not(.hidden)"));
      if (value && !plot.clientWidth) await new Promise((resolve) => { onVisible = () => resolve(null); });
      await loadPlotly();
      await queueDraw(element, drawOnce);
    }
  }

  const markLegend = (drawnFigure) => element.classList.toggle("with-legend", hasLegend(drawnFigure)); // moves the heading above the legend

  async function drawOnce() {
    if (value && !plot.clientWidth) return; // hidden meanwhile
    needsDraw = false;
    updateVisibility();
    if (!value) return;
    const [dataText, layoutText] = value, { template } = currentTheme(), width = plot.clientWidth, height = plot.clientHeight, isOnStage = Boolean(element.closest(".presented")), isInLesson = !isOnStage && document.body.classList.contains("in-lesson");
    const isNewData = dataText !== parsedFor[0];
    if (isNewData) data = withoutCellTexts(JSON.parse(dataText)); // kept otherwise, as Plotly skips data that it has drawn already
    if (isNewData || template !== parsedFor[1]) image = data[0]?.cells ? heatmapImage(data[0]) : null; // in the theme's colours
    plot.cellImage = image;
    parsedFor = [dataText, template];
    const { shapes, meta, ...layout } = JSON.parse(layoutText);
    const column = isOnStage && meta.of_tokens?.includes("x") ? stateInRun(targetRun()).query : null;
    const sizedFigure = meta.grid ? gridInSize({ data, layout }, meta.grid, width, height) : { data, layout };
    const drawnFigure = image ? withHeatmapImage(image, layout) : { ...(meta.top_k ? withTopK(sizedFigure, meta.top_k, state.top_k) : sizedFigure), images: [] };
    settingLine = meta.setting_line ? { ...meta.setting_line, at: state[meta.setting_line.setting], top_k: state.top_k } : null;
    const movable = { shapes: settingLine ? [...(shapes ?? []), verticalLine(settingLine)] : shapes, images: drawnFigure.images };
    const drawKey = [image || meta.top_k ? JSON.stringify(drawnFigure.data) : dataText, JSON.stringify(drawnFigure.layout), template, width, height, isOnStage, isInLesson, column];
    if (drawKey.every((part, i) => part === drawnKey[i])) await plotly().relayout(plot, movable);
    else {
      const numberedFigure = withBarNumbers(drawnFigure, width), fittedFigure = figureInSize(isOnStage ? figureOnStage(numberedFigure, { width, column, isBesideBars: document.body.classList.contains("beside-bars") }) : isInLesson ? withLargerLetters(numberedFigure) : numberedFigure, width, height);
      const isOfPairs = meta.of_tokens?.length === 2 && (image || fittedFigure.data[0]?.type === "heatmap"), react = ({ data: traces, layout: fittedLayout }) => plotly().react(plot, traces, { ...fittedLayout, ...movable, template, width, height, uirevision: "kept", meta: { numbers: meta.numbers, of_tokens: meta.of_tokens, labelled_axis: meta.labelled_axis } }, plotlyConfig());
      markLegend(drawnFigure);
      const hidesColourBar = fittedFigure.data.some(({ showscale }) => showscale === false) && plot.data?.some(({ type, showscale }) => type === "heatmap" && showscale !== false);
      if (hidesColourBar) { plotly().purge(plot); hasListeners = false; } // otherwise Plotly keeps its margin, and may leave the cells no width
      if (drawKey.some((part, i) => i && part !== drawnKey[i])) squareSpace = null;
      await react(squareSpace ? withSquareCells(fittedFigure, squareSpace) : fittedFigure);
      for (let draws = squareSpace || !isOfPairs ? 0 : 2, space; draws && (space = squareCellSpace(plot._fullLayout, squareSpace?.bar)); draws--) await react(withSquareCells(fittedFigure, (squareSpace = space))); // twice, as names that turn upright leave less height
    }
    drawnKey = drawKey;
    plot.ariaLabel = meta.top_k && drawnFigure.data !== data ? meta.top_k.alt : meta.alt;
    ({ of: namedRun, changes = null, has_numbers: hasNumbers = false } = meta);
    for (const svg of plot.querySelectorAll(".main-svg")) svg.ariaHidden = "true"; // its aria-label describes it
    adjustTexts();
    if (!hasListeners) listenToDrawing();
    hasListeners = true;
    if (meta.lines) updateLines(plot, meta.lines);
    countDraw(plot);
  }

  /** Listen to what Plotly made, and removes when it is purged. */
  function listenToDrawing() {
    new MutationObserver(writeMinusSigns).observe(find(plot, ".hoverlayer"), { childList: true, subtree: true });
    plot.on("plotly_click", click);
    plot.on("plotly_afterplot", adjustTexts); // after a zoom
    markSidewaysScroll(element.closest(".html-container"), find(plot, ".svg-container")); // it has the width of the last draw
  }

  function adjustTexts() {
    writeCellTexts(plot);
    setReadableBarInk(plot);
    thinTicks(plot);
    if (hasNumbers) thinNumbers(plot);
  }

  const interventionAt = (indices) => indices.reduce((list, index) => list[index], changes.texts); // not every point has one, so this may be null

  /** Toggle the intervention that a point stands for. @param {number[]} indices */
  function toggleAt(indices) {
    const intervention = interventionAt(indices);
    if (intervention) toggleIntervention(intervention, changes, viewingPosition());
  }

  /** Return the button beside a point's derivation, which toggles its intervention; null if it has none. @param {number[]} indices */
  function interventionChoice(indices) {
    const intervention = changes && interventionAt(indices);
    if (!intervention) return null;
    const spec = changes, selection = viewingPosition();
    const patch = spec.of === "edits" ? _("Patch this into A") : _("Patch this into B");
    const [addLabel, removeLabel] = spec.adds ? [_("Ablate this"), _("Give it back")] : [patch, _("Remove this patch")];
    const label = () => (interventions(spec.of).includes(intervention) ? removeLabel : addLabel);
    return { label, act: () => toggleIntervention(intervention, spec, selection) };
  }

  // Return the position that shows the effect of an intervention. A key chosen alone uses it too, as no key may follow its query.
  const viewingPosition = () => (changes?.looks_from === undefined ? {} : { query: changes.looks_from });
  const targetRun = () => namedRun ?? shownRun(element);
  const selectInRun = (change) => select({ ...changeInA(change, targetRun()), ...("key" in change && !("query" in change) && viewingPosition()) });

  // A click with Shift adds an intervention. If a click opens another tab or training step, one with Shift stays here and
  // shows the derivation.
  function click({ points, event }) {
    const point = nearestPoint(plot, points, event);
    const indices = [point.pointNumber].flat();
    if (changes?.adds && event.shiftKey) return toggleAt(indices);
    const change = fieldsSelectedBy(point, selects);
    const opensView = "view" in change && change.view !== state.view;
    const item = Array.isArray(point.pointNumber) ? null : point.pointNumber; // null for a heatmap, whose x and y identify the cell
    if (!opensView || event.shiftKey) {
      if ("toSteps" in plot.dataset && point.customdata && !event.shiftKey) chooseCheckpoint(point.customdata, checkpointOfShownRun(element));
      inspect({ x: tokenPosition(point, "x"), y: tokenPosition(point, "y"), curve: point.curveNumber, item }, interventionChoice(indices));
    }
    if (Object.keys(change).length && !(opensView && event.shiftKey)) select({ ...changeInA(change, targetRun()), ...(!changes?.adds && viewingPosition()) });
  }

  function clickCell(cell) {
    const { trace } = image, change = {};
    const position = { x: cell.x + firstPosition(trace.x), y: cell.y + firstPosition(trace.y) };
    for (const [source, field] of Object.entries(selects)) change[field] = position[source];
    inspect({ ...position, curve: 0, item: null });
    if (Object.keys(change).length) select(changeInA(change, targetRun()));
  }

  // Arrow keys move the selection along the axes, and Enter shows the derivation. Rows are counted from the visible top.
  const cells = () => plot.calcdata?.[0]?.[0].z, rows = () => image?.trace.cells.rows ?? cells()?.length ?? 1;
  const columns = () => image?.trace.cells.columns ?? cells()?.[0].length ?? plot.data?.[0].x?.length ?? 1;
  const selectedCell = () => ({ x: stateInRun(targetRun())[selects.x] ?? 0, y: stateInRun(targetRun())[selects.y] ?? 0 });
  const isYUpward = () => !(plot._fullLayout?.yaxis.range[0] > plot._fullLayout?.yaxis.range[1]);
  const rowFromTop = (y) => (isYUpward() ? rows() - 1 - y : y);
  addRovingFocus(plot, {
    at: () => ({ row: rowFromTop(selectedCell().y), column: selectedCell().x }),
    size: () => ({ rows: selects.y ? rows() : 1, columns: selects.x ? columns() : 1 }),
    go: (to, from) => selectInRun(to.row === from.row ? { [selects.x]: to.column } : { [selects.y]: rowFromTop(to.row) }),
  });
  plot.addEventListener("keydown", (event) => {
    const { x, y } = selectedCell();
    if (event.key === "+" && changes?.adds && cells()) return toggleAt([y, x]);
    if (event.key !== "Enter") return;
    event.preventDefault();
    inspect({ x, y }, cells() ? interventionChoice([y, x]) : null);
  });

  followPointerCells(plot, () => image, clickCell);
  new ResizeObserver(() => {
    if (plot.clientWidth) onVisible();
    const { width, height } = plot._fullLayout ?? {};
    if (value && plot.clientWidth && (plot.clientWidth !== width || plot.clientHeight !== height)) draw();
  }).observe(plot);
  onThemeChange(draw);
  onState(() => { if (settingLine && (state[settingLine.setting] !== settingLine.at || state.top_k !== settingLine.top_k)) draw(); });
  onFigureContent(element, plot, (content) => {
    value = content;
    if (value && !drawnKey.length) markLegend({ data: JSON.parse(value[0]), layout: JSON.parse(value[1]) }); // before Plotly is loaded
    return draw();
  });
}

/** Return the heads selected to be viewed together, as "layer.head". @returns {string[]} */
const selectedHeads = () => (state.heads ? state.heads.split("~") : []);

/** Add a head to those viewed together, or remove it. @param {{ layer?: number, head?: number }} head */
function toggleHead({ layer, head }) {
  const name = `${layer}.${head}`, heads = selectedHeads(), others = heads.filter((other) => other !== name);
  const pattern = state.pattern === "chosen_max" ? "chosen_max" : "chosen_mean";
  select({ heads: (others.length < heads.length ? others : [...heads, name]).join("~"), pattern });
}

const ZERO_BYTE = 127.5; // a difference of 0: halfway between the bytes of −1 and 1

/** Scale images of differences so that the largest difference has the strongest colour. @param {string[]} images base64 of bytes @param {number} pixels of a row */
export function stretchDifferences(images, pixels) {
  const rowBytes = bitmapRowBytes(pixels), bytes = images.map((image) => decodeBase64(image));
  const largest = Math.max(1, ...bytes.map((values) => values.reduce((max, byte, i) => (i % rowBytes < pixels ? Math.max(max, Math.abs(byte - ZERO_BYTE)) : max), 0)));
  return bytes.map((values) => encodeBase64(values.map((byte) => Math.round(ZERO_BYTE + ((byte - ZERO_BYTE) * ZERO_BYTE) / largest))));
}

/** A grid of the attention patterns of all heads. @param {HTMLElement} element */
export function headGrid(element) {
  const grid = find(element, ".grid"), readout = find(element, ".readout");
  const selects = JSON.parse(grid.dataset.selects), inspect = showEvidence(element);
  let value = null, buttons = []; // one per head, layer by layer
  let gridShape = [0, 0]; // layers and heads of these buttons

  function load(images) {
    value = images;
    setHidden(element, !value);
    if (!value) return;
    grid.ariaLabel = value.alt;
    if (value.layers !== gridShape[0] || value.heads !== gridShape[1]) buildButtons();
    paint();
    markHeads();
  }

  function buildButtons() {
    gridShape = [value.layers, value.heads];
    grid.style.setProperty("--heads", value.heads);
    grid.style.setProperty("--layers", value.layers);
    const layers = Array.from({ length: value.layers }, (nothing, layer) => {
      const name = span("layer", `${layer}`);
      name.title = _("layer {layer}", { layer });
      return [name, ...Array.from({ length: value.heads }, (nothing, head) => headButton(layer, head))];
    });
    buttons = layers.flatMap(([, ...heads]) => heads);
    const axis = [_("layer"), ...Array.from({ length: value.heads }, (nothing, head) => (head ? `${head}` : _("head {head}", { head })))].map((name) => span("axis", name)); // shown when presenting
    grid.replaceChildren(...axis, ...layers.flat());
  }

  function paint() {
    if (!value) return;
    const urlPrefix = bitmapUrlPrefix(interpolatePalette(value.signed ? currentTheme().diverging : currentTheme().sequential), value.pixels, value.pixels);
    const data = value.signed ? stretchDifferences(value.data, value.pixels) : value.data;
    buttons.forEach((button, n) => { button.firstChild.src = urlPrefix + data[n]; });
    countDraw(grid);
  }

  const findButton = (layer, head) => buttons.find(({ dataset }) => +dataset.layer === layer && +dataset.head === head) ?? null;

  function markHeads() {
    const selected = findButton(state.layer, state.head), selectedTogether = selectedHeads();
    const runInterventions = interventions(shownRun(element) === "b" ? "b.edits" : "edits");
    for (const button of buttons) {
      const { layer, head } = button.dataset, layerOfHeads = `blocks.${layer}.attn.z`;
      const change = runInterventions.find((intervention) => [`${layerOfHeads}*`, `${layerOfHeads}.${head}*`].some((location) => intervention.startsWith(location)));
      const [, kind, factor] = change?.split("*") ?? [], isOff = kind === "zero" || (kind === "scale" && !+factor);
      const text = isOff ? _("ablated") : kind === "mean" ? _("mean") : kind === "scale" ? `× ${factor.replace("-", "−")}` : "";
      button.classList.toggle("ablated", isOff);
      button.dataset.change = isOff ? "×" : text;
      button.title = text;
      button.ariaPressed = String(button === selected);
      button.classList.toggle("among", selectedTogether.includes(`${button.dataset.layer}.${button.dataset.head}`));
    }
    setTabStop(buttons, selected);
  }

  // Return the head and the cell under the pointer; only the head for a keyboard click, which has no position.
  function cellAt(event) {
    const button = event.target.closest(".head");
    if (!button) return null;
    const layer = +button.dataset.layer, head = +button.dataset.head;
    if (!event.detail && event.type === "click") return { layer, head };
    const box = button.firstChild.getBoundingClientRect();
    const pixel = (coordinate, start, length) => Math.max(0, Math.min(value.pixels - 1, Math.floor(((coordinate - start) / length) * value.pixels)));
    const column = pixel(event.clientX, box.left, box.width), row = pixel(event.clientY, box.top, box.height);
    const bytes = atob(value.data[layer * value.heads + head]);
    const share = bytes.charCodeAt(row * bitmapRowBytes(value.pixels) + column) / 255;
    const weight = value.signed ? 2 * share - 1 : share;
    return { layer, head, weight, x: column * value.block, y: row * value.block };
  }

  grid.addEventListener("pointermove", (event) => {
    const cell = cellAt(event);
    const fields = cell && { ...cell, weight: cell.weight.toFixed(2) };
    readout.textContent = !cell ? "" : value.signed
      ? _("layer {layer} head {head}: query {y} → key {x}, weights differ by about {weight}", fields)
      : _("layer {layer} head {head}: query {y} → key {x}, weight about {weight}", fields);
  });
  const showHint = () => { readout.textContent = matchMedia("(hover: hover)").matches ? _("Shift-click several heads to see them together.") : ""; };
  grid.addEventListener("pointerleave", showHint);
  showHint();
  grid.addEventListener("click", (event) => {
    const cell = cellAt(event);
    if (!cell) return;
    if (event.shiftKey) return toggleHead(cell);
    const isChosen = cell.layer === state.layer && cell.head === state.head;
    if (!isChosen || !(cell.x <= cell.y)) delete cell.x, delete cell.y; // for another head, or above the diagonal, select the head alone
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
      findButton(row, column).focus();
    },
  });
  markSidewaysScroll(grid, grid);
  onState(markHeads);
  onThemeChange(paint);
  onFigureContent(element, grid, load);
}

function headButton(layer, head) {
  const image = make("img", { alt: "" }); // the button has the label
  const ariaLabel = _("attention pattern of layer {layer} head {head}", { layer, head });
  return make("button", { type: "button", className: "head", ariaLabel, dataset: { layer, head } }, image);
}

/** @typedef {{ label: string, description: string, limit: number, signed: boolean, values: (number | null)[] }} HeadColumn */

/** Show a table of all heads, sorted by clicks on its headings. @param {HTMLElement} element */
export function headTable(element) {
  const box = find(element, ".scores"), body = make("tbody"), selects = JSON.parse(box.dataset.selects), inspect = showEvidence(element);
  /** @type {{ heads: number, alt: string, note: string, columns: HeadColumn[] }} */
  let value = null;
  let builtShape = ""; // heads and columns that the elements were built for
  let rows = [], sortedRows = []; // by head, and as sorted
  let sorting = { column: -1, descending: false }; // −1 sorts by head
  let focusedColumn = 0;
  /** The only cell with a tab stop. @type {HTMLElement | null} */
  let tabStop = null;

  function load(table) {
    value = table;
    setHidden(element, !value);
    if (!value) return;
    const shape = [value.heads, value.columns[0].values.length, value.columns.length].join();
    if (shape !== builtShape) build();
    builtShape = shape;
    find(box, "table").ariaLabel = value.alt;
    setText(find(box, ".measured"), value.note ?? "");
    value.columns.forEach(fillColumn);
    sortRows();
    countDraw(box);
  }

  function build() {
    sorting = { column: -1, descending: false };
    focusedColumn = 0;
    const names = [_("head"), ...value.columns.map(({ label }) => label)];
    const headings = names.map((name, i) => make("th", { scope: "col" }, button(name, () => sortBy(i - 1), { tabIndex: -1 })));
    rows = value.columns[0].values.map((_value, i) => headRow(Math.floor(i / value.heads), i % value.heads, value.columns.length));
    const table = make("table", { role: "grid" }, make("thead", {}, make("tr", {}, ...headings)), body);
    box.replaceChildren(make("p", { className: "measured" }), table);
    markSidewaysScroll(box, table);
  }

  /** @param {HeadColumn} column @param {number} i */
  function fillColumn({ label, description, limit, signed, values }, i) {
    const heading = headings()[i + 1], isEmpty = values.every((number) => number === null);
    Object.assign(heading, { title: description }).parentElement.classList.toggle("without-values", isEmpty);
    setText(heading, label);
    rows.forEach((row, n) => {
      const cell = row.cells[i + 1], number = values[n];
      cell.textContent = formatScore(number, signed);
      cell.className = [number < 0 && "takes", isEmpty && "without-values"].filter(Boolean).join(" ");
      cell.style.setProperty("--share", Math.min(1, Math.abs(number ?? 0) / limit).toFixed(4));
    });
  }

  /** Sort by a column, or reverse its order. @param {number} sortColumn −1 for the heads themselves */
  function sortBy(sortColumn) {
    sorting = { column: sortColumn, descending: sortColumn === sorting.column ? !sorting.descending : sortColumn >= 0 };
    sortRows();
  }

  function sortRows() {
    const keys = sorting.column < 0 ? rows.map((_row, n) => n) : value.columns[sorting.column].values;
    const indices = sortedIndices(keys, sorting.descending);
    headings().forEach((heading, i) => { heading.parentElement.ariaSort = i - 1 !== sorting.column ? "none" : sorting.descending ? "descending" : "ascending"; });
    if (indices.some((n, i) => rows[n] !== sortedRows[i])) {
      const focused = /** @type {HTMLElement | null} */ (document.activeElement);
      sortedRows = indices.map((n) => rows[n]);
      body.replaceChildren(...sortedRows);
      if (body.contains(focused)) focused.focus({ preventScroll: true });
    }
    markRows();
  }

  const headings = () => findAll(box, "thead button");
  const cellOfNode = (target) => /** @type {HTMLTableCellElement | null} */ (target.closest("td, th"));

  function markRows() {
    if (!value) return;
    const selectedTogether = selectedHeads();
    for (const row of rows) {
      const { layer, head } = row.dataset;
      row.ariaSelected = String(+layer === state.layer && +head === state.head);
      row.classList.toggle("among", selectedTogether.includes(`${layer}.${head}`));
    }
    const row = rows.find(({ ariaSelected }) => ariaSelected === "true") ?? sortedRows[0];
    const focused = box.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement) : null;
    if (tabStop) tabStop.tabIndex = -1;
    tabStop = focused ?? row.cells[focusedColumn];
    tabStop.tabIndex = 0;
  }

  /** Select a row's head. @param {HTMLTableRowElement} row */
  function selectRow(row) {
    const change = {};
    for (const [source, field] of Object.entries(selects)) change[field] = +row.dataset[source];
    select(changeInA(change, shownRun(element)));
  }

  /** @param {HTMLTableCellElement} cell @param {boolean} isAdded to the heads viewed together */
  function pressCell(cell, isAdded) {
    const row = /** @type {HTMLTableRowElement} */ (cell.parentElement), layer = +row.dataset.layer, head = +row.dataset.head;
    if (isAdded) return toggleHead({ layer, head });
    if (cell.cellIndex) inspect({ x: cell.cellIndex - 1, y: 0, layer, head });
    else find(document, "#attention-pattern").scrollIntoView({ block: "nearest" }); // a number is explained below the table, so the page stays
    selectRow(row);
  }

  body.addEventListener("click", ({ target, shiftKey }) => pressCell(cellOfNode(target), shiftKey));
  body.addEventListener("mousedown", (event) => { if (event.shiftKey) event.preventDefault(); }); // prevents selecting text
  body.addEventListener("keydown", (event) => {
    if (!["Enter", " ", "+"].includes(event.key)) return;
    event.preventDefault();
    pressCell(cellOfNode(event.target), event.key === "+");
  });
  box.addEventListener("focusin", ({ target }) => {
    focusedColumn = cellOfNode(target)?.cellIndex ?? focusedColumn;
    markRows();
  });
  addRovingFocus(box, {
    at: ({ target }) => {
      const cell = cellOfNode(target);
      return cell && { row: sortedRows.indexOf(cell.parentElement) + 1, column: cell.cellIndex };
    },
    size: () => ({ rows: sortedRows.length + 1, columns: value.columns.length + 1 }),
    go: (to, from) => {
      (to.row ? sortedRows[to.row - 1].cells : headings())[to.column].focus();
      if (to.row && to.row !== from.row) selectRow(sortedRows[to.row - 1]);
    },
  });
  onState(markRows);
  onFigureContent(element, box, load);
}

/** @param {number} layer @param {number} head @param {number} columns */
function headRow(layer, head, columns) {
  const name = make("th", { scope: "row", tabIndex: -1, ariaLabel: _("layer {layer} head {head}", { layer, head }) }, `${layer}.${head}`);
  return make("tr", { dataset: { layer, head } }, name, ...Array.from({ length: columns }, () => make("td", { tabIndex: -1 })));
}

/** Format a score with three decimals, and with a sign if the column is signed. @param {number | null} number @param {boolean} signed */
export const formatScore = (number, signed) => {
  if (number === null) return "–";
  const text = Math.abs(number).toFixed(3);
  return +text === 0 ? text : `${number < 0 ? "−" : signed ? "+" : ""}${text}`;
};

/** Return the indices of values in order; null values are last in either direction. @param {(number | null)[]} values */
export function sortedIndices(values, isDescending) {
  const compare = (a, b) => (values[a] === null || values[b] === null ? +(values[a] === null) - +(values[b] === null) : (values[a] - values[b]) * (isDescending ? -1 : 1));
  return values.map((_value, n) => n).sort((a, b) => compare(a, b) || a - b);
}
