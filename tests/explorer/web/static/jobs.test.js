import assert from "node:assert/strict";
import { test } from "node:test";
import { standInPage } from "./browser_stubs.js";

const settled = () => new Promise((resolve) => { setImmediate(resolve); }); // timers stand still here
standInPage();
const { formatDuration, followJob, cancelJob } = await import("../../../../explorer/web/static/widget_contents.js");

test("a duration is shown in whole seconds, and a long one in minutes", () => {
  assert.deepEqual([0.1, 3.4, 89, 150].map(formatDuration), ["1 s", "3 s", "89 s", "3 min"]);
});

const going = { state: "waiting", done: 0, of: 2, seconds: 0, error: "" };

/** Calls of Python functions: name, and the function that answers the call. */
function calls() {
  const asked = [];
  globalThis.fetch = (address) => new Promise((resolve) => {
    const answer = (told) => resolve({ ok: true, json: async () => told });
    asked.push([address.replace("explorer/", ""), answer]);
  });
  return asked;
}

test("a cancelled job restarts once Python has confirmed the cancellation", async () => {
  const asked = calls(), done = [];
  followJob("a", ["begin_opening", []], () => {}, () => done.push("first"));
  await settled();
  cancelJob("a");
  followJob("a", ["begin_opening", []], () => {}, () => done.push("again"));
  await settled();
  assert.deepEqual(asked.map(([name]) => name), ["begin_opening", "leave_job"]);
  asked[1][1]({ ...going, state: "gone" });
  await settled();
  assert.deepEqual(asked.map(([name]) => name), ["begin_opening", "leave_job", "begin_opening"]);
  asked[2][1]({ ...going, state: "done" });
  await settled();
  assert.deepEqual(done, ["again"]);
});

test("old progress of a cancelled job does not end it after its restart", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const asked = calls(), done = [];
  followJob("b", ["begin_opening", []], () => {}, () => done.push("first"));
  await settled();
  asked[0][1](going);
  await settled();
  context.mock.timers.tick(200); // it requests the progress, and is cancelled before the answer
  await settled();
  cancelJob("b");
  followJob("b", ["begin_opening", []], () => {}, () => done.push("again"));
  asked[2][1]({ ...going, state: "gone" });
  await settled();
  asked[1][1]({ ...going, state: "gone" });
  await settled();
  assert.deepEqual(asked.map(([name]) => name), ["begin_opening", "job_progress", "leave_job", "begin_opening"]);
  asked[3][1]({ ...going, state: "done" });
  await settled();
  assert.deepEqual(done, ["again"]);
});

test("a failed or finished job can be started again", async () => {
  const asked = calls(), shown = [];
  for (const state of ["failed", "done", "done"]) {
    followJob("c", ["begin_opening", []], (progress) => shown.push(progress.state), () => {});
    await settled();
    asked.at(-1)[1]({ ...going, state });
    await settled();
  }
  assert.deepEqual(asked.map(([name]) => name), ["begin_opening", "begin_opening", "begin_opening"]);
  assert.deepEqual(new Set(shown), new Set(["waiting", "failed", "done"]));
});
