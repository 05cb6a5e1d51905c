// @ts-check
// Numbers, tokens and interventions as text, and figures from templates (explorer/views/figure_template.py), filled with a run's values.
import { _, formatMessage, lookUpMessage, N_ } from "../static/translations.js";
import { COLOURS, FIGURES } from "./page_data.js";
import { END_OF_TEXT_TOKENS } from "../static/shared_constants.js";
import { formatNumber } from "../widgets/next_token/next_token.js";

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
/** Split an array (n, width) into its rows. @param {Float32Array} data @param {number} width @returns {Float32Array[]} */
export const rowsOf = (data, width) => range(data.length / width).map((i) => data.subarray(i * width, (i + 1) * width));

// Tokens, numbers and interventions as text, as explorer/explain/notation.py, views/style.py and explorer/interventions/ format them.

/** Make a token's spaces, line breaks and control characters visible. @param {string} token */
export const escapeToken = (token) => (END_OF_TEXT_TOKENS.includes(token) ? _("■ end of text") : Array.from(token, escapeCharacter).join("") || "∅");

/** @param {string} character */
function escapeCharacter(character) {
  if (character in MARKS) return MARKS[character];
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Z}]/u.test(character) ? `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩` : character;
}
const MARKS = { " ": "·", "\n": "↵", "\t": "→", "\x7f": "␡" };

/** Quote a token for use in a sentence. @param {string} token */
export const quoteToken = (token) => `“${escapeToken(token)}”`;

/** Quote the token at a position, with the position if the text repeats it. @param {string[]} tokens @param {number} position */
export const quoteTokenInText = (tokens, position) => quoteToken(tokens[position]) + repeatedPosition(tokens, position);

/** Return what to write after a token: its position, if the text repeats it (repeated_position). @param {string[]} tokens @param {number} position */
export const repeatedPosition = (tokens, position) => (tokens.filter((token) => token === tokens[position]).length > 1 ? ` (${position})` : "");

/** Name a token like `quoteTokenInText`, without quotation marks. @param {string[]} tokens @param {number} position */
export const escapeTokenInText = (tokens, position) => escapeToken(tokens[position]) + repeatedPosition(tokens, position);

/** Quote a token as a word, without its leading space. @param {string} token */
export const quoteWord = (token) => token === "\n" ? _("“↵ new line”") : quoteToken(token.startsWith(" ") && token.trim() ? token.slice(1) : token);

const ORDINALS = [N_("the first {word}"), N_("the second {word}"), N_("the third {word}"), N_("the fourth {word}"), N_("the fifth {word}")];

/** Quote the token at a position as a word, and say which of them, in capitals or not, if the text repeats it. @param {string[]} tokens @param {number} position */
export function quoteWordAt(tokens, position) {
  const words = tokens.map((token) => quoteWord(token).toLowerCase()), word = quoteWord(tokens[position]), same = words[position];
  const index = words.slice(0, position).filter((other) => other === same).length;
  if (words.indexOf(same) === words.lastIndexOf(same)) return word;
  return index < ORDINALS.length ? formatMessage(lookUpMessage(ORDINALS[index]), { word }) : _("{word} number {number}", { word, number: index + 1 });
}

/** Shorten a token to `max` characters, and isolate its text direction. @param {string} token @param {number} [max] */
export function shortenToken(token, max = 14) {
  const text = Array.from(escapeToken(token));
  return `\u2068${text.length > max ? `${text.slice(0, max - 1).join("")}…` : text.join("")}\u2069`;
}

const MINUS = "−";

/** Format with two decimals and a sign; no sign if it rounds to 0. @param {number} value */
export function formatContribution(value) {
  const text = Math.abs(value).toFixed(2);
  return +text === 0 ? text : `${value < 0 ? MINUS : "+"}${text}`;
}

/** @param {number} value @param {number} digits */
export const formatFixed = (value, digits) => value.toFixed(digits).replace("-", MINUS);

