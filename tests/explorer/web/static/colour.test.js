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

test("the contrast of a text is at least 4.5, and the better one of black and white", () => {
  const linear = (channel) => (channel / 255 <= 0.04045 ? channel / 255 / 12.92 : ((channel / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  const channels = Array.from({ length: 18 }, (_nothing, i) => 15 * i);
  for (const colour of channels.flatMap((red) => channels.flatMap((green) => channels.map((blue) => [red, green, blue])))) {
    const contrasts = { black: (light(colour) + 0.05) / 0.05, white: 1.05 / (light(colour) + 0.05) }, chosen = contrasts[readableTextColour(colour)];
    assert(chosen >= 4.5 && chosen === Math.max(...Object.values(contrasts)), String(colour));
  }
});
