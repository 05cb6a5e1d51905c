import assert from "node:assert/strict";
import test from "node:test";
import { give, onContent } from "../../../../explorer/web/static/contents.js";
import { StandIn, standInPage } from "./stand_ins.js";

standInPage();

test("what came before a widget was built is kept for it", async () => {
  const shown = [];
  await give("story", "first");
  await give("story", "second");
  onContent(new StandIn("story"), (content) => shown.push(content));
  assert.deepEqual(shown, ["second"]);
  await give("story", "third");
  assert.deepEqual(shown, ["second", "third"]);
});

test("a widget may have several contents", async () => {
  const shown = [];
  onContent(new StandIn("picture"), (content) => shown.push(content), "-mark");
  await give("picture", "drawn");
  await give("picture-mark", "vouched for");
  assert.deepEqual(shown, ["vouched for"]);
});

test("a widget that fails is told and leaves the others alone", async (t) => {
  const shown = [];
  t.mock.method(console, "error", () => {});
  onContent(new StandIn("bad"), () => { throw Error("a slip"); });
  onContent(new StandIn("problem"), (content) => shown.push(content));
  await give("bad", 1);
  assert.match(shown.at(-1), /could not be drawn/);
  assert.equal(console.error.mock.callCount(), 1);
});
