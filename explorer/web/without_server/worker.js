// @ts-check
// Worker that runs the models, so that the page never stalls. The page sends { id, name, given } (actions.js); the worker posts any
// number of { id, part }, then { id, answer } or { id, error }.
import { loadCheckpoint } from "../static/in_browser/checkpoint.js";
import { generate, interventionTap, Trace, KVCache, ModelError } from "../static/in_browser/transformer_lm.js";
import { directLogitAttribution, headSources, lensTaps, logitLens, summarise, viewNumbers, checkValue, readPart } from "./analysis.js";

/** Model, the token ids that it sees, and interventions as texts. @typedef {{ checkpoint: string, ids: number[], edits: string[] }} Run */
/** @typedef {Awaited<ReturnType<typeof loadCheckpoint>>} LoadedModel */

const CHECKPOINTS = new URL("../../../checkpoints/", import.meta.url), MAX_MODELS = 3, MAX_TRACES = 1;
/** @type {Map<string, Promise<LoadedModel>>} */
const models = new Map();
/** @type {Map<string, Trace>} */
const traces = new Map();
/** Ids of cancelled requests. @type {Set<number>} */
const cancelled = new Set();

/** Drop the oldest entries of a map beyond a size. @param {Map<string, any>} map @param {number} size */
function dropOldest(map, size) { for (const key of [...map.keys()].slice(0, -size)) map.delete(key); }

/** @param {string} checkpoint @param {(part: any) => void} [onProgress] */
function loadModel(checkpoint, onProgress) {
  if (!/^[\w.-]+(\/[\w.-]+)?$/.test(checkpoint) || checkpoint.includes("..")) throw new ModelError(`There is no model ${checkpoint}.`);
  if (!models.has(checkpoint)) {
    const loading = loadCheckpoint(new URL(`${checkpoint}/`, CHECKPOINTS), (bytes, total) => onProgress?.({ bytes, total }));
    loading.catch(() => models.delete(checkpoint)); // so that the next call tries again
    models.set(checkpoint, loading);
    dropOldest(models, MAX_MODELS);
  }
  return models.get(checkpoint);
}

/** Return a run's trace. @param {Run} run */
const loadTrace = async (run) => findTrace(run, (await loadModel(run.checkpoint)).lm);

/** @param {Run} run @param {LoadedModel["lm"]} lm @param {KVCache} [cache] a new trace fills it */
function findTrace(run, lm, cache) {
  const key = JSON.stringify(run), trace = traces.get(key) ?? new Trace(lm, run.ids, run.edits, cache);
  traces.delete(key);
  traces.set(key, trace); // moves it to the end
  dropOldest(traces, MAX_TRACES);
  return trace;
}

/** Latest run: the logits after each token, and how each token was predicted. A text that continues it needs only its new tokens. The
 * logits of a new text whose view follows are taken from its trace.
 * @type {{ key: string, ids: number[], cache: KVCache, rows: Float32Array[], measures: Record<"surprisal" | "entropy" | "rank", number[]> } | null} */
let latestRun = null;

/** @param {Run} run @param {boolean} isTraced whether a view of the run follows */
async function computeLogits(run, isTraced) {
  const { checkpoint, ids, edits } = run, { lm } = await loadModel(checkpoint), { vocab_size: V } = lm.config, key = JSON.stringify([checkpoint, edits]);
  if (latestRun?.key !== key) latestRun = { key, ids: [], cache: new KVCache(lm.config), rows: [], measures: { surprisal: [], entropy: [], rank: [] } };
  const firstDifference = latestRun.ids.findIndex((id, i) => id !== ids[i]), numShared = firstDifference < 0 ? latestRun.ids.length : firstDifference; // tokens at the beginning of both texts
  for (const list of [latestRun.ids, latestRun.rows, ...Object.values(latestRun.measures)]) list.length = numShared;
  latestRun.cache.length = numShared;
  const newIds = ids.slice(latestRun.ids.length);
  if (newIds.length) {
    const { cache } = latestRun, isNew = isTraced && !numShared && !traces.has(JSON.stringify(run));
    const logits = isNew ? findTrace(run, lm, cache).get("logits").data : lm.forward(newIds, { cache, tap: interventionTap(edits, lm.config) });
    for (const [i, id] of newIds.entries()) {
      addMeasures(latestRun.measures, latestRun.rows.at(-1), id);
      latestRun.rows.push(logits.subarray(i * V, (i + 1) * V));
    }
    latestRun.ids = [...ids];
  }
  return latestRun;
}

/** Add how a token was predicted: surprisal and entropy in bits, and rank; NaN for the first. @param {Record<string, number[]>} measures @param {Float32Array | undefined} logits @param {number} id */
function addMeasures(measures, logits, id) {
  const { logTotal, entropy } = logits ? summarise(logits) : { logTotal: NaN, entropy: NaN };
  let rank = 1;
  for (const logit of logits ?? []) if (logit > logits[id]) rank++;
  measures.surprisal.push((logTotal - logits?.[id]) / Math.LN2);
  measures.entropy.push(entropy);
  measures.rank.push(logits ? rank : NaN);
}

