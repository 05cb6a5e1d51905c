// @ts-check
// Numbers that the worker computes from a trace, as in explorer/analysis/, and recomputation of whole values.
import { linear, norm, normScale, parseInterventions, interventionTap } from "../static/in_browser/transformer_lm.js";

// Logit lens, direct logit attribution, and summaries of logits.

/** @typedef {import("../static/in_browser/transformer_lm.js").Trace} Trace */

/** Return the values that the lens reads: the embedding, then the residual stream after each sublayer. @param {import("../static/in_browser/transformer_lm.js").ModelConfig} config */
export const lensTaps = (config) => ["blocks.0.resid_pre", ...Array.from({ length: config.num_layers }, (_none, layer) => [`blocks.${layer}.resid_mid`, `blocks.${layer}.resid_post`]).flat()];

/**
 * Compute the logit lens (n, S, V) at positions and taps: the prediction if the rest of the model were skipped.
 * @param {Trace} trace @param {number[]} positions @param {string[]} [taps]
 */
export function logitLens(trace, positions, taps = lensTaps(trace.lm.config)) {
  const { config, weights } = trace.lm, D = config.d_model, x = new Float32Array(positions.length * taps.length * D);
  positions.forEach((position, i) => taps.forEach((name, depth) => x.set(trace.row(name, position), (i * taps.length + depth) * D)));
  return linear(norm(config.norm, x, weights["final_norm.weight"], weights["final_norm.bias"], config.norm_eps), weights["lm_head.weight"], undefined, D);
}

/**
 * Direct logit attribution (analysis/direct_logit_attribution.py): a logit, or the difference of two, as the sum of the
 * components' contributions through the final norm at this run's scale.
 * @param {Trace} trace @param {number} position @param {number} tokenId @param {number | null} [contrastId]
 * @returns {{ token: number, positions: number, heads: Float64Array, biases: Float64Array, feed_forward: Float64Array, shift: number, logit: number, directions: Float64Array, direction: Float64Array }}
 *   heads (L, H), biases and feed_forward (L,); directions (L, H, d), whose product with a head's z is its contribution; direction (D,), likewise of what is added to the stream
 */
export function directLogitAttribution(trace, position, tokenId, contrastId = null) {
  const { config, weights, dHead } = trace.lm, { d_model: D, num_layers: L, num_heads: H, vocab_size: V } = config;
  const table = weights["lm_head.weight"], gain = weights["final_norm.weight"], beta = weights["final_norm.bias"];
  const unembedding = Float64Array.from({ length: D }, (_none, i) => table[tokenId * D + i] - (contrastId === null ? 0 : table[contrastId * D + i]));
  const { divisor } = normScale(config.norm, trace.row(`blocks.${L - 1}.resid_post`, position), config.norm_eps);
  const direction = unembedding.map((value, i) => (value * gain[i]) / divisor); // multiplies each term of the stream
  if (config.norm === "layernorm") {
    const mean = direction.reduce((a, b) => a + b, 0) / D;
    direction.forEach((value, i) => { direction[i] = value - mean; });
  }
  const project = (/** @type {ArrayLike<number>} */ x) => direction.reduce((sum, value, i) => sum + value * x[i], 0);
  const heads = new Float64Array(L * H), biases = new Float64Array(L), feedForward = new Float64Array(L), directions = new Float64Array(L * D);
  for (let layer = 0; layer < L; layer++) {
    const output = weights[`blocks.${layer}.attn.o_proj.weight`], bias = weights[`blocks.${layer}.attn.o_proj.bias`], { data: z } = trace.get(`blocks.${layer}.attn.z`);
    for (let i = 0; i < D; i++) for (let column = 0; column < D; column++) directions[layer * D + column] += output[i * D + column] * direction[i];
    for (let column = 0; column < D; column++) { // columns of W_O, d per head
      const head = Math.floor(column / dHead);
      heads[layer * H + head] += z[(head * trace.tokenIds.length + position) * dHead + (column % dHead)] * directions[layer * D + column];
    }
    if (bias) biases[layer] = project(bias);
    feedForward[layer] = project(trace.row(`blocks.${layer}.ffn.out`, position));
  }
  const positions = config.position === "sinusoidal" ? project(trace.row("position_embed", position)) : 0;
  const shift = beta ? beta.reduce((sum, value, i) => sum + value * unembedding[i], 0) : 0;
  const logits = trace.get("logits").data, logit = logits[position * V + tokenId] - (contrastId === null ? 0 : logits[position * V + contrastId]);
  return { token: project(trace.row("embed", position)) - positions, positions, heads, biases, feed_forward: feedForward, shift, logit, directions, direction };
}

