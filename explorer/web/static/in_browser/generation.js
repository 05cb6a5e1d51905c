// @ts-check
// Generation, as in model/generation/: sampling one token, in float64 with the same random numbers, and continuing a text.
import { KVCache } from "./transformer_lm.js";

// From logits to a token (sampling.py).

/** @typedef {{ temperature?: number, top_k?: number | null, top_p?: number | null, min_p?: number | null, repetition_penalty?: number }} SamplingSettings */

/** Stages of the distribution from which a token is sampled.
 * @typedef {object} SamplingStages
 * @property {ArrayLike<number>} penalised (V,) logits after the repetition penalty
 * @property {{ top_k: ArrayLike<number>, top_p: ArrayLike<number>, min_p: ArrayLike<number> }} retained ids of the tokens left after each limit and those before it, ascending
 * @property {Float64Array} probabilities of the tokens left after all three, by id */

/** @param {Float32Array} logits (V,)
 * @param {SamplingSettings} [settings] temperature 0 keeps only the largest logit; `top_k` keeps the k largest, the lower ids of equal ones;
 *   `top_p` keeps the fewest most likely of those that sum to it; `min_p` keeps those at least this many times as likely as the likeliest
 * @param {ArrayLike<number>} [previous] ids whose logits the penalty divides if positive, and multiplies if negative
 * @returns {SamplingStages} */
export function samplingStages(logits, { temperature = 1, top_k = null, top_p = null, min_p = null, repetition_penalty = 1 } = {}, previous = []) {
  const penalised = repetition_penalty === 1 ? logits : applyRepetitionPenalty(logits, previous, repetition_penalty);
  const k = temperature === 0 ? 1 : top_k || logits.length;
  const inTopK = k < logits.length ? topKIndices(penalised, k) : Array.from(logits.keys());
  const scores = Float64Array.from(inTopK, (id) => penalised[id]), max = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  let weights = scores.map((score) => Math.exp((score - max) / (temperature || 1)));
  let inTopP = inTopK;
  if (top_p !== null && top_p < 1) {
    const total = sum(weights), nucleus = smallestNucleus(weights.map((weight) => weight / total), top_p);
    inTopP = nucleus.map((i) => inTopK[i]);
    weights = Float64Array.from(nucleus, (i) => weights[i]);
  }
  let inMinP = inTopP;
  if (min_p) {
    inMinP = inTopP.filter((_id, i) => weights[i] >= min_p); // the likeliest has weight 1, so it is never cut
    weights = weights.filter((weight) => weight >= min_p);
  }
  const total = sum(weights);
  return { penalised, retained: { top_k: inTopK, top_p: inTopP, min_p: inMinP }, probabilities: weights.map((weight) => weight / total) };
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

/** @param {Float32Array} logits (V,) @param {ArrayLike<number>} tokenIds @param {number} penalty */
function applyRepetitionPenalty(logits, tokenIds, penalty) {
  const penalised = Float64Array.from(logits);
  for (const id of new Set(Array.from(tokenIds))) penalised[id] *= logits[id] > 0 ? 1 / penalty : penalty;
  return penalised;
}

/** Return the indices (k,) of the k largest values (N,), k ≤ N, ascending; of equal values the first. @param {ArrayLike<number>} values @param {number} k */
function topKIndices(values, k) {
  // The k-th largest value is at least the smallest of the maxima of k separate slices.
  const size = Math.floor(values.length / k), maxima = new Float64Array(k).fill(-Infinity), candidates = [];
  for (let i = 0; i < k * size; i++) maxima[Math.floor(i / size)] = Math.max(maxima[Math.floor(i / size)], values[i]);
  const bound = maxima.reduce((a, b) => Math.min(a, b));
  for (let i = 0; i < values.length; i++) if (values[i] >= bound) candidates.push(i);
  const threshold = Float64Array.from(candidates, (i) => values[i]).sort()[candidates.length - k];
  let numEqual = k - candidates.filter((i) => values[i] > threshold).length; // number of values equal to the threshold that are kept
  return candidates.filter((i) => values[i] > threshold || (values[i] === threshold && numEqual-- > 0));
}

/** Return the indices of the fewest probabilities (N,), the largest first, that sum to at least `mass`. @param {Float64Array} probabilities @param {number} mass */
const smallestNucleus = (probabilities, mass) => topKIndices(probabilities, nucleusBoundary(probabilities, mass, (cumulative) => cumulative >= mass).rank + 1);

/** Sort the largest probabilities, and return the first index at which their sum is enough, about `mass`; the last if it never is.
 * @param {Float64Array} probabilities @param {number} mass @param {(cumulative: number) => boolean} isEnough */
function nucleusBoundary(probabilities, mass, isEnough) {
  // At that index at least 1 - mass remains in at most N + 1 shares, of which it is the largest: smaller ones need no sorting.
  const minProbability = (1 - mass) / (probabilities.length + 1), descending = probabilities.filter((p) => p >= minProbability).sort().reverse();
  let cumulative = 0, rank = 0;
  while (rank < descending.length - 1 && !isEnough(cumulative += descending[rank])) rank++;
  return { descending, rank };
}

/** Return the token whose interval of the cumulative distribution contains u, and its probability. The likeliest token has the
 * first interval; of equally likely ones, the lower id. @param {SamplingStages} stages @param {number} u in [0, 1) */
export function drawToken({ probabilities, retained }, u) {
  const { descending, rank } = nucleusBoundary(probabilities, u, (cumulative) => cumulative > u), probability = descending[rank];
  const ties = Array.from(probabilities.keys()).filter((i) => probabilities[i] === probability);
  return { tokenId: retained.min_p[ties[rank - descending.indexOf(probability)]], probability };
}

/** Return the uniform random number in [0, 1) for a position: a hash of seed and position. @param {number} seed @param {number} position */
export function uniformDraw(seed, position) {
  const [high, low] = sha256(`${seed} ${position}`);
  return (high * 2 ** 21 + (low >>> 11)) / 2 ** 53; // the precision of float64
}

// SHA-256 (FIPS 180-4) of a short text, since `crypto.subtle` exists only in secure contexts.

const PRIMES = [2];
for (let n = 3; PRIMES.length < 64; n += 2) if (PRIMES.every((prime) => n % prime)) PRIMES.push(n);
const fraction = (value) => Math.floor((value % 1) * 2 ** 32) >>> 0;
const INITIAL_HASH = PRIMES.slice(0, 8).map((prime) => fraction(Math.sqrt(prime))), ROUND_CONSTANTS = PRIMES.map((prime) => fraction(Math.cbrt(prime)));

/** Return the digest as eight words. @param {string} text of at most 55 bytes */
function sha256(text) {
  const bytes = new TextEncoder().encode(text), block = new DataView(new ArrayBuffer(64)), w = new Uint32Array(64);
  bytes.forEach((byte, i) => block.setUint8(i, byte));
  block.setUint8(bytes.length, 0x80);
  block.setUint32(60, bytes.length * 8);
  const rotate = (x, n) => (x >>> n) | (x << (32 - n));
  for (let i = 0; i < 64; i++) {
    const [a, b] = [w[i - 15], w[i - 2]];
    w[i] = i < 16 ? block.getUint32(4 * i) : w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3)) + w[i - 7] + (rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10));
  }
  let [a, b, c, d, e, f, g, h] = INITIAL_HASH;
  for (let i = 0; i < 64; i++) {
    const temp1 = (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + ROUND_CONSTANTS[i] + w[i]) | 0;
    const temp2 = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [a, b, c, d, e, f, g, h] = [(temp1 + temp2) | 0, a, b, c, (d + temp1) | 0, e, f, g];
  }
  return [a, b, c, d, e, f, g, h].map((word, i) => (word + INITIAL_HASH[i]) >>> 0);
}

