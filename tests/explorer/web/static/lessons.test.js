import assert from "node:assert/strict";
import test from "node:test";
import { beginAsking } from "../../../../explorer/web/static/asking.js";
import { placeBanner } from "../../../../explorer/web/static/connection.js";
import { askAgain, goToStep, keepPlaces, leaveLesson, leftAt, lessonTold, onLessonTold, replyTo, replyWith, showAnyway, tellLesson } from "../../../../explorer/web/static/history.js";
import { connectState, setState, state } from "../../../../explorer/web/static/state.js";
import { settled, standInPage, standInPython } from "./stand_ins.js";

standInPage();
const asked = standInPython();
globalThis.sessionStorage = { removeItem() {} };
const kept = {};
globalThis.localStorage = { getItem: (name) => kept[name] ?? null, setItem: (name, text) => { kept[name] = text; } };
placeBanner();
connectState({ props: {}, watch() {}, emit: { sync() {}, halt() {}, wake() {} } });
beginAsking();
keepPlaces();
setState({ checkpoint: "tiny", prompt: [1], generated: [], turn: 0, lesson: "order", step: 2, reply: "" });

test("a reply belongs to its step", () => {
  assert.equal(replyTo(2, "2:0.5"), "0.5");
  assert.equal(replyTo(1, "2:0.5"), null);
  assert.equal(replyTo(2, "22:0.5"), null);
  assert.equal(replyTo(2, undefined), null);
});

test("where a lesson was left, and what was replied, is kept and comes back with the step", async () => {
  replyWith("0.5");
  assert.equal(state.reply, "2:0.5");
  assert.deepEqual(leftAt().order, { step: 2, replies: { 2: "2:0.5" } });
  setState({ step: 3 });
  assert.equal(leftAt().order.step, 3);
  assert.deepEqual(leftAt().order.replies, { 2: "2:0.5" }); // that is no reply to step 3
  asked.at(-1).answer();
  await settled();
  goToStep("order", 2);
  await settled();
  assert.deepEqual(asked.at(-1).action, { kind: "lesson", lesson: "order", step: 2, reply: "2:0.5" });
  asked.at(-1).answer({ change: {}, prompt: null, done: false, notices: [] });
  setState({ step: 2 });
});

test("asking again forgets the reply of this step alone", () => {
  replyWith("0.5");
  setState({ step: 4 });
  showAnyway();
  assert.equal(state.reply, "4:?");
  askAgain();
  assert.equal(state.reply, "");
  assert.deepEqual(leftAt().order.replies, { 2: "2:0.5" });
});

test("who left a lesson is told nothing of its steps", () => {
  const heard = [], leaving = new AbortController();
  onLessonTold((now) => heard.push(now.step), leaving.signal);
  tellLesson({ step: 4 });
  assert.equal(lessonTold().step, 4);
  leaving.abort();
  tellLesson({ step: 5 });
  assert.deepEqual(heard, [4]);
  leaveLesson();
  assert.equal(lessonTold(), null);
  assert.deepEqual([state.lesson, state.step, state.reply], ["", 0, ""]);
  assert.equal(leftAt().order.step, 4); // to come back to
  assert.deepEqual(Object.keys(leftAt()), ["order"]);
});

test("a storage that holds something else is as good as none", () => {
  kept["explorer:lessons"] = "{";
  assert.deepEqual(leftAt(), {});
});