/**
 * Split the heads' attribution at a position by key position: effects on the logit and ‖weight · W_O v‖₂, each (L, H, T).
 * Heads that an intervention changes have no sources; `changed` (L, H) is their contribution, and `changedMask` (L, H) marks them.
 * @param {Trace} trace @param {number} position @param {Pick<ReturnType<typeof directLogitAttribution>, "heads" | "directions">} attribution
 */
export function headSources(trace, position, attribution) {
  const { config, weights, dHead } = trace.lm, { num_layers: L, num_heads: H, d_model: D } = config, T = trace.tokenIds.length;
  const effects = new Float64Array(L * H * T), norms = new Float64Array(L * H * T), changed = new Float64Array(L * H), changedMask = new Uint8Array(L * H), output = new Float64Array(D);
  const interventions = parseInterventions(trace.interventions, config);
  for (let layer = 0; layer < L; layer++) {
    const { data: pattern } = trace.get(`blocks.${layer}.attn.pattern`), { data: values } = trace.get(`blocks.${layer}.attn.v`), outputWeight = weights[`blocks.${layer}.attn.o_proj.weight`];
    for (let head = 0; head < H; head++) {
      const isChanged = interventions.some(({ tap, index, position: changed }) => tap === `blocks.${layer}.attn.z` && (index ?? head) === head && (changed ?? position) === position);
      if (isChanged) changedMask[layer * H + head] = 1, changed[layer * H + head] = attribution.heads[layer * H + head];
      for (let key = 0; key <= position && !isChanged; key++) {
        const weight = pattern[(head * T + position) * T + key], v = (head * T + key) * dHead;
        let effect = 0, squaredNorm = 0;
        output.fill(0);
        for (let i = 0; i < dHead; i++) effect += values[v + i] * attribution.directions[layer * D + head * dHead + i];
        for (let row = 0; row < D; row++) for (let i = 0; i < dHead; i++) output[row] += outputWeight[row * D + head * dHead + i] * values[v + i];
        for (const number of output) squaredNorm += number ** 2;
        effects[(layer * H + head) * T + key] = weight * effect;
        norms[(layer * H + head) * T + key] = weight * Math.sqrt(squaredNorm);
      }
    }
  }
  return { effects, norms, changed, changedMask };
}

/** Return ln Σ e^logits and the entropy of one distribution in bits. @param {Float32Array} logits (V,) */
export function summarise(logits) {
  let max = -Infinity, total = 0, weighted = 0;
  for (let id = 0; id < logits.length; id++) if (logits[id] > max) max = logits[id];
  for (let id = 0; id < logits.length; id++) {
    const scaledLogit = logits[id] - max, share = Math.exp(scaledLogit);
    total += share;
    weighted += share * scaledLogit;
  }
  return { logTotal: Math.log(total) + max, entropy: Math.max(0, Math.log(total) - weighted / total) / Math.LN2 };
}

// Numbers of the views that take many products.

const NUM_TOP = 3;
const vectorNorm = (values) => Math.sqrt(values.reduce((total, value) => total + value * value, 0));

/** Return a row of an array. @param {Float32Array} data @param {number} row @param {number} width */
const rowOf = (data, row, width) => data.subarray(row * width, (row + 1) * width);
/** Return a column of a weight (out, in). @param {Float32Array} weight @param {number} column @param {number} dIn */
const columnOf = (weight, column, dIn) => Float64Array.from({ length: weight.length / dIn }, (_none, row) => weight[row * dIn + column]);

