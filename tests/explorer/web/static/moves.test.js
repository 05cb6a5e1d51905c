import { addBanner } from "../../../../explorer/web/static/dom.js";
import assert from "node:assert/strict";
import test from "node:test";
import { enableRequests, beginWriting, changeModel, isWriting, makeMove, runExample, runPrompt, setGenerating } from "../../../../explorer/web/static/page_actions.js";
import { continuationsByModel } from "../../../../explorer/web/static/history.js";
import { connectState, setState, state } from "../../../../explorer/web/static/page_state.js";
import { settled, standInPage, standInPython } from "./browser_stubs.js";

standInPage();
document.querySelector = (selector) => (selector === "#prompt textarea" ? { value: "a" } : null);
const asked = standInPython(), UNDO = { kind: "undo" };
globalThis.sessionStorage = { removeItem() {} };
addBanner();
let halted = 0;
connectState({ props: {}, watch() {}, emit: { sync() {}, wake() {}, halt: () => halted++ } });
enableRequests();
setState({ checkpoint: "tiny", prompt: [1], generated: [5, 6], turn: 0 });
const kinds = (before) => asked.slice(before).map(({ action }) => action?.kind);

/** Answers the pending move with a run of one token fewer. */
async function undone() {
  await settled();
  const { generated, turn } = state;
  asked.at(-1).answer({ change: { prompt: [1], generated: generated.slice(0, -1), turn: turn + 1 }, prompt: null, done: true, notices: [] });
  await settled();
}

/** Answers all pending requests with nothing. */
async function idle() {
  for (let answered = -1; answered < asked.length;) {
    answered = asked.length;
    asked.at(-1)?.answer();
    await settled();
  }
}

test("moves run one after another, each with the run of the previous one, and tell whether they were made", async () => {
  const moves = [makeMove(UNDO), makeMove({ kind: "take", token: 70 })];
  await settled();
  assert.deepEqual(asked.map(({ action, state }) => [action.kind, state.generated]), [["undo", [5, 6]]]);
  await undone();
  assert.deepEqual(asked.map(({ action, state }) => [action.kind, state.generated]), [["undo", [5, 6]], ["take", [5]]]);
  asked.at(-1).answer({ change: {}, prompt: null, done: false, notices: [] });
  await settled();
  assert.deepEqual([state.generated, await Promise.all(moves)], [[5], [true, false]]);
  await idle();
});

test("generation stops at the visible token before any action", async () => {
  for (const act of [() => makeMove(UNDO), () => runPrompt("a"), () => runExample("a"), () => changeModel("twin")]) {
    setGenerating(true);
    const { turn } = state, before = halted;
    act();
    assert.deepEqual([isWriting(), halted - before, state.turn], [false, 1, turn + 2]);
    await settled();
    await idle();
  }
});

test("further undo sends no request once nothing is left to undo", async () => {
  setState({ generated: [5] });
  await idle();
  const before = asked.length;
  for (let i = 0; i < 4; i++) makeMove(UNDO);
  await undone();
  assert.deepEqual(kinds(before).filter(Boolean), ["undo"]);
  await idle();
});

test("generation waits until all moves are done", async () => {
  setState({ generated: [5, 6] });
  makeMove(UNDO);
  let begun = null;
  beginWriting().then((from) => { begun = from; });
  await settled();
  assert.equal(begun, null);
  await undone();
  await settled();
  assert.deepEqual([begun.generated, isWriting()], [[5], true]);
  setGenerating(false);
  await idle();
});

test("another model starts with its own continuations, if it was used before", async () => {
  Object.assign(continuationsByModel, { twin: { generated: [9] }, fables: { generated: [3] } });
  for (const [checkpoint, kept] of [["twin", { generated: [9] }], ["fables/step-000512", { generated: [3] }], ["other", null]]) {
    changeModel(checkpoint);
    await settled();
    const { action } = asked.at(-1);
    assert.deepEqual([action.kind, action.text, action.checkpoint, action.own], ["model", "a", checkpoint, kept]);
    await idle();
  }
});
