import { addBanner } from "../../../../explorer/web/static/dom.js";
import assert from "node:assert/strict";
import test from "node:test";
import { enableRequests } from "../../../../explorer/web/static/page_actions.js";
import { forgetReply, goToStep, storeLessonPositions, leaveLesson, lessonPositions, shownLessonStep, onLessonStep, replyAtStep, sendReply, showAnswer, notifyLessonStep } from "../../../../explorer/web/static/history.js";
import { connectState, setState, state } from "../../../../explorer/web/static/page_state.js";
import { settled, standInPage, standInPython } from "./browser_stubs.js";

standInPage();
const asked = standInPython();
globalThis.sessionStorage = { removeItem() {} };
const kept = {};
globalThis.localStorage = { getItem: (name) => kept[name] ?? null, setItem: (name, text) => { kept[name] = text; } };
addBanner();
connectState({ props: {}, watch() {}, emit: { sync() {}, halt() {}, wake() {} } });
enableRequests();
storeLessonPositions();
setState({ checkpoint: "tiny", prompt: [1], generated: [], turn: 0, lesson: "order", step: 2, reply: "" });

test("a reply belongs to its step", () => {
  assert.equal(replyAtStep(2, "2:0.5"), "0.5");
  assert.equal(replyAtStep(1, "2:0.5"), null);
  assert.equal(replyAtStep(2, "22:0.5"), null);
  assert.equal(replyAtStep(2, undefined), null);
});

test("the last step and the replies are stored and restored", async () => {
  sendReply("0.5");
  assert.equal(state.reply, "2:0.5");
  assert.deepEqual(lessonPositions().order, { step: 2, replies: { 2: "2:0.5" } });
  setState({ step: 3 });
  assert.equal(lessonPositions().order.step, 3);
  assert.deepEqual(lessonPositions().order.replies, { 2: "2:0.5" }); // not a reply to step 3
  asked.at(-1).answer();
  await settled();
  goToStep("order", 2);
  await settled();
  assert.deepEqual(asked.at(-1).action, { kind: "lesson", lesson: "order", step: 2, reply: "2:0.5" });
  asked.at(-1).answer({ change: {}, prompt: null, done: false, notices: [] });
  setState({ step: 2 });
});

test("asking again removes the reply of this step only", () => {
  sendReply("0.5");
  setState({ step: 4 });
  showAnswer();
  assert.equal(state.reply, "4:?");
  forgetReply();
  assert.equal(state.reply, "");
  assert.deepEqual(lessonPositions().order.replies, { 2: "2:0.5" });
});

test("listeners of a lesson hear nothing after they are removed", () => {
  const heard = [], leaving = new AbortController();
  onLessonStep((now) => heard.push(now.step), leaving.signal);
  notifyLessonStep({ step: 4 });
  assert.equal(shownLessonStep().step, 4);
  leaving.abort();
  notifyLessonStep({ step: 5 });
  assert.deepEqual(heard, [4]);
  leaveLesson();
  assert.equal(shownLessonStep(), null);
  assert.deepEqual([state.lesson, state.step, state.reply], ["", 0, ""]);
  assert.equal(lessonPositions().order.step, 4); // for resuming later
  assert.deepEqual(Object.keys(lessonPositions()), ["order"]);
});

test("a storage with other content counts as empty", () => {
  kept["explorer:lessons"] = "{";
  assert.deepEqual(lessonPositions(), {});
});