/** @type {Record<string, (trace: Trace, given: any) => any>} */
export const viewNumbers = {
  attribution(trace, { position, tokenId, contrastId }) {
    const { directions, direction, ...attribution } = directLogitAttribution(trace, position, tokenId, contrastId);
    return attribution;
  },

  /** Return what every neuron adds to the logit and its hidden value, each (L, F), and what the biases of W_down add, (L,). */
  neuronContributions(trace, { position, tokenId, contrastId }) {
    const { config: { num_layers: L, d_ff: F }, weights } = trace.lm, { direction } = directLogitAttribution(trace, position, tokenId, contrastId);
    const added = new Float64Array(L * F), hidden = new Float64Array(L * F), sizes = new Float64Array(L), biases = new Float64Array(L), length = vectorNorm(direction);
    for (let layer = 0; layer < L; layer++) {
      const down = weights[`blocks.${layer}.ffn.down_proj.weight`], bias = weights[`blocks.${layer}.ffn.down_proj.bias`] ?? [], row = trace.row(`blocks.${layer}.ffn.hidden`, position), squares = new Float64Array(F);
      for (let i = 0; i < down.length; i++) {
        added[layer * F + (i % F)] += direction[Math.floor(i / F)] * down[i];
        squares[i % F] += down[i] ** 2;
      }
      for (let neuron = 0; neuron < F; neuron++) {
        hidden[layer * F + neuron] = row[neuron];
        added[layer * F + neuron] *= row[neuron];
        sizes[layer] += length * Math.abs(row[neuron]) * Math.sqrt(squares[neuron]);
      }
      bias.forEach((value, i) => { biases[layer] += value * direction[i]; });
      sizes[layer] += length * vectorNorm(bias);
    }
    return { added, hidden, biases, sizes };
  },

  /** Return a norm's mean and divisor at a position and, if the norm is named, the largest error of its recomputation. */
  normScale(trace, { name, norm: normName, position }) {
    const { config, weights } = trace.lm, x = trace.get(name).data, scale = normScale(config.norm, trace.row(name, position), config.norm_eps);
    if (!normName) return scale;
    const recomputed = norm(config.norm, x, weights[`${normName}.weight`], weights[`${normName}.bias`], config.norm_eps), { data } = trace.get(normName);
    return { ...scale, error: recomputed.reduce((max, value, i) => Math.max(max, Math.abs(value - data[i])), 0) };
  },

  /** Return the patterns of all heads, (L, H, n, row), as bytes: the largest weight in each square of `block` × `block` cells, times 255. */
  patternPixels(trace, { block, pixels, row }) {
    const { num_layers: L, num_heads: H } = trace.lm.config, T = trace.tokenIds.length, largest = new Float32Array(L * H * pixels * row);
    for (let layer = 0; layer < L; layer++) {
      const { data } = trace.get(`blocks.${layer}.attn.pattern`);
      for (let i = 0; i < data.length; i++) {
        const key = i % T, query = Math.floor(i / T) % T, head = Math.floor(i / T / T), index = ((layer * H + head) * pixels + Math.floor(query / block)) * row + Math.floor(key / block);
        if (data[i] > largest[index]) largest[index] = data[i];
      }
    }
    return Uint8Array.from(largest, (weight) => Math.round(weight * 255));
  },

  /** Return ‖W_O v‖₂ of each key of a head, (T,). */
  outputNorms(trace, { layer, head }) {
    const { config: { d_model: D }, weights, dHead } = trace.lm, { data } = trace.get(`blocks.${layer}.attn.v`), outputWeight = weights[`blocks.${layer}.attn.o_proj.weight`];
    return Float64Array.from(trace.tokenIds, (_id, key) => {
      const v = rowOf(data, head * trace.tokenIds.length + key, dHead), output = new Float64Array(D);
      for (let row = 0; row < D; row++) for (let i = 0; i < dHead; i++) output[row] += outputWeight[row * D + head * dHead + i] * v[i];
      return vectorNorm(output);
    });
  },

  /** Return the logit lens at positions `start` to `stop`, by depth and position: the likeliest tokens, the entropy, and probability and rank of `tokenIds`. */
  lens(trace, { start, stop, tokenIds }) {
    const V = trace.lm.config.vocab_size, taps = lensTaps(trace.lm.config), make = () => taps.map(() => []);
    const answer = { top: make(), topProbabilities: make(), entropy: make(), probabilities: tokenIds.map(make), ranks: tokenIds.map(make) };
    const lensLogits = logitLens(trace, Array.from({ length: stop - start }, (_none, i) => start + i), taps);
    for (let row = 0; row < (stop - start) * taps.length; row++) {
      const depth = row % taps.length, logits = rowOf(lensLogits, row, V), { logTotal, entropy } = summarise(logits), top = likeliest(logits), probability = (id) => Math.exp(logits[id] - logTotal);
      answer.top[depth].push(top);
      answer.topProbabilities[depth].push(top.map(probability));
      answer.entropy[depth].push(entropy);
      tokenIds.forEach((id, i) => {
        answer.probabilities[i][depth].push(probability(id));
        answer.ranks[i][depth].push(1 + numLarger(logits, logits[id]));
      });
    }
    return answer;
  },

  /** Return the likeliest tokens after each position with their probabilities. */
  likeliest(trace) {
    const V = trace.lm.config.vocab_size, { data } = trace.get("logits");
    return trace.tokenIds.map((_id, position) => {
      const logits = rowOf(data, position, V), { logTotal } = summarise(logits);
      return likeliest(logits).map((id) => [id, Math.exp(logits[id] - logTotal)]);
    });
  },

  /** Return the attention rollout of a position (token_contributions.py): in each layer half of the share stays, half follows the heads' mean attention. */
  rollout(trace, { position }) {
    const { num_layers: L, num_heads: H } = trace.lm.config, T = trace.tokenIds.length;
    let row = Float64Array.from({ length: T }, (_none, i) => +(i === position));
    for (let layer = L - 1; layer >= 0; layer--) {
      const { data } = trace.get(`blocks.${layer}.attn.pattern`), lowerRow = row.map((share) => share / 2);
      for (let query = 0; query < T; query++) {
        const mean = Float64Array.from({ length: T }, (_none, key) => {
          let sum = 0;
          for (let head = 0; head < H; head++) sum += data[(head * T + query) * T + key];
          return sum / H;
        });
        const total = mean.reduce((a, b) => a + b, 0);
        for (let key = 0; key < T; key++) lowerRow[key] += (row[query] * mean[key]) / total / 2;
      }
      row = lowerRow;
    }
    return row;
  },

  /** Return the norm of each neuron's output, (F,): |hidden| · ‖column of W_down‖. */
  neuronNorms(trace, { layer, position }) {
    const { config: { d_ff: F }, weights } = trace.lm, down = weights[`blocks.${layer}.ffn.down_proj.weight`], hidden = trace.row(`blocks.${layer}.ffn.hidden`, position), squares = new Float64Array(F);
    for (let i = 0; i < down.length; i++) squares[i % F] += down[i] ** 2;
    return squares.map((square, neuron) => Math.abs(hidden[neuron]) * Math.sqrt(square));
  },

  /** Recompute a neuron's projections from its weights. */
  neuron(trace, { layer, neuron, position }) {
    const { config, weights } = trace.lm, ffn = `blocks.${layer}.ffn`, x = trace.row(`blocks.${layer}.ffn_norm`, position);
    const project = (name) => rowOf(weights[`${ffn}.${name}_proj.weight`], neuron, config.d_model).reduce((sum, weight, i) => sum + weight * x[i], weights[`${ffn}.${name}_proj.bias`]?.[neuron] ?? 0);
    return { up: project("up"), gate: config.ffn === "swiglu" ? project("gate") : null, hidden: trace.row(`${ffn}.hidden`, position)[neuron] };
  },

  /** Return the change of every logit per unit of a neuron's hidden value, (V,): its column of W_down through the final norm. */
  neuronEffects(trace, { layer, neuron, position }) {
    const { config, weights } = trace.lm, { d_model: D, num_layers } = config, column = columnOf(weights[`blocks.${layer}.ffn.down_proj.weight`], neuron, config.d_ff);
    const mean = config.norm === "layernorm" ? column.reduce((a, b) => a + b, 0) / D : 0, { divisor } = normScale(config.norm, trace.row(`blocks.${num_layers - 1}.resid_post`, position), config.norm_eps);
    return linear(Float32Array.from(column, (value, i) => ((value - mean) * weights["final_norm.weight"][i]) / divisor), weights["lm_head.weight"], undefined, D);
  },

  /** Return the share of hidden values near 0 in each layer, at most `ratio` of the root mean square, and the share of neurons near 0 at every token. */
  sparsity(trace, { ratio }) {
    const { num_layers: L, d_ff: F } = trace.lm.config, nearZero = [], inactive = [];
    for (let layer = 0; layer < L; layer++) {
      const { data } = trace.get(`blocks.${layer}.ffn.hidden`), limit = ratio * Math.sqrt(data.reduce((sum, value) => sum + value * value, 0) / data.length), active = new Uint8Array(F);
      let numNearZero = 0;
      for (let i = 0; i < data.length; i++) if (Math.abs(data[i]) <= limit) numNearZero++; else active[i % F] = 1;
      nearZero.push(numNearZero / data.length);
      inactive.push(1 - active.reduce((a, b) => a + b, 0) / F);
    }
    return { nearZero, inactive };
  },

  /** Return a score of every head, (L, H) (analysis/head_scores.py): the mean attention of the queries to their targets, over queries that have some. */
  headScores(trace, { score }) {
    const { num_layers: L, num_heads: H } = trace.lm.config, T = trace.tokenIds.length, scores = new Float64Array(L * H);
    const targets = trace.tokenIds.map((_id, query) => (query ? HEAD_SCORE_TARGETS[score](trace.tokenIds, query) : [])), count = targets.filter(({ length }) => length).length;
    for (let layer = 0; layer < L; layer++) {
      const { data } = trace.get(`blocks.${layer}.attn.pattern`);
      for (let head = 0; head < H; head++) targets.forEach((keys, query) => { for (const key of keys) scores[layer * H + head] += data[(head * T + query) * T + key] / count; });
    }
    return scores;
  },

  /** Return the number of parameters whose names match; a tied table counts once. */
  numParameters({ lm: { config, weights } }, { names }) {
    const arrays = Object.entries(weights).filter(([name]) => new RegExp(names).test(name) && !(config.tie_embeddings && name === "lm_head.weight"));
    return arrays.reduce((sum, [, { length }]) => sum + length, 0);
  },

  /** Return one number of a weight. */
  weightAt: ({ lm }, { name, index }) => lm.weights[name][index],

  /** Return the captured logits after a position, those of the lens at the last depth, and the sizes of their terms. */
  lastDepth(trace, { position }) {
    const { config: { d_model: D, vocab_size: V }, weights } = trace.lm, table = weights["lm_head.weight"], finalNorm = vectorNorm(trace.row("final_norm", position));
    return { logits: trace.row("logits", position).slice(), read: logitLens(trace, [position], lensTaps(trace.lm.config).slice(-1)), sizes: Float64Array.from({ length: V }, (_none, id) => finalNorm * vectorNorm(rowOf(table, id, D))) };
  },

  /** Return the logits (V,) of a vector before the unembedding, in float64. */
  unembed({ lm: { config: { d_model: D }, weights } }, { x }) {
    const table = weights["lm_head.weight"];
    return Float64Array.from({ length: table.length / D }, (_none, id) => {
      let logit = 0;
      for (let i = 0; i < D; i++) logit += table[id * D + i] * x[i];
      return logit;
    });
  },

  /** Return a row of the embedding table. */
  embeddingRow: ({ lm: { config, weights } }, { tokenId }) => rowOf(weights["token_embedding.weight"], tokenId, config.d_model),

  /** Return the tokens with the most similar embeddings, the nearest first, and their cosines. */
  nearest({ lm: { config, weights } }, { tokenId, count }) {
    const { d_model: D, vocab_size: V } = config, table = weights["token_embedding.weight"], embedding = rowOf(table, tokenId, D), dotProducts = linear(embedding, table, undefined, D);
    const norms = Float64Array.from({ length: V }, (_none, id) => vectorNorm(rowOf(table, id, D))), cosines = dotProducts.map((product, id) => product / (norms[id] * norms[tokenId]) || 0);
    const ids = Array.from({ length: V }, (_none, id) => id).filter((id) => id !== tokenId).sort((a, b) => cosines[b] - cosines[a] || a - b).slice(0, count);
    return { ids, cosines: ids.map((id) => Math.max(-1, Math.min(1, cosines[id]))) };
  },
};

