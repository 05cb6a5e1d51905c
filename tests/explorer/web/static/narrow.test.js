import assert from "node:assert/strict";
import test from "node:test";

import { figureInWidth, figureOnStage, wrapped } from "../../../../explorer/web/widgets/figure/figure_fit.js";

const PICTURE = {
  data: [{ type: "heatmap", z: [[1]] }, { type: "scatter", textposition: "middle right" }],
  layout: { xaxis: { title: { text: "one two<br>three" }, tickfont: { family: "mono", size: 11 } }, yaxis: {}, margin: { l: 1, r: 2 }, height: 9 },
};

test("a picture with room is drawn as it is", () => assert.equal(figureInWidth(PICTURE, 358), PICTURE));

test("a narrow one has no scale of colours, small letters, its title in more lines, and room for the names of lines", () => {
  const { data, layout } = figureInWidth(PICTURE, 40);
  assert.deepEqual(data, [{ ...PICTURE.data[0], showscale: false }, PICTURE.data[1]]);
  assert.deepEqual(layout.xaxis, { title: { text: "one<br>two<br>three" }, tickfont: { family: "mono", size: 10 } });
  assert.deepEqual(layout.yaxis, { tickfont: { size: 10 } });
  assert.deepEqual(layout.margin, { l: 1, r: 40 });
  assert.equal(layout.height, 9);
  assert.equal(PICTURE.layout.xaxis.tickfont.size, 11);
});

test("words are not cut, and short lines stay", () => {
  assert.equal(wrapped("as it is", 20), "as it is");
  assert.equal(wrapped("incomprehensibilities and so on", 8), "incomprehensibilities<br>and so<br>on");
  assert.equal(wrapped("", 8), "");
});

test("the lines of a title are about equally long", () => assert.equal(wrapped("dimension i of q and k, which adds √d", 35), "dimension i of q and<br>k, which adds √d"));

test("on the stage words in cells need no scale of colours, and no margin is kept for a title", () => {
  const [cells, plain] = [{ type: "heatmap", meta: "%{text}" }, { type: "heatmap" }];
  const { data, layout } = figureOnStage({ data: [cells, plain], layout: { margin: { t: 60, l: 9 } } });
  assert.deepEqual([data[0].showscale, data[1].showscale, layout.margin], [false, undefined, { t: 8, l: 9 }]);
  assert.equal(figureOnStage({ data: [], layout: { margin: { t: 60 }, annotations: [{}] } }).layout.margin.t, 60);
});