// Token after token (autoregressive.py).

/** Continue `tokenIds`, yielding each sampled token; the same seed gives the same tokens. The model attends to the tokens
 * from `windowStart` on.
 * @param {import("./transformer_lm.js").TransformerLM} lm @param {number[]} tokenIds at least one
 * @param {SamplingSettings & { max_new_tokens: number, seed: number, stop_tokens?: number[], num_dropped?: number, tap?: import("./transformer_lm.js").Tap }} settings
 * @returns {Generator<{ tokenId: number, probability: number, u: number }>} */
export function* generate(lm, tokenIds, { max_new_tokens, seed, stop_tokens = [], num_dropped = 0, tap, ...settings }) {
  const ids = [...tokenIds], { context_length, vocab_size } = lm.config;
  let cache = new KVCache(lm.config), start = 0; // the cache holds tokens from `start` on
  for (let i = 0; i < max_new_tokens; i++) {
    if (windowStart(ids.length, context_length) !== start) {
      start = windowStart(ids.length, context_length);
      cache = new KVCache(lm.config);
    }
    const window = ids.slice(start), logits = lm.forward(window.slice(cache.length), { cache, tap, lastOnly: !tap }).subarray(-vocab_size);
    const u = uniformDraw(seed, num_dropped + ids.length), { tokenId, probability } = drawToken(samplingStages(logits, settings, window), u);
    ids.push(tokenId);
    yield { tokenId, probability, u };
    if (stop_tokens.includes(tokenId)) return;
  }
}

/** Return the first of `numTokens` tokens that the model sees; 0 while all fit. Past the context length the window moves by a
 * quarter of it, so that the cache is refilled only then.
 * @param {number} numTokens @param {number} contextLength */
export function windowStart(numTokens, contextLength) {
  const hop = Math.max(1, Math.floor(contextLength / 4));
  return Math.ceil(Math.max(0, numTokens - contextLength) / hop) * hop;
}
