import assert from "node:assert/strict";
import test from "node:test";
import { standInPage } from "./browser_stubs.js";

standInPage();
const { formatScore, sortedIndices, stretchDifferences } = await import("../../../../explorer/web/widgets/figure/figure.js");

test("heads without a number come last in either order", () => {
  const values = [0.2, null, -0.5, 0.9, null, 0.2];
  assert.deepEqual(sortedIndices(values, true), [3, 0, 5, 2, 1, 4]);
  assert.deepEqual(sortedIndices(values, false), [2, 0, 5, 3, 1, 4]);
});

test("a number has three decimals, and a sign where it has a meaning", () => {
  assert.deepEqual([0.25, 1, 0, null].map((number) => formatScore(number, false)), ["0.250", "1.000", "0.000", "–"]);
  assert.deepEqual([1.0884, -0.25, 0.0004, -0.0004].map((number) => formatScore(number, true)), ["+1.088", "−0.250", "0.000", "0.000"]);
});

test("the largest difference of all heads has the strongest colour, and zero the middle one", () => {
  const encode = (...bytes) => Buffer.from(bytes).toString("base64"), decode = (text) => [...Buffer.from(text, "base64")];
  const [one, other] = stretchDifferences([encode(128, 102, 0, 0), encode(153, 127, 0, 0)], 2).map(decode); // two pixels and two of filling
  assert.deepEqual([one.slice(0, 2), other.slice(0, 2)], [[130, 0], [255, 125]]);
});