/** Name of a head score -> the keys of a query whose attention it adds up. @type {Record<string, (ids: ArrayLike<number>, query: number) => number[]>} */
const HEAD_SCORE_TARGETS = {
  previous_token: (_ids, query) => [query - 1],
  first_token: () => [0],
  self: (_ids, query) => [query],
  induction(ids, query) { // the token after the last earlier occurrence, unless that is the query
    const next = Array.prototype.lastIndexOf.call(ids, ids[query], query - 1) + 1;
    return next && next < query ? [next] : [];
  },
};
/** @param {Float32Array} values @param {number} value */
function numLarger(values, value) {
  let count = 0;
  for (let i = 0; i < values.length; i++) if (values[i] > value) count++;
  return count;
}

/** Return the ids of the largest logits, in order; of equal ones the lower id. @param {Float32Array} logits */
function likeliest(logits) {
  const top = [];
  let minLogit = -Infinity; // smallest logit in the full list
  for (let id = 0; id < logits.length; id++) {
    if (logits[id] <= minLogit) continue;
    let rank = top.length;
    while (rank && logits[id] > logits[top[rank - 1]]) rank--;
    if (rank < NUM_TOP) top.splice(rank, 0, id);
    top.length = Math.min(top.length, NUM_TOP);
    if (top.length === NUM_TOP) minLogit = logits[top[NUM_TOP - 1]];
  }
  return top;
}

