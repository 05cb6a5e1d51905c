import assert from "node:assert/strict";
import { test } from "node:test";

import { formatLogit, formatNumber } from "../../../../explorer/web/static/text.js";
import { sampledDistribution } from "../../../../explorer/web/widgets/next_token/next_token.js";

const SCORES = [3, 2.5, 2.5, 1, -4];
const near = (a, b) => assert.ok(a.length === b.length && a.every((x, i) => Math.abs(x - b[i]) < 1e-12), `${a} is not ${b}`);

/** As defined: softmax of the remaining scores. */
function softmax(values, temperature) {
  const weights = values.map((value) => Math.exp(value / temperature)), total = weights.reduce((a, b) => a + b);
  return weights.map((weight) => weight / total);
}

test("each limit keeps the most probable of the tokens left by the previous limit", () => {
  const all = { temperature: 0.5, top_k: 0, top_p: 1, min_p: 0 };
  near([...sampledDistribution(SCORES, all).probabilities], softmax(SCORES, 0.5));
  near([...sampledDistribution(SCORES, { ...all, top_k: 2 }).probabilities], softmax([3, 2.5], 0.5));
  const first = softmax(SCORES, 0.5)[0];
  assert.equal(sampledDistribution(SCORES, { ...all, top_p: first - 1e-9 }).counts.top_p, 1);
  assert.equal(sampledDistribution(SCORES, { ...all, top_p: first + 1e-9 }).counts.top_p, 2);
  assert.equal(sampledDistribution(SCORES, { ...all, top_p: 0 }).counts.top_p, 1);
  const weight = Math.exp(-0.5 / 0.5); // of the second relative to the first
  assert.equal(sampledDistribution(SCORES, { ...all, min_p: weight - 1e-9 }).counts.min_p, 3);
  assert.equal(sampledDistribution(SCORES, { ...all, min_p: weight + 1e-9 }).counts.min_p, 1);
  assert.equal(sampledDistribution(SCORES, { ...all, min_p: 1 }).counts.min_p, 1); // the limit is inclusive
  assert.deepEqual(sampledDistribution(SCORES, { temperature: 1, top_k: 9, top_p: 0.99, min_p: 0.1 }).counts, { top_k: 5, top_p: 4, min_p: 4 });
});

test("numbers are formatted as in Python", () => {
  const expected = [[0, "0"], [0.9996, "1.00"], [0.0005, "0.000500"], [0.00009996, "0.000100"], [0.00005, "5.00e−05"], [0.00123456, "0.00123"], [12345, "1.23e+04"], [9999.6, "1.00e+04"], [-12.345, "−12.3"], [1.5e-12, "1.50e−12"]];
  for (const [value, text] of expected) assert.equal(formatNumber(value), text);
  for (const [value, text] of [[-0.001, "0.00"], [-3.456, "−3.46"], [12, "12.00"]]) assert.equal(formatLogit(value), text);
});
