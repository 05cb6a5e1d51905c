// @ts-check
// The models in a worker of their own, so that the page never stalls: it is asked by messages { id, name, given } (model.js), and
// answers { id, answer } or { id, error }; before that maybe { id, part } as something goes on.
import { loadCheckpoint } from "../static/in_browser/checkpoint.js";
import { generate } from "../static/in_browser/generation.js";
import { interventionTap, Trace } from "../static/in_browser/trace.js";
import { KVCache, ModelError } from "../static/in_browser/transformer_lm.js";
import { directLogitAttribution, headSources, lensTaps, logitLens, summarise } from "./analysis.js";
import { checkValue, readPart } from "./recompute.js";
import { viewNumbers } from "./view_numbers.js";

/** A model, the ids that it sees, and interventions as texts. @typedef {{ checkpoint: string, ids: number[], edits: string[] }} Run */
/** @typedef {Awaited<ReturnType<typeof loadCheckpoint>>} Loaded */

const CHECKPOINTS = new URL("../../../checkpoints/", import.meta.url), MAX_MODELS = 3, MAX_TRACES = 1;
/** @type {Map<string, Promise<Loaded>>} */
const models = new Map();
/** @type {Map<string, Trace>} */
const traces = new Map();
/** Ids of questions whose answers are no longer wanted. @type {Set<number>} */
const cancelled = new Set();

/** Drops the oldest entries beyond so many. @param {Map<string, any>} map @param {number} size */
function limit(map, size) { for (const key of [...map.keys()].slice(0, -size)) map.delete(key); }

/** @param {string} checkpoint @param {(part: any) => void} [tell] */
function load(checkpoint, tell) {
  if (!/^[\w.-]+(\/[\w.-]+)?$/.test(checkpoint) || checkpoint.includes("..")) throw new ModelError(`There is no model ${checkpoint}.`);
  if (!models.has(checkpoint)) {
    const loading = loadCheckpoint(new URL(`${checkpoint}/`, CHECKPOINTS), (bytes, total) => tell?.({ bytes, total }));
    loading.catch(() => models.delete(checkpoint)); // to be tried again
    models.set(checkpoint, loading);
    limit(models, MAX_MODELS);
  }
  return models.get(checkpoint);
}

/** A run's trace. @param {Run} run */
const traceOf = async (run) => findTrace(run, (await load(run.checkpoint)).lm);

/** @param {Run} run @param {Loaded["lm"]} lm @param {KVCache} [cache] to be filled, if the trace is new */
function findTrace(run, lm, cache) {
  const key = JSON.stringify(run), trace = traces.get(key) ?? new Trace(lm, run.ids, run.edits, cache);
  traces.delete(key);
  traces.set(key, trace); // the latest last
  limit(traces, MAX_TRACES);
  return trace;
}

/** Of the run that was asked for last the logits after each token, and how each token was predicted: a text that goes on needs its
 * new tokens alone. The logits of a new text that a view is about to show are those of its trace.
 * @type {{ key: string, ids: number[], cache: KVCache, rows: Float32Array[], measures: Record<"surprisal" | "entropy" | "rank", number[]> } | null} */
let latest = null;

/** @param {Run} run @param {boolean} isTraced whether a view of it follows */
async function logitsOf(run, isTraced) {
  const { checkpoint, ids, edits } = run, { lm } = await load(checkpoint), { vocab_size: V } = lm.config, key = JSON.stringify([checkpoint, edits]);
  if (latest?.key !== key) latest = { key, ids: [], cache: new KVCache(lm.config), rows: [], measures: { surprisal: [], entropy: [], rank: [] } };
  const other = latest.ids.findIndex((id, i) => id !== ids[i]), numKept = other < 0 ? latest.ids.length : other; // tokens that both texts begin with
  for (const list of [latest.ids, latest.rows, ...Object.values(latest.measures)]) list.length = numKept;
  latest.cache.length = numKept;
  const added = ids.slice(latest.ids.length);
  if (added.length) {
    const { cache } = latest, isNew = isTraced && !numKept && !traces.has(JSON.stringify(run));
    const logits = isNew ? findTrace(run, lm, cache).get("logits").data : lm.forward(added, { cache, tap: interventionTap(edits, lm.config) });
    for (const [i, id] of added.entries()) {
      measure(latest.measures, latest.rows.at(-1), id);
      latest.rows.push(logits.subarray(i * V, (i + 1) * V));
    }
    latest.ids = [...ids];
  }
  return latest;
}

