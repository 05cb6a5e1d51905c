// @ts-check
// Sampling, from logits to a token, as model/generation/sampling.py: in float64, with the same random numbers.

/** @typedef {{ temperature?: number, top_k?: number | null, top_p?: number | null, min_p?: number | null, repetition_penalty?: number }} SamplingSettings */

/** The distribution that the settings make of logits, stage by stage.
 * @typedef {object} SamplingStages
 * @property {ArrayLike<number>} penalised (V,) logits after the repetition penalty
 * @property {{ top_k: ArrayLike<number>, top_p: ArrayLike<number>, min_p: ArrayLike<number> }} retained ids of the tokens that remain after each limit and those before it, ascending
 * @property {Float64Array} probabilities of the tokens that remain after all three, in the order of their ids */

/** @param {Float32Array} logits (V,)
 * @param {SamplingSettings} [settings] temperature 0 leaves only the largest logit; `top_k` keeps the k largest, of equal ones the lower ids;
 *   `top_p` of those the fewest, the likeliest first, that sum to it; `min_p` of those the ones at least this many times as likely as the likeliest
 * @param {ArrayLike<number>} [previous] ids whose logits the penalty divides where positive, and multiplies where negative
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
    inMinP = inTopP.filter((_id, i) => weights[i] >= min_p); // the weight of the likeliest, which is never cut, is 1
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

/** Indices (k,) of the k largest of values (N,), k ≤ N, ascending; of equal values the first. @param {ArrayLike<number>} values @param {number} k */
export function topKIndices(values, k) {
  // Each of k stretches' largest values is no less than the smallest of them: the k-th largest of all is no less, too.
  const size = Math.floor(values.length / k), maxima = new Float64Array(k).fill(-Infinity), candidates = [];
  for (let i = 0; i < k * size; i++) maxima[Math.floor(i / size)] = Math.max(maxima[Math.floor(i / size)], values[i]);
  const bound = maxima.reduce((a, b) => Math.min(a, b));
  for (let i = 0; i < values.length; i++) if (values[i] >= bound) candidates.push(i);
  const threshold = Float64Array.from(candidates, (i) => values[i]).sort()[candidates.length - k];
  let numEqual = k - candidates.filter((i) => values[i] > threshold).length; // that are kept, the first of them
  return candidates.filter((i) => values[i] > threshold || (values[i] === threshold && numEqual-- > 0));
}

/** Indices of the fewest probabilities (N,), the largest first, that sum to `mass` or more. @param {Float64Array} probabilities @param {number} mass */
const smallestNucleus = (probabilities, mass) => topKIndices(probabilities, nucleusBoundary(probabilities, mass, (reached) => reached >= mass).rank + 1);

/** The largest probabilities, sorted, and the first index at which their sum is enough, about `mass`; the last if it never is.
 * @param {Float64Array} probabilities @param {number} mass @param {(reached: number) => boolean} isEnough */
function nucleusBoundary(probabilities, mass, isEnough) {
  // What is left then, 1 - mass or more, are N shares at most, and that one is the largest of them: smaller ones need not be sorted.
  const least = (1 - mass) / (probabilities.length + 1), descending = probabilities.filter((p) => p >= least).sort().reverse();
  let reached = 0, rank = 0;
  while (rank < descending.length - 1 && !isEnough(reached += descending[rank])) rank++;
  return { descending, rank };
}

/** The token whose interval of the cumulative distribution contains u, and its probability. The likeliest token has the first
 * interval, of equally likely ones the lower id. @param {SamplingStages} stages @param {number} u in [0, 1) */
export function drawToken({ probabilities, retained }, u) {
  const { descending, rank } = nucleusBoundary(probabilities, u, (reached) => reached > u), probability = descending[rank];
  const ties = Array.from(probabilities.keys()).filter((i) => probabilities[i] === probability);
  return { tokenId: retained.min_p[ties[rank - descending.indexOf(probability)]], probability };
}

/** The uniform random number in [0, 1) that draws the token at a position: a hash of seed and position. @param {number} seed @param {number} position */
export function uniformDraw(seed, position) {
  const [high, low] = sha256(`${seed} ${position}`);
  return (high * 2 ** 21 + (low >>> 11)) / 2 ** 53; // as many bits as a float64 holds
}

// SHA-256 (FIPS 180-4) of a short text: `crypto.subtle` is for secure addresses alone.

const PRIMES = [2];
for (let n = 3; PRIMES.length < 64; n += 2) if (PRIMES.every((prime) => n % prime)) PRIMES.push(n);
const fraction = (value) => Math.floor((value % 1) * 2 ** 32) >>> 0;
const START = PRIMES.slice(0, 8).map((prime) => fraction(Math.sqrt(prime))), ROUNDS = PRIMES.map((prime) => fraction(Math.cbrt(prime)));

/** The digest as eight words. @param {string} text of at most 55 bytes */
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
  let [a, b, c, d, e, f, g, h] = START;
  for (let i = 0; i < 64; i++) {
    const first = (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[i] + w[i]) | 0;
    const second = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [a, b, c, d, e, f, g, h] = [(first + second) | 0, a, b, c, (d + first) | 0, e, f, g];
  }
  return [a, b, c, d, e, f, g, h].map((word, i) => (word + START[i]) >>> 0);
}
