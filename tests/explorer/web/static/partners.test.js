import assert from "node:assert/strict";
import test from "node:test";

import { awaitPartner, followPartners, inA, inB, isPartnerAwaited, ofB, onState, seen, setState, takePartner, tellState } from "../../../../explorer/web/static/state.js";
import { StandIn } from "./stand_ins.js";

const TWO = { partners: [0, null, 2, 4], back: [0, null, 2, null, 3] };

test("a position has a partner, or the nearest before that has one", () => {
  followPartners(TWO);
  assert.deepEqual([0, 1, 2, 3, 9].map(inB), [0, 0, 2, 4, 4]);
  assert.deepEqual([0, 1, 2, 3, 4].map(ofB), [0, 0, 2, 2, 3]);
});

test("the first token is a neighbour, too", () => {
  followPartners({ partners: [1, null, 2], back: [null, 0, 2] });
  assert.deepEqual([0, 1, 2].map(inB), [1, 1, 2]);
  assert.deepEqual([0, 1, 2].map(ofB), [0, 0, 2]); // before the first partner none is nearer than the beginning
});

test("what is chosen in a picture of B is chosen of A, and of A's pictures as it is", () => {
  followPartners(TWO);
  setState({ query: 3, key: 1, shown: "b" });
  assert.deepEqual(inA({ query: 4, key: 3, layer: 1 }), { query: 3, key: 2, layer: 1 });
  assert.deepEqual([seen().query, seen().key], [4, 0]);
  for (const shown of ["a", "difference"]) {
    setState({ shown });
    assert.deepEqual(inA({ query: 4 }), { query: 4 });
    assert.equal(seen().query, 3);
  }
});

test("without a second run nothing is another", () => {
  followPartners(null);
  setState({ query: 3, shown: "b" });
  assert.deepEqual([inB(5), ofB(5), seen().query, inA({ query: 4 }).query], [5, 5, 3, 4]);
});

test("a partner is awaited once", () => {
  assert.equal(takePartner(), false);
  awaitPartner();
  assert.deepEqual([takePartner(), takePartner()], [true, false]);
});

test("a partner is awaited until the texts are others, whatever else is told of them meanwhile", () => {
  followPartners(TWO);
  awaitPartner();
  followPartners({ ...TWO });
  assert.ok(isPartnerAwaited());
  followPartners({ partners: [0, 1], back: [0, 1] });
  assert.ok(!isPartnerAwaited());
});

test("widgets follow other partners, and only others", () => {
  followPartners(TWO);
  tellState();
  let told = 0;
  onState(new StandIn(), () => { told += 1; });
  for (const [now, times] of [[{ ...TWO }, 0], [{ partners: [0, 3], back: [0, null, null, 1] }, 1], [null, 2]]) {
    followPartners(now);
    tellState();
    assert.equal(told, times);
  }
});
