import assert from "node:assert/strict";
import test from "node:test";
import { queueDraw } from "../../../../explorer/web/static/widget_contents.js";
import { standInPage } from "./browser_stubs.js";

standInPage();
globalThis.Node = { DOCUMENT_POSITION_FOLLOWING: 4, DOCUMENT_POSITION_PRECEDING: 2 };
let frames = 0;
globalThis.requestAnimationFrame = (act) => setImmediate(() => { frames++; act(); });
globalThis.innerHeight = 900;
const at = (place, top = 1000) => ({
  place,
  compareDocumentPosition: (other) => (other.place > place ? 4 : 2),
  getBoundingClientRect: () => ({ top, bottom: top + 100, height: 100 }),
});

test("visible figures are drawn in one frame, as far as time allows", async (t) => {
  let now = 0;
  t.mock.method(performance, "now", () => now);
  const drawn = [], draw = (place, top) => queueDraw(at(place, top), () => { now += 20; drawn.push([place, frames]); });
  const before = frames;
  await Promise.all([draw(1, 0), draw(2, 300), draw(3, 600), draw(4, 1000), draw(5, -200)]);
  assert.deepEqual(drawn.map(([place, frame]) => [place, frame - before]), [[1, 0], [2, 0], [3, 1], [4, 2], [5, 3]]);
});

test("others are drawn from the top of the page down, one per frame", async () => {
  const drawn = [];
  const draw = (place) => queueDraw(at(place), () => drawn.push([place, frames]));
  await Promise.all([draw(3), draw(1), draw(2)]);
  assert.deepEqual(drawn.map(([place]) => place), [1, 2, 3]);
  assert.deepEqual(drawn.map(([, frame]) => frame - drawn[0][1]), [0, 1, 2]);
});

test("a failing figure leaves the others to be drawn", async (t) => {
  t.mock.method(console, "error", () => {});
  const drawn = [];
  await Promise.all([queueDraw(at(1), () => { throw Error("a slip"); }), queueDraw(at(2), () => drawn.push(2))]);
  assert.deepEqual(drawn, [2]);
  assert.equal(console.error.mock.callCount(), 1);
});
