import assert from "node:assert/strict";
import test from "node:test";

import { figureInSize, figureInWidth, figureOnStage, gridInSize, squareCellSpace, withBarNumbers, withLargerLetters, withSquareCells, withTopK, wrapLine } from "../../../../explorer/web/widgets/figure/figure_fit.js";

const FIGURE = {
  data: [{ type: "heatmap", z: [[1]] }, { type: "scatter", textposition: "middle right" }],
  layout: { xaxis: { title: { text: "one two<br>three" }, tickfont: { family: "mono", size: 11 } }, yaxis: {}, margin: { l: 1, r: 2 }, height: 9 },
};

test("a figure with enough room is unchanged", () => assert.equal(figureInWidth(FIGURE, 358), FIGURE));

test("chips without room side by side are set on end, and the numbers above them are smaller", () => {
  const annotations = [{ text: "above" }, ...Array.from({ length: 13 }, () => ({ name: "chip", text: "·wanted" }))];
  const figure = { data: [{ textfont: { size: 13 } }], layout: { annotations, margin: { l: 0, r: 8, b: 36 } } };
  assert.equal(figureInWidth(figure, 955), figure);
  const { data, layout } = figureInWidth(figure, 358);
  assert.deepEqual([data[0].textfont.size, ...layout.annotations.map(({ textangle }) => textangle ?? 0)], [9, 0, ...Array(13).fill(-90)]);
  assert.ok(layout.margin.b > 60);
});

test("cells are square: wide ones are in the middle beside their colour bar, high ones at the top, and nearly square ones stay", () => {
  const squareIn = (w, h, bar) => squareCellSpace({ _size: { l: 50, r: 30, t: 10, b: 40, w, h }, width: w + 80, xaxis: { range: [-0.5, 9.5] }, yaxis: { range: [9.5, -0.5] } }, bar);
  assert.deepEqual(squareIn(420, 300), { margin: { l: 110, r: 90, t: 10, b: 40 }, bar: 0.88 });
  assert.deepEqual(squareIn(420, 300, 0.8)?.bar, 0.8 - 0.12);
  assert.deepEqual(squareIn(300, 500), { margin: { l: 50, r: 30, t: 10, b: 240 }, bar: 1 });
  assert.equal(squareIn(320, 300), null);
  const { data } = withSquareCells({ data: [{ type: "heatmap" }, { type: "scatter", marker: { colorbar: { thickness: 10 } } }, { type: "scatter" }], layout: {} }, { margin: {}, bar: 0.5 });
  assert.deepEqual(data.map(({ colorbar, marker }) => colorbar ?? marker?.colorbar), [{ x: 0.5 }, { thickness: 10, x: 0.5 }, undefined]);
});

test("only a few upright bars have numbers", () => {
  const bars = (count, more = {}) => ({ data: [{ type: "bar", x: Array(count).fill(1), ...more }], layout: { yaxis: {} } });
  assert.equal(withBarNumbers(bars(12), 600).data[0].texttemplate, "%{y:.3g}");
  for (const [figure, width] of [[bars(13), 900], [bars(12), 500], [bars(3, { orientation: "h" }), 900], [bars(3, { text: ["a"] }), 900]]) assert.equal(withBarNumbers(figure, width), figure);
});

test("a lesson's figure has letters of 12 pixels or more beside its axes and colour bar", () => {
  const { data, layout } = withLargerLetters(FIGURE);
  assert.deepEqual([data[0].colorbar.tickfont.size, layout.xaxis.tickfont.size, layout.xaxis.title.font.size, layout.yaxis.tickfont.size], [12, 12, 13, 12]);
});

test("a title longer than its axis is wrapped", () => {
  const { data, layout } = figureInWidth({ data: [], layout: { xaxis: { title: { text: "layer (blue: without its heads, orange: without its feed-forward)" } } } }, 358);
  assert.deepEqual([data, layout.xaxis.title.text], [[], "layer (blue: without its heads,<br>orange: without its feed-forward)"]);
});

test("upright titles longer than their axis are wrapped, the more the higher the names below it", () => {
  const title = { text: "share of the logit difference gained (lost: below 0)" }, figure = (names) => ({
    data: [{ type: "heatmap", colorbar: { title } }], layout: { xaxis: { ticktext: names, tickangle: -90 }, yaxis: { title } },
  });
  const titles = ({ data, layout }) => [data[0].colorbar.title.text, layout.yaxis.title.text];
  const level = { ...figure([]), layout: { xaxis: {}, yaxis: { title } } };
  assert.equal(figureInSize(level, 450, 450), level);
  const wrapped = "share of the logit difference<br>gained (lost: below 0)";
  assert.deepEqual(titles(figureInSize(figure([]), 450, 350)), [wrapped, wrapped]);
  assert.deepEqual(titles(figureInSize(figure(Array(9).fill("a token of length 20")), 450, 450)), [wrapped, wrapped]);
});

test("a narrow figure has no colour bar, smaller letters, a wrapped title, and room for line labels", () => {
  const { data, layout } = figureInWidth(FIGURE, 40);
  assert.deepEqual(data, [{ ...FIGURE.data[0], showscale: false }, FIGURE.data[1]]);
  assert.deepEqual(layout.xaxis, { title: { text: "one<br>two<br>three" }, tickfont: { family: "mono", size: 10 } });
  assert.deepEqual(layout.yaxis, { tickfont: { size: 10 } });
  assert.deepEqual(layout.margin, { l: 1, r: 40 });
  assert.equal(layout.height, 9);
  assert.equal(FIGURE.layout.xaxis.tickfont.size, 11);
});

