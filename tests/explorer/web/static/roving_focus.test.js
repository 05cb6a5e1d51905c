import assert from "node:assert/strict";
import test from "node:test";
import { indexAfterKey, addRovingFocus, setTabStop } from "../../../../explorer/web/static/dom.js";
import { StandIn } from "./browser_stubs.js";

const ROW = { rows: 1, columns: 4 }, COLUMN = { rows: 4, columns: 1 }, GRID = { rows: 3, columns: 4 };
const after = (key, row, column, size, round) => {
  const to = indexAfterKey(key, { row, column }, size, round);
  return to && [to.row, to.column];
};

test("arrow keys move by one in a grid and stop at its edges", () => {
  assert.deepEqual(after("ArrowRight", 1, 1, GRID), [1, 2]);
  assert.deepEqual(after("ArrowLeft", 1, 1, GRID), [1, 0]);
  assert.deepEqual(after("ArrowDown", 1, 1, GRID), [2, 1]);
  assert.deepEqual(after("ArrowUp", 1, 1, GRID), [0, 1]);
  assert.deepEqual(after("ArrowRight", 0, 3, GRID), [0, 3]);
  assert.deepEqual(after("ArrowLeft", 0, 0, GRID), [0, 0]);
  assert.deepEqual(after("ArrowDown", 2, 3, GRID), [2, 3]);
  assert.deepEqual(after("ArrowUp", 0, 3, GRID), [0, 3]);
});

test("arrow keys across a single row or column do nothing", () => {
  assert.equal(after("ArrowDown", 0, 1, ROW), null);
  assert.equal(after("ArrowUp", 0, 1, ROW), null);
  assert.equal(after("ArrowRight", 1, 0, COLUMN), null);
  assert.deepEqual(after("ArrowDown", 1, 0, COLUMN), [2, 0]);
  assert.deepEqual(after("ArrowRight", 0, 1, ROW), [0, 2]);
});

test("Home and End go to the ends of a single row or column", () => {
  assert.deepEqual(after("Home", 0, 2, ROW), [0, 0]);
  assert.deepEqual(after("End", 0, 2, ROW), [0, 3]);
  assert.deepEqual(after("Home", 2, 0, COLUMN), [0, 0]);
  assert.deepEqual(after("End", 2, 0, COLUMN), [3, 0]);
  assert.equal(after("Home", 1, 1, GRID), null);
  assert.equal(after("End", 0, 0, { rows: 1, columns: 1 }), null);
});

test("in a ring the first item follows the last", () => {
  assert.deepEqual(after("ArrowRight", 0, 3, ROW, true), [0, 0]);
  assert.deepEqual(after("ArrowLeft", 0, 0, ROW, true), [0, 3]);
});

test("other keys do nothing", () => {
  for (const key of ["Enter", "a", "Tab", "Delete"]) assert.equal(after(key, 1, 1, GRID), null);
});

test("a handled key has no default action of the browser", () => {
  const box = new StandIn(), gone = [];
  let column = 2;
  addRovingFocus(box, { at: () => ({ row: 0, column }), size: () => ROW, go: (to) => { gone.push(to.column); column = to.column; } });
  assert.equal(box.press("ArrowRight"), true);
  assert.equal(box.press("ArrowRight"), true); // at the end already
  assert.equal(box.press("ArrowDown"), false);
  assert.equal(box.press("ArrowLeft", { altKey: true }), false); // the browser's Back
  assert.deepEqual(gone, [3]);
});

test("nothing moves if no item has the focus", () => {
  const box = new StandIn();
  addRovingFocus(box, { at: () => null, size: () => ROW, go: () => assert.fail() });
  assert.equal(box.press("ArrowRight"), false);
});

test("one item is a tab stop", () => {
  const items = [new StandIn(), new StandIn(), new StandIn()];
  setTabStop(items, items[1]);
  assert.deepEqual(items.map(({ tabIndex }) => tabIndex), [-1, 0, -1]);
  setTabStop(items, null);
  assert.deepEqual(items.map(({ tabIndex }) => tabIndex), [-1, -1, -1]);
});
