import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { addBanner } from "../../../../explorer/web/static/dom.js";
import { standInPage } from "./browser_stubs.js";
import { followBrowserHistory, urlOfState, recordInHistory, latestQuery, continuationsByModel, restorableEdits, startHistory, undo, undoableAction, undoableTokens, writeUrl } from "../../../../explorer/web/static/history.js";
import { onEveryState, setState, state } from "../../../../explorer/web/static/page_state.js";

const here = "http://127.0.0.1/sub/?text=Once&b.text=Twice&__theme=dark&seed=3#top";
const steps = { replaced: [], pushed: [], went: [] };
let back = () => {}, entryChanged = () => {};

globalThis.window = {
  addEventListener: (_, listener) => { back = (state) => listener({ state }); },
  navigation: { addEventListener: (_, listener) => { entryChanged = listener; } },
};
globalThis.location = { href: here };
globalThis.history = {
  state: { run: 5, own: { twin: { generated: [1] } } },
  replaceState: (state, _, url) => { steps.replaced.push({ ...state, url: String(url) }); },
  pushState: (state, _, url) => { steps.pushed.push({ ...state, url: String(url) }); },
};
startHistory((there, isSameRun) => steps.went.push([there, isSameRun]));
const fox = { checkpoint: "tiny", prompt: [1, 2], view: "tokens", query: 0 };
const owl = { ...fox, prompt: [7], view: "attention" };

beforeEach((t) => {
  Object.assign(steps, { replaced: [], pushed: [], went: [] });
});

test("the URL has the whole state and its own other fields", () => {
  const { searchParams, pathname } = urlOfState({ prompt: [5, 6], seed: 4, find: "", edits: "a~b", turn: 8 }, here);
  assert.equal(pathname, "/sub/");
  assert.deepEqual(Object.fromEntries(searchParams), { __theme: "dark", prompt: "5.6", seed: "4", edits: "a~b" });
});

test("defaults are not in the URL, except the layer and the neuron", () => {
  const { searchParams } = urlOfState({ prompt: [5], layer: 0, head: 0, neuron: 0, query: 0, target: 1, temperature: 0.8, top_k: 0, dropped: 0, lens: "probability", step: 0 }, here);
  assert.deepEqual(Object.fromEntries(searchParams), { __theme: "dark", seed: "3", prompt: "5", layer: "0", neuron: "0", top_k: "0" });
  assert.equal(urlOfState({ seed: 0 }, here).searchParams.has("seed"), false); // a default removes the field
});

test("an emptied field is removed from the URL", () => {
  assert.equal(urlOfState({ seed: "" }, here).searchParams.has("seed"), false);
});

test("what the browser kept over a reload is restored", () => {
  assert.deepEqual(continuationsByModel, { twin: { generated: [1] } });
});

test("a page without a state leaves its history entry unchanged, and Back reloads it", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  globalThis.location.reload = () => steps.went.push("reload");
  recordInHistory({ lang: "en", view: "tokens" });
  t.mock.timers.tick(300);
  assert.deepEqual([steps.replaced.length, steps.pushed.length], [0, 0]);
  back({ run: 4, state: owl });
  assert.deepEqual(steps.went, ["reload"]);
});

test("clicks soon replace their history entry", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  recordInHistory(fox);
  recordInHistory({ ...fox, query: 1 });
  assert.deepEqual([steps.replaced.length, steps.pushed.length], [0, 0]);
  t.mock.timers.tick(300);
  assert.deepEqual([steps.replaced.length, steps.pushed.length], [1, 0]);
  assert.match(steps.replaced[0].url, /query=1/);
  assert.equal(steps.replaced[0].run, 5);
});

test("the URL follows soon while tokens arrive without a pause", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  for (let query = 2; query < 12; query++) {
    recordInHistory({ ...fox, query });
    assert.match(latestQuery(), new RegExp(`query=${query}`));
    t.mock.timers.tick(55);
  }
  assert.match(steps.replaced.at(-1).url, /query=11/);
  globalThis.location = new URL(steps.replaced.at(-1).url, "http://here/");
  assert.match(latestQuery(), /query=11/);
  recordInHistory({ ...fox, query: 1 });
  t.mock.timers.tick(300);
});

test("another tab is an entry of the same run, another prompt an entry of another run", (t) => {
  recordInHistory({ ...fox, view: "attention" });
  assert.equal(steps.pushed.length, 1);
  assert.deepEqual(steps.pushed.map(({ run, state }) => [run, state.view]), [[5, "attention"]]);
  assert.match(steps.pushed[0].url, /view=attention/);
  assert.deepEqual(steps.replaced, []); // the entry before is already up to date
  recordInHistory(owl);
  assert.equal(steps.pushed.length, 2);
  assert.notEqual(steps.pushed.at(-1).run, 5);
});

