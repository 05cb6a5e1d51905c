import assert from "node:assert/strict";
import test from "node:test";

import { appendSlides, slideQuery, storeSlides, storedSlides, slidesLink, LIMITS, makeSlide, validSlides, slidesFromHash, moveItem } from "../../../../explorer/web/widgets/teaching/presentation_pages.js";

const HOSTILE = '<img src=x onerror="alert(1)">${1+1}{{1}}';
const SLIDE = { words: "checkpoint=tiny&view=attention", figure: "attention-pattern", caption: HOSTILE, notes: "„ß…" };

test("a slide has the URL's fields, without those of a lesson, a turn and a language", () => {
  const state = { checkpoint: "tiny", view: "attention", depth: "numbers", prompt: [1, 2], layer: 0, "b.edits": "x*zero", lesson: "order", step: 3, reply: "3:1", turn: 9, lang: "de", find: "" };
  const slide = makeSlide(state, "attention-pattern", "first");
  assert.deepEqual(slideQuery(slide), { checkpoint: "tiny", view: "attention", depth: "numbers", prompt: "1.2", layer: "0", "b.edits": "x*zero" });
  assert.equal(makeSlide({ checkpoint: "x".repeat(LIMITS.words) }, "", ""), null);
});

test("only valid slides are accepted, and no more than a list may have", () => {
  assert.deepEqual(validSlides([SLIDE, null, 7, {}, { words: 3 }, { words: "" }, { words: "x".repeat(LIMITS.words + 1) }]), [SLIDE]);
  assert.deepEqual(validSlides("x"), []);
  const { figure, ...rest } = SLIDE;
  assert.deepEqual(validSlides([{ ...rest, picture: figure }]), [SLIDE]); // the earlier format
  assert.deepEqual(validSlides([{ words: "a=b", figure: '"] body', caption: 7 }]), [{ words: "a=b", figure: "", caption: "", notes: "" }]);
  assert.equal(validSlides([{ words: "a=b", caption: "x".repeat(9999) }])[0].caption.length, LIMITS.caption);
  assert.equal(validSlides(Array(999).fill(SLIDE)).length, LIMITS.slides);
});

test("a link's fragment contains the slides, and no server receives them", async () => {
  const link = new URL(await slidesLink([SLIDE, SLIDE], "http://here/sub/?view=tokens#old"));
  assert.equal(link.search, "");
  assert.match(link.hash, /^#places=[\w-]+$/);
  assert.deepEqual(await slidesFromHash(link.hash), [SLIDE, SLIDE]);
});

test("a broken fragment has no slides, and decompression is limited", async () => {
  assert.equal(await slidesFromHash("#elsewhere"), null);
  assert.equal(await slidesFromHash(""), null);
  assert.deepEqual(await slidesFromHash("#places=%%%"), []);
  assert.deepEqual(await slidesFromHash("#places=AAAA"), []);
  const bomb = await slidesLink(Array(2000).fill({ ...SLIDE, notes: "x".repeat(5000) }), "http://here/");
  assert.ok(bomb.length < 100_000);
  assert.deepEqual(await slidesFromHash(new URL(bomb).hash), []);
});

test("a moved item leaves the others in order", () => {
  assert.deepEqual(moveItem(["a", "b", "c"], 0, 2), ["b", "c", "a"]);
  assert.deepEqual(moveItem(["a", "b", "c"], 2, 0), ["c", "a", "b"]);
});

test("a browser without storage stores nothing and reports it", () => {
  assert.deepEqual(storedSlides(), []);
  assert.equal(storeSlides([SLIDE]), false);
  const kept = {};
  globalThis.localStorage = { getItem: (name) => kept[name] ?? null, setItem: (name, text) => { kept[name] = text; } };
  assert.equal(storeSlides([SLIDE]), true);
  assert.deepEqual(storedSlides(), [SLIDE]);
});

test("no more slides are added than allowed, and the rest is counted", () => {
  const slides = (count) => Array.from({ length: count }, (_none, i) => ({ words: `text=${i}`, figure: "", caption: "", notes: "" }));
  const [all, left] = appendSlides(slides(LIMITS.slides - 2), slides(5));
  assert.deepEqual([all.length, left], [LIMITS.slides, 3]);
  assert.deepEqual(all.slice(-2), slides(2));
  assert.deepEqual(appendSlides(slides(2), slides(1)), [[...slides(2), ...slides(1)], 0]);
});