test("lines over the temperature are those of the tokens that top-k keeps", () => {
  const figure = { data: [0, 1, 2].map((rank) => ({ name: `${rank}`, y: [0.5] })), layout: { yaxis: { title: { text: "all" } } } };
  const topK = { temperatures: [0, 1, 2], scores: [Math.log(9), Math.log(3), 0] }, { data, layout } = withTopK(figure, topK, 2);
  assert.deepEqual(data.map(({ y }) => y.map((share) => +share.toFixed(3))), [[1, 0.75, 0.634], [0, 0.25, 0.366], [0, 0, 0]]);
  assert.equal(layout.yaxis.title.text, "probability with top-k 2");
  for (const all of [0, 4]) assert.equal(withTopK(figure, topK, all), figure);
});

test("words are not cut, and short lines are unchanged", () => {
  assert.equal(wrapLine("as it is", 20), "as it is");
  assert.equal(wrapLine("incomprehensibilities and so on", 8), "incomprehensibilities<br>and so<br>on");
  assert.equal(wrapLine("", 8), "");
});

test("the lines of a title are about equally long", () => assert.equal(wrapLine("dimension i of q and k, which adds √d", 35), "dimension i of q and<br>k, which adds √d"));

test("when presented, heatmaps with numbers need no colour bar, and no margin is left for a title", () => {
  const [cells, plain] = [{ type: "heatmap", meta: "%{text}", text: [["0.5", "−1"]] }, { type: "heatmap" }];
  const { data, layout } = figureOnStage({ data: [cells, plain], layout: { margin: { t: 60, l: 9 } } });
  assert.deepEqual([data[0].showscale, data[1].showscale, layout.margin], [false, undefined, { t: 8, l: 9 }]);
  assert.equal(figureOnStage({ data: [], layout: { margin: { t: 60 }, annotations: [{}] } }).layout.margin.t, 60);
  const lines = { data: [{ type: "scatter" }, { type: "scatter" }], layout: { margin: { t: 60 } } }, space = { width: 300, column: null };
  assert.equal(figureOnStage(lines, space).layout.margin.t, 60);
  assert.deepEqual(figureOnStage(lines, { ...space, isBesideBars: true }).layout, { margin: { t: 8 }, showlegend: false }); // the bars are its legend
});

test("when presented, heatmaps with words keep the colour bar and show as many columns as fit", () => {
  const words = { type: "heatmap", meta: "%{text}", text: [Array.from({ length: 20 }, () => "·favorite")] };
  const { data } = figureOnStage({ data: [words], layout: {} }), rangeOf = (column) => figureOnStage({ data: [words], layout: {} }, { width: 488, column }).layout.xaxis?.range;
  assert.equal(data[0].showscale, undefined);
  assert.deepEqual([rangeOf(1), rangeOf(12), rangeOf(null)], [[-0.5, 4.5], [7.5, 12.5], undefined]);
});

const COUNTS = [1, 4, 16, 24, 32, 64], SIZES = [[963, 400], [911, 400], [638, 400], [358, 400], [230, 300], [512, 320]];
const asText = (values) => ({ dtype: "f8", bdata: Buffer.from(Float64Array.from(values).buffer).toString("base64") });

test("circles are arranged in full rows without overlap inside the figure, and their parts move along", () => {
  for (const count of COUNTS) {
    for (const [width, height] of SIZES) {
      const before = Array.from({ length: count }, (_none, i) => i), strokes = before.flatMap((i) => [i, i + 0.5, NaN]), level = strokes.map((x) => x * 0);
      const annotations = before.map((i) => ({ text: `pair ${i}`, x: i, y: 1.2 })), tips = { x: before.map((i) => i + 0.5), y: before.map(() => 0) };
      const { data, layout } = gridInSize({ data: [{ x: asText(strokes), y: asText(level) }, tips], layout: { xaxis: { visible: false }, yaxis: {}, annotations } }, { count, columns: count, spacing: 1 }, width, height);
      const centres = before.map((i) => [data[0].x[3 * i], data[0].y[3 * i]]), rows = Map.groupBy(centres, ([, y]) => y.toFixed(6));
      assert.equal(new Set([...rows.values()].slice(0, -1).map((row) => row.length)).size, Number(rows.size > 1), "full rows");
      for (const [i, [x, y]] of centres.entries()) {
        assert.ok(Math.abs(data[0].x[3 * i + 1] - x - 0.5) < 1e-9 && Number.isNaN(data[0].x[3 * i + 2]));
        assert.ok(Math.abs(data[1].x[i] - x - 0.5) < 1e-9 && Math.abs(data[1].y[i] - y) < 1e-9);
        assert.ok(Math.abs(layout.annotations[i].x - x) < 1e-9 && Math.abs(layout.annotations[i].y - y - 1.2) < 1e-9);
        for (const [axis, at] of [["xaxis", x], ["yaxis", y]]) assert.ok(at - 1 >= layout[axis].range[0] && at + 1 <= layout[axis].range[1], `${count} in ${width}`);
        for (const other of centres.slice(i + 1)) assert.ok(Math.hypot(other[0] - x, other[1] - y) > 2.19);
      }
      if (count === 16 && width === 512) assert.deepEqual([...rows.values()].map((row) => row.length), [6, 6, 4], "as large as they can be");
      const [across, down] = [layout.xaxis, layout.yaxis].map(({ range: [low, high] }) => high - low);
      assert.ok(Math.abs(across / down - (width - 16) / (height - 60)) < 1e-9, "they fill it");
    }
  }
});
