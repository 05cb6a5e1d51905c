import assert from "node:assert/strict";
import test, { mock } from "node:test";
import { urlWithoutRoom } from "../../../../explorer/web/static/history.js";
import { isAnswerHeld, heldReply, replyToStep, changeRoom, closeRoom, endRoom, endReason, enterRoom, setFollowing, isTeacher, joinRoom, leaveRoom, joinUrl, room } from "../../../../explorer/web/static/room_client.js";
import { setState, state } from "../../../../explorer/web/static/page_state.js";
import { asked, CODE, kept, KEY, last, MINE, opened, standInRooms, told } from "./room_page.js";
import { settled } from "./browser_stubs.js";

standInRooms();
mock.timers.enable({ apis: ["setTimeout", "Date"], now: Date.now() });
async function after(milliseconds) {
  mock.timers.tick(milliseconds);
  await settled();
}
const afterTimers = () => after(450);

test("students join at the page's URL, without the teacher's state", () => {
  assert.equal(joinUrl(CODE, "http://here/lab/?view=tokens&room=OTHER#places=x"), `http://here/lab/?room=${CODE}`);
  assert.equal(joinUrl(CODE, "http://here/"), `http://here/?room=${CODE}`);
  assert.equal(urlWithoutRoom(new URL(`http://here/?room=${CODE}&view=tokens`)).href, "http://here/?view=tokens");
});

test("a teacher's key is in this tab and in no URL, and the class gets the state without private fields", async () => {
  await opened();
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
  assert.equal(asked.filter(({ name }) => name === "lead").length, 2); // two moves in quick succession are one
  last("lead").answer({});
  await settled();
  changeRoom({ leads: false });
  await afterTimers();
  assert.deepEqual([last("lead").leads, last("lead").state], [false, null]);
  last("lead").answer({});
  await told({ people: 3, lesson: "", step: 0, counts: {} });
  assert.equal(room.people, 3);
  enterRoom(); // as after a reload
  assert.deepEqual([isTeacher(), room.code, room.leads], [true, CODE, false]);
  const closing = closeRoom();
  await told({ closed: true });
  assert.equal(endReason, ""); // the teacher closed it, so there is no reason to show
  last("close").answer({});
  await closing;
  assert.deepEqual([room, kept["explorer:room"], endReason], [null, undefined, ""]);
});

test("a teacher is notified that the room expired", async () => {
  await opened();
  await told({ closed: true });
  assert.deepEqual([room, endReason], [null, "closed"]);
});

test("a student stays in a room over a reload and a failed request; a refusal ends it", async () => {
  setState(MINE);
  joinRoom(CODE);
  await settled();
  const { student } = last("next");
  setFollowing(false);
  enterRoom(); // as on opening the page
  await settled();
  assert.deepEqual([last("next").student, room.follows], [student, false]);
  last("next").fail();
  await settled();
  assert.equal(room.isReached, false);
  await after(600);
  await told({ leads: true, lesson: "", state: null });
  assert.equal(room.isReached, true);
  last("next").answer({ detail: "There is no such room." }, 404);
  await settled();
  await settled();
  assert.deepEqual([room, endReason], [null, "There is no such room."]);
  endRoom();
});

test("an answer is still held back after a reload, until the class says otherwise", async () => {
  setState(MINE);
  joinRoom(CODE);
  await told({ leads: true, lesson: "order", step: 1, held_from: 2, state: null });
  setState({ ...MINE, lesson: "order", step: 2 });
  replyToStep("3");
  enterRoom(); // as on opening the page
  await settled();
  setState({ ...MINE, lesson: "order", step: 2 });
  await settled();
  assert.deepEqual([isAnswerHeld(), heldReply(), state.reply], [true, "3", ""]);
  endRoom();
});

test("a link to another room replaces the led room, and a student has a new name in each room", async () => {
  await opened();
  globalThis.location = new URL("http://here/?room=7THERC4DE9");
  enterRoom();
  await settled();
  const { code, student } = last("next"), waits = last("next").signal;
  assert.deepEqual([isTeacher(), code], [false, "7THERC4DE9"]);
  leaveRoom();
  assert.ok(waits.aborted && last("leave").keepalive);
  joinRoom("7THERC4DE9");
  setFollowing(false);
  joinRoom(CODE);
  await settled();
  assert.ok(last("next").student && last("next").student !== student);
  assert.equal(room.follows, true);
  endRoom();
});

test("a room that could not be closed still exists, and its end is reported", async () => {
  await opened();
  const closing = assert.rejects(closeRoom());
  last("close").fail();
  await closing;
  assert.ok(isTeacher());
  await told({ closed: true });
  assert.equal(endReason, "closed");
});
