import { isPartOfCharacter, splitToken, visibleText } from "../../../../explorer/web/static/dom.js";
import { joinBytes } from "../../../../explorer/web/widgets/tokens/tokens.js";
import assert from "node:assert/strict";
import test from "node:test";

const marks = (token) => splitToken(token).map(({ mark }) => mark);

test("visible characters stay in one piece", () => {
  assert.deepEqual(splitToken("moon"), [{ text: "moon" }]);
  assert.deepEqual(splitToken("狐🦊é"), [{ text: "狐🦊é" }]);
});

test("a token without text has a mark instead", () => {
  assert.deepEqual(splitToken(""), [{ text: "", mark: "∅" }]);
});

test("an invisible character has a mark beside its text", () => {
  assert.deepEqual(splitToken(" fox"), [{ text: " ", mark: "·" }, { text: "fox" }]);
  assert.deepEqual(splitToken("a\nb"), [{ text: "a" }, { text: "\n", mark: "↵" }, { text: "b" }]);
  assert.deepEqual(marks("\t\u0000\u001b"), ["→", "␀", "␛"]);
  assert.equal(visibleText(" a\n"), "·a↵");
  assert.deepEqual(marks("\u00a0\u200b\u202e"), ["⟨00A0⟩", "⟨200B⟩", "⟨202E⟩"]);
});

test("all pieces together are the token", () => {
  for (const token of ["  two", "<b>\n\t</b>", "\u200d👩\u200d🚀 "])
    assert.equal(splitToken(token).map(({ text }) => text).join(""), token);
});

test("partial characters are recognised by their notation", () => {
  assert.deepEqual(["\\xc3", "\\xe7\\x8c", "x", "é", "\\xc3 ", ""].map(isPartOfCharacter), [true, true, false, false, false, false]);
});

test("bytes of a generated text that make no character are written as in the list of tokens", () => {
  const shown = ["é fox", "\\xe2 fox", " <b>\\xe2\\x82", "€"];
  assert.deepEqual(["\\xc3\\xa9 fox", "\\xe2 fox", " <b>\\xe2\\x82", "\\xe2\\x82\\xac"].map(joinBytes), shown);
});
