import assert from "node:assert/strict";
import test from "node:test";
import { placeBanner } from "../../../../explorer/web/static/banner.js";
import { connectBus } from "../../../../explorer/web/static/bus.js";
import { withoutRoom } from "../../../../explorer/web/static/history.js";
import { changeRoom, closeRoom, end, ended, enterRoom, isTeacher, joinRoom, leaveRoom, linkOf, openRoom, room } from "../../../../explorer/web/static/room.js";
import { keepLeading } from "../../../../explorer/web/static/room_leader.js";
import { follow, keepListening } from "../../../../explorer/web/static/room_member.js";
import { setState, state } from "../../../../explorer/web/static/state.js";
import { settled, standInPage } from "./stand_ins.js";

standInPage();
const CODE = "K7MQ29TFZX", KEY = "a-key-of-32-characters-abcdefghi", kept = {};
globalThis.localStorage = { getItem: () => null, setItem() {} };
globalThis.sessionStorage = { getItem: (name) => kept[name] ?? null, setItem: (name, text) => { kept[name] = text; }, removeItem: (name) => { delete kept[name]; } };
globalThis.location = new URL("http://here/sub/?view=tokens");
globalThis.history = { state: null, replaceState: (_state, _title, url) => { globalThis.location = new URL(url); } };
/** What was asked of the rooms; each is answered by its `answer`. @type {any[]} */
const asked = [];
globalThis.fetch = (where, { body, signal }) => {
  const name = String(where).split("/").pop();
  if (!String(where).startsWith("rooms/")) return new Promise(() => {}); // a picture's answer never comes
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
    asked.push({ name, ...JSON.parse(body), answer: (content, status = 200) => resolve({ ok: status === 200, status, json: async () => content }), fail: () => reject(new TypeError("nobody is there")) });
  });
};
const last = (name) => asked.findLast((one) => one.name === name);
placeBanner();
connectBus({ write() {}, move() {}, follow() {}, open() {}, halt() {} });
const MINE = { checkpoint: "tiny", prompt: [1], generated: [], view: "attention", query: 0, key: 0, lesson: "", step: 0, reply: "", turn: 0 };
setState(MINE);
keepListening();
keepLeading();
const afterTimers = () => new Promise((resolve) => { setTimeout(resolve, 450); });

async function told(news) {
  last("next").answer({ tag: String(asked.length), ...news });
  await settled();
  await settled();
}

test("students join at the front's address, whichever process the teacher's page is of", () => {
  assert.equal(linkOf(CODE, "http://here/lab/w12/?view=tokens&room=OTHER#places=x"), `http://here/lab/?room=${CODE}`);
  assert.equal(linkOf(CODE, "http://here/"), `http://here/?room=${CODE}`);
  assert.equal(withoutRoom(new URL(`http://here/?room=${CODE}&view=tokens`)).href, "http://here/?view=tokens");
});

test("a teacher's key is in this tab and in no address, and the class is told the state without what is the teacher's own", async () => {
  const opening = openRoom();
  await settled();
  last("open").answer({ code: CODE, key: KEY });
  await opening;
  assert.ok(isTeacher());
  assert.equal(location.href, "http://here/sub/?view=tokens");
  assert.equal(JSON.parse(kept["explorer:room"]).key, KEY);
  await afterTimers();
  const first = last("lead");
  assert.deepEqual([first.key, first.leads, first.state.view, "reply" in first.state], [KEY, true, "attention", false]);
  first.answer({});
  await settled();
  setState({ query: 1, reply: "1:x" });
  setState({ query: 2 });
  await afterTimers();
  assert.equal(last("lead").state.query, 2);
  assert.equal(asked.filter(({ name }) => name === "lead").length, 2); // two moves at once are one
  last("lead").answer({});
  await settled();
  changeRoom({ leads: false });
  await afterTimers();
  assert.deepEqual([last("lead").leads, last("lead").state], [false, null]);
  last("lead").answer({});
  await told({ people: 3, lesson: "", step: 0, counts: {} });
  assert.equal(room.people, 3);
  enterRoom(); // as the page does when it is loaded anew
  assert.deepEqual([isTeacher(), room.code, room.leads], [true, CODE, false]);
  const closing = closeRoom();
  await told({ closed: true });
  assert.equal(ended, ""); // of which whoever closes it is not told
  last("close").answer({});
  await closing;
  assert.deepEqual([room, kept["explorer:room"], ended], [null, undefined, ""]);
});

test("a teacher whose room expired is told", async () => {
  const opening = openRoom();
  await settled();
  last("open").answer({ code: CODE, key: KEY });
  await opening;
  await told({ closed: true });
  assert.deepEqual([room, ended], [null, "closed"]);
});

test("a student goes along, lets go, follows again, and is told when it is over", async () => {
  setState(MINE);
  joinRoom(" k7mq2-9tfzx ");
  await settled();
  assert.equal(location.searchParams.get("room"), CODE);
  assert.match(last("next").student, /^[0-9a-f]{32}$/);
  assert.ok(!("key" in last("next")));
  await told({ leads: true, lesson: "", state: { ...MINE, query: 4 } });
  assert.equal(state.query, 4);
  follow(false);
  await told({ leads: true, lesson: "", state: { ...MINE, query: 5 } });
  assert.equal(state.query, 4);
  follow(true);
  assert.equal(state.query, 5);
  setState({ query: 1 }); // a click of their own, until the teacher moves on
  await told({});
  assert.equal(state.query, 1);
  await told({ leads: false, lesson: "", state: null });
  assert.equal(state.query, 1);
  await told({ closed: true });
  assert.deepEqual([room, ended, location.searchParams.has("room")], [null, "closed", false]);
});

test("a reply to a question of the class is told once, anew where it is another, and taken back", async () => {
  setState({ ...MINE, lesson: "order", step: 3, reply: "3:2" });
  joinRoom(CODE);
  await settled();
  assert.equal(last("reply"), undefined);
  await told({ leads: true, lesson: "order", state: { ...MINE, lesson: "order", step: 3 } });
  const { student } = last("next"), replies = () => asked.filter(({ name }) => name === "reply").map(({ lesson, step, reply }) => [lesson, step, reply]);
  assert.deepEqual(replies(), [["order", 3, "2"]]);
  assert.equal(last("reply").student, student);
  setState({ query: 2 });
  setState({ reply: "3:1" });
  setState({ reply: "" });
  setState({ reply: "3:?" }); // the truth without a reply
  setState({ lesson: "another", reply: "3:7" });
  assert.deepEqual(replies().slice(1), [["order", 3, "1"], ["order", 3, null]]);
  leaveRoom();
  await settled();
  assert.equal(last("leave").student, student);
  assert.equal(room, null);
});

test("who is in a room stays in it over a reload and over an answer that did not come; what is refused ends it", async () => {
  setState(MINE);
  joinRoom(CODE);
  await settled();
  const { student } = last("next");
  follow(false);
  enterRoom(); // as the page does when it is opened
  await settled();
  assert.deepEqual([last("next").student, room.follows], [student, false]);
  last("next").fail();
  await settled();
  assert.equal(room.isReached, false);
  await new Promise((resolve) => { setTimeout(resolve, 600); });
  await told({ leads: true, lesson: "", state: null });
  assert.equal(room.isReached, true);
  last("next").answer({ detail: "There is no such room." }, 404);
  await settled();
  await settled();
  assert.deepEqual([room, ended], [null, "There is no such room."]);
  end();
});
