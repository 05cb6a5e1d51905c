import { addBanner, addNotices } from "../../../../explorer/web/static/dom.js";
import assert from "node:assert/strict";
import test from "node:test";
import { runAction, actionsDone, requestUpdate, enableRequests, isRequestOpen, isBusy } from "../../../../explorer/web/static/page_actions.js";
import { isServerLost } from "../../../../explorer/web/static/server_connection.js";
import { onContent } from "../../../../explorer/web/static/widget_contents.js";
import { setState, state } from "../../../../explorer/web/static/page_state.js";
import { settled, StandIn, standInPage, standInPython } from "./browser_stubs.js";

standInPage();
globalThis.sessionStorage = { removeItem() {} };
globalThis.scrollTo = () => {};
globalThis.matchMedia = () => ({ matches: false });
addBanner();
addNotices();
const list = document.body.children.at(-1);
const asked = standInPython(), problems = [], stories = [];
onContent(new StandIn("problem"), (words) => problems.push(words));
onContent(new StandIn("story"), (words) => stories.push(words));
const since = (before) => asked.slice(before).map(({ about, action }) => action?.kind ?? about);
const done = (change = {}) => ({ change, prompt: null, done: true, notices: [] });

/** Answers the question that is on its way. */
async function answer(content) {
  asked.at(-1).answer(content);
  await settled();
}

test("no request is sent before there are widgets, then the pending one", async () => {
  requestUpdate("show");
  setState({ checkpoint: "tiny", prompt: [1], generated: [], turn: 1 });
  await settled();
  assert.equal(asked.length, 0);
  enableRequests();
  await settled();
  assert.deepEqual([asked[0].name, asked[0].about, asked[0].state.checkpoint], ["answer", "show", "tiny"]);
  assert.deepEqual([isRequestOpen(), isBusy()], [true, true]);
  await answer();
  assert.deepEqual([isRequestOpen(), isBusy()], [false, false]);
});

test("one request at a time, then the most important pending one, with the current state", async () => {
  const before = asked.length;
  setState({ query: 1 });
  requestUpdate("tune");
  await settled();
  requestUpdate("pick");
  requestUpdate("tune");
  setState({ query: 2 });
  assert.deepEqual([since(before), asked.at(-1).state.query], [["tune"], 1]);
  await answer();
  assert.deepEqual([since(before), asked.at(-1).state.query], [["tune", "pick"], 2]);
  await answer();
  assert.equal(asked.length - before, 2);
});

test("each line is shown on arrival", async () => {
  const before = asked.length;
  requestUpdate("show");
  await settled();
  asked.at(-1).line({ contents: { story: "in sight" } });
  await settled();
  assert.deepEqual([stories.at(-1), isRequestOpen()], ["in sight", true]);
  asked.at(-1).line({ contents: { story: "below" } });
  await settled();
  assert.equal(stories.at(-1), "below");
  asked.at(-1).end();
  await settled();
  assert.deepEqual([asked.length - before, isRequestOpen()], [1, false]);
});

test("the first line is awaited; the rest is aborted by a newer request, and requested again", async () => {
  const before = asked.length;
  requestUpdate("pick");
  await settled();
  requestUpdate("tune");
  await settled();
  assert.equal(asked.at(-1).signal.aborted, false);
  await answer();
  assert.deepEqual(since(before), ["pick", "pick"]);
  asked.at(-1).line({ contents: {} });
  await settled();
  const rest = asked.at(-1);
  requestUpdate("tune");
  await settled();
  assert.equal(rest.signal.aborted, true);
  assert.deepEqual(since(before), ["pick", "pick", "pick"]);
  await answer();
  assert.equal(isRequestOpen(), false);
});

test("an action delivers its change before the contents", async () => {
  const acted = runAction({ kind: "undo" });
  await settled();
  assert.deepEqual(asked.at(-1).action, { kind: "undo" });
  asked.at(-1).line(done({ generated: [5], turn: state.turn + 1 }));
  await settled();
  assert.deepEqual(state.generated, [5]);
  asked.at(-1).line({ contents: { story: "undone" } });
  asked.at(-1).end();
  assert.equal(await acted, true);
  assert.equal(stories.at(-1), "undone");
});

test("actions run one after another, each with the state of the previous one", async () => {
  const before = asked.length, turn = state.turn;
  let areDone = false;
  runAction({ kind: "take", token: 7 });
  runAction({ kind: "step" });
  actionsDone().then(() => { areDone = true; });
  await settled();
  assert.deepEqual(since(before), ["take"]);
  await answer(done({ generated: [7], turn: turn + 1 }));
  assert.deepEqual([since(before), asked.at(-1).state.generated, areDone], [["take", "step"], [7], false]);
  await answer(done({ generated: [7, 8], turn: turn + 2 }));
  assert.deepEqual([areDone, state.generated], [true, [7, 8]]);
  await answerRest();
});

test("an action that is no longer wanted at its turn is not sent", async () => {
  const before = asked.length;
  const acted = runAction({ kind: "undo" }, () => false);
  assert.equal(await acted, false);
  assert.deepEqual(since(before), []);
});

test("a refused action changes nothing and is explained", async () => {
  const before = state.generated, acted = runAction({ kind: "undo" });
  await settled();
  await answer({ change: {}, prompt: null, done: false, notices: ["There is <b>nothing</b> to undo."] });
  assert.equal(await acted, false);
  assert.equal(state.generated, before);
  assert.equal(list.children.at(-1).dataset.text, "There is <b>nothing</b> to undo.");
  assert.deepEqual(list.children.at(-1).children[0].children, ["There is <b>nothing</b> to undo."]); // a text, not markup
  await answerRest();
});

test("the version of the model's files is sent along", async () => {
  requestUpdate("pick");
  await settled();
  await answer({ contents: {}, version: "tiny@2" });
  requestUpdate("pick");
  await settled();
  assert.equal(asked.at(-1).state.version, "tiny@2");
  await answer();
});

test("an error message in place of an answer is shown", async () => {
  requestUpdate("pick");
  await settled();
  asked.at(-1).refuse("There is no such model.");
  await settled();
  assert.deepEqual([problems.at(-1), isRequestOpen()], ["There is no such model.", false]);
});

test("without an answering server nothing more is sent, and pending actions fail", async () => {
  const before = asked.length;
  requestUpdate("pick");
  await settled();
  asked.at(-1).fail();
  await settled();
  assert.equal(isServerLost, true);
  assert.equal(document.body.classList.contains("disconnected"), true);
  requestUpdate("show");
  assert.equal(await runAction({ kind: "undo" }), false);
  await settled();
  assert.deepEqual([asked.length - before, isRequestOpen()], [1, false]);
});

async function answerRest() {
  await settled();
  while (isRequestOpen()) await answer();
}