// Recomputation of whole values in float64, each from its own inputs by its formula (explorer/explain/captured/), with plain sums that
// do not use the model's code. The formulas are declared in Python and come as data.

/** @typedef {Record<string, any>} Formula name of its class as `formula`, and its attributes */
/** Recomputed value, and the magnitude of each number's terms, relative to which rounding errors are measured. @typedef {{ value: Float64Array, sizes: Float64Array }} Recomputed */
/** Largest error, and largest ratio of an error to its tolerance. @typedef {{ error: number, times: number }} Check */

const MIN_NORMAL = 2 ** -126; // below it rounding is not relative

/** Return the formula of a value, with its layer filled in. @param {Record<string, Formula>} formulas @param {string} name @returns {Formula} */
export function findFormula(formulas, name) {
  const layer = +(/^blocks\.(\d+)\./.exec(name)?.[1] ?? 0), template = formulas[name] ? name : name.replace(/^blocks\.\d+\./, "blocks.{layer}.");
  return JSON.parse(JSON.stringify(formulas[template]).replaceAll("{layer}", String(layer)).replaceAll("{before}", String(layer - 1)));
}

/** Return the names of the values and weights that a formula reads. @param {Formula} formula @param {Trace} trace @returns {string[]} */
function inputNames({ formula, x, map, norm, terms, a, b, q, k, scores, pattern, v, angles, positions }, trace) {
  const withBias = (name) => [`${name}.weight`, ...(trace.lm.weights[`${name}.bias`] ? [`${name}.bias`] : [])];
  return {
    Copy: () => [x], Addition: () => terms, Product: () => [a, b], LinearLayer: () => [x, ...withBias(map)], Activation: () => [x], Norm: () => [x.x, ...withBias(norm)],
    Rotation: () => [x, x, angles], AttentionScore: () => [q, k], AttentionPattern: () => [scores], HeadOutput: () => [pattern, v],
    Embedding: () => ["token_embedding.weight", ...(positions ? ["position_embed"] : [])], SinusoidalPosition: () => [], RotaryAngle: () => [],
  }[formula]();
}

