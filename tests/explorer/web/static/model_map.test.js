import assert from "node:assert/strict";
import test from "node:test";
import { nearestInDirection } from "../../../../explorer/web/static/dom.js";
import { arrowHead, partsOnSheet } from "../../../../explorer/web/widgets/figure/model_map.js";
import { drawingLayout } from "../../../../explorer/web/widgets/figure/whole_model.js";

const map = {
  alt: "A map.",
  largest: 2,
  parts: [
    ["head", [[0, 0, 4, 2], [0, 0, 2, 4]], "layer 0 head 1", { layer: 0, head: 1 }, 0.5, "1"],
    ["o_proj", [[4, 0, 6, 2], [0, 4, 2, 6]], "layer 0 o_proj", { layer: 0 }, null, "o_proj"],
  ],
  sheets: [
    { size: [6, 2], lines: ["wide"], words: [], written: ["head"], legend: [], scale: [0, 0, 1, 1] },
    { size: [2, 6], lines: ["tall"], words: [], written: ["head", "o_proj"], legend: [], scale: [0, 0, 2, 2] },
  ],
};

test("each sheet has the same components at its own positions", () => {
  const [wide, tall] = [0, 1].map((i) => partsOnSheet(map, i));
  assert.deepEqual([wide.size, wide.lines, wide.scale], [[6, 2], ["wide"], [0, 0, 1, 1]]);
  assert.deepEqual([tall.size, tall.lines, tall.scale], [[2, 6], ["tall"], [0, 0, 2, 2]]);
  assert.deepEqual(wide.parts.map(({ box }) => box), [[0, 0, 4, 2], [4, 0, 6, 2]]);
  assert.deepEqual(tall.parts.map(({ box }) => box), [[0, 0, 2, 4], [0, 4, 2, 6]]);
  for (const sheet of [wide, tall]) {
    assert.deepEqual([sheet.alt, sheet.largest], ["A map.", 2]);
    assert.deepEqual(sheet.parts.map(({ selects }) => selects), [{ layer: 0, head: 1 }, { layer: 0 }]);
    assert.deepEqual(sheet.parts.map(({ text, value }) => [text, value]), [["layer 0 head 1", 0.5], ["layer 0 o_proj", null]]);
  }
});

test("components have labels that fit", () => {
  const labels = [0, 1].map((i) => partsOnSheet(map, i).parts.map(({ label }) => label));
  assert.deepEqual(labels, [["1", ""], ["1", "o_proj"]]);
});

test("the arrow keys follow the data flow on each sheet", () => {
  const [wide, tall] = [0, 1].map((i) => partsOnSheet(map, i).parts.map(({ box }) => box));
  assert.deepEqual([nearestInDirection(wide, 0, [1, 0]), nearestInDirection(wide, 0, [0, 1])], [1, 0]);
  assert.deepEqual([nearestInDirection(tall, 0, [0, 1]), nearestInDirection(tall, 0, [1, 0])], [1, 0]);
});

test("an arrowhead points in the direction of its line", () => {
  const ends = (path) => path.match(/-?[\d.]+,-?[\d.]+/g).map((corner) => corner.split(",").map(Number));
  assert.deepEqual(ends(arrowHead([0, 0, 9, 0])).map(([x]) => x), [9, 2, 2]);
  assert.deepEqual(ends(arrowHead([0, 0, 0, 9])).map(([, y]) => y), [9, 2, 2]);
  assert.deepEqual(ends(arrowHead([9, 0, 0, 0])).map(([x]) => x), [0, 7, 7]);
});

test("a short answer stands beside a phone's drawing; what isolates its direction takes no room", () => {
  globalThis.document = /** @type {any} */ ({});
  const blocks = [{ heads: [0, 0] }, { heads: [0, 0] }], rows = [[0, 0, "The"], [1, 1, "·fox"]];
  const space = (answer) => drawingLayout({ blocks, rows, query: 1, answer }, { level: "", layer: 0, head: 0 }, { width: 358, height: 400 }).right;
  assert.equal(space("\u2068·was\u2069"), space("·was"));
  assert.ok(space("·was") > 60 && space("·grandmother") === 60); // the long one stands below the arrow
});
