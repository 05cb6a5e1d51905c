const plot = element.querySelector(".plot");
const CONFIG = { responsive: false, displaylogo: false, showSendToCloud: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
const selects = JSON.parse(plot.dataset.selects), inspect = Explorer.evidence(element);
let value, drawing = null, owed = false; // [data, layout] as JSON; null where the figure has no place
let written = [], data = []; // what is drawn, as it came; its data
let seen = () => {}; // called once the figure has a width

// One draw at a time; what arrives meanwhile is drawn once, at the end, in its latest state, and what arrives while the
// figure's tab is hidden when it is seen again. Resolved when the latest is drawn.
function draw() {
  owed = true;
  if (!value) seen(); // it has no place: nothing to wait for
  drawing ||= drawOwed().finally(() => { drawing = null; });
  return drawing;
}

async function drawOwed() {
  while (owed) {
    element.hidden = value === null;
    if (value && !plot.clientWidth) await new Promise((resolve) => { seen = resolve; });
    await Explorer.inTurn(element, drawOnce);
  }
}

async function drawOnce() {
  if (value && !plot.clientWidth) return; // hidden since
  owed = false;
  element.hidden = value === null;
  if (!value) return;
  const [dataText, layoutText] = value;
  const { shapes, meta, ...layout } = JSON.parse(layoutText);
  const { template } = Explorer.theme(), width = plot.clientWidth, height = plot.clientHeight;
  const rest = [dataText, JSON.stringify(layout), template, width, height];
  if (rest.every((part, i) => part === written[i])) await withoutBase(() => ExplorerPlotly.relayout(plot, { shapes })); // marks alone moved
  else {
    if (dataText !== written[0]) data = JSON.parse(dataText); // Plotly skips data it has drawn already
    await withoutBase(() => ExplorerPlotly.react(plot, data, { ...layout, shapes, template, width, height, uirevision: "kept" }, CONFIG));
  }
  written = rest;
  plot.setAttribute("aria-label", meta.alt);
  for (const drawing of plot.querySelectorAll(".main-svg")) drawing.setAttribute("aria-hidden", true); // the label says it in a sentence
  Ink.legible(plot);
  if (!plot.dataset.draws) plot.on("plotly_click", click), plot.on("plotly_afterplot", () => Ink.legible(plot)); // after a zoom
  if (meta.lines) Lines.drawn(plot, meta.lines);
  plot.dataset.draws = +(plot.dataset.draws || 0) + 1;
}

// Where a page has a <base>, as Gradio's have, Plotly refers to its gradients and clip paths by the page's whole address,
// and loses them as soon as the selection changes that. It looks for the <base> at once, so a moment without suffices.
function withoutBase(draw) {
  const base = document.querySelector("base[href]"), href = base?.getAttribute("href");
  base?.removeAttribute("href");
  try { return draw(); } finally { base?.setAttribute("href", href); }
}

// On an axis of tokens a point's coordinate is its label; the label's place on the axis is the position.
const positionOf = (point, axis) => point[`${axis}axis`].d2c(point[axis]);

// Where a click opens another tab, a click with Shift stays and tells.
function click({ points: [point], event }) {
  const change = {};
  for (const [source, field] of Object.entries(selects))
    if (Array.isArray(field)) field.forEach((name, i) => { change[name] = point.customdata[i]; });
    else change[field] = source === "customdata" ? point.customdata : positionOf(point, source);
  const opens = "view" in change && change.view !== Explorer.state.view;
  if (Object.keys(change).length && !(opens && event.shiftKey)) Explorer.pick(change);
  if (opens && !event.shiftKey) return;
  const item = Array.isArray(point.pointNumber) ? null : point.pointNumber; // of a heatmap the place says all
  inspect({ x: positionOf(point, "x"), y: positionOf(point, "y"), curve: point.curveNumber, item });
}

// The arrow keys move what the axes select, Enter inspects it.
plot.addEventListener("keydown", (event) => {
  const cells = plot.calcdata?.[0]?.[0].z, { x, y } = selects, at = { x: Explorer.state[x] ?? 0, y: Explorer.state[y] ?? 0 };
  const columns = cells ? cells[0].length : plot.data?.[0].x?.length, rows = cells?.length ?? 0;
  const down = plot._fullLayout?.yaxis.range[0] > plot._fullLayout?.yaxis.range[1] ? 1 : -1;
  const [axis, step, size] = {
    ArrowLeft: ["x", -1, columns], ArrowRight: ["x", 1, columns], ArrowUp: ["y", -down, rows], ArrowDown: ["y", down, rows],
  }[event.key] || [];
  if (event.key === "Enter") inspect(at);
  else if (selects[axis] && size) Explorer.pick({ [selects[axis]]: Math.max(0, Math.min(size - 1, at[axis] + step)) });
  else return;
  event.preventDefault();
});

new ResizeObserver(() => {
  if (plot.clientWidth) seen();
  if (value && plot.clientWidth && plot.clientWidth !== plot._fullLayout?.width) draw();
}).observe(plot);
Reach.sideways(element.closest(".html-container"), plot);
Explorer.onTheme(element, draw);
Explorer.onContent(element, (content) => { value = content; return draw(); });
