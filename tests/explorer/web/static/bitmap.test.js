import assert from "node:assert/strict";
import test from "node:test";
import { bitmapUrlPrefix, bitmapRowBytes } from "../../../../explorer/web/static/plotly_figures.js";

test("rows are padded to a multiple of four bytes", () => {
  assert.deepEqual([1, 4, 5, 96].map(bitmapRowBytes), [4, 4, 8, 96]);
});

test("a bitmap has the offset, size and colours of its pixels", () => {
  const colours = Array.from({ length: 256 }, (nothing, i) => [i, 255 - i, 7.4]), pixels = Buffer.from([1, 2, 3, 0, 4, 5, 6, 0]);
  const url = bitmapUrlPrefix(colours, 3, 2) + pixels.toString("base64");
  assert.ok(url.startsWith("data:image/bmp;base64,"));
  const file = Buffer.from(url.split(",")[1], "base64");
  assert.equal(file.toString("latin1", 0, 2), "BM");
  assert.equal(file.readInt32LE(2), file.length);
  assert.deepEqual(file.subarray(file.readInt32LE(10)), pixels);
  assert.deepEqual([file.readInt32LE(18), file.readInt32LE(22)], [3, -2]); // negative: from the top
  assert.deepEqual([file.readUInt16LE(26), file.readUInt16LE(28)], [1, 8]);
  const palette = 14 + file.readInt32LE(14);
  assert.deepEqual([...file.subarray(palette + 4 * 9, palette + 4 * 9 + 3)], [7, 246, 9]); // blue, green, red
});
