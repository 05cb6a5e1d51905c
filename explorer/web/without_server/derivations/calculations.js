// @ts-check
// Calculations used by many derivations, and their text, as explorer/explain/arithmetic.py, derivation.py and notation.py have them.
import { _, format, lookUpMessage, ngettext } from "../../static/translations.js";
import { bracketNegative, formatCount, formatNumber, formatSixDigits, quoteToken } from "../notation.js";
import { FORMULA_TEXTS } from "../page_data.js";

/** @typedef {import("../views.js").About} About */
/** A place on an axis, or where a part of it begins and ends (null: at the end of the axis). @typedef {number | [number | null, number | null]} Place */
/** A formula in symbols and with its numbers, its result, and what it was worked out from. @typedef {{ symbols: string, numbers: string, value: number, inputs: string[] }} Calculation */
/** A number of the page: what it is, of what, as it was captured or drawn, and worked out again.
 * @typedef {{ name: string, location: string, value: number, working: Calculation, kind?: "captured" | "drawn", words?: string, note?: string[], source?: string }} Derivation */
/** Numbers, and where they are from. @typedef {{ data: Float64Array, input: string }} Read */

const MAX_TERMS = 3; // of a sum that are written out
/** @type {[null, null]} */
export const ALL = [null, null];

export const sum = (/** @type {ArrayLike<number>} */ values) => Array.prototype.reduce.call(values, (total, value) => total + value, 0);
export const dotOf = (/** @type {ArrayLike<number>} */ a, /** @type {ArrayLike<number>} */ b) => sum(Array.from(a, (x, i) => x * b[i]));
/** A message of FORMULA_TEXTS with values. @param {string} message @param {Record<string, string | number>} values */
export const translate = (message, values) => format(lookUpMessage(message), values);

/** Part of a captured value or a weight, of each axis a place or a stretch; null if there is none. @param {About} about @param {string} name @param {...Place} index @returns {Promise<Read | null>} */
export async function read({ ask }, name, ...index) {
  const part = await ask("readPart", { name, index });
  return part && { data: part.data, input: formatInput(name, index, part.shape) };
}

/** As in "blocks.2.attn.scores[1, 7, :8], 8 numbers". @param {string} name @param {Place[]} index @param {number[]} shape of the part */
export function formatInput(name, index, shape) {
  const given = index.slice(0, index.findLastIndex((place) => typeof place === "number" || place.some((end) => end !== null)) + 1);
  const part = given.length ? `${name}[${given.map((place) => (typeof place === "number" ? place : place.map((end) => end ?? "").join(":"))).join(", ")}]` : name;
  return shape.length > 1 ? _("{part}, {shape} numbers", { part, shape: shape.join(" × ") }) : ngettext("{part}, {count} number", "{part}, {count} numbers", shape[0] ?? 1, { part });
}

/** Derivations as lines of text. @param {Derivation[]} derivations @param {string} depth as in the state */
export function derivationText(derivations, depth) {
  return derivations.flatMap(({ name, location, value, working, kind = "drawn", words, note = [], source }) => {
    const named = `${name} = ${formatSixDigits(value)}`, difference = formatNumber(Math.abs(value - working.value));
    return [
      words || named, location, working.symbols, working.numbers, ...note, translate(FORMULA_TEXTS.comparisons[kind], { value: formatSixDigits(value), recomputed: formatSixDigits(working.value), difference }),
      ...(words && depth !== "numbers" ? [named] : []), ...(depth === "numbers" ? [] : working.inputs.map((numbers) => _("from {numbers}", { numbers }))), ...(depth === "code" && source ? [source] : []),
    ];
  }).join("\n");
}

/** A factor of a product, or what is subtracted. @param {number} value */
export const formatFactor = (value) => bracketNegative(formatSixDigits(value));

/** A sum of terms, the largest first, in brackets. @param {ArrayLike<number>} terms @param {string[]} [texts] of the terms */
export function formatSum(terms, texts) {
  const order = Array.from(terms, (_term, i) => i).sort((i, j) => Math.abs(terms[j]) - Math.abs(terms[i]) || i - j), written = order.slice(0, MAX_TERMS).map((i) => (texts ? texts[i] : formatFactor(terms[i])));
  const rest = terms.length - written.length;
  return `(${[...written, ...(rest ? [ngettext("{count} more term", "{count} more terms", rest)] : [])].join(" + ")})`;
}

