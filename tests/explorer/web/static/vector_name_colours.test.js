import assert from "node:assert/strict";
import test from "node:test";
import { standInPage } from "./browser_stubs.js";

standInPage();
globalThis.addEventListener = () => {};
globalThis.document.createElement = (tag) => ({ tag, dataset: {}, text: "", append(...parts) { this.text += parts.join(""); } });
const { colourVectorNames: tinted } = await import("../../../../explorer/web/widgets/header/header.js");

const marks = (text) => tinted(text).filter((piece) => typeof piece !== "string").map(({ className, text }) => [className, text]);
const whole = (text) => tinted(text).map((piece) => (typeof piece === "string" ? piece : piece.text)).join("");

test("only q, k and v are coloured in formulas and code", () => {
  assert.deepEqual(marks("score = q·k / √d"), [["of-q", "q"], ["of-k", "k"]]);
  assert.deepEqual(marks("qᵢ kᵢ + v"), [["of-q", "q"], ["of-k", "k"], ["of-v", "v"]]);
  assert.deepEqual(marks("self.q_proj(x), v_proj"), [["of-q", "q_proj"], ["of-v", "v_proj"]]);
  assert.deepEqual(marks("top-k 40, value, kv, k_norm, seq, attn.v"), [["of-v", "v"]]);
});

test("the text is unchanged", () => {
  for (const text of ["", "q", "a q\nb k v ", "<b>q</b>"]) assert.equal(whole(text), text);
});
