// @ts-check
import { withoutWords, writeInCells } from "../../static/cell_words.js";
import { firstOf, followCells, imageOf, withImage } from "../../static/cells.js";
import { chooseStep, pick, toggleEdit } from "../../static/choosing.js";
import { countDraw, find } from "../../static/dom.js";
import { inTurn } from "../../static/drawing_queue.js";
import { evidenceIn } from "../../static/evidence.js";
import { makeLegible } from "../../static/ink.js";
import { followLines } from "../../static/lines.js";
import { inWidth } from "../../static/narrow.js";
import { checkpointOfSeen, inA, seen } from "../../static/partners.js";
import { onPicture } from "../../static/pictures.js";
import { config, plotly } from "../../static/plotly.js";
import { positionOf, selectedBy } from "../../static/points.js";
import { rove } from "../../static/roving.js";
import { tellSideways } from "../../static/sideways.js";
import { state } from "../../static/state.js";
import { onTheme, theme } from "../../static/theme.js";
import { thinTicks } from "../../static/tick_words.js";

/** @param {HTMLElement} element */
export default function figure(element) {
  /** @type {any} */
  const plot = find(element, ".plot"); // to which Plotly adds what it knows of the picture
  const selects = JSON.parse(plot.dataset.selects), inspect = evidenceIn(element);
  let value, drawing = null, isOwed = false, isHeard = false; // [data, layout] as JSON; null where the figure has no place
  let read = [], data = []; // the data as they came, and the template they were read for; what they are
  let written = []; // what is drawn but for marks and images, which are drawn anew without all else
  let of; // whose tokens it is about, if not the seen run's
  let image = null; // of more cells than Plotly draws
  let changes = null; // what points make of a run (graph_objects.py)
  let sighted = () => {}; // called once the figure has a width

  // One draw at a time; what arrives meanwhile is drawn once, at the end, in its latest state, and what arrives while the
  // figure's tab is hidden when it is seen again. Resolved when the latest is drawn.
  function draw() {
    isOwed = true;
    if (!value) sighted(); // it has no place: nothing to wait for
    drawing ||= drawOwed().finally(() => { drawing = null; });
    return drawing;
  }

  async function drawOwed() {
    while (isOwed) {
      element.hidden = value === null;
      if (value && !plot.clientWidth) await new Promise((resolve) => { sighted = () => resolve(null); });
      await inTurn(element, drawOnce);
    }
  }

  async function drawOnce() {
    if (value && !plot.clientWidth) return; // hidden since
    isOwed = false;
    element.hidden = value === null;
    if (!value) return;
    const [dataText, layoutText] = value, { template } = theme(), width = plot.clientWidth, height = plot.clientHeight;
    const isOther = dataText !== read[0];
    if (isOther) data = withoutWords(JSON.parse(dataText)); // Plotly skips data it has drawn already
    if (isOther || template !== read[1]) image = data[0]?.cells ? imageOf(data[0]) : null; // in the theme's colours
    read = [dataText, template];
    const { shapes, meta, ...layout } = JSON.parse(layoutText);
    const drawn = image ? withImage(image, layout) : { data, layout, images: [] }, moving = { shapes, images: drawn.images };
    const rest = [image ? JSON.stringify(drawn.data) : dataText, JSON.stringify(drawn.layout), template, width, height];
    if (rest.every((part, i) => part === written[i])) await plotly().relayout(plot, moving);
    else {
      const { data: traces, layout: fitting } = inWidth(drawn, width);
      await plotly().react(plot, traces, { ...fitting, ...moving, template, width, height, uirevision: "kept" }, config());
    }
    written = rest;
    plot.ariaLabel = meta.alt;
    ({ of, changes = null } = meta);
    for (const svg of plot.querySelectorAll(".main-svg")) svg.ariaHidden = "true"; // the label says it in a sentence
    write();
    if (!isHeard) firstDrawn();
    isHeard = true;
    if (meta.lines) followLines(plot, meta.lines);
    countDraw(plot);
  }

  function firstDrawn() {
    followCells(plot, () => image, clickCell);
    plot.on("plotly_click", click);
    plot.on("plotly_afterplot", write); // after a zoom
    tellSideways(element.closest(".html-container"), find(plot, ".svg-container")); // as wide as it was drawn last
  }

  function write() {
    writeInCells(plot);
    makeLegible(plot);
    thinTicks(plot);
  }

  // Has a run changed by what the point at a place stands for, or no longer; not all stand for something.
  function toggle(place, change) {
    const edit = place.reduce((texts, at) => texts[at], changes.texts);
    if (edit) toggleEdit(edit, changes, { ...change, ...lookingFrom() });
  }

  // Where what follows of a change is seen; a key that is chosen by itself must not be after the query either.
  const lookingFrom = () => (changes?.looks_from === undefined ? {} : { query: changes.looks_from });
  const pickHere = (change) => pick({ ...inA(change, of), ...("key" in change && !("query" in change) && lookingFrom()) });

  // A click with Shift adds a change to others. Where a click opens another tab or goes to another step, one with Shift
  // stays and tells.
  function click({ points: [point], event }) {
    const place = [point.pointNumber].flat();
    if (changes?.adds && event.shiftKey) return toggle(place);
    const change = selectedBy(point, selects);
    const opens = "view" in change && change.view !== state.view;
    const item = Array.isArray(point.pointNumber) ? null : point.pointNumber; // of a heatmap the place says all
    if (!opens || event.shiftKey) {
      if ("toSteps" in plot.dataset && point.customdata && !event.shiftKey) chooseStep(point.customdata, checkpointOfSeen());
      inspect({ x: positionOf(point, "x"), y: positionOf(point, "y"), curve: point.curveNumber, item });
    }
    if (changes && !changes.adds) toggle(place, inA(change, of));
    else if (Object.keys(change).length && !(opens && event.shiftKey)) pick(inA(change, of));
  }

  function clickCell(place) {
    const { trace } = image, change = {};
    const at = { x: place.x + firstOf(trace.x), y: place.y + firstOf(trace.y) };
    for (const [source, field] of Object.entries(selects)) change[field] = at[source];
    inspect({ ...at, curve: 0, item: null });
    if (Object.keys(change).length) pick(inA(change, of));
  }

  // The arrow keys move what the axes select, Enter inspects it. Rows are counted as they are seen, from the top.
  const cells = () => plot.calcdata?.[0]?.[0].z, rows = () => image?.trace.cells.rows ?? cells()?.length ?? 1;
  const columns = () => image?.trace.cells.columns ?? cells()?.[0].length ?? plot.data?.[0].x?.length ?? 1;
  const chosen = () => ({ x: seen(of)[selects.x] ?? 0, y: seen(of)[selects.y] ?? 0 });
  const isUpward = () => !(plot._fullLayout?.yaxis.range[0] > plot._fullLayout?.yaxis.range[1]);
  const fromTop = (y) => (isUpward() ? rows() - 1 - y : y);
  rove(plot, {
    at: () => ({ row: fromTop(chosen().y), column: chosen().x }),
    size: () => ({ rows: selects.y ? rows() : 1, columns: selects.x ? columns() : 1 }),
    go: (to, from) => pickHere(to.row === from.row ? { [selects.x]: to.column } : { [selects.y]: fromTop(to.row) }),
  });
  plot.addEventListener("keydown", (event) => {
    const { x, y } = chosen();
    if (event.key === "+" && changes?.adds && cells()) return toggle([y, x]);
    if (event.key !== "Enter") return;
    event.preventDefault();
    inspect({ x, y });
    if (changes && !changes.adds && cells()) toggle([y, x]);
  });

  new ResizeObserver(() => {
    if (plot.clientWidth) sighted();
    const { width, height } = plot._fullLayout ?? {};
    if (value && plot.clientWidth && (plot.clientWidth !== width || plot.clientHeight !== height)) draw();
  }).observe(plot);
  onTheme(element, draw);
  onPicture(element, plot, (content) => { value = content; return draw(); });
}