/** Adds how a token was predicted: surprisal and entropy in bits, and rank; NaN for the first. @param {Record<string, number[]>} measures @param {Float32Array | undefined} logits @param {number} id */
function measure(measures, logits, id) {
  const { logTotal, entropy } = logits ? summarise(logits) : { logTotal: NaN, entropy: NaN };
  let rank = 1;
  for (const logit of logits ?? []) if (logit > logits[id]) rank++;
  measures.surprisal.push((logTotal - logits?.[id]) / Math.LN2);
  measures.entropy.push(entropy);
  measures.rank.push(logits ? rank : NaN);
}

/** Of whichever model, the functions that the page asks. @type {Record<string, (given: any, tell: (part: any) => void, isWanted: () => boolean) => Promise<any>>} */
const functions = {
  async model({ checkpoint }, tell) {
    const { lm, tokenizer } = await load(checkpoint, tell), { "lm_head.weight": head, ...others } = lm.weights;
    const arrays = new Set([head, ...Object.values(others)]); // a tied one counts once
    return { config: lm.config, parameters: [...arrays].reduce((sum, { length }) => sum + length, 0), vocabulary: tokenizer.tokens.map((_bytes, id) => tokenizer.tokenText(id)), endOfText: tokenizer.endOfText };
  },
  /** URLs of what this worker was made of and has read. */
  async fetchedFiles() { return [location.href, import.meta.url, ...performance.getEntriesByType("resource").map((entry) => entry.name)]; },
  async encode({ checkpoint, text }) { return (await load(checkpoint)).tokenizer.encode(text); },
  async decode({ checkpoint, ids }) { return (await load(checkpoint)).tokenizer.decode(ids); },
  /** Logits (V,) after a position, and the measures of all tokens. */
  async prediction({ run, position, isTraced = false }) {
    const { rows, measures } = await logitsOf(run, isTraced);
    return { logits: rows[position].slice(), measures };
  },
  /** What the whole model does at a position for the logit of a token, or its difference from another's. */
  async overview({ run, position, tokenId, contrastId }) {
    const trace = await traceOf(run), { config, dHead } = trace.lm, { num_layers: L, num_heads: H, vocab_size: V } = config, T = run.ids.length;
    const { directions, ...attribution } = directLogitAttribution(trace, position, tokenId, contrastId), sources = headSources(trace, position, { ...attribution, directions });
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
  /** A value of the run by its name. */
  async value({ run, name }) { return (await traceOf(run)).get(name); },
  /** Bytes of tokens; null of the special one. */
  async tokenBytes({ run, ids }) {
    const { tokenizer } = await load(run.checkpoint);
    return ids.map((id) => (id === tokenizer.endOfText ? null : Uint8Array.from(tokenizer.tokens[id], (byte) => byte.charCodeAt(0))));
  },
  /** Tokens one by one; each is told of as it is drawn. */
  async generate({ checkpoint, ids, edits, settings }, tell, isWanted) {
    const { lm, tokenizer } = await load(checkpoint), tap = edits.length ? interventionTap(edits, lm.config) : undefined;
    for (const step of generate(lm, ids, { ...settings, stop_tokens: [tokenizer.endOfText], tap })) {
      tell(step);
      await nextMessage();
      if (!isWanted()) return;
    }
  },
};

for (const [name, work] of Object.entries({ ...viewNumbers, checkValue, readPart })) functions[name] = async ({ run, ...given }) => work(await traceOf(run), given);

/** Lets messages that have come be read. */
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
    const answer = await functions[name](given, (part) => postMessage({ id, part }), () => !cancelled.has(id));
    postMessage({ id, answer });
  } catch (error) { postMessage({ id, error: { message: error.message, isTold: error instanceof ModelError } }); }
  cancelled.delete(id);
});
