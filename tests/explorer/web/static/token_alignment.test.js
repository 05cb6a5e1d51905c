import assert from "node:assert/strict";
import test from "node:test";

import { awaitPartnerToken, setAlignment, changeInA, positionInB, isPartnerAwaited, positionFromB, onState, stateInRun, setState, takeAwaitedPartner, notifyStateListeners } from "../../../../explorer/web/static/page_state.js";

const TWO = { partners: [0, null, 2, 4], back: [0, null, 2, null, 3] };

test("a position has its partner, or that of the nearest earlier position", () => {
  setAlignment(TWO);
  assert.deepEqual([0, 1, 2, 3, 9].map(positionInB), [0, 0, 2, 4, 4]);
  assert.deepEqual([0, 1, 2, 3, 4].map(positionFromB), [0, 0, 2, 2, 3]);
});

test("the first token counts as a neighbour, too", () => {
  setAlignment({ partners: [1, null, 2], back: [null, 0, 2] });
  assert.deepEqual([0, 1, 2].map(positionInB), [1, 1, 2]);
  assert.deepEqual([0, 1, 2].map(positionFromB), [0, 0, 2]); // before the first partner none is nearer than the start
});

test("a selection in a figure of B is converted to A's positions, and in A's figures is unchanged", () => {
  setAlignment(TWO);
  setState({ query: 3, key: 1, shown: "b" });
  assert.deepEqual(changeInA({ query: 4, key: 3, layer: 1 }), { query: 3, key: 2, layer: 1 });
  assert.deepEqual([stateInRun().query, stateInRun().key], [4, 0]);
  for (const shown of ["a", "difference"]) {
    setState({ shown });
    assert.deepEqual(changeInA({ query: 4 }), { query: 4 });
    assert.equal(stateInRun().query, 3);
  }
});

test("without a second run all positions are unchanged", () => {
  setAlignment(null);
  setState({ query: 3, shown: "b" });
  assert.deepEqual([positionInB(5), positionFromB(5), stateInRun().query, changeInA({ query: 4 }).query], [5, 5, 3, 4]);
});

test("a partner is awaited once", () => {
  assert.equal(takeAwaitedPartner(), false);
  awaitPartnerToken();
  assert.deepEqual([takeAwaitedPartner(), takeAwaitedPartner()], [true, false]);
});

test("a partner is awaited until the texts change", () => {
  setAlignment(TWO);
  awaitPartnerToken();
  setAlignment({ ...TWO });
  assert.ok(isPartnerAwaited());
  setAlignment({ partners: [0, 1], back: [0, 1] });
  assert.ok(!isPartnerAwaited());
});

test("widgets are notified of other partners only", () => {
  setAlignment(TWO);
  notifyStateListeners();
  let told = 0;
  onState(() => { told += 1; });
  for (const [now, times] of [[{ ...TWO }, 0], [{ partners: [0, 3], back: [0, null, null, 1] }, 1], [null, 2]]) {
    setAlignment(now);
    notifyStateListeners();
    assert.equal(told, times);
  }
});
