import assert from "node:assert/strict";
import test from "node:test";

import { spacedPositions } from "../../../../explorer/web/static/plotly_figures.js";

test("all words are kept that have room", () => assert.deepEqual(spacedPositions([0, 12, 24], 12), [true, true, true]));

test("of crowded ones every so many, in whichever direction the axis runs", () => {
  assert.deepEqual(spacedPositions([0, 5, 10, 15, 20], 10), [true, false, true, false, true]);
  assert.deepEqual(spacedPositions([20, 15, 10, 5, 0], 10), [true, false, true, false, true]);
});

test("where distances differ, each as far from the one kept before it as it must be", () =>
  assert.deepEqual(spacedPositions([0, 9, 11, 30, 35], 10), [true, false, true, true, false]));
