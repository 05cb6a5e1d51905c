import assert from "node:assert/strict";
import test from "node:test";

import { segmentStart, positionAfterNext } from "../../../../explorer/web/widgets/teaching/walkthrough.js";

const SEGMENTS = [3, 1, 4].map((count) => ({ says: "", kind: "rows", frames: Array(count).fill({}) }));

test("space ends what is moving, and only then goes on", () => {
  assert.deepEqual(positionAfterNext(SEGMENTS, { segment: 0, frame: 0 }, false), { segment: 0, frame: 2 });
  assert.deepEqual(positionAfterNext(SEGMENTS, { segment: 0, frame: 2 }, false), { segment: 1, frame: 0 });
  assert.deepEqual(positionAfterNext(SEGMENTS, { segment: 2, frame: 3 }, false), { segment: 2, frame: 3 });
});

test("where nothing is to move, a segment is seen at its end at once", () => {
  assert.deepEqual(positionAfterNext(SEGMENTS, { segment: 1, frame: 0 }, true), { segment: 2, frame: 3 });
  assert.deepEqual(segmentStart(SEGMENTS, 0, true), { segment: 0, frame: 2 });
});

test("there is nothing before the first and after the last", () => {
  assert.deepEqual(segmentStart(SEGMENTS, -1, false), { segment: 0, frame: 0 });
  assert.deepEqual(segmentStart(SEGMENTS, 9, false), { segment: 2, frame: 0 });
});
