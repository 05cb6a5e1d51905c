import assert from "node:assert/strict";
import test from "node:test";
import { inTurn } from "../../../../explorer/web/static/drawing_queue.js";
import { standInPage } from "./stand_ins.js";

standInPage();
globalThis.Node = { DOCUMENT_POSITION_FOLLOWING: 4, DOCUMENT_POSITION_PRECEDING: 2 };
let frames = 0;
globalThis.requestAnimationFrame = (act) => setImmediate(() => { frames++; act(); });
const at = (place) => ({ place, compareDocumentPosition: (other) => (other.place > place ? 4 : 2) });

test("pictures are drawn from the top of the page down, one a frame", async () => {
  const drawn = [];
  const draw = (place) => inTurn(at(place), () => drawn.push([place, frames]));
  await Promise.all([draw(3), draw(1), draw(2)]);
  assert.deepEqual(drawn.map(([place]) => place), [1, 2, 3]);
  assert.deepEqual(drawn.map(([, frame]) => frame), [0, 1, 2]);
});

test("one that fails leaves the others to be drawn", async (t) => {
  t.mock.method(console, "error", () => {});
  const drawn = [];
  await Promise.all([inTurn(at(1), () => { throw Error("a slip"); }), inTurn(at(2), () => drawn.push(2))]);
  assert.deepEqual(drawn, [2]);
  assert.equal(console.error.mock.callCount(), 1);
});
