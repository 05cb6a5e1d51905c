// @ts-check
// A captured run, with ablated heads and neurons.
import { ModelError } from "./transformer_lm.js";

/** All values of a run by name. */
export class Trace {
  /** @param {import("./transformer_lm.js").TransformerLM} lm @param {number[]} tokenIds @param {string[]} [interventions] @param {import("./transformer_lm.js").KVCache} [cache] empty; the run fills it */
  constructor(lm, tokenIds, interventions = [], cache = undefined) {
    this.lm = lm;
    this.tokenIds = tokenIds;
    this.interventions = interventions;
    /** @type {Map<string, import("./transformer_lm.js").Value>} */
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

/** Parse each intervention into its tap, its head or neuron and position (null for all), and its factor. @param {string[]} interventions @param {import("./transformer_lm.js").ModelConfig} config */
export function parseInterventions(interventions, config) {
  return interventions.map((text) => {
    const [, tap, layer, kind, dotted, bracketed, position, factor = 0] = INTERVENTION.exec(text) ?? [], index = dotted ?? bracketed;
    if (!tap || !(+layer < config.num_layers) || !(+(index ?? 0) < (kind === "attn.z" ? config.num_heads : config.d_ff)) || Number.isNaN(+factor)) throw new ModelError(`This page ablates heads and neurons alone, as in blocks.2.attn.z.1*zero, got ${text}.`);
    return { tap, index: index === undefined ? null : +index, position: position === undefined ? null : +position, factor: +factor };
  });
}

/** Return a hook that multiplies heads at `attn.z` and neurons at `ffn.hidden`, as "blocks.2.attn.z.1*zero", "blocks.2.attn.z.1@12*zero" or
 * "blocks.0.ffn.hidden*scale*0.5" (explorer/interventions/parsing.py).
 * @param {string[]} interventions @param {import("./transformer_lm.js").ModelConfig} config @returns {import("./transformer_lm.js").Tap} */
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
