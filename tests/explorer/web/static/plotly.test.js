import assert from "node:assert/strict";
import test from "node:test";
import { onContent } from "../../../../explorer/web/static/widget_contents.js";
import { StandIn, standInPage } from "./browser_stubs.js";

standInPage();
document.head = new StandIn();
document.querySelector = (selector) => ({ textContent: selector.startsWith("#strip-b") ? "Never." : "Once & for all." });
const saved = [];
globalThis.ExplorerPlotly = { Icons: {}, newPlot: async (paper) => { Object.assign(paper, { querySelectorAll: () => [], remove: () => {}, _fullLayout: { font: {} } }); }, purge: () => {}, downloadImage: async (...figure) => { saved.push(figure); } };
const { figureRows, plotlyConfig } = await import("../../../../explorer/web/static/plotly_figures.js");
const { setState } = await import("../../../../explorer/web/static/page_state.js");
const [[download, downloadSvg]] = plotlyConfig().modeBarButtons;

const plotOf = (data, layout, ariaLabel = "3 queries & 3 keys.") => {
  const block = { id: "attention-pattern", querySelector: () => ({ textContent: "Who looks <at> whom" }) };
  return {
    data, layout, ariaLabel, closest: () => block, querySelectorAll: () => [],
    _fullLayout: { width: 500, height: 300, margin: { t: 36 }, font: { color: "#eee" } },
  };
};

test("a saved figure has its heading, description, prompt and model", async () => {
  setState({ checkpoint: "llama-fables/step-4" }, false);
  await download.click(plotOf([{ type: "bar", y: [1] }], { xaxis: { title: "x" } }));
  const [{ data, layout }, { format, filename }] = saved.at(-1);
  assert.deepEqual([format, filename], ["png", "llama-fables-step-4-attention-pattern"]);
  assert.deepEqual(data, [{ type: "bar", y: [1] }]);
  assert.equal(layout.title.text, "<b>Who looks &lt;at&gt; whom</b><br>Once &amp; for all.<br>3 queries &amp; 3 keys.<br>llama-fables/step-4");
  assert.equal(layout.height - 300, layout.margin.t - 36); // the part below is as large as on the page
  assert.deepEqual([layout.xaxis, layout.paper_bgcolor], [{ title: "x" }, "#ffffff"]);
  await downloadSvg.click(plotOf([], {}));
  assert.deepEqual([downloadSvg.title, saved.at(-1)[1].format], ["Save figure as SVG", "svg"]);
  setState({ "b.checkpoint": "gpt" }, false);
  await download.click(plotOf([], {}));
  assert.match(saved.at(-1)[0].layout.title.text, /<br>A: Once &amp; for all\.<br>B: Never\.<br>3 queries .*llama-fables\/step-4, gpt$/);
  await download.click(plotOf([], {}, "Difference A − B: who looks at whom. The largest difference is 0.160."));
  assert.match(saved.at(-1)[0].layout.title.text, /Never\.<br>The largest difference is 0\.160\.<br>/); // the heading says the rest
});

test("a figure that cannot be saved is reported", async (t) => {
  const shown = [];
  t.mock.method(console, "error", () => {});
  t.mock.method(ExplorerPlotly, "downloadImage", async () => { throw Error("no room"); });
  onContent(new StandIn("problem"), (content) => shown.push(content));
  await download.click(plotOf([], {}));
  assert.match(shown.at(-1), /could not save/);
  assert.equal(console.error.mock.callCount(), 1);
});

test("Plotly's configuration is the same object for every drawing", () => assert.equal(plotlyConfig(), plotlyConfig()));

test("the numbers of a figure are those that it says, not what it draws for them", () => {
  const lens = { visible: true, x: [0, 1], y: ["0"], z: [[0, 3]], customdata: [[40, 2]], colorbar: { title: { text: "rank" } } }, axes = { xaxis: {}, yaxis: {} };
  assert.deepEqual(figureRows({ _fullData: [lens], _fullLayout: { ...axes, meta: { numbers: "customdata" } } }), [["x", "y", "rank"], [0, "0", 40], [1, "0", 2]]);
  assert.deepEqual(figureRows({ _fullData: [lens], _fullLayout: axes })[2], [1, "0", 3]);
  const line = { visible: true, x: ["embed"], y: [1e-9], customdata: [2e-12] };
  assert.deepEqual(figureRows({ _fullData: [line], _fullLayout: { ...axes, meta: { numbers: "customdata" } } })[1], ["embed", 2e-12]);
  const pattern = { visible: true, y: ["0 \u2068The\u2069", "1 \u2068·fox\u2069"], z: [[1, NaN], [0.25, 0.75]] }, tokens = (text) => ({ title: { text }, tickvals: [0, 1], ticktext: ["The", "·fox"] });
  const ofTokens = { xaxis: tokens("key (looked at)"), yaxis: tokens("query (looks back)"), meta: { of_tokens: ["x", "y"] } };
  const [names, ...cells] = figureRows({ _fullData: [pattern], _fullLayout: ofTokens });
  assert.deepEqual(names.slice(0, 4), ["query_position", "query_token", "key_position", "key_token"]);
  assert.deepEqual(cells, [["0", "The", 0, "The", 1], ["1", "·fox", 0, "The", 0.25], ["1", "·fox", 1, "·fox", 0.75]]); // none for the masked cell
  const table = { visible: true, x: [0, 2, 6], y: [5], z: [[0, 3]], text: [["\u20078", "&lt;"]] }, xaxis = { tickvals: [1, 4], ticktext: ["id", "token"] };
  assert.deepEqual(figureRows({ _fullData: [table], _fullLayout: { ...axes, xaxis, meta: { numbers: "text" } } }).slice(1), [["id", 5, "8"], ["token", 5, "<"]]);
  const bars = { visible: true, x: [0, 1, 9], y: [0.5, 0.25, 0] }, neurons = { tickvals: [0, 1, 9], ticktext: ["3", "420", "7"] };
  assert.deepEqual(figureRows({ _fullData: [bars], _fullLayout: { ...axes, xaxis: neurons, meta: { labelled_axis: "x" } } }).slice(1), [["3", 0.5], ["420", 0.25], ["7", 0]]);
});
