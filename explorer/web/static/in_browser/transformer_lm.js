// @ts-check
// The model of model/transformer_lm.py: its layers, its forward pass with named values, and the captured run; and generation, as in
// model/generation/: sampling one token, in float64 with the same random numbers, and continuing a text.

// The layers of model/layers/ on row-major Float32Arrays; a weight is (out, in). Numbers are stored in float32 and summed in
// float64.

/** Linear map y = x Wᵀ + b: (T, in) -> (T, out). Blocks of four rows of x by three rows of W, as float64, save memory reads.
 * @param {Float32Array} x @param {Float32Array} weight (out, in) @param {Float32Array | undefined} bias (out,) @param {number} dIn */
export function linear(x, weight, bias, dIn) {
  const numRows = x.length / dIn, dOut = weight.length / dIn, y = new Float32Array(numRows * dOut);
  const numPacked = numRows - (numRows % 4), packed = new Float64Array(numPacked * dIn), w = new Float64Array(3 * dIn); // packed: (row / 4, in, 4)
  for (let t = 0; t < numPacked; t++) for (let i = 0; i < dIn; i++) packed[((t >> 2) * dIn + i) * 4 + (t & 3)] = x[t * dIn + i];
  for (let firstOut = 0; numPacked && firstOut < dOut; firstOut += 3) {
    const out = Math.min(firstOut, dOut - 3); // the last three rows may overlap the ones before
    w.set(weight.subarray(out * dIn, (out + 3) * dIn));
    for (let row = 0, packedIndex = 0; packedIndex < packed.length; row += 4) {
      const y0 = row * dOut + out, y1 = y0 + dOut, y2 = y1 + dOut, y3 = y2 + dOut;
      let a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0, c0 = 0, c1 = 0, c2 = 0, c3 = 0;
      for (let i = 0; i < dIn; i++, packedIndex += 4) {
        const a = w[i], b = w[dIn + i], c = w[2 * dIn + i], p = packed[packedIndex], q = packed[packedIndex + 1], r = packed[packedIndex + 2], s = packed[packedIndex + 3];
        a0 += a * p; a1 += a * q; a2 += a * r; a3 += a * s;
        b0 += b * p; b1 += b * q; b2 += b * r; b3 += b * s;
        c0 += c * p; c1 += c * q; c2 += c * r; c3 += c * s;
      }
      y[y0] = a0; y[y1] = a1; y[y2] = a2; y[y3] = a3; y[y0 + 1] = b0; y[y1 + 1] = b1; y[y2 + 1] = b2; y[y3 + 1] = b3;
      y[y0 + 2] = c0; y[y1 + 2] = c1; y[y2 + 2] = c2; y[y3 + 2] = c3;
    }
  }
  for (let row = numPacked; row < numRows; row++) {
    const x0 = row * dIn, y0 = row * dOut;
    let out = 0;
    for (; out + 4 <= dOut; out += 4) {
      const w0 = out * dIn, w1 = w0 + dIn, w2 = w1 + dIn, w3 = w2 + dIn;
      let a = 0, b = 0, c = 0, d = 0;
      for (let i = 0; i < dIn; i++) {
        const p = x[x0 + i];
        a += weight[w0 + i] * p; b += weight[w1 + i] * p; c += weight[w2 + i] * p; d += weight[w3 + i] * p;
      }
      y[y0 + out] = a; y[y0 + out + 1] = b; y[y0 + out + 2] = c; y[y0 + out + 3] = d;
    }
    for (; out < dOut; out++) y[y0 + out] = dot(x, x0, weight, out * dIn, dIn);
  }
  if (bias) for (let i = 0; i < y.length; i++) y[i] += bias[i % dOut];
  return y;
}

/** Dot product of two slices of `size` numbers. @param {Float32Array} a @param {number} i @param {Float32Array} b @param {number} j @param {number} size */
export function dot(a, i, b, j, size) {
  let sum = 0;
  for (let k = 0; k < size; k++) sum += a[i + k] * b[j + k];
  return sum;
}

/** Sum of two arrays. @param {Float32Array} x @param {Float32Array} y */
export const add = (x, y) => x.map((value, i) => value + y[i]);

