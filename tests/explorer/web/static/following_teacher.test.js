import { addBanner } from "../../../../explorer/web/static/dom.js";
import assert from "node:assert/strict";
import test from "node:test";
import { enableRequests } from "../../../../explorer/web/static/page_actions.js";
import { changeFrom, followTeacher, changeScope, sharedFields } from "../../../../explorer/web/static/room_client.js";
import { connectState, setState, state } from "../../../../explorer/web/static/page_state.js";
import { settled, standInPage, standInPython } from "./browser_stubs.js";

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

test("personal fields are neither shared nor taken", () => {
  const theirs = sharedFields({ ...MINE, reply: "3:right", guess: "owl", lang: "zh-CN", turn: 9, query: 0 });
  for (const own of ["reply", "guess", "lang", "turn"]) assert.ok(!(own in theirs));
  assert.deepEqual(changeFrom({ ...theirs, reply: "3:right", lang: "zh-CN", turn: 9 }, MINE), { query: 0 });
});

test("unknown names and invalid values are ignored", () => {
  const hostile = JSON.parse('{"__proto__": {"x": 1}, "constructor": "x", "toString": "x", "other": 1, "view": {"x": 1}, "prompt": ["<img>"], "query": null, "key": 5}');
  assert.deepEqual(changeFrom(hostile, MINE), { key: 5 });
  assert.deepEqual(changeFrom({ "b.prompt": [1, 2] }, MINE), { "b.prompt": [1, 2] }); // "" without a second run
  assert.deepEqual(changeFrom({ prompt: [1, 2], query: "1" }, MINE), {});
});

test("the changed fields determine the scope of the request", () => {
  assert.equal(changeScope({}), null);
  assert.equal(changeScope({ query: 1, temperature: 1 }), "pick");
  assert.equal(changeScope({ query: 1, view: "tokens" }), "view");
  assert.equal(changeScope({ shown: "b" }), "view");
  for (const name of ["checkpoint", "prompt", "generated", "dropped", "edits", "branches", "began", "lesson", "step", "b.edits"]) assert.equal(changeScope({ view: "tokens", [name]: "x" }), "run");
});

test("a position is requested as by a click, a tab is opened, and only settings update Gradio's sliders", async () => {
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

test("another text is followed like Back, and a lesson's step keeps this student's own reply", async () => {
  begin();
  followTeacher({ ...MINE, prompt: [7], lesson: "order", step: 3, reply: "3:theirs" });
  await settled();
  assert.deepEqual([state.prompt, state.reply, state.turn, done, asked.at(-1).action], [[7], "3:mine", 5, [], { kind: "follow" }]);
  followTeacher({ ...MINE, prompt: [8], lesson: "order", step: 3 });
  assert.equal(state.reply, "3:mine");
  followTeacher({ ...MINE, prompt: [8], lesson: "order", step: 4 });
  assert.equal(state.reply, "");
});
