import assert from "node:assert/strict";
import test from "node:test";

import { added, placeQuery, bring, storePlaces, storedPlaces, linkOf, MOST, onPlacesReceived, savedPlace, validPlaces, placesInLink, reordered } from "../../../../explorer/web/widgets/teaching/presentation_pages.js";

const HOSTILE = '<img src=x onerror="alert(1)">${1+1}{{1}}';
const PLACE = { words: "checkpoint=tiny&view=attention", picture: "attention-pattern", caption: HOSTILE, notes: "„ß…" };

test("a place is the words of the address, without those of a lesson, a turn and a language", () => {
  const state = { checkpoint: "tiny", view: "attention", depth: "numbers", prompt: [1, 2], layer: 0, "b.edits": "x*zero", lesson: "order", step: 3, reply: "3:1", turn: 9, lang: "de", find: "" };
  const place = savedPlace(state, "attention-pattern", "first");
  assert.deepEqual(placeQuery(place), { checkpoint: "tiny", view: "attention", depth: "numbers", prompt: "1.2", layer: "0", "b.edits": "x*zero" });
  assert.equal(savedPlace({ checkpoint: "x".repeat(MOST.words) }, "", ""), null);
});

test("of what anybody wrote, that is taken alone which is a place, and no more of it than a list has", () => {
  assert.deepEqual(validPlaces([PLACE, null, 7, {}, { words: 3 }, { words: "" }, { words: "x".repeat(MOST.words + 1) }]), [PLACE]);
  assert.deepEqual(validPlaces("x"), []);
  assert.deepEqual(validPlaces([{ words: "a=b", picture: '"] body', caption: 7 }]), [{ words: "a=b", picture: "", caption: "", notes: "" }]);
  assert.equal(validPlaces([{ words: "a=b", caption: "x".repeat(9999) }])[0].caption.length, MOST.caption);
  assert.equal(validPlaces(Array(999).fill(PLACE)).length, MOST.places);
});

test("a link's fragment brings the same places along, and no server is sent them", async () => {
  const link = new URL(await linkOf([PLACE, PLACE], "http://here/sub/?view=tokens#old"));
  assert.equal(link.search, "");
  assert.match(link.hash, /^#places=[\w-]+$/);
  assert.deepEqual(await placesInLink(link.hash), [PLACE, PLACE]);
});

test("a broken fragment brings none, and one that unpacks to very much is given up", async () => {
  assert.equal(await placesInLink("#elsewhere"), null);
  assert.equal(await placesInLink(""), null);
  assert.deepEqual(await placesInLink("#places=%%%"), []);
  assert.deepEqual(await placesInLink("#places=AAAA"), []);
  const bomb = await linkOf(Array(2000).fill({ ...PLACE, notes: "x".repeat(5000) }), "http://here/");
  assert.ok(bomb.length < 100_000);
  assert.deepEqual(await placesInLink(new URL(bomb).hash), []);
});

test("an item goes elsewhere and the others keep their order", () => {
  assert.deepEqual(reordered(["a", "b", "c"], 0, 2), ["b", "c", "a"]);
  assert.deepEqual(reordered(["a", "b", "c"], 2, 0), ["c", "a", "b"]);
});

test("what is brought along is cleaned before anybody takes it", () => {
  let taken = null;
  onPlacesReceived((places) => { taken = places; });
  bring([PLACE, 7]);
  assert.deepEqual(taken, [PLACE]);
});

test("a browser without a storage keeps nothing, and says so", () => {
  assert.deepEqual(storedPlaces(), []);
  assert.equal(storePlaces([PLACE]), false);
  const kept = {};
  globalThis.localStorage = { getItem: (name) => kept[name] ?? null, setItem: (name, text) => { kept[name] = text; } };
  assert.equal(storePlaces([PLACE]), true);
  assert.deepEqual(storedPlaces(), [PLACE]);
});

test("no more are added than may be kept, and it is known how many are not", () => {
  const places = (count) => Array.from({ length: count }, (_none, i) => ({ words: `text=${i}`, picture: "", caption: "", notes: "" }));
  const [all, left] = added(places(MOST.places - 2), places(5));
  assert.deepEqual([all.length, left], [MOST.places, 3]);
  assert.deepEqual(all.slice(-2), places(2));
  assert.deepEqual(added(places(2), places(1)), [[...places(2), ...places(1)], 0]);
});
