import assert from "node:assert/strict";
import test from "node:test";
import { modelOf } from "../../../../explorer/web/static/state.js";

test("steps of one training are of one model", () => {
  assert.equal(modelOf("fables/step-000512"), "fables");
  assert.equal(modelOf("fables"), "fables");
  assert.equal(modelOf("group/alice"), "group/alice");
  assert.equal(modelOf(undefined), "");
});
