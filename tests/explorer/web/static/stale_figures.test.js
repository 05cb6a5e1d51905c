import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { staleMarker, staleSelectors, requestCount, markFresh, setContent } from "../../../../explorer/web/static/widget_contents.js";
import { setState } from "../../../../explorer/web/static/page_state.js";
import { StandIn, standInPage } from "./browser_stubs.js";

let prediction, advice;

beforeEach((t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  [prediction, advice] = [new StandIn("next-token"), new StandIn("advice")];
  standInPage(prediction, advice);
});

const isDimmed = (block) => block.classList.contains("stale");

test("every request makes the prediction outdated, and all except settings the figures of the open tab", () => {
  for (const question of ["tune", "token", "pick", "show"])
    assert.ok(staleSelectors(question, "attention").includes("#next-token"), question);
  assert.deepEqual(staleSelectors("tune", "attention"), ["#next-token"]);
  for (const question of ["token", "pick", "view", "show"]) assert.match(staleSelectors(question, "attention").join(), /\[id\^="attention-"\]/);
});

test("a selection leaves independent figures unchanged", () => {
  assert.match(staleSelectors("pick", "attention").join(), /:not\(\.once\)/);
  assert.ok(!staleSelectors("pick", "attention").includes("#advice"));
  for (const question of ["view", "show"]) assert.doesNotMatch(staleSelectors(question, "attention").join(), /:not/);
});

test("a figure is dimmed only if its answer is late", (t) => {
  staleMarker("tune", "attention")();
  t.mock.timers.tick(299);
  assert.equal(isDimmed(prediction), false);
  t.mock.timers.tick(1);
  assert.equal(isDimmed(prediction), true);
  assert.equal(isDimmed(advice), false);
  markFresh(prediction, requestCount);
  assert.equal(isDimmed(prediction), false);
});

test("a figure that is answered immediately is never dimmed", (t) => {
  staleMarker("show", "attention")();
  markFresh(prediction, requestCount);
  t.mock.timers.tick(1000);
  assert.deepEqual([isDimmed(prediction), isDimmed(advice)], [false, true]);
});

test("an older answer leaves a figure outdated, a later one does not", (t) => {
  staleMarker("tune", "attention")();
  const first = requestCount;
  staleMarker("tune", "attention")();
  t.mock.timers.tick(300);
  markFresh(prediction, first);
  assert.equal(isDimmed(prediction), true);
  markFresh(prediction, requestCount + 1);
  assert.equal(isDimmed(prediction), false);
});

test("a figure is late since its first unanswered request", (t) => {
  staleMarker("tune", "attention")();
  t.mock.timers.tick(200);
  staleMarker("tune", "attention")();
  t.mock.timers.tick(100);
  assert.equal(isDimmed(prediction), true);
});

test("elements that are no figures, or were not requested, are ignored", () => {
  markFresh(null, 1);
  markFresh(advice, requestCount);
  assert.equal(isDimmed(advice), false);
});

test("an outdated figure names its position if another one is selected", () => {
  const formula = new StandIn("attention-formula");
  standInPage(prediction, formula);
  const about = (query, question = "token") => { setState({ query }); staleMarker(question, "attention")(); };
  about(3, "show");
  for (const block of [prediction, formula]) markFresh(block, requestCount);
  about(3);
  assert.equal(prediction.dataset.asOf, undefined);
  markFresh(prediction, requestCount);
  about(4);
  markFresh(prediction, requestCount); // only the prediction is up to date
  about(5);
  assert.deepEqual([prediction.dataset.asOf, formula.dataset.asOf], [undefined, undefined]);
  markFresh(formula, requestCount);
  about(6);
  about(7);
  assert.equal(formula.dataset.asOf, "as of position 5");
  for (const block of [prediction, formula]) markFresh(block, requestCount);
  assert.deepEqual([prediction.dataset.asOf, formula.dataset.asOf], [undefined, undefined]);
});

test("opened words about another token are dimmed as soon as the new bars are drawn", async () => {
  const [why, standIns] = [new StandIn("why-token"), new StandIn("stand-ins")];
  standInPage(prediction, why, standIns);
  await setContent("why-token", ["one"], requestCount);
  staleMarker("pick", "attention")();
  await setContent("next-token", {}, requestCount);
  assert.deepEqual([isDimmed(prediction), isDimmed(why), isDimmed(standIns)], [false, true, false]); // nothing is open of the last
  await setContent("why-token", ["two"], requestCount);
  assert.equal(isDimmed(why), false);
});
