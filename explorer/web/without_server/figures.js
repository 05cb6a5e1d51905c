// @ts-check
// Figures from templates (explorer/views/figure_template.py), filled with a run's values, and interventions as text.
import { _, formatMessage, lookUpMessage, N_, quoteWord, shortenToken } from "../static/text.js";
import { COLOURS, FIGURES } from "./page_data.js";

export * from "../static/text.js";

/** Values of a figure by name. @typedef {Record<string, any>} Values */

export const { ATTENTION, FEED_FORWARD, EMBEDDING, NORM, RESIDUAL, SELECTED, QUERY, KEY } = COLOURS;
export const MONO = COLOURS.MONO;

/** Fill the holes of a template with values. @param {any} template @param {Values} values @returns {any} */
function fillTemplate(template, values) {
  if (Array.isArray(template)) return template.flatMap((part) => fillItem(part, values));
  if (template === null || typeof template !== "object") return template;
  if ("$value" in template) return values[template.$value];
  if ("$text" in template) return fillText(template, values);
  if ("$extend" in template) return { ...values[template.$extend], ...fillTemplate(template.settings, values) };
  return Object.fromEntries(Object.entries(template).map(([name, part]) => [name, fillTemplate(part, values)]));
}

/** @param {any} part @param {Values} values @returns {any[]} */
function fillItem(part, values) {
  if (!part?.$each) return [fillTemplate(part, values)];
  return values[part.$each].flatMap((itemValues) => part.items.map((item) => fillTemplate(item, { ...values, ...itemValues })));
}

/** @param {{ $text: string, names: Record<string, string> }} hole @param {Values} values */
function fillText({ $text, names }, values) {
  const entries = Object.entries(names).map(([name, valueName]) => [name, values[valueName]]);
  return entries.length ? formatMessage(lookUpMessage($text), Object.fromEntries(entries)) : lookUpMessage($text);
}

/** Return a figure's data and layout as JSON. @param {string} id of its element @param {Values} values */
export function drawFigure(id, values) {
  const { alt, traces, layout } = FIGURES[id], { xaxis, yaxis, ...rest } = fillTemplate(layout, values), axes = { xaxis, yaxis };
  const tokenLetters = Object.entries(axes).filter(([, axis]) => axis?.of_tokens).map(([name]) => name[0]);
  for (const axis of Object.values(axes)) if (axis) delete axis.of_tokens;
  return [toJson(fillTemplate(traces, values)), toJson({ meta: { alt: fillTemplate(alt, values), of_tokens: tokenLetters, ...values.meta }, ...rest, ...axes })];
}

const toJson = (value) => JSON.stringify(value, (_name, part) => (ArrayBuffer.isView(part) ? Array.from(/** @type {any} */ (part)) : part ?? undefined));

// Token labels, and their axes.

/** @param {string} text */
const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
/** Return a shortened token as Plotly text. @param {string} token @param {number} [max] characters */
export const tokenLabel = (token, max) => escape(shortenToken(token, max));
/** @param {string[]} tokens */
export const positionLabels = (tokens) => tokens.map((token, i) => `${i} ${tokenLabel(token)}`);

/** Return the integers below `start`, or from `start` up to `stop`. @param {number} start @param {number} [stop] @returns {number[]} */
export const range = (start, stop) => Array.from({ length: stop === undefined ? start : Math.max(0, stop - start) }, (_none, i) => (stop === undefined ? i : start + i));

/** Return an axis whose values are labels of positions. @param {string[]} tokens @param {{ title?: string, maxLabels?: number, visible?: number[] }} [options] */
export function tokenAxis(tokens, { title = "", maxLabels = 48, visible = range(tokens.length) } = {}) {
  const labels = positionLabels(tokens), step = Math.ceil(visible.length / maxLabels), labelled = visible.filter((_position, i) => i % step === 0);
  return {
    of_tokens: true, type: "category", categoryorder: "array", categoryarray: labels, tickvals: labelled.map((i) => labels[i]), ticktext: labelled.map((i) => tokenLabel(tokens[i])),
    tickfont: { family: MONO, size: 11 }, title: { text: title }, showgrid: false,
  };
}

/** Return an axis whose values are positions as numbers. @param {string[]} tokens @param {string} title @param {number[]} visible */
export const numberedAxis = (tokens, title, visible) => ({
  of_tokens: true, tickvals: visible, ticktext: visible.map((i) => tokenLabel(tokens[i])), tickfont: { family: MONO, size: 11 }, title: { text: title }, showgrid: false,
});

/** Return `count` positions, centred on one if possible; all if `count` is 0. @param {number} position @param {number} count @param {number} total */
export function windowAround(position, count, total) {
  const size = Math.min(count || total, total), first = Math.max(0, Math.min(position - Math.floor(size / 2), total - size));
  return range(first, first + size);
}

/** Return the axis of stages of the residual stream, the embedding first. @param {string[]} names @param {number} [maxLabels] */
export const stageAxis = (names, maxLabels = 40) => ({
  type: "category", tickvals: names.filter((_name, i) => i % Math.ceil(names.length / maxLabels) === 0), title: { text: _("stage: after layer and sublayer") }, showgrid: false, autorange: "reversed",
});

/** @param {string[]} names */
export const sublayerAxis = (names) => ({
  title: { text: _("layer and sublayer<br>(blue: attention adds, purple: feed-forward adds)") }, tickvals: range(names.length), ticktext: names, showgrid: false,
});

// Shapes that mark the selection.