test("a pending entry is written before the next one", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  recordInHistory({ ...owl, query: 1 });
  recordInHistory({ ...owl, view: "tokens", query: 1 });
  assert.deepEqual(steps.replaced.map(({ state }) => [state.view, state.query]), [["attention", 1]]);
  recordInHistory(owl);
});

test("steps of one training replace one another, in either run", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const at = (step, more) => ({ ...owl, checkpoint: `fables/step-${step}`, ...more });
  recordInHistory(at(1));
  assert.equal(steps.pushed.length, 1); // another model
  recordInHistory(at(2));
  recordInHistory(at(2, { "b.checkpoint": "fables/step-1" }));
  assert.equal(steps.pushed.length, 2); // a second run
  recordInHistory(at(2, { "b.checkpoint": "fables/step-4" }));
  t.mock.timers.tick(300);
  assert.equal(steps.pushed.length, 2);
  assert.match(decodeURIComponent(steps.replaced.at(-1).url), /[?&]checkpoint=fables\/step-2.*b\.checkpoint=fables\/step-4/);
  recordInHistory(owl);
  assert.equal(steps.pushed.length, 3);
});

test("another prompt or intervention of the second run is a new entry", () => {
  const two = { ...owl, "b.checkpoint": "tiny", "b.prompt": [1], "b.edits": "" };
  recordInHistory(two);
  recordInHistory({ ...two, "b.prompt": [1, 2] });
  recordInHistory({ ...two, "b.prompt": [1, 2], "b.edits": "embed*zero" });
  assert.equal(steps.pushed.length, 3);
  recordInHistory(owl);
});

test("going back to a run restores its last state, in the tab of the entry", (t) => {
  back({ run: 5, state: { ...fox, query: 0 } });
  const [[there, isSameRun]] = steps.went;
  assert.equal(isSameRun, false);
  assert.deepEqual([there.prompt, there.view], [[1, 2], "tokens"]);
  back({ run: 5, state: { ...fox, view: "attention", query: 9 } });
  assert.equal(steps.went[1][1], true);
  assert.deepEqual([steps.went[1][0].view, steps.went[1][0].query], ["attention", there.query]);
});

test("an entry of another page leads nowhere", () => {
  back(null);
  assert.deepEqual(steps.went, []);
});

test("the URL can be written immediately", () => {
  writeUrl();
  assert.equal(steps.replaced.length, 1);
});

test("what Gradio writes into the URL in place of the state is overwritten", () => {
  recordInHistory(fox);
  writeUrl();
  steps.replaced = [];
  const { state } = globalThis.history;
  entryChanged();
  assert.deepEqual(steps.replaced, []); // the page's own entries stay
  globalThis.location = { href: "http://127.0.0.1/?view=api&seed=3" };
  globalThis.history.state = null;
  entryChanged();
  globalThis.history.state = state;
  const [ours] = steps.replaced;
  assert.match(ours.url, /view=tokens/);
  assert.deepEqual(ours.state, fox);
});

test("undo reverts all that the last action wrote, then the one before", () => {
  const { window } = globalThis;
  standInPage();
  globalThis.window = window; // with its history
  addBanner();
  onEveryState(undoableAction); // as the button does
  followBrowserHistory();
  const write = (turn, generated, began) => setState({ generated, began, turn }, false), undone = (count) => setState({ generated: state.generated.slice(0, -count), turn: state.turn + 1 });
  const label = () => [undoableAction(), undoableTokens()];
  setState({ checkpoint: "tiny", prompt: [1, 2], generated: [], edits: "", lesson: "", step: 0, began: 0, turn: 0 });
  assert.equal(undoableAction(), null);
  write(1, [3], 0); // a step
  for (const last of [5, 6, 7]) write(2, [3, 4, 5, 6, 7].slice(0, last - 2), 1); // a generation, drawn token by token
  assert.deepEqual(label(), ["token", 4]);
  setState({ edits: "blocks.0.attn.z.1*zero" });
  assert.deepEqual([undoableAction(), restorableEdits()], ["edit", []]);
  setState({ edits: "" }); // put back
  assert.deepEqual([undoableAction(), restorableEdits()], ["edit", ["blocks.0.attn.z.1*zero"]]);
  undo();
  assert.deepEqual([state.edits, undoableAction(), restorableEdits()], ["blocks.0.attn.z.1*zero", "edit", []]);
  undo();
  assert.deepEqual([state.edits, ...label()], ["", "token", 4]);
  for (const generated of [[3, 4], [3, 4, 8]]) write(7, generated, 1); // another text, which begins alike
  assert.deepEqual(label(), ["token", 2]);
  write(9, [3, 4, 9], 3); // another token in the last one's place
  assert.deepEqual(label(), ["token", 1]);
  undone(1);
  undone(1);
  assert.deepEqual(label(), ["token", 1]); // the step
  undone(1);
  assert.equal(undoableAction(), null);
});
