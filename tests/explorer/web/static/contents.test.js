import assert from "node:assert/strict";
import test from "node:test";
import { setContent, onContent } from "../../../../explorer/web/static/widget_contents.js";
import { StandIn, standInPage } from "./browser_stubs.js";

standInPage();

test("the latest content set before a widget was built is kept for it", async () => {
  const shown = [];
  await setContent("story", "first");
  await setContent("story", "second");
  onContent(new StandIn("story"), (content) => shown.push(content));
  assert.deepEqual(shown, ["second"]);
  await setContent("story", "third");
  assert.deepEqual(shown, ["second", "third"]);
});

test("a widget may have several contents", async () => {
  const shown = [];
  onContent(new StandIn("figure"), (content) => shown.push(content), "-mark");
  await setContent("figure", "drawn");
  await setContent("figure-mark", "vouched for");
  assert.deepEqual(shown, ["vouched for"]);
});

test("a failing widget is reported and leaves the others working", async (t) => {
  const shown = [];
  t.mock.method(console, "error", () => {});
  onContent(new StandIn("bad"), () => { throw Error("a slip"); });
  onContent(new StandIn("problem"), (content) => shown.push(content));
  await setContent("bad", 1);
  assert.match(shown.at(-1), /could not be drawn/);
  assert.equal(console.error.mock.callCount(), 1);
});

test("an empty content is a content, too", async () => {
  const shown = [];
  await setContent("brief", "");
  onContent(new StandIn("brief"), (content) => shown.push(content));
  assert.deepEqual(shown, [""]);
});

test("a figure is no longer outdated once its request is answered", async () => {
  const block = new StandIn("next-token");
  standInPage(block);
  Object.assign(block.dataset, { asked: "2", oldSince: "2" });
  await setContent("next-token", {}, 1);
  assert.equal(block.dataset.oldSince, "2");
  await setContent("next-token", {}, 2);
  assert.ok(!("oldSince" in block.dataset));
});