/** Return a band around a row. @param {number} row @param {number} [width] @param {object} [line] */
export const rowBand = (row, width = 1, line = {}) => ({ type: "rect", x0: 0, x1: 1, xref: "x domain", y0: row - 0.5, y1: row + 0.5, yref: "y", line: { color: SELECTED, width, ...line } });
/** @param {number} column @param {number} [width] */
export const columnBand = (column, width = 1) => ({ type: "rect", x0: column - 0.5, x1: column + 0.5, xref: "x", y0: 0, y1: 1, yref: "y domain", line: { color: SELECTED, width } });
/** @param {number} column */
export const columnLine = (column) => ({ type: "line", x0: column, x1: column, xref: "x", y0: 0, y1: 1, yref: "y domain", line: { color: SELECTED, width: 1 } });
/** @param {number} row @param {number} column */
export const cellFrame = (row, column) => ({ type: "rect", x0: column - 0.5, x1: column + 0.5, y0: row - 0.5, y1: row + 0.5, line: { color: SELECTED, width: 3 } });
/** @param {number} column @param {number} rows */
export const columnFrame = (column, rows) => ({ type: "rect", x0: column - 0.5, x1: column + 0.5, y0: -0.5, y1: rows - 0.5, line: { color: SELECTED, width: 2 } });
/** @param {number} y @param {object} line */
export const horizontalLine = (y, line) => ({ type: "line", x0: 0, x1: 1, xref: "x domain", y0: y, y1: y, yref: "y", line });

// Numbers.

/** @param {ArrayLike<number>} values */
export const sum = (values) => Array.prototype.reduce.call(values, (total, value) => total + value, 0);
/** Return the index of the largest value by `measure`; the first of equal ones. @param {ArrayLike<number>} values @param {(value: number) => number} [measure] */
export const argmax = (values, measure = (value) => value) => Array.prototype.reduce.call(values, (best, value, i) => (measure(value) > measure(values[best]) ? i : best), 0);
/** @param {ArrayLike<number>} values */
export const largest = (values) => Array.prototype.reduce.call(values, (max, value) => Math.max(max, value), -Infinity);
/** @param {ArrayLike<number>} values */
export const smallest = (values) => -largest(Array.from(values, (value) => -value));
/** ‖x‖₂. @param {ArrayLike<number>} values */
export const vectorNorm = (values) => Math.sqrt(sum(Array.from(values, (value) => value * value)));
/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
export const dotProduct = (a, b) => sum(Array.from(a, (value, i) => value * b[i]));
/** @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
export const cosine = (a, b) => Math.max(-1, Math.min(1, dotProduct(a, b) / (vectorNorm(a) * vectorNorm(b)) || 0));
/** Return the middle value, or the mean of the middle two. @param {ArrayLike<number>} values */
export function median(values) {
  const sorted = Float64Array.from(values).sort(), middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
/** Softmax in float64. @param {ArrayLike<number>} logits */
export function softmax(logits) {
  const max = largest(logits), weights = Float64Array.from(logits, (logit) => Math.exp(logit - max)), total = sum(weights);
  return weights.map((weight) => weight / total);
}
/** Entropy in bits. @param {Float64Array} probabilities */
export const entropy = (probabilities) => Math.max(0, -sum(probabilities.map((p) => (p > 0 ? p * Math.log2(p) : 0))));
/** Return all ids by value, the largest first; of equal ones the lower id. @param {ArrayLike<number>} values */
export const rankedIds = (values) => range(values.length).sort((a, b) => values[b] - values[a] || a - b);
/** Split an array (n, width) into its rows. @param {Float32Array} data @param {number} width @returns {Float32Array[]} */
export const rowsOf = (data, width) => range(data.length / width).map((i) => data.subarray(i * width, (i + 1) * width));

// Words and interventions as text.

const ORDINALS = [N_("the first {word}"), N_("the second {word}"), N_("the third {word}"), N_("the fourth {word}"), N_("the fifth {word}")];

/** Quote the token at a position as a word, and say which of them, in capitals or not, if the text repeats it. @param {string[]} tokens @param {number} position */
export function quoteWordAt(tokens, position) {
  const words = tokens.map((token) => quoteWord(token).toLowerCase()), word = quoteWord(tokens[position]), same = words[position];
  const index = words.slice(0, position).filter((other) => other === same).length;
  if (words.indexOf(same) === words.lastIndexOf(same)) return word;
  return index < ORDINALS.length ? formatMessage(lookUpMessage(ORDINALS[index]), { word }) : _("{word} number {number}", { word, number: index + 1 });
}

/** Describe an intervention in words. @param {string} text */
export function describeIntervention(text) {
  const [, layer, kind, index, position, factor] = /^blocks\.(\d+)\.(attn\.z|ffn\.hidden)[.[]?(\d*)\]?(?:@(\d+))?\*(?:zero|scale\*(.*))$/.exec(text) ?? [];
  const values = { layer, index, factor: (factor ?? "").replace("-", "−") }, isScaled = +(factor ?? 0) !== 0;
  const describeOne = { "attn.z": () => (isScaled ? _("layer {layer} head {index} × {factor}", values) : _("layer {layer} head {index}: off", values)), "ffn.hidden": () => (isScaled ? _("layer {layer} neuron {index} × {factor}", values) : _("layer {layer} neuron {index}: off", values)) };
  const describeAll = { "attn.z": () => (isScaled ? _("all heads of layer {layer} × {factor}", values) : _("all heads of layer {layer}: off", values)), "ffn.hidden": () => (isScaled ? _("all neurons of layer {layer} × {factor}", values) : _("all neurons of layer {layer}: off", values)) };
  const change = (index ? describeOne : describeAll)[kind]();
  return position ? _("{change}, {where}", { change, where: _("at position {position}", { position }) }) : change;
}
