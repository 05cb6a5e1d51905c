import assert from "node:assert/strict";
import test from "node:test";
import { encodeBase64, decodeBase64 } from "../../../../explorer/web/static/plotly_figures.js";

const bytes = Uint8Array.from({ length: 70000 }, (_nothing, i) => (i * 31 + (i >> 8)) % 256); // more than one piece
const text = Buffer.from(bytes).toString("base64");

test("bytes are encoded and decoded without the functions of newer browsers", () => {
  const whole = Object.getOwnPropertyDescriptor(Uint8Array, "fromBase64"), method = Object.getOwnPropertyDescriptor(Uint8Array.prototype, "toBase64");
  delete Uint8Array.fromBase64;
  delete Uint8Array.prototype.toBase64;
  try {
    assert.equal(encodeBase64(bytes), text);
    assert.deepEqual(decodeBase64(text), bytes);
  } finally {
    if (whole) Object.defineProperty(Uint8Array, "fromBase64", whole);
    if (method) Object.defineProperty(Uint8Array.prototype, "toBase64", method);
  }
});

test("the browser's own functions are used if available", () => {
  const [whole, method] = [Uint8Array.fromBase64, Uint8Array.prototype.toBase64];
  Uint8Array.fromBase64 = (of) => Uint8Array.from([of.length]);
  Uint8Array.prototype.toBase64 = function () { return `${this.length} bytes`; };
  try {
    assert.deepEqual(decodeBase64("abcd"), Uint8Array.from([4]));
    assert.equal(encodeBase64(bytes), "70000 bytes");
  } finally {
    if (whole) Uint8Array.fromBase64 = whole; else delete Uint8Array.fromBase64;
    if (method) Uint8Array.prototype.toBase64 = method; else delete Uint8Array.prototype.toBase64;
  }
});

test("no bytes give an empty text", () => {
  assert.equal(encodeBase64(new Uint8Array()), "");
  assert.equal(decodeBase64("").length, 0);
});
