// @ts-check
// Calculations with the run's own numbers, as explorer/lessons/worked_examples.py writes them: rows of given and of computed numbers.
import { _ } from "../../static/translations.js";
import { largest, dotProduct, rowsOf, sum } from "../figures.js";
import { bracketNegative, escapeToken, formatNumber } from "../notation.js";
import { headRows, queryKeyVectors } from "../views/attention.js";

/** @typedef {import("./quantities.js").Context} Context */
/** A number, its name or the formula that computes it, and whether it needs no computation. @typedef {{ text: string, value: number, isGiven?: boolean }} Row */

const given = (text, value) => ({ text, value, isGiven: true });
/** A value's row at the chosen token. @param {Context} context @param {string} name @returns {Promise<Float32Array>} */
async function rowAt({ value, position }, name) { const { data, shape } = await value(name); return rowsOf(data, shape[1])[position]; }

/** e to the power of each number less the largest, their sum, and the shares. @param {string[]} names @param {number[]} values @returns {Row[]} */
function softmaxRows(names, values) {
  const most = largest(values), powers = values.map((value) => Math.exp(value - most)), total = sum(powers);
  return [
    ...values.map((value, i) => ({ text: `e^(${formatNumber(value)} − ${bracketNegative(formatNumber(most))})`, value: powers[i] })),
    { text: _("their sum"), value: total },
    ...names.map((token, i) => ({ text: _("share of {token}", { token }), value: powers[i] / total })),
  ];
}

/** @type {Record<string, (context: Context) => Promise<Row[]>>} */
export const WORKED_EXAMPLES = {
  /** q·k / √d, from sums of positive and of negative products. */
  async score(context) {
    const { position, key, dHead } = context, [q, k] = await queryKeyVectors(context), products = Array.from(q[position], (x, i) => x * k[key][i]);
    const below = sum(products.filter((x) => x < 0)), above = sum(products.filter((x) => x >= 0));
    return [
      given(_("the sum of all positive products q·k"), above), given(_("the sum of all negative products q·k"), below), given(_("d, how many dimensions a head has"), dHead),
      { text: _("q·k = both sums together"), value: above + below }, { text: "√d", value: Math.sqrt(dHead) }, { text: "score = q·k / √d", value: (above + below) / Math.sqrt(dHead) },
    ];
  },
  /** The softmax of the chosen query's scores. */
  async softmax_row(context) {
    const scores = Array.from((await headRows(context, "scores"))[context.position].subarray(0, context.position + 1)), names = scores.map((_score, i) => escapeToken(context.tokens[i]));
    return [...names.map((token, i) => given(_("score of {token}", { token }), scores[i])), ...softmaxRows(names, scores)];
  },
  /** One dimension of an RMSNorm: x / √(mean x² + ε) · g. */
  async rmsnorm(context) {
    const { config: { norm_eps: epsilon }, layer, state: { dim } } = context, x = await rowAt(context, `blocks.${layer}.resid_pre`), gain = await context.ask("weightAt", { name: `blocks.${layer}.attn_norm.weight`, index: dim });
    const square = dotProduct(x, x) / x.length, root = Math.sqrt(square + epsilon);
    return [
      given(_("mean of all x²"), square), given("ε", epsilon), given(_("x of dimension {dim}", { dim }), x[dim]), given(_("g of dimension {dim}", { dim }), gain),
      { text: "√(mean x² + ε)", value: root }, { text: "x / √(mean x² + ε)", value: x[dim] / root }, { text: "x / √(mean x² + ε) · g", value: (x[dim] / root) * gain },
    ];
  },
  /** The chosen neuron's SwiGLU activation. */
  async swiglu_neuron(context) {
    const [before, up] = await Promise.all(["gate_pre", "up"].map(async (name) => (await rowAt(context, `blocks.${context.layer}.ffn.${name}`))[context.neuron])), sigmoid = 1 / (1 + Math.exp(-before));
    return [
      given(_("gate before its activation, W₁x"), before), given("up, W₃x", up), { text: `σ(${formatNumber(before)}) = 1 / (1 + e^(${formatNumber(-before)}))`, value: sigmoid },
      { text: _("gate = W₁x · σ(W₁x)"), value: before * sigmoid }, { text: _("the neuron gives gate · up"), value: before * sigmoid * up },
    ];
  },
  /** The softmax of the top-k logits, divided by the temperature. */
  async temperature_top_k({ prediction, vocabulary, now, state: { temperature, top_k: k } }) {
    const ids = now.slice(0, k), names = ids.map((id) => escapeToken(vocabulary[id])), logits = ids.map((id) => prediction.logits[id]), scaled = logits.map((logit) => logit / temperature);
    return [
      ...names.map((token, i) => given(_("logit of {token}", { token }), logits[i])), given(_("temperature T"), temperature),
      ...logits.map((logit, i) => ({ text: `${formatNumber(logit)} / T`, value: scaled[i] })), ...softmaxRows(names, scaled),
    ];
  },
};
