import assert from "node:assert/strict";
import test from "node:test";

import { segmentStart, positionAfterNext } from "../../../../explorer/web/widgets/teaching/walkthrough.js";

const SEGMENTS = [3, 1, 4].map((count) => ({ says: "", kind: "rows", frames: Array(count).fill({}) }));

test("space ends an animation first, then moves on", () => {
  assert.deepEqual(positionAfterNext(SEGMENTS, { segment: 0, frame: 0 }, false), { segment: 0, frame: 2 });
  assert.deepEqual(positionAfterNext(SEGMENTS, { segment: 0, frame: 2 }, false), { segment: 1, frame: 0 });
  assert.deepEqual(positionAfterNext(SEGMENTS, { segment: 2, frame: 3 }, false), { segment: 2, frame: 3 });
});

test("without animation a segment starts at its end", () => {
  assert.deepEqual(positionAfterNext(SEGMENTS, { segment: 1, frame: 0 }, true), { segment: 2, frame: 3 });
  assert.deepEqual(segmentStart(SEGMENTS, 0, true), { segment: 0, frame: 2 });
});

test("there is nothing before the first and after the last segment", () => {
  assert.deepEqual(segmentStart(SEGMENTS, -1, false), { segment: 0, frame: 0 });
  assert.deepEqual(segmentStart(SEGMENTS, 9, false), { segment: 2, frame: 0 });
});
