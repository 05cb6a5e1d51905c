import assert from "node:assert/strict";
import test from "node:test";

import { decodeEntities, shortenWord, withoutCellTexts } from "../../../../explorer/web/static/plotly_figures.js";

const heatmap = { type: "heatmap", z: [[1]], text: [["a"]], texttemplate: "%{text}" };
const bars = { type: "bar", y: [1], text: ["b"], texttemplate: "%{text}" };
const unwritten = { type: "heatmap", z: [[1]], text: [["c"]], texttemplate: null };

test("Plotly draws the texts of bars only", () => {
  const traces = [heatmap, bars, unwritten], [cells, others, none] = withoutCellTexts(traces);
  assert.ok(!("texttemplate" in cells));
  assert.equal(cells.z, heatmap.z); // the same array: Plotly does not draw it again
  assert.deepEqual([others, none], [bars, unwritten]);
  assert.equal(cells.meta, heatmap.texttemplate);
});

test("brackets and ampersands in a text are decoded once", () => {
  assert.equal(decodeEntities("&lt;b&gt; &amp;lt;"), "<b> &lt;");
});

test("a word is shortened to its cell, a number is not", () => {
  assert.deepEqual(["·fox", "·friends", "−0.125", "1.25e−4"].map((text) => shortenWord(text, 2.5)), ["·fox", "·fr…", "−0.125", "1.25e−4"]);
});
