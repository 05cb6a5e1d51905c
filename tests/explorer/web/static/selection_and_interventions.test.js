import { addBanner } from "../../../../explorer/web/static/dom.js";
import assert from "node:assert/strict";
import test from "node:test";
import { enableRequests, chooseCheckpoint, interventions, select, setGenerating, showRuns, toggleIntervention, changeSettings } from "../../../../explorer/web/static/page_actions.js";
import { SIMPLE_TABS } from "../../../../explorer/web/static/shared_constants.js";
import { connectState, setState, state } from "../../../../explorer/web/static/page_state.js";
import { settled, standInPage, standInPython } from "./browser_stubs.js";

standInPage();
const asked = standInPython();
globalThis.sessionStorage = { removeItem() {} };
globalThis.scrollTo = () => {};
globalThis.matchMedia = () => ({ matches: false });
addBanner();
let halted = 0;
connectState({ props: {}, watch() {}, emit: { halt: () => halted++, sync() {}, wake() {} } });
enableRequests();
const ADDED = { of: "edits", adds: true }, ALONE = { of: "edits", adds: false };
const begin = (changes) => setState({ checkpoint: "tiny", prompt: [1, 2], view: "overview", query: 1, turn: 0, ...changes });

test("nothing can be selected before the first run", async () => {
  select({ stand_ins: "open" });
  assert.equal("stand_ins" in state, false);
  assert.equal(asked.length, 0);
  begin({ edits: "" });
  select({ stand_ins: "open" });
  await settled();
  assert.equal(state.stand_ins, "open");
  assert.equal(asked.length, 1);
});

test("settings are valid numbers, whatever their boxes contain meanwhile", () => {
  begin({ temperature: 0.8, top_k: 40, seed: 7, stop_strings: "" });
  changeSettings({ temperature: null, top_k: 3.5, seed: null, stop_strings: "the end" });
  assert.deepEqual([state.temperature, state.top_k, state.seed, state.stop_strings], [0.8, 3, 7, "the end"]);
  changeSettings({ temperature: 1.25, top_k: 0, seed: 2 ** 32 - 1, stop_strings: "" });
  assert.deepEqual([state.temperature, state.top_k, state.seed, state.stop_strings], [1.25, 0, 4294967295, ""]);
});

test("an intervention is added to others, and the same one removed", () => {
  begin({ edits: "" });
  toggleIntervention("blocks.1.attn.z.1*zero", ADDED);
  toggleIntervention("blocks.0.attn.z.1*zero", ADDED);
  assert.deepEqual(interventions(), ["blocks.1.attn.z.1*zero", "blocks.0.attn.z.1*zero"]);
  toggleIntervention("blocks.1.attn.z.1*zero", ADDED);
  assert.equal(state.edits, "blocks.0.attn.z.1*zero");
});

test("an intervention that is not added replaces those of its kind, and no others", () => {
  begin({ edits: "blocks.0.attn.z.0*patch~blocks.1.attn.z.1*zero~blocks.1.attn.z.0*patchmean" });
  toggleIntervention("blocks.1.resid_pre@2*patch", ALONE);
  assert.deepEqual(interventions(), ["blocks.1.attn.z.1*zero", "blocks.1.attn.z.0*patchmean", "blocks.1.resid_pre@2*patch"]);
  toggleIntervention("blocks.1.resid_pre@2*patch", ALONE);
  assert.deepEqual(interventions(), ["blocks.1.attn.z.1*zero", "blocks.1.attn.z.0*patchmean"]);
});

test("the second run has its own interventions, and the selection changes too", () => {
  begin({ edits: "blocks.1.attn.z.1*zero", "b.edits": "" });
  toggleIntervention("blocks.0.attn.z.0*patch", { of: "b.edits", adds: false }, { query: 0 });
  assert.deepEqual([interventions(), interventions("b.edits")], [["blocks.1.attn.z.1*zero"], ["blocks.0.attn.z.0*patch"]]);
  assert.equal(state.query, 0);
});

test("generation under other interventions stops", () => {
  setGenerating(true);
  begin({ edits: "" });
  const before = halted, { turn } = state;
  toggleIntervention("blocks.1.attn.z.1*zero", ADDED);
  assert.equal(halted, before + 1);
  assert.ok(state.turn > turn);
});

/** What Python is asked by an act. */
async function askedBy(act) {
  await answerAll();
  const before = asked.length;
  act();
  await settled();
  return asked.slice(before).map(({ about }) => about);
}
async function answerAll() {
  for (let answered = -1; answered < asked.length;) {
    answered = asked.length;
    for (const { answer } of asked) answer();
    await settled();
  }
}

test("a selection in the open tab requests its dependents, in another tab that tab", async () => {
  begin({ view: "attention" });
  assert.deepEqual(await askedBy(() => select({ query: 0 })), ["pick"]);
  assert.deepEqual(await askedBy(() => select({ query: 1, view: "residual" })), ["view"]);
  assert.deepEqual(await askedBy(() => select({ query: 0, view: SIMPLE_TABS[0] })), ["view"]);
});

test("a tab is opened", async () => {
  begin({ view: "attention" });
  assert.deepEqual(await askedBy(() => select({ view: "residual" })), ["view"]);
  assert.equal(state.view, "residual");
  assert.deepEqual(await askedBy(() => showRuns("b")), ["view"]);
  assert.equal(state.shown, "b");
});

test("from the simple page, which shows one run, to the full one everything is requested, and back", async () => {
  begin({ view: SIMPLE_TABS[0], "b.checkpoint": "small" });
  assert.deepEqual(await askedBy(() => select({ view: "residual" })), ["show"]);
  assert.deepEqual(await askedBy(() => select({ view: SIMPLE_TABS[0] })), ["show"]);
  assert.deepEqual(await askedBy(() => select({ view: SIMPLE_TABS[1] })), ["view"]);
  begin({ "b.checkpoint": "" });
});

test("another training step applies to the run it was chosen for, and the same step changes nothing", async () => {
  begin({ "b.checkpoint": "small" });
  assert.deepEqual(await askedBy(() => chooseCheckpoint("small-1", "b.checkpoint")), ["show"]);
  assert.deepEqual([state.checkpoint, state["b.checkpoint"]], ["tiny", "small-1"]);
  assert.deepEqual(await askedBy(() => chooseCheckpoint("tiny")), []);
});
