import assert from "node:assert/strict";
import { test } from "node:test";
import { standInPage } from "./stand_ins.js";

standInPage();
const { duration } = await import("../../../../explorer/web/static/jobs.js");

test("a time is told in whole seconds, and a long one in minutes", () => {
  assert.deepEqual([0.1, 3.4, 89, 150].map(duration), ["1 s", "3 s", "89 s", "3 min"]);
});