/** Format as Python's "g". @param {number} value @param {number} [digits] */
export function formatGeneral(value, digits = 6) {
  if (!value) return "0";
  const power = +value.toExponential(digits - 1).split("e")[1];
  if (power >= -4 && power < digits) return String(+value.toFixed(Math.max(0, digits - 1 - power)));
  return value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace(/e([+-])(\d)$/, "e$10$2");
}

/** Format with six significant digits and a true minus sign. @param {number} value */
export const formatSixDigits = (value) => (Number.isFinite(value) ? formatGeneral(value).replaceAll("-", MINUS) : formatCellNumber(value));

/** Put a formatted number in brackets if it is negative. @param {string} number */
export const bracketNegative = (number) => (number.startsWith(MINUS) ? `(${number})` : number);

const MAX_CELL_CHARS = 6;
/** Format with three significant digits, or with fewer where three take more than `MAX_CELL_CHARS` (format_cell_number). @param {number} value */
export function formatCellNumber(value) {
  const size = Math.abs(value);
  if (size === Infinity) return value < 0 ? `${MINUS}∞` : "∞";
  const [threeDigits, twoDigits, oneDigit] = [3, 2, 1].map((digits) => String(+value.toPrecision(digits)));
  const text = size >= 999.5 ? value.toFixed(0) : size > 0 && size < 0.0001 ? value.toExponential(0) : size > 0 && size < 0.001 ? oneDigit : threeDigits.length <= MAX_CELL_CHARS ? threeDigits : twoDigits;
  return text.replaceAll("-", MINUS);
}

/** Format a share in percent: "84%", "3.1%", "over 99%". @param {number} share */
export function formatPercent(share) {
  if (share >= 0.995 && share < 1) return _("over 99%");
  if (share >= 0.1 || share === 0) return `${(100 * share).toFixed(0)}%`;
  return share >= 0.0001 ? `${(100 * share).toPrecision(2)}%` : _("less than 0.01%");
}

/** Format two shares that are compared, with one digit more if rounding changed their difference by a quarter. @param {number} before @param {number} after */
export function formatPercents(before, after) {
  const texts = [before, after].map(formatPercent), [first, second] = texts.map((text) => parseFloat(text) / 100), difference = after - before;
  if (!texts.every((text) => /^\d/.test(text)) || Math.abs(second - first - difference) <= Math.abs(difference) / 4) return texts;
  const longer = [before, after].map((share) => `${share >= 0.1 ? (100 * share).toFixed(1) : (100 * share).toPrecision(3)}%`);
  return longer[0] === longer[1] ? texts : longer;
}

/** Join distinct names: "a, b and c". @param {string[]} names */
export function joinNames(names) {
  const all = [...new Set(names)], last = all.pop() ?? "";
  return all.length ? _("{first} and {last}", { first: all.join(", "), last }) : last;
}

/** Format with thousands separators. @param {number} value */
export const formatCount = (value) => value.toLocaleString("en");

export { formatNumber };

/** Describe an intervention in words. @param {string} text */
export function describeIntervention(text) {
  const [, layer, kind, index, position, factor] = /^blocks\.(\d+)\.(attn\.z|ffn\.hidden)[.[]?(\d*)\]?(?:@(\d+))?\*(?:zero|scale\*(.*))$/.exec(text) ?? [];
  const values = { layer, index, factor: (factor ?? "").replace("-", "−") }, isScaled = +(factor ?? 0) !== 0;
  const describeOne = { "attn.z": () => (isScaled ? _("layer {layer} head {index} × {factor}", values) : _("layer {layer} head {index}: off", values)), "ffn.hidden": () => (isScaled ? _("layer {layer} neuron {index} × {factor}", values) : _("layer {layer} neuron {index}: off", values)) };
  const describeAll = { "attn.z": () => (isScaled ? _("all heads of layer {layer} × {factor}", values) : _("all heads of layer {layer}: off", values)), "ffn.hidden": () => (isScaled ? _("all neurons of layer {layer} × {factor}", values) : _("all neurons of layer {layer}: off", values)) };
  const change = (index ? describeOne : describeAll)[kind]();
  return position ? _("{change}, {where}", { change, where: _("at position {position}", { position }) }) : change;
}
