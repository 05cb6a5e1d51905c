import assert from "node:assert/strict";
import test from "node:test";
import { tokenPosition, fieldsSelectedBy } from "../../../../explorer/web/widgets/figure/figure.js";

const TOKENS = ["the", "·cat", "·sat"];
const point = { x: "·sat", y: "·cat", customdata: [3, 5], xaxis: { d2c: (label) => TOKENS.indexOf(label) }, yaxis: { d2c: (label) => TOKENS.indexOf(label) } };

test("a token's position is found by its label on the axis", () => {
  assert.deepEqual([tokenPosition(point, "x"), tokenPosition(point, "y")], [2, 1]);
});

test("a point selects by its axes and its custom data", () => {
  assert.deepEqual(fieldsSelectedBy(point, { x: "key", y: "query", customdata: ["layer", "head"] }), { key: 2, query: 1, layer: 3, head: 5 });
  assert.deepEqual(fieldsSelectedBy({ ...point, customdata: 7 }, { customdata: "neuron" }), { neuron: 7 });
  assert.deepEqual(fieldsSelectedBy(point, {}), {});
});