const map2 = (/** @type {ArrayLike<number>} */ a, /** @type {ArrayLike<number>} */ b, /** @type {(x: number, y: number, i: number) => number} */ f) => Float64Array.from(a, (x, i) => f(x, b[i], i));
const absolute = (/** @type {ArrayLike<number>} */ x) => Float64Array.from(x, Math.abs);
const rowNorm = (/** @type {Float32Array} */ x, /** @type {number} */ start, /** @type {number} */ width) => {
  let squares = 0;
  for (let i = start; i < start + width; i++) squares += x[i] ** 2;
  return Math.sqrt(squares);
};

/** Return the dot products of rows (n, D) with rows (m, D), and ‖·‖‖·‖ of each: (n, m). @param {Float32Array} x @param {Float32Array} rows @param {number} width D */
function products(x, rows, width) {
  const n = x.length / width, m = rows.length / width, value = new Float64Array(n * m), sizes = new Float64Array(n * m);
  const norms = Float64Array.from({ length: n }, (_none, i) => rowNorm(x, i * width, width));
  for (let j = 0; j < m; j++) {
    const size = rowNorm(rows, j * width, width);
    for (let i = 0; i < n; i++) {
      let sum = 0;
      for (let d = 0; d < width; d++) sum += x[i * width + d] * rows[j * width + d];
      value[i * m + j] = sum;
      sizes[i * m + j] = norms[i] * size;
    }
  }
  return { value, sizes };
}

/** (A, B, width) -> (B, A, width). @template {Float32Array | Float64Array} A @param {A} x @param {number} numA @param {number} width @returns {A} */
function swapAxes(x, numA, width) {
  const numB = x.length / numA / width, y = /** @type {A} */ (x.slice());
  for (let i = 0; i < x.length; i++) y[((Math.floor(i / width) % numB) * numA + Math.floor(i / width / numB)) * width + (i % width)] = x[i];
  return y;
}

