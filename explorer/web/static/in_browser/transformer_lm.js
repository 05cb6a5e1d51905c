// @ts-check
// The model of model/transformer_lm.py: token ids to next-token logits, with named values.
// Shapes: T positions, C context length, D = d_model, L blocks, H heads, d = D / H head width, F neurons (in RoPE: pairs of
// dimensions, d / 2), V vocabulary, K positions so far.
import { add, attentionPattern, attentionScores, linear, mergeHeads, norm, relu, rotaryAngles, rotateAdjacent, silu, sinusoidalPositions, splitHeads, weightValues } from "./layers.js";

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
  /** @param {ModelConfig} config @param {Record<string, Value>} weights by name, as in model/ */
  constructor(config, weights) {
    checkConfig(config);
    this.config = config;
    this.dHead = config.d_model / config.num_heads;
    this.embeddingScale = config.scale_embeddings ? Math.sqrt(config.d_model) : 1;
    /** @type {Record<string, Float32Array>} */
    this.weights = {};
    for (const [name, shape] of Object.entries(weightShapes(config))) {
      const actualShape = weights[name] ? String(weights[name].shape) : "missing";
      if (actualShape !== String(shape)) throw new ModelError(`The weights do not fit the model: ${name} should be ${shape}, and is ${actualShape}.`);
      this.weights[name] = weights[name].data;
    }
    this.weights["lm_head.weight"] ??= this.weights["token_embedding.weight"];
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

// Configs that this file supports; other models need Python.
const SUPPORTED_VALUES = { norm: ["rmsnorm", "layernorm"], position: ["rope", "sinusoidal", "none"], ffn: ["swiglu", "relu"], norm_placement: ["pre"], rope_layout: ["adjacent"] };
const UNSUPPORTED_FIELDS = ["num_kv_heads", "qk_norm", "rope_scaling", "qkv_bias", "head_dim", "rotary_dim", "score_divisor", "score_cap", "logit_cap", "unembedding_bias"];

/** Throw a ModelError for an unsupported config. @param {ModelConfig} config */
function checkConfig(config) {
  const fields = /** @type {Record<string, any>} */ (config);
  const unsupported = [...Object.keys(SUPPORTED_VALUES).filter((name) => fields[name] !== undefined && !SUPPORTED_VALUES[name].includes(fields[name])), ...UNSUPPORTED_FIELDS.filter((name) => fields[name])];
  if (unsupported.length) throw new ModelError(`This page runs the bundled models alone: ${unsupported.map((name) => `${name} = ${fields[name]}`).join(", ")} needs Python.`);
}

/** Return the shape of each weight by name. @param {ModelConfig} config @returns {Record<string, number[]>} */
function weightShapes({ vocab_size: V, d_model: D, d_ff: F, num_layers, norm, ffn, bias, tie_embeddings }) {
  /** @type {Record<string, number[]>} */
  const shapes = { "token_embedding.weight": [V, D] };
  const addNorm = (name) => Object.assign(shapes, { [`${name}.weight`]: [D] }, norm === "layernorm" && { [`${name}.bias`]: [D] });
  const addLinear = (name, dIn, dOut) => Object.assign(shapes, { [`${name}.weight`]: [dOut, dIn] }, bias && { [`${name}.bias`]: [dOut] });
  for (let layer = 0; layer < num_layers; layer++) {
    const block = `blocks.${layer}`;
    addNorm(`${block}.attn_norm`);
    for (const name of ["q", "k", "v", "o"]) addLinear(`${block}.attn.${name}_proj`, D, D);
    addNorm(`${block}.ffn_norm`);
    for (const name of ffn === "swiglu" ? ["gate", "up"] : ["up"]) addLinear(`${block}.ffn.${name}_proj`, D, F);
    addLinear(`${block}.ffn.down_proj`, F, D);
  }
  addNorm("final_norm");
  return tie_embeddings ? shapes : { ...shapes, "lm_head.weight": [V, D] };
}
