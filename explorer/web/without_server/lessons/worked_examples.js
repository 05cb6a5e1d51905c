// @ts-check
// Worked examples: calculations with the run's own numbers, as in explorer/lessons/worked_examples.py. Rows are given or computed numbers.
import { _ } from "../../static/translations.js";
import { largest, dotProduct, rowsOf, sum } from "../figures.js";
import { bracketNegative, escapeToken, formatNumber } from "../notation.js";
import { headRows, queryKeyVectors } from "../views/attention.js";
import { formatAnswer } from "./quantities.js";

/** @typedef {import("./quantities.js").Context} Context @typedef {(values: number[]) => number} Formula */
/** Number with its name or formula; a computed one has its function of the values above, and the template of its calculation. @typedef {{ text: string, value: number, shown: string, compute?: Formula, calculation?: string, blankText?: string }} Row */

/** @param {string} text @param {number} value @returns {Row} */
const givenRow = (text, value, shown = formatAnswer(value)) => ({ text, value, shown });
/** Append a row that is computed from those above. @param {Row[]} rows @param {string} text @param {string} calculation @param {Formula} compute @param {string} [blankText] formula while other numbers are blank */
function addComputedRow(rows, text, calculation, compute, blankText = "") {
  const value = compute(rows.map((row) => row.value));
  rows.push({ text, value, shown: formatAnswer(value), compute, calculation, blankText });
}
/** Return a row's formula with the numbers shown. @param {Row[]} rows @param {Row} row */
export const describeCalculation = (rows, { text, calculation, shown }) => `${[text, calculation.replace(/\{(\d+)\}/g, (_match, i) => bracketNegative(rows[i].shown))].filter(Boolean).join(" = ")} ≈ ${shown}`;

/** Return half a unit of the last digit shown; 0 for a whole number. @param {Row} row */
function maxRounding({ value, shown }) {
  const [mantissa, exponent = "0"] = shown.split("e"), decimals = mantissa.split(".")[1]?.length ?? 0;
  return Number.isInteger(value) ? 0 : 0.5 * 10 ** (+exponent.replace("−", "-") - decimals);
}
/** Return how far each row can be off for a person who computes with the numbers shown, to first order. @param {Row[]} rows */
export function roundingErrors(rows) {
  const errors = rows.map(maxRounding), shiftRow = (i, shift) => rows.reduce((values, { value, compute }, j) => [...values, (compute && j > i ? compute(values) : value) + (j === i ? shift : 0)], /** @type {number[]} */ ([]));
  rows.forEach((row, i) => {
    const shifted = [maxRounding(row), -maxRounding(row)].map((shift) => shiftRow(i, shift));
    for (let j = i + 1; j < rows.length; j++) errors[j] += Math.max(...shifted.map((values) => Math.abs(values[j] - rows[j].value)));
  });
  return errors;
}

/** Return a value's row at the selected token. @param {Context} context @param {string} name @returns {Promise<Float32Array>} */
async function rowAt({ value, position }, name) { const { data, shape } = await value(name); return rowsOf(data, shape[1])[position]; }

/** Append the softmax of the last rows: powers of e of each less the largest, their sum, and the shares. @param {Row[]} rows @param {string[]} names @param {string[]} [formulas] of the numbers, if these are computed */
function addSoftmaxRows(rows, names, formulas = []) {
  const start = rows.length - names.length, end = rows.length, total = end + names.length, values = rows.slice(start).map(({ value }) => value), max = bracketNegative(formatNumber(largest(values)));
  values.forEach((value, i) => addComputedRow(rows, `e^(${formatNumber(value)} − ${max})`, "", (v) => Math.exp(v[start + i] - largest(v.slice(start, end))), formulas.length ? `e^(${formulas[i]} − ${formulas[values.indexOf(largest(values))]})` : ""));
  addComputedRow(rows, _("their sum"), names.map((_name, i) => `{${end + i}}`).join(" + "), (v) => sum(v.slice(end, total)));
  names.forEach((token, i) => addComputedRow(rows, _("share of {token}", { token }), `{${end + i}} / {${total}}`, (v) => v[end + i] / v[total]));
}