/** Norm of each row, (T, D) -> (T, D): RMSNorm x / √(mean(x²) + ε) · g, or LayerNorm (x - mean(x)) / √(var(x) + ε) · γ + β.
 * @param {string} kind of `config.norm` @param {Float32Array} x @param {Float32Array} gain (D,) @param {Float32Array | undefined} shift (D,) @param {number} eps */
export function norm(kind, x, gain, shift, eps) {
  const width = gain.length, y = new Float32Array(x.length);
  for (let start = 0; start < x.length; start += width) {
    const { mean, divisor } = normScale(kind, x.subarray(start, start + width), eps);
    for (let i = 0; i < width; i++) y[start + i] = ((x[start + i] - mean) / divisor) * gain[i] + (shift ? shift[i] : 0);
  }
  return y;
}

/** Mean that a norm subtracts from a vector, and its divisor. @param {string} kind @param {ArrayLike<number>} x (D,) @param {number} eps */
export function normScale(kind, x, eps) {
  let mean = 0, squares = 0;
  if (kind === "layernorm") for (let i = 0; i < x.length; i++) mean += x[i] / x.length;
  for (let i = 0; i < x.length; i++) squares += (x[i] - mean) ** 2;
  return { mean, divisor: Math.sqrt(squares / x.length + eps) };
}

/** Sinusoidal position vectors (T, D): dimension 2i is sin(m / 10000²ⁱᐟᴰ), dimension 2i + 1 the cosine of the same angle.
 * @param {number} start the first position @param {number} count T @param {number} dModel D */
