import assert from "node:assert/strict";
import test from "node:test";
import { makePlayer } from "../../../../explorer/web/widgets/view_tools/view_tools.js";

/** A player of five positions, on a clock that only `wait` advances. */
function start(t) {
  const page = { place: 0, isBusy: false, told: [] };
  let now = 0;
  t.mock.timers.enable({ apis: ["setTimeout"] });
  t.mock.method(performance, "now", () => now);
  const playing = makePlayer(() => ++page.place < 4, () => page.isBusy, (is) => page.told.push(is));
  const wait = (ms) => { for (const end = now + ms; now < end;) { now++; t.mock.timers.tick(1); } };
  return { page, playing, wait };
}

test("positions are shown one after another at equal intervals, to the end", (t) => {
  const { page, playing, wait } = start(t);
  playing.start();
  wait(100);
  assert.equal(page.place, 1);
  wait(600);
  assert.equal(page.place, 1);
  wait(200);
  assert.equal(page.place, 2);
  assert.deepEqual(page.told, [true]);
  wait(5000);
  assert.equal(page.place, 4);
  assert.deepEqual(page.told, [true, false]);
  assert.equal(playing.stop(), false);
});

test("the next position waits until the previous one is drawn, and is not skipped", (t) => {
  const { page, playing, wait } = start(t);
  playing.start();
  wait(100);
  page.isBusy = true;
  wait(5000);
  assert.equal(page.place, 1);
  page.isBusy = false;
  wait(100);
  assert.equal(page.place, 2);
  wait(300);
  assert.equal(page.place, 2);
});

test("the player ends when stopped, and if nothing arrives", (t) => {
  const { page, playing, wait } = start(t);
  playing.start();
  wait(100);
  assert.equal(playing.stop(), true);
  wait(5000);
  assert.equal(page.place, 1);
  page.isBusy = true;
  playing.start();
  wait(20_000);
  assert.deepEqual(page.told, [true, false, true, false]);
  assert.equal(page.place, 1);
});