/** Functions that the page calls. @type {Record<string, (given: any, tell: (part: any) => void, isWanted: () => boolean) => Promise<any>>} */
const workerFunctions = {
  async model({ checkpoint }, onPart) {
    const { lm, tokenizer } = await loadModel(checkpoint, onPart), { "lm_head.weight": unembedding, ...otherWeights } = lm.weights;
    const arrays = new Set([unembedding, ...Object.values(otherWeights)]); // a tied weight counts once
    return { config: lm.config, parameters: [...arrays].reduce((sum, { length }) => sum + length, 0), vocabulary: tokenizer.tokens.map((_bytes, id) => tokenizer.tokenText(id)), endOfText: tokenizer.endOfText };
  },
  /** Return the URLs of this worker's files and of all that it has fetched. */
  async fetchedFiles() { return [location.href, import.meta.url, ...performance.getEntriesByType("resource").map((entry) => entry.name)]; },
  async encode({ checkpoint, text }) { return (await loadModel(checkpoint)).tokenizer.encode(text); },
  async decode({ checkpoint, ids }) { return (await loadModel(checkpoint)).tokenizer.decode(ids); },
  /** Return the logits (V,) after a position, and the measures of all tokens. */
  async prediction({ run, position, isTraced = false }) {
    const { rows, measures } = await computeLogits(run, isTraced);
    return { logits: rows[position].slice(), measures };
  },
  /** Return the numbers of the whole model at a position, for the logit of a token or its difference from another's. */
  async overview({ run, position, tokenId, contrastId }) {
    const trace = await loadTrace(run), { config, dHead } = trace.lm, { num_layers: L, num_heads: H, vocab_size: V } = config, T = run.ids.length;
    const { directions, direction, ...attribution } = directLogitAttribution(trace, position, tokenId, contrastId), sources = headSources(trace, position, { ...attribution, directions });
    const taps = lensTaps(config).filter((name) => name.endsWith("resid_post")), lens = logitLens(trace, [position], taps);
    const guesses = taps.map((_name, layer) => {
      const logits = lens.subarray(layer * V, (layer + 1) * V), id = logits.reduce((best, logit, i) => (logit > logits[best] ? i : best), 0);
      return { id, probability: Math.exp(logits[id] - summarise(logits).logTotal) };
    });
    const norms = ["blocks.0.resid_pre", ...taps].map((name) => Math.hypot(...trace.row(name, position)));
    const weights = new Float32Array(L * H * T);
    for (let layer = 0; layer < L; layer++) for (let head = 0; head < H; head++) {
      const start = (head * T + position) * T;
      weights.set(trace.get(`blocks.${layer}.attn.pattern`).data.subarray(start, start + T), (layer * H + head) * T);
    }
    return { attribution, sources, guesses, norms, weights, dHead };
  },
  /** Return a value of the run. */
  async value({ run, name }) { return (await loadTrace(run)).get(name); },
  /** Return the bytes of tokens; null for the special one. */
  async tokenBytes({ run, ids }) {
    const { tokenizer } = await loadModel(run.checkpoint);
    return ids.map((id) => (id === tokenizer.endOfText ? null : Uint8Array.from(tokenizer.tokens[id], (byte) => byte.charCodeAt(0))));
  },
  /** Generate tokens; each is posted as a part. */
  async generate({ checkpoint, ids, edits, settings }, onPart, isWanted) {
    const { lm, tokenizer } = await loadModel(checkpoint), tap = edits.length ? interventionTap(edits, lm.config) : undefined;
    for (const step of generate(lm, ids, { ...settings, stop_tokens: [tokenizer.endOfText], tap })) {
      onPart(step);
      await nextMessage();
      if (!isWanted()) return;
    }
  },
};

for (const [name, compute] of Object.entries({ ...viewNumbers, checkValue, readPart })) workerFunctions[name] = async ({ run, ...given }) => compute(await loadTrace(run), given);

/** Wait until pending messages are handled. */
function nextMessage() {
  return /** @type {Promise<void>} */ (new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => { port1.close(); resolve(); };
    port2.postMessage(null);
  }));
}

addEventListener("message", async ({ data: { id, name, given, cancel } }) => {
  if (cancel) return void cancelled.add(id);
  try {
    const answer = await workerFunctions[name](given, (part) => postMessage({ id, part }), () => !cancelled.has(id));
    postMessage({ id, answer });
  } catch (error) { postMessage({ id, error: { message: error.message, isUserError: error instanceof ModelError } }); }
  cancelled.delete(id);
});
