import assert from "node:assert/strict";
import test from "node:test";
import { modelName } from "../../../../explorer/web/static/page_state.js";

test("steps of one training belong to one model", () => {
  assert.equal(modelName("fables/step-000512"), "fables");
  assert.equal(modelName("fables"), "fables");
  assert.equal(modelName("group/alice"), "group/alice");
  assert.equal(modelName(undefined), "");
});
