import assert from "node:assert/strict";
import test from "node:test";
import { placeBanner } from "../../../../explorer/web/static/banner.js";
import { connectBus } from "../../../../explorer/web/static/bus.js";
import { own } from "../../../../explorer/web/static/history.js";
import { begin, beginWith, makeMove, onMoved } from "../../../../explorer/web/static/moves.js";
import { setState, state } from "../../../../explorer/web/static/state.js";
import { settled, standInPage, standInPython } from "./stand_ins.js";

standInPage();
standInPython();
globalThis.sessionStorage = { removeItem() {} };
placeBanner();
const made = [], UNDO = { kind: "undo" };
connectBus({ write() {}, move: (asked) => made.push(asked) });
setState({ checkpoint: "tiny", prompt: [1], generated: [5, 6], turn: 0 });

/** Python answers the move that is being made with a run of so many tokens fewer. */
function undone() {
  const { generated, turn } = state;
  onMoved({ change: { prompt: [1], generated: generated.slice(0, -1), turn: turn + 1 }, ask: "show" });
}

test("moves are made one after another, each of the run that the one before led to", () => {
  makeMove(UNDO);
  makeMove({ kind: "take", token: 70 });
  assert.deepEqual(made.map(({ move, generated }) => [move.kind, generated]), [["undo", [5, 6]]]);
  undone();
  assert.deepEqual(made.map(({ move, generated }) => [move.kind, generated]), [["undo", [5, 6]], ["take", [5]]]);
  onMoved(undefined); // refused: the state stays
  assert.deepEqual(state.generated, [5]);
});

test("a step of a training has what was written to another step of it", async () => {
  own.fables = { generated: [3] };
  assert.deepEqual((await beginWith("fables/step-000512")).own, { generated: [3] });
  assert.equal((await beginWith("other")).own, null);
});

test("what is being written ends with what is seen before a move is made", () => {
  const { turn } = state;
  makeMove(UNDO);
  assert.equal(made.at(-1).turn, turn + 2);
  undone();
});

test("where there is no more to be undone, further undoing asks nothing", async () => {
  setState({ generated: [5] });
  const before = made.length;
  for (let i = 0; i < 4; i++) makeMove(UNDO);
  undone();
  assert.equal(made.length, before + 1);
  assert.deepEqual((await begin()).generated, []);
});

test("what is to be written waits until all moves are made", async () => {
  setState({ generated: [5, 6] });
  makeMove(UNDO);
  let begun = null;
  begin().then((from) => { begun = from; });
  await settled();
  assert.equal(begun, null);
  undone();
  await settled();
  assert.deepEqual(begun.generated, [5]);
});

test("another model begins with its own continuations, where it has been here before", async () => {
  own.twin = { generated: [9] };
  assert.deepEqual((await beginWith("twin")).own, { generated: [9] });
  assert.equal((await beginWith("other")).own, null);
});
