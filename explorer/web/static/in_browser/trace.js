// @ts-check
// A captured run, and what is worked out of it: ablations, the logit lens and direct logit attribution.
import { linear, norm, normScale } from "./layers.js";
import { ModelError } from "./transformer_lm.js";

/** @typedef {import("./transformer_lm.js").TransformerLM} TransformerLM @typedef {import("./transformer_lm.js").Tap} Tap */

/** Every value of a run by its name. */
export class Trace {
  /** @param {TransformerLM} lm @param {number[]} tokenIds @param {string[]} [interventions] */
  constructor(lm, tokenIds, interventions = []) {
    this.lm = lm;
    this.tokenIds = tokenIds;
    /** @type {Map<string, import("./transformer_lm.js").Value>} */
    this.values = new Map();
    const intervene = interventionTap(interventions, lm.config);
    lm.forward(tokenIds, { tap: (name, before, shape) => {
      const data = intervene(name, before, shape);
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

  /** A value's numbers at one position, (width,) of (T, width). @param {string} name @param {number} position */
  row(name, position) {
    const { data, shape: [, width] } = this.get(name);
    return data.subarray(position * width, (position + 1) * width);
  }
}

const INTERVENTION = /^(blocks\.(\d+)\.(attn\.z|ffn\.hidden))(?:\.(\d+)|\[(\d+)\])?\*(?:zero|scale\*(-?[\d.]+))$/;

/**
 * A hook that multiplies heads at `attn.z` and neurons at `ffn.hidden`, as "blocks.2.attn.z.1*zero" or "blocks.0.ffn.hidden*scale*0.5"
 * (explorer/interventions/text.py).
 * @param {string[]} interventions @param {import("./transformer_lm.js").ModelConfig} config @returns {Tap}
 */
export function interventionTap(interventions, config) {
  const parsed = interventions.map((text) => {
    const [, tap, layer, kind, dotted, bracketed, factor = 0] = INTERVENTION.exec(text) ?? [], index = dotted ?? bracketed;
    if (!tap || !(+layer < config.num_layers) || !(+(index ?? 0) < (kind === "attn.z" ? config.num_heads : config.d_ff)) || Number.isNaN(+factor)) throw new ModelError(`This page ablates heads and neurons alone, as in blocks.2.attn.z.1*zero, got ${text}.`);
    return { tap, index: index === undefined ? null : +index, factor: +factor };
  });
  return (name, data, shape) => {
    for (const { index, factor } of parsed.filter(({ tap }) => tap === name)) {
      const width = shape[shape.length - 1], isHeads = shape.length === 3; // (H, T, d) or (T, F)
      data = data.map((value, i) => (index === null || index === (isHeads ? Math.floor(i / (shape[1] * width)) : i % width) ? value * factor : value));
    }
    return data;
  };
}

/** The values that the lens reads: the embedding, then the stream after each sum. @param {import("./transformer_lm.js").ModelConfig} config */
export const lensTaps = (config) => ["blocks.0.resid_pre", ...Array.from({ length: config.num_layers }, (_none, layer) => [`blocks.${layer}.resid_mid`, `blocks.${layer}.resid_post`]).flat()];

/**
 * Logits of the logit lens (S, V) after a position, at each of `lensTaps`: the prediction if the rest of the model were skipped.
 * @param {Trace} trace @param {number} position
 */
export function logitLens(trace, position) {
  const { config, weights } = trace.lm, taps = lensTaps(config), D = config.d_model, x = new Float32Array(taps.length * D);
  taps.forEach((name, depth) => x.set(trace.row(name, position), depth * D));
  return linear(norm(config.norm, x, weights["final_norm.weight"], weights["final_norm.bias"], config.norm_eps), weights["lm_head.weight"], undefined, D);
}

/**
 * Direct logit attribution (explorer/analysis/direct_logit_attribution.py): a logit as the sum of what each component writes to the
 * stream, through the final norm with its scale of this run.
 * @param {Trace} trace @param {number} position @param {number} tokenId
 * @returns {{ token: number, positions: number, heads: Float64Array, biases: Float64Array, feed_forward: Float64Array, shift: number, logit: number }} heads (L, H), the others of layers (L,)
 */
export function directLogitAttribution(trace, position, tokenId) {
  const { config, weights, dHead } = trace.lm, { d_model: D, num_layers: L, num_heads: H, vocab_size: V } = config;
  const unembedding = weights["lm_head.weight"].subarray(tokenId * D, (tokenId + 1) * D), gain = weights["final_norm.weight"], beta = weights["final_norm.bias"];
  const { divisor } = normScale(config.norm, trace.row(`blocks.${L - 1}.resid_post`, position), config.norm_eps);
  const direction = Float64Array.from(unembedding, (value, i) => (value * gain[i]) / divisor); // through the norm: what a term of the stream is multiplied by
  if (config.norm === "layernorm") {
    const mean = direction.reduce((a, b) => a + b, 0) / D;
    direction.forEach((value, i) => { direction[i] = value - mean; });
  }
  const along = (/** @type {ArrayLike<number>} */ x) => direction.reduce((sum, value, i) => sum + value * x[i], 0);
  const heads = new Float64Array(L * H), biases = new Float64Array(L), feedForward = new Float64Array(L);
  for (let layer = 0; layer < L; layer++) {
    const table = weights[`blocks.${layer}.attn.o_proj.weight`], bias = weights[`blocks.${layer}.attn.o_proj.bias`], { data: z } = trace.get(`blocks.${layer}.attn.z`);
    for (let column = 0; column < D; column++) { // of W_O: D / H neighbours belong to a head
      const head = Math.floor(column / dHead), read = z[(head * trace.tokenIds.length + position) * dHead + (column % dHead)];
      for (let i = 0; i < D; i++) heads[layer * H + head] += read * table[i * D + column] * direction[i];
    }
    if (bias) biases[layer] = along(bias);
    feedForward[layer] = along(trace.row(`blocks.${layer}.ffn.out`, position));
  }
  const positions = config.position === "sinusoidal" ? along(trace.row("position_embed", position)) : 0;
  const shift = beta ? beta.reduce((sum, value, i) => sum + value * unembedding[i], 0) : 0;
  return { token: along(trace.row("embed", position)) - positions, positions, heads, biases, feed_forward: feedForward, shift, logit: trace.get("logits").data[position * V + tokenId] };
}