/** Class of a formula -> function that computes the whole value. @type {Record<string, (formula: Formula, trace: Trace) => Recomputed>} */
const FORMULAS = {
  Copy({ x }, trace) {
    const { data } = trace.get(x);
    return { value: Float64Array.from(data), sizes: absolute(data) };
  },
  Addition({ terms: [first, second] }, trace) {
    const [a, b] = [first, second].map((name) => trace.get(name).data);
    return { value: map2(a, b, (x, y) => x + y), sizes: map2(a, b, (x, y) => Math.abs(x) + Math.abs(y)) };
  },
  Product(formula, trace) {
    const value = map2(trace.get(formula.a).data, trace.get(formula.b).data, (x, y) => x * y);
    return { value, sizes: absolute(value) };
  },
  LinearLayer({ x, map, heads }, trace) {
    const { data, shape } = trace.get(x), rows = shape.length === 3 ? swapAxes(data, shape[0], shape[2]) : data, weight = trace.lm.weights[`${map}.weight`], bias = trace.lm.weights[`${map}.bias`];
    const { value, sizes } = products(rows, weight, rows.length / trace.tokenIds.length), numOut = value.length / trace.tokenIds.length;
    if (bias) for (let i = 0; i < value.length; i++) { value[i] += bias[i % numOut]; sizes[i] += Math.abs(bias[i % numOut]); }
    const splitByHead = (all) => (heads ? swapAxes(all, trace.tokenIds.length, numOut / heads) : all);
    return { value: splitByHead(value), sizes: splitByHead(sizes) };
  },
  Activation({ x, kind }, trace) {
    const { data } = trace.get(x);
    return { value: Float64Array.from(data, kind === "relu" ? (y) => Math.max(y, 0) : (y) => y / (1 + Math.exp(-y))), sizes: absolute(data) };
  },
  Norm({ x, norm }, trace) {
    const { data } = trace.get(x.x), { weights, config } = trace.lm, gain = weights[`${norm}.weight`], beta = weights[`${norm}.bias`], D = gain.length, value = new Float64Array(data.length), sizes = new Float64Array(data.length);
    for (let start = 0; start < data.length; start += D) {
      const row = Array.from(data.subarray(start, start + D)), isCentred = config.norm === "layernorm", meanOf = (numbers) => numbers.reduce((a, b) => a + b, 0) / D;
      const mean = isCentred ? meanOf(row) : 0, meanMagnitude = isCentred ? meanOf(row.map(Math.abs)) : 0, divisor = Math.sqrt(meanOf(row.map((y) => (y - mean) ** 2)) + config.norm_eps);
      row.forEach((y, i) => {
        value[start + i] = ((y - mean) / divisor) * gain[i] + (beta ? beta[i] : 0);
        sizes[start + i] = ((Math.abs(y) + meanMagnitude) / divisor) * Math.abs(gain[i]) + (beta ? Math.abs(beta[i]) : 0);
      });
    }
    return { value, sizes };
  },
  Rotation({ x, angles }, trace) {
    const { data } = trace.get(x), { data: angleValues } = trace.get(angles), value = new Float64Array(data.length), sizes = new Float64Array(data.length);
    for (let i = 0; i < data.length; i += 2) {
      const [a, b] = data.subarray(i, i + 2), angle = angleValues[(i / 2) % angleValues.length];
      value.set([a * Math.cos(angle) - b * Math.sin(angle), a * Math.sin(angle) + b * Math.cos(angle)], i);
      sizes.fill(Math.hypot(a, b), i, i + 2);
    }
    return { value, sizes };
  },
  AttentionScore({ q, k }, trace) {
    const { data: queries, shape: [H, T, d] } = trace.get(q), { data: keys } = trace.get(k), value = new Float64Array(H * T * T), sizes = new Float64Array(H * T * T), headRows = (data, head) => data.subarray(head * T * d, (head + 1) * T * d);
    for (let head = 0; head < H; head++) {
      const headScores = products(headRows(queries, head), headRows(keys, head), d);
      value.set(headScores.value.map((dot) => dot / Math.sqrt(d)), head * T * T);
      sizes.set(headScores.sizes.map((size) => size / Math.sqrt(d)), head * T * T);
    }
    return { value, sizes };
  },
  AttentionPattern({ scores }, trace) {
    const { data, shape: [, T] } = trace.get(scores), value = new Float64Array(data.length), sizes = new Float64Array(data.length);
    for (let start = 0; start < data.length; start += T) {
      const visibleScores = Array.from(data.subarray(start, start + ((start / T) % T) + 1)), maxScore = Math.max(...visibleScores), total = visibleScores.reduce((sum, score) => sum + Math.exp(score - maxScore), 0);
      visibleScores.forEach((score, key) => {
        value[start + key] = Math.exp(score - maxScore) / total;
        sizes[start + key] = value[start + key] * (1 + maxScore - score); // exp turns the difference's rounding error into a relative error
      });
    }
    return { value, sizes };
  },
  HeadOutput({ pattern, v }, trace) {
    const { data: weights, shape: [H, T] } = trace.get(pattern), { data, shape: [, , d] } = trace.get(v), value = new Float64Array(H * T * d), sizes = new Float64Array(H * T * d);
    for (let row = 0; row < H * T; row++) for (let key = 0; key <= row % T; key++) for (let i = 0; i < d; i++) {
      const term = weights[row * T + key] * data[(Math.floor(row / T) * T + key) * d + i];
      value[row * d + i] += term;
      sizes[row * d + i] += Math.abs(term);
    }
    return { value, sizes };
  },
  Embedding({ positions }, trace) {
    const { config, weights, embeddingScale } = trace.lm, D = config.d_model, table = weights["token_embedding.weight"], positionVectors = positions ? trace.get("position_embed").data : null;
    const rows = Float64Array.from({ length: trace.tokenIds.length * D }, (_none, i) => table[trace.tokenIds[Math.floor(i / D)] * D + (i % D)] * embeddingScale), zeros = new Float64Array(rows.length);
    return { value: map2(rows, positionVectors ?? zeros, (x, y) => x + y), sizes: map2(rows, positionVectors ?? zeros, (x, y) => Math.abs(x) + Math.abs(y)) };
  },
  SinusoidalPosition(_formula, trace) {
    const D = trace.lm.config.d_model;
    const value = Float64Array.from({ length: trace.tokenIds.length * D }, (_none, i) => {
      const dim = i % D, angle = Math.floor(i / D) / 10000 ** ((dim - (dim % 2)) / D);
      return dim % 2 ? Math.cos(angle) : Math.sin(angle);
    });
    return { value, sizes: value.map(() => 1) };
  },
  RotaryAngle(_formula, trace) {
    const { config: { rope_theta: theta = 0 }, dHead } = trace.lm, F = dHead / 2;
    const value = Float64Array.from({ length: trace.tokenIds.length * F }, (_none, i) => Math.floor(i / F) * theta ** ((-2 * (i % F)) / dHead));
    return { value, sizes: absolute(value) };
  },
};

