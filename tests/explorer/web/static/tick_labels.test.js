import assert from "node:assert/strict";
import test from "node:test";

import { spacedPositions } from "../../../../explorer/web/static/plotly_figures.js";

test("all labels are kept if they fit", () => assert.deepEqual(spacedPositions([0, 12, 24], 12), [true, true, true]));

test("of crowded labels every n-th is kept, in either direction of the axis", () => {
  assert.deepEqual(spacedPositions([0, 5, 10, 15, 20], 10), [true, false, true, false, true]);
  assert.deepEqual(spacedPositions([20, 15, 10, 5, 0], 10), [true, false, true, false, true]);
});

test("at unequal distances each kept label is far enough from the previous one", () =>
  assert.deepEqual(spacedPositions([0, 9, 11, 30, 35], 10), [true, false, true, true, false]));