export function sinusoidalPositions(start, count, dModel) {
  return Float32Array.from({ length: count * dModel }, (_none, k) => {
    const dimension = k % dModel, angle = (start + Math.floor(k / dModel)) * 10000 ** (-(dimension - (dimension % 2)) / dModel);
    return dimension % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

/** Rotation angles m · θ⁻²ⁱᐟᵈ (T, F), radians.
 * @param {number} start the first position @param {number} count T @param {number} dHead d = 2 F @param {number} theta */
function rotaryAngles(start, count, dHead, theta) {
  const numPairs = dHead / 2;
  return Float32Array.from({ length: count * numPairs }, (_none, k) => (start + Math.floor(k / numPairs)) * theta ** ((-2 * (k % numPairs)) / dHead));
}

/** Rotate the pairs (x₀, x₁), (x₂, x₃), … of every head: (H, T, d) by angles (T, F). @param {Float32Array} x @param {Float32Array} angles */
function rotateAdjacent(x, angles) {
  const y = new Float32Array(x.length), cos = angles.map(Math.cos), sin = angles.map(Math.sin);
  for (let i = 0; i < x.length; i += 2) {
    const a = x[i], b = x[i + 1], c = cos[(i / 2) % angles.length], s = sin[(i / 2) % angles.length];
    y[i] = a * c - b * s;
    y[i + 1] = a * s + b * c;
  }
  return y;
}

/** (T, H d) -> (H, T, d). @param {Float32Array} x @param {number} numHeads @param {number} dHead */
const splitHeads = (x, numHeads, dHead) => swapAxes(x, x.length / (numHeads * dHead), numHeads, dHead);
/** (H, T, d) -> (T, H d). @param {Float32Array} x @param {number} numHeads @param {number} dHead */
const mergeHeads = (x, numHeads, dHead) => swapAxes(x, numHeads, x.length / (numHeads * dHead), dHead);

/** (A, B, width) -> (B, A, width). @param {Float32Array} x @param {number} numA @param {number} numB @param {number} width */
function swapAxes(x, numA, numB, width) {
  const y = new Float32Array(x.length);
  for (let a = 0; a < numA; a++) for (let b = 0; b < numB; b++) y.set(x.subarray((a * numB + b) * width, (a * numB + b + 1) * width), (b * numA + a) * width);
  return y;
}

/** Attention scores q kᵀ / √d, before the mask: (H, T, d) and the first K of keys (H, C, d) -> (H, T, K).
 * @param {Float32Array} q @param {Float32Array} keys @param {{ numHeads: number, numKeys: number, dHead: number }} sizes */
function attentionScores(q, keys, { numHeads, numKeys, dHead }) {
  const numRows = q.length / (numHeads * dHead), stride = keys.length / numHeads, scores = new Float32Array(numHeads * numRows * numKeys);
  for (let row = 0, i = 0; row < numHeads * numRows; row++) {
    const head = Math.floor(row / numRows);
    for (let key = 0; key < numKeys; key++, i++) scores[i] = dot(q, row * dHead, keys, head * stride + key * dHead, dHead) / Math.sqrt(dHead);
  }
  return scores;
}

/** Softmax of the scores over the keys up to each query's own position, 0 after it: (H, T, K) -> (H, T, K).
 * @param {Float32Array} scores @param {number} numRows T, the last T of the K positions @param {number} numKeys K */
function attentionPattern(scores, numRows, numKeys) {
  const pattern = new Float32Array(scores.length);
  for (let start = 0, row = 0; start < scores.length; start += numKeys, row++) {
    const numVisible = numKeys - numRows + (row % numRows) + 1;
    pattern.set(softmax(scores.subarray(start, start + numVisible)), start);
  }
  return pattern;
}

/** Softmax exp(xᵢ - max x) / Σⱼ exp(xⱼ - max x). @param {Float32Array} x */
export function softmax(x) {
  let max = -Infinity, sum = 0;
  for (let i = 0; i < x.length; i++) if (x[i] > max) max = x[i];
  const y = new Float32Array(x.length);
  for (let i = 0; i < x.length; i++) sum += y[i] = Math.exp(x[i] - max);
  for (let i = 0; i < x.length; i++) y[i] /= sum;
  return y;
}

/** Average of the values by each query's pattern: (H, T, K) and the first K of values (H, C, d) -> (H, T, d).
 * @param {Float32Array} pattern @param {Float32Array} values @param {{ numHeads: number, numKeys: number, dHead: number }} sizes */
function weightValues(pattern, values, { numHeads, numKeys, dHead }) {
  const numRows = pattern.length / (numHeads * numKeys), stride = values.length / numHeads, z = new Float32Array(numHeads * numRows * dHead);
  const sums = new Float64Array(dHead);
  for (let row = 0; row < numHeads * numRows; row++) {
    const start = Math.floor(row / numRows) * stride, numVisible = numKeys - numRows + (row % numRows) + 1;
    sums.fill(0);
    for (let key = 0; key < numVisible; key++) {
      const weight = pattern[row * numKeys + key], valueIndex = start + key * dHead;
      for (let i = 0; i < dHead; i++) sums[i] += weight * values[valueIndex + i];
    }
    z.set(sums, row * dHead);
  }
  return z;
}

/** max(x, 0). @param {Float32Array} x */
export const relu = (x) => x.map((value) => Math.max(value, 0));
/** x / (1 + e⁻ˣ). @param {Float32Array} x */
export const silu = (x) => x.map((value) => value / (1 + Math.exp(-value)));

// The model: token ids to next-token logits, with named values.
// Shapes: T positions, C context length, D = d_model, L blocks, H heads, d = D / H head width, F neurons (in RoPE: pairs of
// dimensions, d / 2), V vocabulary, K positions so far.

/** Fields of config.json that the two bundled styles use (model/config.py).
 * @typedef {{ vocab_size: number, context_length: number, d_model: number, num_layers: number, num_heads: number, d_ff: number, norm: string,
 *   norm_eps: number, position: string, rope_theta?: number, ffn: string, bias?: boolean, tie_embeddings?: boolean, scale_embeddings?: boolean }} ModelConfig */

/** Row-major array. @typedef {{ data: Float32Array, shape: number[] }} Value */

/** Hook, called with every value of a pass in order and the pass's first position; its return value replaces the value. @typedef {(name: string, data: Float32Array, shape: number[], start?: number) => Float32Array} Tap */

/** Error that the user can mend; the message says how. */
export class ModelError extends Error {}

/** Rotated keys and values of all positions so far: an array (H, C, d) per layer. */
export class KVCache {
  /** @param {ModelConfig} config @param {number} [capacity] C */
  constructor(config, capacity = config.context_length) {
    const make = () => Array.from({ length: config.num_layers }, () => new Float32Array(capacity * config.d_model));
    this.keys = make();
    this.values = make();
    this.capacity = capacity;
    this.length = 0;
  }

  /** Store k and v (H, T, d) after the filled positions. The caller advances `length` once every layer has stored its part.
   * @param {number} layer @param {Float32Array} k @param {Float32Array} v @param {number} dHead */
  append(layer, k, v, dHead) {
    const numHeads = this.keys[layer].length / (this.capacity * dHead), size = k.length / numHeads;
    for (let head = 0; head < numHeads; head++) {
      const start = (head * this.capacity + this.length) * dHead;
      this.keys[layer].set(k.subarray(head * size, (head + 1) * size), start);
      this.values[layer].set(v.subarray(head * size, (head + 1) * size), start);
    }
  }
}

/** Decoder-only transformer. */
export class TransformerLM {
  /** @param {ModelConfig} config of a bundled model @param {Record<string, Float32Array>} weights by name, as in model/ */
  constructor(config, weights) {
    this.config = config;
    this.dHead = config.d_model / config.num_heads;
    this.embeddingScale = config.scale_embeddings ? Math.sqrt(config.d_model) : 1;
    this.weights = { "lm_head.weight": weights["token_embedding.weight"], ...weights };
  }

  /** Compute the logits (T, V) of token ids (T,), or only the last position's, (1, V), if `lastOnly`.
   * @param {ArrayLike<number>} tokenIds @param {{ cache?: KVCache, tap?: Tap, lastOnly?: boolean }} [options] the tokens continue those in `cache` and are appended to it */
  forward(tokenIds, { cache = new KVCache(this.config, tokenIds.length), tap: hook = (_name, data) => data, lastOnly = false } = {}) {
    const { config, weights } = this, D = config.d_model, T = tokenIds.length, start = cache.length;
    /** @type {Tap} */
    const tap = (name, data, shape) => hook(name, data, shape, start);
    if (T < 1 || start + T > config.context_length) throw new ModelError(`The model sees 1 to ${config.context_length} positions, got ${T} tokens after ${start}.`);
    let x = this.embedTokens(tokenIds, start, tap); // (T, D)
    const angles = config.position === "rope" ? tap("rope.angles", rotaryAngles(start, T, this.dHead, config.rope_theta), [T, this.dHead / 2]) : null;
    for (let layer = 0; layer < config.num_layers; layer++) x = this.transformerBlock(layer, x, angles, cache, tap);
    cache.length += T;
    x = tap("final_norm", this.norm("final_norm", x), [T, D]);
    if (lastOnly) x = x.subarray(-D);
    return tap("logits", linear(x, weights["lm_head.weight"], undefined, D), [x.length / D, config.vocab_size]);
  }

  /** Compute the initial residual stream (T, D). @param {ArrayLike<number>} tokenIds @param {number} start the first position @param {Tap} tap */
  embedTokens(tokenIds, start, tap) {
    const { config, weights } = this, D = config.d_model, T = tokenIds.length, table = weights["token_embedding.weight"];
    let x = new Float32Array(T * D);
    for (let t = 0; t < T; t++) {
      if (!(Number.isInteger(tokenIds[t]) && tokenIds[t] >= 0 && tokenIds[t] < config.vocab_size)) throw new ModelError(`Token ids are integers from 0 to ${config.vocab_size - 1}, got ${tokenIds[t]}.`);
      x.set(table.subarray(tokenIds[t] * D, (tokenIds[t] + 1) * D), t * D);
    }
    if (this.embeddingScale !== 1) x = x.map((value) => value * this.embeddingScale);
    if (config.position === "sinusoidal") x = add(x, tap("position_embed", sinusoidalPositions(start, T, D), [T, D]));
    return tap("embed", x, [T, D]);
  }

  /** Attention, then feed-forward; each reads a normalised copy of the residual stream and adds to it: (T, D) -> (T, D).
   * @param {number} layer @param {Float32Array} x @param {Float32Array | null} angles (T, d / 2) @param {KVCache} cache @param {Tap} tap */
  transformerBlock(layer, x, angles, cache, tap) {
    const block = `blocks.${layer}`, D = this.config.d_model, shape = [x.length / D, D], feedForward = this.config.ffn === "swiglu" ? this.swiglu : this.feedForward;
    x = tap(`${block}.resid_pre`, x, shape);
    const attnNorm = tap(`${block}.attn_norm`, this.norm(`${block}.attn_norm`, x), shape);
    x = tap(`${block}.resid_mid`, add(x, this.multiHeadSelfAttention(layer, attnNorm, angles, cache, tap)), shape);
    const ffnNorm = tap(`${block}.ffn_norm`, this.norm(`${block}.ffn_norm`, x), shape);
    return tap(`${block}.resid_post`, add(x, feedForward.call(this, `${block}.ffn`, ffnNorm, tap)), shape);
  }

  /** Multi-head causal self-attention: independent heads, whose outputs o_proj mixes: (T, D) -> (T, D).
   * @param {number} layer @param {Float32Array} x @param {Float32Array | null} angles @param {KVCache} cache @param {Tap} tap */
  multiHeadSelfAttention(layer, x, angles, cache, tap) {
    const { config: { d_model: D, num_heads: H }, dHead } = this, attn = `blocks.${layer}.attn`, T = x.length / D, shape = [H, T, dHead];
    const project = (name) => tap(`${attn}.${name}`, splitHeads(this.linear(`${attn}.${name}_proj`, x), H, dHead), shape); // (T, D) -> (H, T, d)
    let q = project("q"), k = project("k");
    const v = project("v");
    if (angles) {
      q = tap(`${attn}.q_rot`, rotateAdjacent(q, angles), shape);
      k = tap(`${attn}.k_rot`, rotateAdjacent(k, angles), shape);
    }
    cache.append(layer, k, v, dHead);
    const sizes = { numHeads: H, numKeys: cache.length + T, dHead }, square = [H, T, sizes.numKeys];
    const scores = tap(`${attn}.scores`, attentionScores(q, cache.keys[layer], sizes), square); // (H, T, K)
    const pattern = tap(`${attn}.pattern`, attentionPattern(scores, T, sizes.numKeys), square);
    const z = tap(`${attn}.z`, weightValues(pattern, cache.values[layer], sizes), shape); // (H, T, d)
    return tap(`${attn}.out`, this.linear(`${attn}.o_proj`, mergeHeads(z, H, dHead)), [T, D]);
  }

  /** SwiGLU: down(SiLU(gate x) ⊙ up x), through a hidden layer of F neurons: (T, D) -> (T, D). @param {string} ffn @param {Float32Array} x @param {Tap} tap */
  swiglu(ffn, x, tap) {
    const { d_model: D, d_ff } = this.config, T = x.length / D, shape = [T, d_ff];
    const gatePre = tap(`${ffn}.gate_pre`, this.linear(`${ffn}.gate_proj`, x), shape); // (T, F)
    const gate = tap(`${ffn}.gate`, silu(gatePre), shape);
    const up = tap(`${ffn}.up`, this.linear(`${ffn}.up_proj`, x), shape);
    const hidden = tap(`${ffn}.hidden`, gate.map((value, i) => value * up[i]), shape);
    return tap(`${ffn}.out`, this.linear(`${ffn}.down_proj`, hidden), [T, D]);
  }

  /** Two-layer feed-forward: down(ReLU(up x)): (T, D) -> (T, D). @param {string} ffn @param {Float32Array} x @param {Tap} tap */
  feedForward(ffn, x, tap) {
    const { d_model: D, d_ff } = this.config, T = x.length / D, shape = [T, d_ff];
    const up = tap(`${ffn}.up`, this.linear(`${ffn}.up_proj`, x), shape);
    const hidden = tap(`${ffn}.hidden`, relu(up), shape); // (T, F)
    return tap(`${ffn}.out`, this.linear(`${ffn}.down_proj`, hidden), [T, D]);
  }

  /** Apply the linear layer of a name. @param {string} name @param {Float32Array} x */
  linear(name, x) {
    const weight = this.weights[`${name}.weight`], dIn = name.endsWith("down_proj") ? this.config.d_ff : this.config.d_model;
    return linear(x, weight, this.weights[`${name}.bias`], dIn);
  }

  /** Apply the norm of a name. @param {string} name @param {Float32Array} x */
  norm(name, x) { return norm(this.config.norm, x, this.weights[`${name}.weight`], this.weights[`${name}.bias`], this.config.norm_eps); }
}

// A captured run, with ablated heads and neurons.

/** All values of a run by name. */
export class Trace {
  /** @param {TransformerLM} lm @param {number[]} tokenIds @param {string[]} [interventions] @param {KVCache} [cache] empty; the run fills it */
  constructor(lm, tokenIds, interventions = [], cache = undefined) {
    this.lm = lm;
    this.tokenIds = tokenIds;
    this.interventions = interventions;
    /** @type {Map<string, Value>} */
    this.values = new Map();
    const intervene = interventionTap(interventions, lm.config);
    lm.forward(tokenIds, { cache, tap: (name, original, shape) => {
      const data = intervene(name, original, shape);
      this.values.set(name, { data, shape });
      return data;
    } });
  }

  /** @param {string} name */
  get(name) {
    const value = this.values.get(name);
    if (!value) throw new ModelError(`There is no value ${name}; there are ${[...this.values.keys()].slice(0, 8).join(", ")}, …`);
    return value;
  }

  /** Return a value's numbers at one position, (width,) of (T, width). @param {string} name @param {number} position */
  row(name, position) {
    const { data, shape: [, width] } = this.get(name);
    return data.subarray(position * width, (position + 1) * width);
  }
}

const INTERVENTION = /^(blocks\.(\d+)\.(attn\.z|ffn\.hidden))(?:\.(\d+)|\[(\d+)\])?(?:@(\d+))?\*(?:zero|scale\*(-?[\d.]+))$/;

/** Parse each intervention into its tap, its head or neuron and position (null for all), and its factor. @param {string[]} interventions @param {ModelConfig} config */
export function parseInterventions(interventions, config) {
  return interventions.map((text) => {
    const [, tap, layer, kind, dotted, bracketed, position, factor = 0] = INTERVENTION.exec(text) ?? [], index = dotted ?? bracketed;
    if (!tap || !(+layer < config.num_layers) || !(+(index ?? 0) < (kind === "attn.z" ? config.num_heads : config.d_ff)) || Number.isNaN(+factor)) throw new ModelError(`This page ablates heads and neurons alone, as in blocks.2.attn.z.1*zero, got ${text}.`);
    return { tap, index: index === undefined ? null : +index, position: position === undefined ? null : +position, factor: +factor };
  });
}

/** Return a hook that multiplies heads at `attn.z` and neurons at `ffn.hidden`, as "blocks.2.attn.z.1*zero", "blocks.2.attn.z.1@12*zero" or
 * "blocks.0.ffn.hidden*scale*0.5" (explorer/interventions/__init__.py).
 * @param {string[]} interventions @param {ModelConfig} config @returns {Tap} */
export function interventionTap(interventions, config) {
  const parsed = parseInterventions(interventions, config);
  return (name, data, shape, start = 0) => {
    for (const { index, position, factor } of parsed.filter(({ tap }) => tap === name)) {
      const width = shape[shape.length - 1], isHeads = shape.length === 3; // (H, T, d) or (T, F)
      const component = (i) => (isHeads ? Math.floor(i / (shape[1] * width)) : i % width), positionOf = (i) => start + (Math.floor(i / width) % shape[shape.length - 2]);
      data = data.map((value, i) => ((index ?? component(i)) === component(i) && (position ?? positionOf(i)) === positionOf(i) ? value * factor : value));
    }
    return data;
  };
}

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
 * @param {TransformerLM} lm @param {number[]} tokenIds at least one
 * @param {SamplingSettings & { max_new_tokens: number, seed: number, stop_tokens?: number[], num_dropped?: number, tap?: Tap }} settings
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
