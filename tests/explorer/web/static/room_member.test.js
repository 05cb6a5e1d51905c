import assert from "node:assert/strict";
import test from "node:test";
import { endReason, setFollowing, joinRoom, leaveRoom, room } from "../../../../explorer/web/static/room_client.js";
import { setState, state } from "../../../../explorer/web/static/page_state.js";
import { all, CODE, heard, last, MINE, standInRooms, told } from "./room_page.js";
import { settled } from "./browser_stubs.js";

standInRooms();
const replies = () => all("reply").map(({ lesson, step, reply }) => [lesson, step, reply]);

test("a student follows, lets go, follows again, and is notified of the end", async () => {
  setState(MINE);
  joinRoom(" k7mqz-9tf4x "); // z for 2, as one may write it
  await settled();
  assert.equal(location.searchParams.get("room"), CODE);
  assert.match(last("next").student, /^[0-9a-f]{32}$/);
  assert.ok(!("key" in last("next")));
  await told({ leads: true, lesson: "", state: { ...MINE, query: 4 } });
  assert.equal(state.query, 4);
  setFollowing(false);
  await told({ leads: true, lesson: "", state: { ...MINE, query: 5 } });
  assert.equal(state.query, 4);
  setFollowing(true);
  assert.equal(state.query, 5);
  setState({ query: 1 }); // the student's own click, until the teacher moves on
  await told({});
  assert.equal(state.query, 1);
  await told({ leads: false, lesson: "", state: null });
  assert.equal(state.query, 1);
  await told({ closed: true });
  assert.deepEqual([room, endReason, location.searchParams.has("room")], [null, "closed", false]);
});

test("a reply to a question of the class is sent once, again if changed, and withdrawn", async () => {
  setState({ ...MINE, lesson: "order", step: 3, reply: "3:2" });
  joinRoom(CODE);
  await settled();
  assert.equal(last("reply"), undefined);
  await told({ leads: true, lesson: "order", state: { ...MINE, lesson: "order", step: 3 } });
  const { student } = last("next");
  assert.deepEqual(replies(), [["order", 3, "2"]]);
  assert.equal(last("reply").student, student);
  setState({ query: 2 });
  setState({ reply: "3:1" });
  setState({ reply: "" });
  setState({ reply: "3:?" }); // shows the answer without a reply
  setState({ lesson: "another", reply: "3:7" });
  assert.deepEqual(replies().slice(1), [["order", 3, "1"], ["order", 3, null]]);
  leaveRoom();
  await settled();
  assert.equal(last("leave").student, student);
  assert.equal(room, null);
});

test("a reply is sent again to another lesson or class, and after a failed request", async () => {
  setState({ ...MINE, lesson: "order", step: 3, reply: "3:2" });
  joinRoom(CODE);
  await settled();
  const before = replies().length, since = () => replies().slice(before), { student } = last("next");
  await told({ leads: false, lesson: "order", state: null });
  setState({ lesson: "another" });
  await told({ leads: false, lesson: "another", state: null });
  assert.deepEqual(since(), [["order", 3, "2"], ["another", 3, "2"]]);
  last("reply").fail();
  await heard();
  setState({ query: 1 });
  assert.deepEqual(since().slice(2), [["another", 3, "2"]]);
  leaveRoom();
  joinRoom(CODE);
  await settled();
  await told({ leads: false, lesson: "another", state: null });
  assert.deepEqual(since().slice(3), [["another", 3, "2"]]);
  assert.notEqual(last("reply").student, student);
  leaveRoom();
});

test("a page that opens late goes to the teacher's state", async () => {
  setState({ ...MINE, checkpoint: "" });
  joinRoom(CODE);
  await settled();
  await told({ leads: true, lesson: "", state: { ...MINE, query: 4 } });
  assert.equal(state.query, 0);
  setState({ checkpoint: "tiny" });
  await settled();
  assert.equal(state.query, 4);
  leaveRoom();
});

test("only news is requested, and a failing server at growing intervals", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  setState(MINE);
  joinRoom(CODE);
  await settled();
  last("next").answer({ tag: "of now", leads: false, lesson: "", state: null });
  await heard();
  assert.equal(last("next").seen, "of now");
  for (const pause of [500, 1000, 2000, 4000, 8000, 8000]) {
    const count = all("next").length;
    last("next").fail();
    await heard();
    t.mock.timers.tick(pause - 1);
    await heard();
    assert.equal(all("next").length, count);
    t.mock.timers.tick(1);
    await heard();
    assert.equal(all("next").length, count + 1);
  }
  leaveRoom();
});
