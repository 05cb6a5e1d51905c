import assert from "node:assert/strict";
import test from "node:test";
import { ask, isAsking, questionAfter } from "../../../../explorer/web/static/asking.js";
import { connectBus } from "../../../../explorer/web/static/bus.js";
import { isLost } from "../../../../explorer/web/static/connection.js";
import { onContent } from "../../../../explorer/web/static/contents.js";
import { ABOUT } from "../../../../explorer/web/static/protocol.js";
import { setState } from "../../../../explorer/web/static/state.js";
import { placeBanner } from "../../../../explorer/web/static/banner.js";
import { settled, StandIn, standInPage, standInPython } from "./stand_ins.js";

standInPage();
placeBanner();
const asked = standInPython(), problems = [];
onContent(new StandIn("problem"), (words) => problems.push(words));
const place = (question) => ABOUT.indexOf(question);

/** Answers the question that is on its way with no contents. */
async function answer(content = {}) {
  asked.at(-1).answer({ contents: {}, more: false, ...content });
  await settled();
}

test("what is asked next: what is newly wanted, or else the rest of the answer, or else nothing", () => {
  const pick = { about: place("pick"), part: 0, number: 4 };
  assert.equal(questionAfter(pick, false, -1, 4), null);
  assert.deepEqual(questionAfter(pick, true, -1, 4), { ...pick, part: 1 });
  assert.deepEqual(questionAfter(pick, false, place("tune"), 5), { about: place("tune"), part: 0, number: 5 });
  assert.deepEqual(questionAfter(null, false, place("show"), 1), { about: place("show"), part: 0, number: 1 });
});

test("what was left of an answer is asked again with what is newer", () => {
  const show = { about: place("show"), part: 0, number: 4 };
  assert.deepEqual(questionAfter(show, true, place("tune"), 5), { ...show, number: 5 });
  assert.deepEqual(questionAfter({ ...show, about: place("tune") }, true, place("pick"), 5), { about: place("pick"), part: 0, number: 5 });
});

test("nothing is asked before there is a way to ask, and then what was wanted", async () => {
  ask("show");
  assert.equal(asked.length, 0);
  connectBus({ write() {} });
  ask();
  await settled();
  assert.deepEqual(asked.map(({ about, part }) => [about, part]), [["show", 0]]);
  assert.equal(isAsking(), true);
  await answer();
  assert.equal(isAsking(), false);
});

test("one question at a time, then the most important of those since, of the state as it is then", async () => {
  const before = asked.length;
  setState({ query: 1 });
  ask("tune");
  ask("pick");
  ask("tune");
  setState({ query: 2 });
  assert.deepEqual([asked.length - before, asked.at(-1).about, asked.at(-1).state.query], [1, "tune", 1]);
  await answer();
  assert.deepEqual([asked.length - before, asked.at(-1).about, asked.at(-1).state.query], [2, "pick", 2]);
  await answer();
  assert.equal(asked.length - before, 2);
});

test("an answer is asked for part by part", async () => {
  const before = asked.length;
  ask("show");
  await answer({ more: true });
  await answer({ more: true });
  await answer();
  assert.deepEqual(asked.slice(before).map(({ about, part }) => [about, part]), [["show", 0], ["show", 1], ["show", 2]]);
});

test("the first part is waited for, the rest is not once something newer is asked", async () => {
  ask("pick");
  ask("pick");
  assert.equal(asked.at(-1).signal.aborted, false);
  await answer({ more: true });
  await answer({ more: true });
  assert.equal(asked.at(-1).part, 1);
  const rest = asked.at(-1);
  ask("tune");
  await settled();
  assert.equal(rest.signal.aborted, true);
  assert.deepEqual([asked.at(-1).about, asked.at(-1).part], ["pick", 0]); // its rest is still owed
  await answer();
});

test("the version of the model's files goes along, and what is to be asked where they are others", async () => {
  ask("pick");
  await answer({ version: "tiny@2", ask: "show" });
  assert.deepEqual([asked.at(-1).about, asked.at(-1).state.version], ["show", "tiny@2"]);
  await answer();
});

test("a sentence in place of an answer is told", async () => {
  ask("pick");
  asked.at(-1).answer({ detail: "There is no such model." }, false);
  await settled();
  assert.deepEqual([problems.at(-1), isAsking()], ["There is no such model.", false]);
});

test("where nobody answers nothing more is asked", async () => {
  const before = asked.length;
  ask("pick");
  asked.at(-1).fail();
  await settled();
  assert.equal(isLost, true);
  assert.equal(document.body.classList.contains("disconnected"), true);
  ask("show");
  await settled();
  assert.deepEqual([asked.length - before, isAsking()], [1, false]);
});
