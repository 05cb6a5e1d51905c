import assert from "node:assert/strict";
import test from "node:test";
import { withCausalKey, modelName, onEveryState, onState, setState, state, notifyStateListeners } from "../../../../explorer/web/static/page_state.js";

test("the key is never after the query", () => {
  assert.deepEqual(withCausalKey({ query: 2, key: 5 }), { query: 2, key: 2 });
  assert.deepEqual(withCausalKey({ query: 5, key: 2 }), { query: 5, key: 2 });
  assert.deepEqual(withCausalKey({ view: "tokens" }), { view: "tokens" });
  setState({ query: 4, key: 3 });
  setState({ query: 1 });
  assert.equal(state.key, 1);
});

test("a guess belongs to its text and position, and to no lesson", () => {
  setState({ query: 1, lesson: "", guess: "fox" });
  setState({ lesson: "" });
  assert.equal(state.guess, "fox");
  for (const change of [{ lesson: "norms" }, { query: 2 }]) {
    setState({ lesson: "", query: 1, guess: "fox" });
    setState(change);
    assert.equal(state.guess, "");
  }
});

test("an open part belongs to its text, and a cell to its token", () => {
  for (const [change, open] of /** @type {[any, string][]} */ ([[{ query: 2 }, "head"], [{ key: 0 }, "cell"], [{ prompt: [7] }, ""], [{ prompt: [7], open: "block" }, "block"]])) {
    setState({ prompt: [7, 8, 9], query: 1, key: 1, open: "cell" });
    setState(change);
    assert.equal(state.open, open);
  }
});

test("a training step belongs to its model", () => {
  assert.deepEqual(["fables/step-000004", "fables", "me/my-model", undefined].map(modelName), ["fables", "fables", "me/my-model", ""]);
});

test("a change makes a new state and keeps its other fields", () => {
  setState({ query: 4, seed: 9 });
  const before = state;
  setState({ query: 5 });
  assert.deepEqual([before.query, state.query, state.seed], [4, 5, 9]);
});

test("widgets are notified of every change, or of several together", () => {
  const seen = [];
  onState(() => seen.push(state.layer));
  setState({ layer: 1 });
  setState({ layer: 2 }, false);
  setState({ layer: 3 }, false);
  assert.deepEqual(seen, [1]);
  notifyStateListeners();
  notifyStateListeners(); // nothing new
  assert.deepEqual(seen, [1, 3]);
});

test("state listeners get every change, announced or not, and the previous state", () => {
  const kept = [];
  setState({ head: 0 });
  onEveryState((now, before) => kept.push([before.head, now.head]));
  setState({ head: 1 });
  setState({ head: 2 }, false);
  assert.deepEqual(kept, [[0, 1], [1, 2]]);
});
