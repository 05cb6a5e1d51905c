import assert from "node:assert/strict";
import test from "node:test";

import { parseStateFile } from "../../../../explorer/web/static/history.js";

test("a file saved by the page has a state", () => {
  assert.deepEqual(parseStateFile('{"transformerlm-explorer": 1, "state": {"layer": 2}}'), { layer: 2 });
});

test("any other file has none", () => {
  for (const text of ["", "x", "[1]", "null", "7", '{"state": {}}', '{"transformerlm-explorer": 1}', '{"transformerlm-explorer": 1, "state": [1]}'])
    assert.equal(parseStateFile(text), null);
});
