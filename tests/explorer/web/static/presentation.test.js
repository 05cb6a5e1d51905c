import assert from "node:assert/strict";
import test from "node:test";

import { isKeyForFocus } from "../../../../explorer/web/static/dom.js";
import { isTargetVisible, stageCommand, pageAfterAnswer, stepPages, figureOfStep } from "../../../../explorer/web/widgets/teaching/presentation_pages.js";
import { figureArea, lessonTextArea } from "../../../../explorer/web/widgets/teaching/presentation.js";

const WORDS = [{ kind: "paragraph", parts: ["x"] }];

test("a step has the pages question with its text, answer, and explanation once the answer is shown", () => {
  assert.deepEqual(stepPages({ before: WORDS, question: { kind: "choice" } }), ["question", "answer"]);
  assert.deepEqual(stepPages({ before: WORDS, question: { kind: "choice" }, judged: {}, after: WORDS }), ["question", "answer", "after"]);
  assert.deepEqual(stepPages({ before: [], question: { is_example: true }, after: WORDS }), ["question", "after"]);
  assert.deepEqual(stepPages({ before: WORDS, after: WORDS }), ["before", "after"]);
  assert.deepEqual(stepPages({ before: WORDS, task: { is_done: false } }), ["before"]);
  assert.deepEqual(stepPages({ before: WORDS, task: { is_done: true }, after: WORDS }), ["before", "after"]);
  assert.deepEqual(stepPages({ before: WORDS, missing: {} }), ["question"]);
  assert.deepEqual(stepPages({}), ["before"]);
});

test("a reply leads to the answer, and asking again back to the question", () => {
  assert.equal(pageAfterAnswer("question", {}, { judged: {} }), "answer");
  assert.equal(pageAfterAnswer("answer", { judged: {} }, {}), "question");
  assert.equal(pageAfterAnswer("before", { task: { is_done: false } }, { task: { is_done: true } }), "after");
  assert.equal(pageAfterAnswer("after", { judged: {} }, { judged: {} }), "after");
});

test("the figure that would reveal the answer is not shown", () => {
  assert.equal(isTargetVisible({ target: "a-b", hides: { ids: ["a-b"] } }), false);
  assert.equal(isTargetVisible({ target: "a-b", hides: { ids: ["a-c"] } }), true);
  assert.equal(isTargetVisible({ target: "" }), false);
});

test("targets that are controls of other figures have no figure, and settings that of the next token", () => {
  for (const controls of ["series", "experiments-what-ifs", "positions-choosers"]) assert.equal(figureOfStep({ target: controls }), "");
  assert.equal(figureOfStep({ target: "generation" }), "next-token");
  for (const [view, figure] of [["prediction", "next-token"], ["tokens", "strip"]]) assert.equal(figureOfStep({ target: "prompt", task: {}, view }), figure);
  for (const figure of ["strip", "prompt", "attention-pattern", "stand-ins"]) assert.equal(figureOfStep({ target: figure }), figure);
});

test("the keys of a presenter's remote work like the arrow keys", () => {
  for (const key of ["ArrowRight", "PageDown", " "]) assert.equal(stageCommand(key), "next");
  for (const key of ["ArrowLeft", "PageUp"]) assert.equal(stageCommand(key), "back");
  assert.deepEqual(["Home", "End", "[", "]"].map(stageCommand), ["first", "last", "head-back", "head-next"]);
  for (const key of ["b", "B", "."]) assert.equal(stageCommand(key), "black");
  for (const key of ["p", "P", "Escape"]) assert.equal(stageCommand(key), "leave");
  for (const key of ["x", "Enter", "Tab"]) assert.equal(stageCommand(key), null);
});

test("keys are ignored in text boxes and with a modifier", () => {
  const at = (isText, modifiers = {}) => ({ target: { closest: () => (isText ? {} : null) }, ...modifiers });
  assert.equal(isKeyForFocus(at(true)), true);
  assert.equal(isKeyForFocus(at(false)), false);
  assert.equal(isKeyForFocus(at(false, { ctrlKey: true })), true);
});

test("the smallest letters have 20 pixels on any screen, and more on a larger one", () => {
  for (const [width, height] of [[1024, 768], [1440, 900], [1920, 1080], [390, 844]]) {
    const screen = { width, height }, figure = figureArea(screen, 90, true), words = lessonTextArea(screen, 90, false);
    assert.ok(width < 600 || figure.scale * 10 >= 20 - 1e-9);
    assert.ok(Math.min(...words.scales) * 15 >= 20 - 1e-9);
    assert.deepEqual(words.scales, [...words.scales].sort((a, b) => b - a));
    assert.ok(figure.left >= words.left + words.width && figure.left + figure.width <= width);
    assert.ok(figure.top + figure.height < height);
  }
  assert.ok(figureArea({ width: 1920, height: 1080 }, 90, false).scale > figureArea({ width: 1024, height: 768 }, 90, false).scale);
});
