import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { changeRoom, endRoom, room } from "../../../../explorer/web/static/room_client.js";
import { setState } from "../../../../explorer/web/static/page_state.js";
import { all, heard, last, MINE, opened, standInRooms, told } from "./room_page.js";

standInRooms();
let now = 0;
const count = () => all("lead").length;

beforeEach(async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: now += 60_000 });
  endRoom();
  setState(MINE);
  await opened();
  await told({ people: 0, lesson: "", step: 0, counts: {} });
  t.mock.timers.tick(400);
});

test("every class gets the page's state, each state once", async (t) => {
  last("lead").answer({});
  await heard();
  const before = count();
  setState({ guess: "fox" });
  t.mock.timers.tick(1000);
  assert.equal(count(), before);
  await opened();
  await told({ people: 0, lesson: "", step: 0, counts: {} });
  t.mock.timers.tick(400);
  assert.equal(count(), before + 1);
  last("lead").answer({});
  await heard();
});

test("moves are sent at intervals, only the last of them", async (t) => {
  last("lead").answer({});
  await heard();
  const before = count();
  setState({ query: 1 });
  t.mock.timers.tick(300);
  setState({ query: 2 });
  assert.equal(count(), before);
  t.mock.timers.tick(100);
  assert.deepEqual([count(), last("lead").state.query], [before + 1, 2]);
  last("lead").answer({});
  await heard();
});

test("a failed move is sent again, and a refused one is not, but shows the reason", async (t) => {
  const before = count();
  last("lead").fail();
  await heard();
  t.mock.timers.tick(1400);
  assert.equal(count(), before + 1);
  last("lead").answer({ detail: "This is too long." }, 422);
  await heard();
  assert.equal(room.problem, "This is too long.");
  t.mock.timers.tick(5000);
  changeRoom({});
  t.mock.timers.tick(5000);
  assert.equal(count(), before + 1);
});
