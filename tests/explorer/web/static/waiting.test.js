import assert from "node:assert/strict";
import test from "node:test";
import { standInPage } from "./stand_ins.js";

standInPage();
const { words } = await import("../../../../explorer/web/static/waiting.js");

test("those before are counted in words", () => {
  assert.deepEqual([0, 1, 3].map(words), [
    "Many people use this server: you are next.",
    "Many people use this server: 1 person before you.",
    "Many people use this server: 3 people before you.",
  ]);
});
