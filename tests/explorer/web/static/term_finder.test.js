import assert from "node:assert/strict";
import test from "node:test";
import { wholeWordPattern, makeTermFinder } from "../../../../explorer/web/static/glossary_terms.js";

const found = (forms, text) => [...text.matchAll(wholeWordPattern(forms))].map(([word]) => word);

test("a term is found as a whole word, the longest first", () => {
  assert.deepEqual(found(["key", "attention", "attention pattern"], "Attention patterns? The attention pattern of a key, keyed, monkey"), ["Attention", "attention pattern", "key"]);
});

test("parts of names in code are no terms", () => {
  assert.deepEqual(found(["norm", "query"], "final_norm.weight attn.norm norm-x query_id query"), ["query"]);
});

test("a term of one Chinese character is found only by itself", () => {
  assert.deepEqual(found(["键"], "按方向键，查询与键。关键（键）"), ["键"]);
});

test("symbols and Chinese words need no spaces around", () => {
  assert.deepEqual(found(["·", "‖x‖₂", "词元", "÷ T"], "q·k, · is：每个词元的‖x‖₂，÷ T"), ["·", "词元", "‖x‖₂", "÷ T"]);
});

test("a dot between items or factors is not the sign for a space", () => {
  assert.deepEqual(makeTermFinder({ "·": "space" })("a · b, ·").map(({ from }) => from), [7]);
});
