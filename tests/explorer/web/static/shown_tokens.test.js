import { addBanner } from "../../../../explorer/web/static/dom.js";
import assert from "node:assert/strict";
import test from "node:test";
import { changeUpTo, dropUnshownTokens, isWriting, applyUpdate, setGenerating, stopWriting } from "../../../../explorer/web/static/page_actions.js";
import { state } from "../../../../explorer/web/static/page_state.js";
import { standInPage, standInPython } from "./browser_stubs.js";

standInPage();
standInPython();
globalThis.sessionStorage = { removeItem() {} };
addBanner();
applyUpdate({ change: { checkpoint: "tiny", prompt: [1, 2], generated: [], query: 1, key: 0, turn: 4 }, ask: "show" });

test("the first generated tokens are shown, with the last of them selected", () => {
  const written = { change: { generated: [8, 9, 10, 11], query: 9, turn: 4 }, steps: [3, 4, 5] }; // 8 was already there
  assert.deepEqual(changeUpTo(written, 1), { generated: [8, 9], query: 3, key: 2, turn: 4 });
  assert.deepEqual(changeUpTo(written, 3), { generated: [8, 9, 10, 11], query: 5, key: 4, turn: 4 });
  assert.equal(changeUpTo({ change: { generated: [8] }, steps: [0] }, 1).key, 0);
});

test("an update of an older turn is ignored", () => {
  applyUpdate({ change: { query: 0, turn: 3 }, ask: "show" });
  assert.deepEqual([state.query, state.turn], [1, 4]);
  applyUpdate({ change: { query: 0, turn: 4 }, ask: "show" });
  assert.equal(state.query, 0);
});

test("tokens are shown one by one until generation is stopped", async () => {
  const change = { generated: [5, 6, 7], query: 4, turn: 4 };
  applyUpdate({ change, steps: [2, 3, 4], ask: "token" });
  assert.deepEqual([state.generated, state.query], [[5], 2]);
  stopWriting();
  assert.deepEqual([state.generated, state.turn], [[5], 6]);
  applyUpdate({ change, steps: [2, 3, 4], ask: "show" });
  await new Promise((resolve) => { setTimeout(resolve, 150); });
  assert.deepEqual(state.generated, [5]);
});

test("generation lasts from the click until the last token is shown or it is stopped", async () => {
  const { turn } = state, change = { generated: [5, 6], query: 3, turn };
  assert.equal(isWriting(), false);
  setGenerating(true);
  assert.equal(isWriting(), true);
  applyUpdate({ change, steps: [2, 3], ask: "show" });
  setGenerating(false); // Python is faster than the display
  assert.equal(isWriting(), true);
  stopWriting();
  assert.equal(isWriting(), false);
  for (const end of [stopWriting, dropUnshownTokens]) {
    setGenerating(true);
    end();
    assert.equal(isWriting(), false);
  }
});
