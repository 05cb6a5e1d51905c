const plot = element.querySelector(".plot");
const CONFIG = { responsive: false, displaylogo: false, showSendToCloud: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
const selects = JSON.parse(plot.dataset.selects);
let drawing = false, stale = false;
let written = "", data = []; // the data as they came, and parsed

// One draw at a time; what arrives meanwhile is drawn once, at the end, in its latest state.
async function draw() {
  stale = true;
  if (drawing) return;
  drawing = true;
  while (stale) {
    stale = false;
    await Explorer.inTurn(element, drawOnce);
  }
  drawing = false;
}

async function drawOnce() {
  element.hidden = props.value === "null";
  if (!props.value || element.hidden || !plot.clientWidth) return;
  const [dataText, layoutText] = props.value.split("\n");
  if (dataText !== written) [written, data] = [dataText, JSON.parse(dataText)]; // Plotly skips what it has drawn already
  const layout = JSON.parse(layoutText);
  const theme = Explorer.theme();
  await withoutBase(() => ExplorerPlotly.react(plot, data, {
    ...layout,
    template: theme.template,
    width: plot.clientWidth,
    height: plot.clientHeight,
    uirevision: "kept",
  }, CONFIG));
  plot.setAttribute("aria-label", layout.meta.alt);
  if (!plot.dataset.draws) plot.on("plotly_click", click);
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

function click({ points: [point] }) {
  const change = {};
  for (const [source, field] of Object.entries(selects))
    change[field] = source === "customdata" ? point.customdata : positionOf(point, source);
  if (Object.keys(change).length) Explorer.pick(change);
}

new ResizeObserver(() => {
  if (props.value && plot.clientWidth && plot.clientWidth !== plot._fullLayout?.width) draw();
}).observe(plot);
Explorer.onTheme(element, draw);
watch("value", draw);
draw();
