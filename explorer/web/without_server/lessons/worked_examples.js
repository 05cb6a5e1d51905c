// @ts-check
// Worked examples: calculations with the run's own numbers, as in explorer/lessons/worked_examples.py. Rows are given or computed numbers.
import { _ } from "../../static/translations.js";
import { largest, dotProduct, rowsOf, sum } from "../figures.js";
import { bracketNegative, escapeToken, formatNumber } from "../notation.js";
import { headRows, queryKeyVectors } from "../views/attention.js";

/** @typedef {import("./quantities.js").Context} Context */
/** Number with its name or formula, whether it is given, and the formula while other numbers are blank. @typedef {{ text: string, value: number, isGiven?: boolean, blankText?: string }} Row */

const givenRow = (text, value) => ({ text, value, isGiven: true });
/** Return a value's row at the selected token. @param {Context} context @param {string} name @returns {Promise<Float32Array>} */
async function rowAt({ value, position }, name) { const { data, shape } = await value(name); return rowsOf(data, shape[1])[position]; }

/** Return the rows of a softmax: powers of e of each number less the largest, their sum, and the shares. @param {string[]} names @param {number[]} values @param {string[]} [formulas] of the numbers, if these are computed @returns {Row[]} */
function softmaxRows(names, values, formulas) {
  const max = largest(values), powers = values.map((value) => Math.exp(value - max)), total = sum(powers);
  return [
    ...values.map((value, i) => ({ text: `e^(${formatNumber(value)} − ${bracketNegative(formatNumber(max))})`, value: powers[i], blankText: formulas && `e^(${formulas[i]} − ${formulas[values.indexOf(max)]})` })),
    { text: _("their sum"), value: total },
    ...names.map((token, i) => ({ text: _("share of {token}", { token }), value: powers[i] / total })),
  ];
}

/** @type {Record<string, (context: Context) => Promise<Row[]>>} */
export const WORKED_EXAMPLES = {
  /** Compute q·k / √d from the sums of positive and of negative products. */
  async score(context) {
    const { position, key, dHead } = context, [q, k] = await queryKeyVectors(context), products = Array.from(q[position], (x, i) => x * k[key][i]);
    const negativeSum = sum(products.filter((x) => x < 0)), positiveSum = sum(products.filter((x) => x >= 0));
    return [
      givenRow(_("the sum of all positive products q·k"), positiveSum), givenRow(_("the sum of all negative products q·k"), negativeSum), givenRow(_("d, how many dimensions a head has"), dHead),
      { text: _("q·k = both sums together"), value: positiveSum + negativeSum }, { text: "√d", value: Math.sqrt(dHead) }, { text: "score = q·k / √d", value: (positiveSum + negativeSum) / Math.sqrt(dHead) },
    ];
  },
  /** Compute the softmax of the selected query's scores. */
  async softmax_row(context) {
    const scores = Array.from((await headRows(context, "scores"))[context.position].subarray(0, context.position + 1)), names = scores.map((_score, i) => escapeToken(context.tokens[i]));
    return [...names.map((token, i) => givenRow(_("score of {token}", { token }), scores[i])), ...softmaxRows(names, scores)];
  },
  /** Compute one dimension of an RMSNorm: x / √(mean x² + ε) · g. */
  async rmsnorm(context) {
    const { config: { norm_eps: epsilon }, layer, state: { dim } } = context, x = await rowAt(context, `blocks.${layer}.resid_pre`), gain = await context.ask("weightAt", { name: `blocks.${layer}.attn_norm.weight`, index: dim });
    const square = dotProduct(x, x) / x.length, root = Math.sqrt(square + epsilon);
    return [
      givenRow(_("mean of all x²"), square), givenRow("ε", epsilon), givenRow(_("x of dimension {dim}", { dim }), x[dim]), givenRow(_("g of dimension {dim}", { dim }), gain),
      { text: "√(mean x² + ε)", value: root }, { text: "x / √(mean x² + ε)", value: x[dim] / root }, { text: "x / √(mean x² + ε) · g", value: (x[dim] / root) * gain },
    ];
  },
  /** Compute the selected neuron's SwiGLU activation. */
  async swiglu_neuron(context) {
    const [preactivation, up] = await Promise.all(["gate_pre", "up"].map(async (name) => (await rowAt(context, `blocks.${context.layer}.ffn.${name}`))[context.neuron])), sigmoid = 1 / (1 + Math.exp(-preactivation));
    return [
      givenRow(_("gate before its activation, W₁x"), preactivation), givenRow("up, W₃x", up), { text: `σ(${formatNumber(preactivation)}) = 1 / (1 + e^(${formatNumber(-preactivation)}))`, value: sigmoid },
      { text: _("gate = W₁x · σ(W₁x)"), value: preactivation * sigmoid }, { text: _("the neuron gives gate · up"), value: preactivation * sigmoid * up },
    ];
  },
  /** Compute the softmax of the top-k logits, divided by the temperature. */
  async temperature_top_k({ prediction, vocabulary, now, state: { temperature, top_k: k } }) {
    const ids = now.slice(0, k), names = ids.map((id) => escapeToken(vocabulary[id])), logits = ids.map((id) => prediction.logits[id]), scaled = logits.map((logit) => logit / temperature), formulas = logits.map((logit) => `${formatNumber(logit)} / T`);
    return [
      ...names.map((token, i) => givenRow(_("logit of {token}", { token }), logits[i])), givenRow(_("temperature T"), temperature),
      ...formulas.map((text, i) => ({ text, value: scaled[i] })), ...softmaxRows(names, scaled, formulas),
    ];
  },
};
