// Runs the model of static/in_browser/ on the tasks of a JSON file: node run_in_node.mjs MODULES TASKS OUT.
// Writes results to OUT/answers.json and all arrays to OUT/arrays.bin, one after another.
import { openSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [modules, askedFile, out] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(join(modules, `${name}.js`)).href);
const [{ readSafetensors, Tokenizer }, { KVCache, TransformerLM, Trace, samplingStages, uniformDraw, drawToken, generate }, { directLogitAttribution, logitLens }] =
  await Promise.all(["checkpoint", "transformer_lm", "../../without_server/analysis"].map(load));

const asked = JSON.parse(readFileSync(askedFile, "utf8")), answers = {}, arrays = openSync(join(out, "arrays.bin"), "w");
let offset = 0;
function store(data) {
  const place = { offset, type: data.constructor.name, length: data.length };
  writeSync(arrays, new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  offset += data.byteLength;
  return place;
}

const bufferOf = (path) => { const file = readFileSync(path); return file.buffer.slice(file.byteOffset, file.byteOffset + file.length); };
const lms = new Map();
function lmOf(folder) {
  if (!lms.has(folder)) lms.set(folder, new TransformerLM(JSON.parse(readFileSync(join(folder, "config.json"), "utf8")), readSafetensors(bufferOf(join(folder, "model.safetensors")))));
  return lms.get(folder);
}
const attempt = (work) => { try { return work(); } catch (error) { return { error: error.message, kind: error.constructor.name }; } };

const tasks = {
  /** Token ids of texts, and texts of ids. */
  tokenize({ file, texts, ids }) {
    const tokenizer = Tokenizer.parse(readFileSync(file, "utf8"));
    return { ids: texts.map((text) => tokenizer.encode(text)), texts: ids.map((some) => tokenizer.decode(some)), vocabulary: Array.from({ length: tokenizer.tokens.length }, (_none, id) => tokenizer.tokenText(id)), end: tokenizer.endOfText };
  },
  parse: ({ file }) => attempt(() => Tokenizer.parse(readFileSync(file, "utf8")).tokens.length),
  tensors: ({ file }) => attempt(() => Object.fromEntries(Object.entries(readSafetensors(bufferOf(file))).map(([name, data]) => [name, store(data)]))),
  forward: ({ folder, ids }) => attempt(() => lmOf(folder).forward(ids).length),
  /** All activations of a run, its lens and its attribution at a position. */
  trace({ folder, ids, interventions = [], position, token }) {
    return attempt(() => {
      const trace = new Trace(lmOf(folder), ids, interventions), values = [...trace.values].map(([name, { data, shape }]) => ({ name, shape, ...store(data) }));
      const { heads, biases, feed_forward, ...numbers } = directLogitAttribution(trace, position, token);
      return { values, lens: store(logitLens(trace, [position])), attribution: { ...numbers, heads: store(heads), biases: store(biases), feed_forward: store(feed_forward) } };
    });
  },
  /** Logits of one token at a time, (T, V). */
  cached({ folder, ids }) {
    const lm = lmOf(folder), cache = new KVCache(lm.config), all = new Float32Array(ids.length * lm.config.vocab_size);
    ids.forEach((id, t) => all.set(lm.forward([id], { cache }), t * lm.config.vocab_size));
    return store(all);
  },
  generate: ({ folder, ids, settings }) => [...generate(lmOf(folder), ids, settings)],
  uniform: ({ pairs }) => pairs.map(([seed, position]) => uniformDraw(seed, position)),
  stages: ({ logits, settings, previous, draws }) => {
    const stages = samplingStages(Float32Array.from(logits), settings, previous);
    return { retained: stages.retained, probabilities: store(stages.probabilities), drawn: draws.map((u) => drawToken(stages, u).tokenId) };
  },
};
for (const [key, { task, ...given }] of Object.entries(asked)) answers[key] = tasks[task](given);
writeFileSync(join(out, "answers.json"), JSON.stringify(answers));
