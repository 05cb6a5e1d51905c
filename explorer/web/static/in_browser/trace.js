// @ts-check
// A captured run, with heads and neurons ablated.
import { ModelError } from "./transformer_lm.js";

/** Every value of a run by its name. */
export class Trace {
  /** @param {import("./transformer_lm.js").TransformerLM} lm @param {number[]} tokenIds @param {string[]} [interventions] @param {import("./transformer_lm.js").KVCache} [cache] empty, to be filled */
  constructor(lm, tokenIds, interventions = [], cache = undefined) {
    this.lm = lm;
    this.tokenIds = tokenIds;
    this.interventions = interventions;
    /** @type {Map<string, import("./transformer_lm.js").Value>} */
    this.values = new Map();
    const intervene = interventionTap(interventions, lm.config);
    lm.forward(tokenIds, { cache, tap: (name, before, shape) => {
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

const INTERVENTION = /^(blocks\.(\d+)\.(attn\.z|ffn\.hidden))(?:\.(\d+)|\[(\d+)\])?(?:@(\d+))?\*(?:zero|scale\*(-?[\d.]+))$/;

/** The tap, the head or neuron and the position (null for all), and the factor of each intervention. @param {string[]} interventions @param {import("./transformer_lm.js").ModelConfig} config */
export function parseInterventions(interventions, config) {
  return interventions.map((text) => {
    const [, tap, layer, kind, dotted, bracketed, position, factor = 0] = INTERVENTION.exec(text) ?? [], index = dotted ?? bracketed;
    if (!tap || !(+layer < config.num_layers) || !(+(index ?? 0) < (kind === "attn.z" ? config.num_heads : config.d_ff)) || Number.isNaN(+factor)) throw new ModelError(`This page ablates heads and neurons alone, as in blocks.2.attn.z.1*zero, got ${text}.`);
    return { tap, index: index === undefined ? null : +index, position: position === undefined ? null : +position, factor: +factor };
  });
}

/** A hook that multiplies heads at `attn.z` and neurons at `ffn.hidden`, as "blocks.2.attn.z.1*zero", "blocks.2.attn.z.1@12*zero" or
 * "blocks.0.ffn.hidden*scale*0.5" (explorer/interventions/parsing.py).
 * @param {string[]} interventions @param {import("./transformer_lm.js").ModelConfig} config @returns {import("./transformer_lm.js").Tap} */
export function interventionTap(interventions, config) {
  const parsed = parseInterventions(interventions, config);
  return (name, data, shape, start = 0) => {
    for (const { index, position, factor } of parsed.filter(({ tap }) => tap === name)) {
      const width = shape[shape.length - 1], isHeads = shape.length === 3; // (H, T, d) or (T, F)
      const part = (i) => (isHeads ? Math.floor(i / (shape[1] * width)) : i % width), at = (i) => start + (Math.floor(i / width) % shape[shape.length - 2]);
      data = data.map((value, i) => ((index ?? part(i)) === part(i) && (position ?? at(i)) === at(i) ? value * factor : value));
    }
    return data;
  };
}
