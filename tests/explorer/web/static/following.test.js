import { addBanner } from "../../../../explorer/web/static/dom.js";
import assert from "node:assert/strict";
import test from "node:test";
import { enableRequests } from "../../../../explorer/web/static/page_actions.js";
import { changeFrom, followTeacher, changeScope, sharedFields } from "../../../../explorer/web/static/room_client.js";
import { connectState, setState, state } from "../../../../explorer/web/static/page_state.js";
import { settled, standInPage, standInPython } from "./stand_ins.js";

standInPage();
const asked = standInPython();
globalThis.sessionStorage = { removeItem() {} };
globalThis.location = { href: "http://here/", search: "" };
const kept = { "explorer:lessons": JSON.stringify({ order: { step: 3, replies: { 3: "3:mine" } } }) };
globalThis.localStorage = { getItem: (name) => kept[name] ?? null, setItem() {} };
addBanner();
const done = [];
connectState({ props: {}, watch() {}, emit: { wake() {}, sync: () => done.push("sync"), halt: () => done.push("halt") } });
const MINE = { checkpoint: "tiny", prompt: [1, 2], generated: [], view: "attention", shown: "a", query: 1, key: 0, temperature: 0.8, lesson: "", step: 0, reply: "", guess: "fox", lang: "en", turn: 3, "b.prompt": "" };
const begin = () => { setState(MINE); done.length = 0; };
begin();
enableRequests();

test("what is each person's own is not shown, and not taken", () => {
  const theirs = sharedFields({ ...MINE, reply: "3:right", guess: "owl", lang: "zh-CN", turn: 9, query: 0 });
  for (const own of ["reply", "guess", "lang", "turn"]) assert.ok(!(own in theirs));
  assert.deepEqual(changeFrom({ ...theirs, reply: "3:right", lang: "zh-CN", turn: 9 }, MINE), { query: 0 });
});

test("a name that this page has not and what no state holds are left out", () => {
  const hostile = JSON.parse('{"__proto__": {"x": 1}, "constructor": "x", "toString": "x", "other": 1, "view": {"x": 1}, "prompt": ["<img>"], "query": null, "key": 5}');
  assert.deepEqual(changeFrom(hostile, MINE), { key: 5 });
  assert.deepEqual(changeFrom({ "b.prompt": [1, 2] }, MINE), { "b.prompt": [1, 2] }); // which is "" where there is no second run
  assert.deepEqual(changeFrom({ prompt: [1, 2], query: "1" }, MINE), {});
});

test("what changes says what is asked for", () => {
  assert.equal(changeScope({}), null);
  assert.equal(changeScope({ query: 1, temperature: 1 }), "pick");
  assert.equal(changeScope({ query: 1, view: "tokens" }), "view");
  assert.equal(changeScope({ shown: "b" }), "view");
  for (const name of ["checkpoint", "prompt", "generated", "dropped", "edits", "branches", "began", "lesson", "step", "b.edits"]) assert.equal(changeScope({ view: "tokens", [name]: "x" }), "run");
});

test("another place is gone to as a click does, another tab is opened, and Gradio's sliders follow settings alone", async () => {
  begin();
  followTeacher({ ...MINE, query: 0 });
  await settled();
  assert.deepEqual([state.query, state.turn, done, asked.at(-1)?.about], [0, 3, [], "pick"]);
  asked.at(-1).answer();
  await settled();
  followTeacher({ ...MINE, query: 0, view: "tokens", temperature: 1 });
  await settled();
  assert.deepEqual([state.view, done, asked.at(-1).about], ["tokens", ["sync"], "view"]);
  asked.at(-1).answer();
  await settled();
  const before = asked.length;
  followTeacher({ ...MINE, query: 0, view: "tokens", temperature: 1 });
  await settled();
  assert.equal(asked.length, before);
});

test("another text is gone to as Back does, and a lesson's step with the reply that was given here", async () => {
  begin();
  followTeacher({ ...MINE, prompt: [7], lesson: "order", step: 3, reply: "3:theirs" });
  await settled();
  assert.deepEqual([state.prompt, state.reply, state.turn, done, asked.at(-1).action], [[7], "3:mine", 5, [], { kind: "follow" }]);
  followTeacher({ ...MINE, prompt: [8], lesson: "order", step: 3 });
  assert.equal(state.reply, "3:mine");
  followTeacher({ ...MINE, prompt: [8], lesson: "order", step: 4 });
  assert.equal(state.reply, "");
});
