import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { outdate, outdatedSelectors, questions, renew } from "../../../../explorer/web/static/widget_contents.js";
import { setState } from "../../../../explorer/web/static/page_state.js";
import { StandIn, standInPage } from "./stand_ins.js";

let prediction, advice;

beforeEach((t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  [prediction, advice] = [new StandIn("next-token"), new StandIn("advice")];
  standInPage(prediction, advice);
});

const isDimmed = (block) => block.classList.contains("stale");

test("every question makes the prediction old, and all but a setting the figures of the open tab", () => {
  for (const question of ["tune", "token", "pick", "show"])
    assert.ok(outdatedSelectors(question, "attention").includes("#next-token"), question);
  assert.deepEqual(outdatedSelectors("tune", "attention"), ["#next-token"]);
  for (const question of ["token", "pick", "view", "show"]) assert.match(outdatedSelectors(question, "attention").join(), /\[id\^="attention-"\]/);
});

test("a choice leaves alone what it does not change", () => {
  assert.match(outdatedSelectors("pick", "attention").join(), /:not\(\.once\)/);
  assert.ok(!outdatedSelectors("pick", "attention").includes("#advice"));
  for (const question of ["view", "show"]) assert.doesNotMatch(outdatedSelectors(question, "attention").join(), /:not/);
});

test("a figure is dimmed where its answer is late, and only then", (t) => {
  outdate("tune", "attention")();
  t.mock.timers.tick(299);
  assert.equal(isDimmed(prediction), false);
  t.mock.timers.tick(1);
  assert.equal(isDimmed(prediction), true);
  assert.equal(isDimmed(advice), false);
  renew(prediction, questions);
  assert.equal(isDimmed(prediction), false);
});

test("what is answered at once is never dimmed", (t) => {
  outdate("show", "attention")();
  renew(prediction, questions);
  t.mock.timers.tick(1000);
  assert.deepEqual([isDimmed(prediction), isDimmed(advice)], [false, true]);
});

test("an older answer leaves a figure old, a later one does not", (t) => {
  outdate("tune", "attention")();
  const first = questions;
  outdate("tune", "attention")();
  t.mock.timers.tick(300);
  renew(prediction, first);
  assert.equal(isDimmed(prediction), true);
  renew(prediction, questions + 1);
  assert.equal(isDimmed(prediction), false);
});

test("a figure is late since the first question that it has no answer to", (t) => {
  outdate("tune", "attention")();
  t.mock.timers.tick(200);
  outdate("tune", "attention")();
  t.mock.timers.tick(100);
  assert.equal(isDimmed(prediction), true);
});

test("what is no figure, and what nobody asked about, is left alone", () => {
  renew(null, 1);
  renew(advice, questions);
  assert.equal(isDimmed(advice), false);
});

test("what is behind says of which position it is, if that is another by now", () => {
  const formula = new StandIn("attention-formula");
  standInPage(prediction, formula);
  const about = (query, question = "token") => { setState({ query }); outdate(question, "attention")(); };
  about(3, "show");
  for (const block of [prediction, formula]) renew(block, questions);
  about(3);
  assert.equal(prediction.dataset.asOf, undefined);
  renew(prediction, questions);
  about(4);
  renew(prediction, questions); // the prediction alone follows
  about(5);
  assert.deepEqual([prediction.dataset.asOf, formula.dataset.asOf], [undefined, undefined]);
  renew(formula, questions);
  about(6);
  about(7);
  assert.equal(formula.dataset.asOf, "as of position 5");
  for (const block of [prediction, formula]) renew(block, questions);
  assert.deepEqual([prediction.dataset.asOf, formula.dataset.asOf], [undefined, undefined]);
});
