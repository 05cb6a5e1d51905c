import assert from "node:assert/strict";
import { test } from "node:test";
import { hasAllWords, normalize, readHook, readNumbers, matchScore } from "../../../../explorer/web/widgets/header/search.js";

const ranked = (names, query) => names.map((name) => [matchScore(normalize(name), normalize(query)), name])
  .filter(([fits]) => fits).sort(([a], [b]) => b - a).map(([, name]) => name);

test("results are ordered: exact name, prefix, word, part, letters in order", () => {
  const names = ["a lookahead", "heads", "attention head", "head", "how each attention differs"];
  assert.deepEqual(ranked(names, "head"), ["head", "heads", "attention head", "a lookahead"]);
  assert.deepEqual(ranked(["attention", "retention", "loss"], "atention"), ["attention"]);
  assert.deepEqual(ranked(["logit lens", "lens"], "LOGIT-lens"), ["logit lens"]);
  assert.deepEqual(ranked(["loss"], "zzz"), []);
  for (const query of ["neurons logit", "logit feed forward", "ffn attr"]) assert(hasAllWords(normalize("Direct logit attribution: neurons of all layers FFN Feed-forward"), normalize(query)), query);
  for (const query of ["neurons loss", "eurons"]) assert(!hasAllWords("neurons of all layers", query), query);
});

test("among equal matches the shortest name comes first", () => {
  assert.deepEqual(ranked(["key-value cache", "key"], "ke"), ["key", "key-value cache"]);
});

test("numbers name heads, layers, neurons and positions", () => {
  const head = [{ kind: "head", layer: 4, index: 5 }], neuron = [{ kind: "neuron", layer: 3, index: 287 }];
  for (const query of ["4.5", "L4.5", "layer 4, 5", "L4H5", "head 4 5", "h4.5", "4 5", "head 5 of layer 4", "head 5 in block 4", "layer 4 head 5", " l4 h5 ", "Head 4, 5", "head 5 layer 4", "h5 l4", "attention 4.5"]) assert.deepEqual(readNumbers(query), head, query);
  for (const query of ["n3.287", "ffn 3 287", "MLP 3.287", "neuron 3 287", "L3N287", "neuron 287 layer 3", "layer 3 neuron 287", "neuron 287, layer 3"]) assert.deepEqual(readNumbers(query), neuron, query);
  assert.deepEqual(readNumbers("L4"), [{ kind: "layer", layer: 4 }]);
  assert.deepEqual(readNumbers("head 5"), [{ kind: "head", index: 5 }]);
  assert.deepEqual(readNumbers("#5"), [{ kind: "position", index: 5 }]);
  assert.deepEqual(readNumbers("7").map(({ kind }) => kind), ["layer", "position"]);
  for (const query of ["rope", "4.5.6", "head", "step 512", ""]) assert.deepEqual(readNumbers(query), [], query);
  assert.deepEqual(readNumbers("层 4", { layer: ["层"], head: [], neuron: [], position: [] }), [{ kind: "layer", layer: 4 }]);
});

test("hook names of TransformerLens lead to their view", () => {
  assert.deepEqual(readHook("blocks.4.attn.hook_pattern"), { layer: 4, view: "attention" });
  assert.deepEqual(readHook(" blocks.0.mlp.hook_post"), { layer: 0, view: "feed_forward" });
  assert.deepEqual(readHook("blocks.3.hook_resid_mid"), { layer: 3, view: "residual" });
  assert.equal(readHook("blocks.4"), null);
});