/** Apply the run's interventions to a value and to its sizes. @param {Trace} trace @param {string} name @param {Recomputed} recomputed @returns {Recomputed} */
function withInterventions(trace, name, { value, sizes }) {
  const tap = interventionTap(trace.interventions, trace.lm.config), { shape } = trace.get(name), apply = (data) => /** @type {any} */ (tap(name, /** @type {any} */ (data), shape));
  return { value: apply(value), sizes: absolute(apply(sizes)) };
}

/** Compare numbers with their recomputation. @param {ArrayLike<number>} values @param {ArrayLike<number>} recomputed @param {ArrayLike<number>} sizes @param {number} tolerance a fraction of the sizes @returns {Check} */
export function compareValues(values, recomputed, sizes, tolerance) {
  const check = { error: 0, times: 0 };
  for (let i = 0; i < values.length; i++) {
    const error = Math.abs(values[i] - recomputed[i]), times = error / (tolerance * Math.abs(sizes[i]) + MIN_NORMAL);
    check.error = error <= check.error ? check.error : error; // keeps NaN
    check.times = times <= check.times ? check.times : times;
  }
  return check;
}

/** Checks of each run so far. @type {WeakMap<Trace, Map<string, Check & { inputs: string[] }>>} */
const checks = new WeakMap();

/** Check a whole value once, and return its inputs too. @param {Trace} trace @param {{ name: string, formulas: Record<string, Formula>, tolerance: number }} given */
export function checkValue(trace, { name, formulas, tolerance }) {
  const checksByName = checks.get(trace) ?? new Map();
  checks.set(trace, checksByName);
  if (!checksByName.has(name)) {
    const formula = findFormula(formulas, name), { value, sizes } = withInterventions(trace, name, FORMULAS[formula.formula](formula, trace));
    checksByName.set(name, { ...compareValues(trace.get(name).data, value, sizes, tolerance), inputs: inputNames(formula, trace) });
  }
  return checksByName.get(name);
}

/** Return a part of a value or weight as float64, with its shape. @param {Trace} trace @param {{ name: string, index: (number | [number | null, number | null])[] }} given per axis an index, or a start and an end */
export function readPart(trace, { name, index }) {
  const { config, weights } = trace.lm, isWeight = name in weights, data = isWeight ? weights[name] : trace.get(name).data, width = name.endsWith("down_proj.weight") ? config.d_ff : config.d_model;
  const shape = isWeight ? (/norm|bias$/.test(name) ? [data.length] : [data.length / width, width]) : trace.get(name).shape;
  const axes = shape.map((size, axis) => index[axis] ?? [null, null]).map((part, axis) => (typeof part === "number" ? [part] : Array.from({ length: (part[1] ?? shape[axis]) - (part[0] ?? 0) }, (_none, i) => i + (part[0] ?? 0))));
  if (axes.some((indices, axis) => indices.some((axisIndex) => !(axisIndex >= 0 && axisIndex < shape[axis])))) return null; // no such part
  const flatIndices = axes.reduce((all, axisIndices, axis) => all.flatMap((flatIndex) => axisIndices.map((axisIndex) => flatIndex * shape[axis] + axisIndex)), [0]);
  return { data: Float64Array.from(flatIndices, (flatIndex) => data[flatIndex]), shape: axes.filter((_places, axis) => typeof index[axis] !== "number").map(({ length }) => length) };
}
