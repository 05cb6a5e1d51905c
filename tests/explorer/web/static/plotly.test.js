import assert from "node:assert/strict";
import test from "node:test";
import { onContent } from "../../../../explorer/web/static/contents.js";
import { StandIn, standInPage } from "./stand_ins.js";

standInPage();
document.head = new StandIn();
const saved = [];
globalThis.ExplorerPlotly = { Icons: {}, downloadImage: async (picture) => { saved.push(picture); } };
const { config } = await import("../../../../explorer/web/static/plots.js");
const [[download]] = config().modeBarButtons;

test("a picture is saved with the words that are beside Plotly in the page", async () => {
  await download.click({ data: [{ type: "heatmap", meta: "%{text}" }], layout: { height: 3 } });
  assert.deepEqual(saved, [{ data: [{ type: "heatmap", texttemplate: "%{text}" }], layout: { height: 3 } }]);
});

test("one that cannot be saved is told as such", async (t) => {
  const shown = [];
  t.mock.method(console, "error", () => {});
  t.mock.method(ExplorerPlotly, "downloadImage", async () => { throw Error("no room"); });
  onContent(new StandIn("problem"), (content) => shown.push(content));
  await download.click({ data: [], layout: {} });
  assert.match(shown.at(-1), /could not be saved/);
  assert.equal(console.error.mock.callCount(), 1);
});

test("nothing of Plotly is set anew from one drawing to the next", () => assert.equal(config(), config()));