/** a·b as a sum. @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
export const formatDotProduct = (a, b) => formatSum(Array.from(a, (x, i) => x * b[i]), Array.from(a, (x, i) => `${formatFactor(x)}·${formatFactor(b[i])}`));

// Whose a number is.

/** As in "“·fox” (7)". @param {About} about @param {number} position */
export const tokenAt = ({ tokens }, position) => `${quoteToken(tokens[position])} (${position})`;
/** As in "“·fox” (id 417)". @param {About} about @param {number} token_id */
export const tokenOfId = ({ vocabulary }, token_id) => _("{token} (id {token_id})", { token: quoteToken(vocabulary[token_id]), token_id });
/** @param {About} about @param {number} query @param {number} key */
export const queryAndKey = (about, query, key) => _("query {query} → key {key}", { query: tokenAt(about, query), key: tokenAt(about, key) });
/** A cell of a pattern. @param {About} about @param {number} layer @param {number} head @param {number} query @param {number} key */
export const attentionCell = (about, layer, head, query, key) => _("layer {layer} head {head}, query {query} → key {key}", { layer, head, query: tokenAt(about, query), key: tokenAt(about, key) });

// Calculations.

/** ‖x‖₂; `isLong` shows its square, too. @param {Read} x @param {string} [symbols] @param {boolean} [isLong] @returns {Calculation} */
export function vectorNorm({ data, input }, symbols = "‖x‖₂ = √Σx²", isLong = false) {
  const squares = data.map((x) => x * x), total = sum(squares), value = Math.sqrt(total);
  return { symbols, numbers: `‖x‖₂ = √${formatSum(squares)} = ${isLong ? `√${formatSixDigits(total)} = ` : ""}${formatSixDigits(value)}`, value, inputs: [input] };
}

/** @param {Read} a @param {Read} b @param {[string, string]} [names] @returns {Calculation} */
export function cosineOf(a, b, names = ["a", "b"]) {
  const lengths = [a, b].map(({ data }) => Math.sqrt(sum(data.map((x) => x * x)))), scale = lengths[0] * lengths[1], value = scale ? dotOf(a.data, b.data) / scale : 0;
  return {
    symbols: _("cosine = {a}·{b} / (‖{a}‖ ‖{b}‖)", { a: names[0], b: names[1] }), value, inputs: [a.input, b.input],
    numbers: _("cosine = {product} / ({lengths}) = {value}", { product: formatDotProduct(a.data, b.data), lengths: lengths.map(formatSixDigits).join(" · "), value: formatSixDigits(value) }),
  };
}

/** a·b. @param {string} symbols @param {ArrayLike<number>} a @param {ArrayLike<number>} b @param {string[]} inputs @returns {Calculation} */
export function dotProduct(symbols, a, b, inputs) {
  const value = dotOf(a, b);
  return { symbols, numbers: `${formatDotProduct(a, b)} = ${formatSixDigits(value)}`, value, inputs };
}

/** @param {string} symbols @param {ArrayLike<number>} terms @param {string[]} inputs @returns {Calculation} */
export function meanOf(symbols, terms, inputs) {
  const value = sum(terms) / terms.length;
  return { symbols, numbers: `${formatSum(terms)} / ${terms.length} = ${formatSixDigits(value)}`, value, inputs };
}

/** ln Σ e^values. @param {ArrayLike<number>} values */
const logSumExp = (values) => {
  const most = Array.prototype.reduce.call(values, (a, b) => Math.max(a, b), -Infinity);
  return most + Math.log(sum(Array.from(values, (value) => Math.exp(value - most))));
};

/** Of a distribution's logits (V,), by name. @type {Record<string, (logits: Float64Array, tokenId: number, inputs: string[]) => Calculation>} */
export const measures = {
  probability(logits, tokenId, inputs) {
    const total = logSumExp(logits), value = Math.exp(logits[tokenId] - total);
    return { symbols: _("p = e^(logit − ln Σ e^logits)"), numbers: `p = e^(${formatSixDigits(logits[tokenId])} − ${formatFactor(total)}) = ${formatSixDigits(value)}`, value, inputs };
  },
  rank(logits, tokenId, inputs) {
    const likelier = logits.reduce((count, logit) => count + +(logit > logits[tokenId]), 0);
    return { symbols: _("rank = 1 + how many tokens have a larger logit"), numbers: _("rank = 1 + {likelier:,} = {rank:,}", { likelier: formatCount(likelier), rank: formatCount(likelier + 1) }), value: likelier + 1, inputs };
  },
  entropy(logits, _tokenId, inputs) {
    const total = logSumExp(logits), terms = logits.map((logit) => (logit - total > -745 ? -Math.exp(logit - total) * ((logit - total) / Math.LN2) : 0)), value = sum(terms);
    return { symbols: _("entropy = −Σ p log₂ p"), numbers: _("entropy = {sum} = {bits} bits", { sum: formatSum(terms), bits: formatSixDigits(value) }), value, inputs };
  },
  surprisal(logits, tokenId, inputs) {
    const value = (logSumExp(logits) - logits[tokenId]) / Math.LN2;
    return { symbols: _("surprisal = −log₂ p, p = e^logit / Σ e^logits"), numbers: _("surprisal = −log₂ {p} = {bits} bits", { p: formatSixDigits(2 ** -value), bits: formatSixDigits(value) }), value, inputs };
  },
};