/** @type {Record<string, (context: Context) => Promise<Row[]>>} */
export const WORKED_EXAMPLES = {
  /** Compute q·k / √d from the sums of positive and of negative products. */
  async score(context) {
    const { position, key, dHead } = context, [q, k] = await queryKeyVectors(context), products = Array.from(q[position], (x, i) => x * k[key][i]);
    const below = sum(products.filter((x) => x < 0)), above = sum(products.filter((x) => x >= 0));
    const decimals = Math.max(...[above, below, above + below].map((value) => formatNumber(value).split(".")[1]?.length ?? 0)), format = (/** @type {number} */ value) => value.toFixed(decimals).replace("-", "−");
    const rows = [givenRow(_("the sum of all positive products q·k"), above, format(above)), givenRow(_("the sum of all negative products q·k"), below, format(below)), givenRow(_("d, how many dimensions a head has"), dHead)];
    addComputedRow(rows, _("q·k = both sums together"), "{0} + {1}", (v) => v[0] + v[1]);
    addComputedRow(rows, "√d", "√{2}", (v) => Math.sqrt(v[2]));
    addComputedRow(rows, "score = q·k / √d", "{3} / {4}", (v) => v[3] / v[4]);
    return rows;
  },
  /** Compute the softmax of the selected query's scores. */
  async softmax_row(context) {
    const scores = Array.from((await headRows(context, "scores"))[context.position].subarray(0, context.position + 1)), names = scores.map((_score, i) => escapeToken(context.tokens[i]));
    const rows = names.map((token, i) => givenRow(_("score of {token}", { token }), scores[i]));
    addSoftmaxRows(rows, names);
    return rows;
  },
  /** Compute one dimension of an RMSNorm: x / √(mean x² + ε) · g. */
  async rmsnorm(context) {
    const { config: { norm_eps: epsilon }, layer, state: { dim } } = context, x = await rowAt(context, `blocks.${layer}.resid_pre`), gain = await context.ask("weightAt", { name: `blocks.${layer}.attn_norm.weight`, index: dim });
    const rows = [givenRow(_("mean of all x²"), dotProduct(x, x) / x.length), givenRow("ε", epsilon), givenRow(_("x of dimension {dim}", { dim }), x[dim]), givenRow(_("g of dimension {dim}", { dim }), gain)];
    addComputedRow(rows, "√(mean x² + ε)", "√({0} + {1})", (v) => Math.sqrt(v[0] + v[1]));
    addComputedRow(rows, "x / √(mean x² + ε)", "{2} / {4}", (v) => v[2] / v[4]);
    addComputedRow(rows, "x / √(mean x² + ε) · g", "{5} · {3}", (v) => v[5] * v[3]);
    return rows;
  },
  /** Compute the selected neuron's SwiGLU activation. */
  async swiglu_neuron(context) {
    const [preactivation, up] = await Promise.all(["gate_pre", "up"].map(async (name) => (await rowAt(context, `blocks.${context.layer}.ffn.${name}`))[context.neuron]));
    const rows = [givenRow(_("gate before its activation, W₁x"), preactivation), givenRow("up, W₃x", up)];
    addComputedRow(rows, `σ(${formatNumber(preactivation)}) = 1 / (1 + e^(${formatNumber(-preactivation)}))`, "", (v) => 1 / (1 + Math.exp(-v[0])));
    addComputedRow(rows, _("gate = W₁x · σ(W₁x)"), "{0} · {2}", (v) => v[0] * v[2]);
    addComputedRow(rows, _("the neuron gives gate · up"), "{3} · {1}", (v) => v[3] * v[1]);
    return rows;
  },
  /** Compute the softmax of the top-k logits, divided by the temperature. */
  async temperature_top_k({ prediction, vocabulary, now, state: { temperature, top_k: k } }) {
    const ids = now.slice(0, k), names = ids.map((id) => escapeToken(vocabulary[id])), logits = ids.map((id) => prediction.logits[id]);
    const rows = [...names.map((token, i) => givenRow(_("logit of {token}", { token }), logits[i])), givenRow(_("temperature T"), temperature)];
    const formulas = logits.map((logit) => `${formatNumber(logit)} / T`);
    formulas.forEach((formula, i) => addComputedRow(rows, formula, `{${i}} / {${k}}`, (v) => v[i] / v[k]));
    addSoftmaxRows(rows, names, formulas);
    return rows;
  },
};
