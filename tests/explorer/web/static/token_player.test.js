import assert from "node:assert/strict";
import test from "node:test";
import { makeTokenPlayer } from "../../../../explorer/web/static/page_actions.js";

const A_TOKEN = 1000 / 18;

/** A token player on a clock that only `wait` advances. */
function start(t) {
  const shown = [];
  let now = 0;
  t.mock.timers.enable({ apis: ["setTimeout"] });
  t.mock.method(performance, "now", () => now);
  const page = { isBusy: false, shown, wait };
  function wait(ms) {
    for (const end = now + ms; now < end;) {
      now++;
      t.mock.timers.tick(1);
    }
  }
  return { ...page, page, pace: makeTokenPlayer((count, isLast) => shown.push([count, isLast]), () => page.isBusy) };
}

test("tokens are shown one after another at equal intervals, and the last one is reported", (t) => {
  const { pace, shown, wait } = start(t);
  pace.play(3, true);
  assert.deepEqual(shown, [[1, false]]);
  wait(A_TOKEN - 5);
  assert.equal(shown.length, 1);
  wait(10);
  assert.deepEqual(shown.at(-1), [2, false]);
  wait(A_TOKEN);
  assert.deepEqual(shown, [[1, false], [2, false], [3, true]]);
  wait(500);
  assert.equal(shown.length, 3);
});

test("later tokens follow at the same interval", (t) => {
  const { pace, shown, wait } = start(t);
  pace.play(1, false);
  pace.play(2, false);
  assert.equal(shown.length, 1);
  wait(A_TOKEN + 5);
  assert.deepEqual(shown, [[1, false], [2, false]]);
});

test("no token is shown before the figures of the previous one, and then all due tokens", (t) => {
  const { pace, page, shown, wait } = start(t);
  pace.play(9, true);
  page.isBusy = true;
  wait(4 * A_TOKEN);
  assert.equal(shown.length, 1);
  page.isBusy = false;
  wait(10);
  assert.deepEqual(shown, [[1, false], [5, false]]);
});

test("dropped tokens are never shown", (t) => {
  const { pace, shown, wait } = start(t);
  assert.equal(pace.drop(), false); // nothing to drop
  pace.play(4, false);
  pace.play(5, true);
  assert.equal(pace.drop(), true);
  wait(500);
  assert.equal(shown.length, 1);
  pace.play(1, true);
  assert.equal(pace.drop(), false); // everything was shown, and nothing is pending
  pace.play(1, false);
  assert.equal(pace.drop(), true); // something is pending
});
