import assert from "node:assert/strict";
import test from "node:test";

import { appendSlides, slideQuery, receiveSlides, storeSlides, storedSlides, slidesLink, LIMITS, onSlidesReceived, makeSlide, validSlides, slidesFromHash, moveItem } from "../../../../explorer/web/widgets/teaching/presentation_pages.js";

const HOSTILE = '<img src=x onerror="alert(1)">${1+1}{{1}}';
const SLIDE = { words: "checkpoint=tiny&view=attention", figure: "attention-pattern", caption: HOSTILE, notes: "„ß…" };

test("a slide is the words of the address, without those of a lesson, a turn and a language", () => {
  const state = { checkpoint: "tiny", view: "attention", depth: "numbers", prompt: [1, 2], layer: 0, "b.edits": "x*zero", lesson: "order", step: 3, reply: "3:1", turn: 9, lang: "de", find: "" };
  const slide = makeSlide(state, "attention-pattern", "first");
  assert.deepEqual(slideQuery(slide), { checkpoint: "tiny", view: "attention", depth: "numbers", prompt: "1.2", layer: "0", "b.edits": "x*zero" });
  assert.equal(makeSlide({ checkpoint: "x".repeat(LIMITS.words) }, "", ""), null);
});

test("of what anybody wrote, that is taken alone which is a slide, and no more of it than a list has", () => {
  assert.deepEqual(validSlides([SLIDE, null, 7, {}, { words: 3 }, { words: "" }, { words: "x".repeat(LIMITS.words + 1) }]), [SLIDE]);
  assert.deepEqual(validSlides("x"), []);
  const { figure, ...rest } = SLIDE;
  assert.deepEqual(validSlides([{ ...rest, picture: figure }]), [SLIDE]); // as slides were saved before
  assert.deepEqual(validSlides([{ words: "a=b", figure: '"] body', caption: 7 }]), [{ words: "a=b", figure: "", caption: "", notes: "" }]);
  assert.equal(validSlides([{ words: "a=b", caption: "x".repeat(9999) }])[0].caption.length, LIMITS.caption);
  assert.equal(validSlides(Array(999).fill(SLIDE)).length, LIMITS.slides);
});

test("a link's fragment brings the same slides along, and no server is sent them", async () => {
  const link = new URL(await slidesLink([SLIDE, SLIDE], "http://here/sub/?view=tokens#old"));
  assert.equal(link.search, "");
  assert.match(link.hash, /^#places=[\w-]+$/);
  assert.deepEqual(await slidesFromHash(link.hash), [SLIDE, SLIDE]);
});

test("a broken fragment brings none, and one that unpacks to very much is given up", async () => {
  assert.equal(await slidesFromHash("#elsewhere"), null);
  assert.equal(await slidesFromHash(""), null);
  assert.deepEqual(await slidesFromHash("#places=%%%"), []);
  assert.deepEqual(await slidesFromHash("#places=AAAA"), []);
  const bomb = await slidesLink(Array(2000).fill({ ...SLIDE, notes: "x".repeat(5000) }), "http://here/");
  assert.ok(bomb.length < 100_000);
  assert.deepEqual(await slidesFromHash(new URL(bomb).hash), []);
});

test("an item goes elsewhere and the others keep their order", () => {
  assert.deepEqual(moveItem(["a", "b", "c"], 0, 2), ["b", "c", "a"]);
  assert.deepEqual(moveItem(["a", "b", "c"], 2, 0), ["c", "a", "b"]);
});

test("what is brought along is cleaned before anybody takes it", () => {
  let taken = null;
  onSlidesReceived((slides) => { taken = slides; });
  receiveSlides([SLIDE, 7]);
  assert.deepEqual(taken, [SLIDE]);
});

test("a browser without a storage keeps nothing, and says so", () => {
  assert.deepEqual(storedSlides(), []);
  assert.equal(storeSlides([SLIDE]), false);
  const kept = {};
  globalThis.localStorage = { getItem: (name) => kept[name] ?? null, setItem: (name, text) => { kept[name] = text; } };
  assert.equal(storeSlides([SLIDE]), true);
  assert.deepEqual(storedSlides(), [SLIDE]);
});

test("no more are added than may be kept, and it is known how many are not", () => {
  const slides = (count) => Array.from({ length: count }, (_none, i) => ({ words: `text=${i}`, figure: "", caption: "", notes: "" }));
  const [all, left] = appendSlides(slides(LIMITS.slides - 2), slides(5));
  assert.deepEqual([all.length, left], [LIMITS.slides, 3]);
  assert.deepEqual(all.slice(-2), slides(2));
  assert.deepEqual(appendSlides(slides(2), slides(1)), [[...slides(2), ...slides(1)], 0]);
});
