// @ts-check
// Quantities computed from a trace, as in explorer/analysis/: logit lens, direct logit attribution, and summaries of logits.
import { linear, norm, normScale, parseInterventions } from "../static/in_browser/transformer_lm.js";

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
 * Heads that an intervention changes have no sources; `changed` (L, H) is their contribution.
 * @param {Trace} trace @param {number} position @param {Pick<ReturnType<typeof directLogitAttribution>, "heads" | "directions">} attribution
 */
export function headSources(trace, position, attribution) {
  const { config, weights, dHead } = trace.lm, { num_layers: L, num_heads: H, d_model: D } = config, T = trace.tokenIds.length;
  const effects = new Float64Array(L * H * T), norms = new Float64Array(L * H * T), changed = new Float64Array(L * H), output = new Float64Array(D);
  const interventions = parseInterventions(trace.interventions, config);
  for (let layer = 0; layer < L; layer++) {
    const { data: pattern } = trace.get(`blocks.${layer}.attn.pattern`), { data: values } = trace.get(`blocks.${layer}.attn.v`), outputWeight = weights[`blocks.${layer}.attn.o_proj.weight`];
    for (let head = 0; head < H; head++) {
      const isChanged = interventions.some(({ tap, index, position: changed }) => tap === `blocks.${layer}.attn.z` && (index ?? head) === head && (changed ?? position) === position);
      if (isChanged) changed[layer * H + head] = attribution.heads[layer * H + head];
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
  return { effects, norms, changed };
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
