import assert from "node:assert/strict";
import test from "node:test";
import { colourAt, parseHexColour, readableTextColour } from "../../../../explorer/web/static/dom.js";

test("a colour is parsed into its channels", () => {
  assert.deepEqual(parseHexColour("#10a0ff"), [16, 160, 255]);
});

test("between two stops of a scale a colour is interpolated", () => {
  const scale = [[0, [0, 0, 0]], [0.5, [100, 200, 0]], [1, [200, 200, 200]]];
  assert.deepEqual(colourAt(scale, 0), [0, 0, 0]);
  assert.deepEqual(colourAt(scale, 0.25), [50, 100, 0]);
  assert.deepEqual(colourAt(scale, 0.5), [100, 200, 0]);
  assert.deepEqual(colourAt(scale, 0.75), [150, 200, 100]);
  assert.deepEqual(colourAt(scale, -1), [0, 0, 0]);
  assert.deepEqual(colourAt(scale, 2), [200, 200, 200]);
});

test("texts are black on light colours and white on dark ones", () => {
  assert.equal(readableTextColour([255, 255, 255]), "black");
  assert.equal(readableTextColour([0, 0, 0]), "white");
  assert.equal(readableTextColour([0, 158, 115]), "black"); // looks dark at first
  assert.equal(readableTextColour([84, 80, 176]), "white");
  assert.deepEqual([readableTextColour([255, 0, 0]), readableTextColour([0, 0, 255])], ["black", "white"]); // red is the lighter one
});
