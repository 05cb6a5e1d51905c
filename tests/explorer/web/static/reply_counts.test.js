import assert from "node:assert/strict";
import test from "node:test";
import { replyGrid, replyCounts, totalCount } from "../../../../explorer/web/widgets/teaching/class_session.js";

test("every option has its count, even if nobody chose it", () => {
  const rows = replyCounts({ kind: "choice", options: ["a", "b", "c"] }, { 3: 5, 1: 2 });
  assert.deepEqual(rows.map(({ says, count }) => [says, count]), [["a", 2], ["b", 0], ["c", 5]]);
  assert.equal(totalCount({ 3: 5, 1: 2 }), 7);
});

test("nothing is right before the answer is revealed", () => {
  const counts = { 1: 1, 2: 1 }, question = { kind: "choice", options: ["a", "b"] };
  assert.ok(replyCounts(question, counts).every(({ isRight }) => !isRight));
  assert.deepEqual(replyCounts(question, counts, { truth: { right: [2] } }).map(({ isRight }) => isRight), [false, true]);
  assert.equal(replyGrid({ kind: "cell", rows: ["r"], columns: ["c"] }, {}).right, null);
});

test("words are sorted by count, and the rarest grouped", () => {
  const counts = Object.fromEntries(Array.from({ length: 11 }, (_word, i) => [`w${i}`, i + 1]));
  const rows = replyCounts({ kind: "token", options: [] }, counts);
  assert.deepEqual(rows.map(({ count }) => count), [11, 10, 9, 8, 7, 6, 5, 4, 6]);
  assert.equal(rows[0].says, "w10");
  assert.match(rows.at(-1).says, /3/);
  const told = { truth: { bars: [{ token: " Owl" }, { token: " w10" }], right: 1 } };
  assert.deepEqual(replyCounts({ kind: "token" }, counts, told).filter(({ isRight }) => isRight).map(({ says }) => says), ["w10"]);
});

test("numbers are counted in ten bins of the slider", () => {
  const rows = replyCounts({ kind: "number", lowest: 0, highest: 1 }, { 0: 2, 9: 1 }, { truth: { truth: 0.95 } });
  assert.deepEqual(rows.map(({ count }) => count), [2, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
  assert.match(rows[9].says, /0\.9.*1/);
  assert.deepEqual(rows.map(({ isRight }) => isRight).lastIndexOf(true), 9);
});

test("the minus of a number filled in is a minus sign", () => {
  assert.deepEqual(replyCounts({ kind: "blanks" }, { "1_-0.41": 2 }).map(({ says }) => says), ["1 · −0.41"]);
  assert.equal(replyCounts({ kind: "token" }, { "well-known": 1 })[0].says, "well-known");
});

test("a cell is counted in its row and column", () => {
  const { counts, right } = replyGrid({ kind: "cell", rows: ["a", "b"], columns: ["x", "y", "z"] }, { "1_2": 4, "0_1": 1 }, { truth: { right: [1, 2] } });
  assert.deepEqual(counts, [[0, 1, 0], [0, 0, 4]]);
  assert.deepEqual(right, [1, 2]);
});

test("a curve is counted at each of its points, the largest number at the top", () => {
  const { rows, columns, counts } = replyGrid({ kind: "curve", labels: ["p", "q"], lowest: 0, highest: 10 }, { "0_9": 2, "9_9": 1 });
  assert.deepEqual([rows[0], columns], ["10", ["p", "q"]]);
  assert.deepEqual([counts[0], counts[9]], [[1, 3], [2, 0]]);
});
