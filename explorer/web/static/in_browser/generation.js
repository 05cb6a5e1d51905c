// @ts-check
// Autoregressive generation, as in model/generation/autoregressive.py.
import { drawToken, samplingStages, uniformDraw } from "./sampling.js";
import { KVCache } from "./transformer_lm.js";

/** Continue `tokenIds`, yielding each sampled token; the same seed gives the same tokens. The model attends to the tokens
 * from `windowStart` on.
 * @param {import("./transformer_lm.js").TransformerLM} lm @param {number[]} tokenIds at least one
 * @param {import("./sampling.js").SamplingSettings & { max_new_tokens: number, seed: number, stop_tokens?: number[], num_dropped?: number, tap?: import("./transformer_lm.js").Tap }} settings
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
