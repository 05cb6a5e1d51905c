// @ts-check
// Calculations that many derivations use, and their text, as in explorer/explain/arithmetic.py, derivation.py and notation.py.
import { _, formatMessage, lookUpMessage, ngettext } from "../../static/translations.js";
import { bracketNegative, formatCount, formatNumber, formatSixDigits, quoteToken } from "../notation.js";
import { FORMULA_TEXTS } from "../page_data.js";

/** @typedef {import("../views.js").ViewContext} ViewContext */
/** Index on an axis, or start and end of a slice (null: the end of the axis). @typedef {number | [number | null, number | null]} Place */
/** Formula in symbols and in numbers, its result, and its inputs. @typedef {{ symbols: string, numbers: string, value: number, inputs: string[] }} Calculation */
/** Derivation of a number on the page: its name and location, its captured or drawn value, and its recomputation.
 * @typedef {{ name: string, location: string, value: number, working: Calculation, kind?: "captured" | "drawn", words?: string, note?: string[], source?: string }} Derivation */
/** Numbers, and the name of the array that they are read from. @typedef {{ data: Float64Array, input: string }} Read */

const MAX_TERMS = 3; // terms of a sum that are written out
/** @type {[null, null]} */
export const ALL = [null, null];

export const sum = (/** @type {ArrayLike<number>} */ values) => Array.prototype.reduce.call(values, (total, value) => total + value, 0);
export const dotProductValue = (/** @type {ArrayLike<number>} */ a, /** @type {ArrayLike<number>} */ b) => sum(Array.from(a, (x, i) => x * b[i]));
/** Translate a message of FORMULA_TEXTS and fill in its values. @param {string} message @param {Record<string, string | number>} values */
export const translate = (message, values) => formatMessage(lookUpMessage(message), values);

/** Read a part of a captured value or a weight: an index or a slice per axis; null if there is none. @param {ViewContext} context @param {string} name @param {...Place} index @returns {Promise<Read | null>} */
export async function readValue({ ask }, name, ...index) {
  const part = await ask("readPart", { name, index });
  return part && { data: part.data, input: formatInput(name, index, part.shape) };
}

/** Format an input: "blocks.2.attn.scores[1, 7, :8], 8 numbers". @param {string} name @param {Place[]} index @param {number[]} shape of the part */
export function formatInput(name, index, shape) {
  const indexed = index.slice(0, index.findLastIndex((axisPart) => typeof axisPart === "number" || axisPart.some((end) => end !== null)) + 1);
  const part = indexed.length ? `${name}[${indexed.map((axisPart) => (typeof axisPart === "number" ? axisPart : axisPart.map((end) => end ?? "").join(":"))).join(", ")}]` : name;
  return shape.length > 1 ? _("{part}, {shape} numbers", { part, shape: shape.join(" × ") }) : ngettext("{part}, {count} number", "{part}, {count} numbers", shape[0] ?? 1, { part });
}

/** Format derivations as lines of text. @param {Derivation[]} derivations @param {string} depth as in the state */
export function derivationText(derivations, depth) {
  return derivations.flatMap(({ name, location, value, working, kind = "drawn", words, note = [], source }) => {
    const nameAndValue = `${name} = ${formatSixDigits(value)}`, difference = formatNumber(Math.abs(value - working.value));
    return [
      words || nameAndValue, location, working.symbols, working.numbers, ...note, translate(FORMULA_TEXTS.comparisons[kind], { value: formatSixDigits(value), recomputed: formatSixDigits(working.value), difference }),
      ...(words && depth !== "numbers" ? [nameAndValue] : []), ...(depth === "numbers" ? [] : working.inputs.map((numbers) => _("from {numbers}", { numbers }))), ...(depth === "code" && source ? [source] : []),
    ];
  }).join("\n");
}

/** Format a factor of a product, or a subtrahend. @param {number} value */
export const formatFactor = (value) => bracketNegative(formatSixDigits(value));

/** Format a sum of terms in brackets, the largest first. @param {ArrayLike<number>} terms @param {string[]} [texts] of the terms */
export function formatSum(terms, texts) {
  const order = Array.from(terms, (_term, i) => i).sort((i, j) => Math.abs(terms[j]) - Math.abs(terms[i]) || i - j), largestTerms = order.slice(0, MAX_TERMS).map((i) => (texts ? texts[i] : formatFactor(terms[i])));
  const numOmitted = terms.length - largestTerms.length;
  return `(${[...largestTerms, ...(numOmitted ? [ngettext("{count} more term", "{count} more terms", numOmitted)] : [])].join(" + ")})`;
}

/** Format a·b as a sum. @param {ArrayLike<number>} a @param {ArrayLike<number>} b */
export const formatDotProduct = (a, b) => formatSum(Array.from(a, (x, i) => x * b[i]), Array.from(a, (x, i) => `${formatFactor(x)}·${formatFactor(b[i])}`));

// Locations of numbers.

/** Format a token: "“·fox” (7)". @param {ViewContext} context @param {number} position */
export const formatTokenAt = ({ tokens }, position) => `${quoteToken(tokens[position])} (${position})`;
/** Format a token id: "“·fox” (id 417)". @param {ViewContext} context @param {number} token_id */
export const formatTokenId = ({ vocabulary }, token_id) => _("{token} (id {token_id})", { token: quoteToken(vocabulary[token_id]), token_id });
/** @param {ViewContext} context @param {number} query @param {number} key */
export const queryAndKey = (context, query, key) => _("query {query} → key {key}", { query: formatTokenAt(context, query), key: formatTokenAt(context, key) });
/** Format a cell of a pattern. @param {ViewContext} context @param {number} layer @param {number} head @param {number} query @param {number} key */
export const attentionCell = (context, layer, head, query, key) => _("layer {layer} head {head}, query {query} → key {key}", { layer, head, query: formatTokenAt(context, query), key: formatTokenAt(context, key) });

// Calculations.

/** Calculate ‖x‖₂; `isLong` also shows its square. @param {Read} x @param {string} [symbols] @param {boolean} [isLong] @returns {Calculation} */
export function calculateNorm({ data, input }, symbols = "‖x‖₂ = √Σx²", isLong = false) {
  const squares = data.map((x) => x * x), total = sum(squares), value = Math.sqrt(total);
  return { symbols, numbers: `‖x‖₂ = √${formatSum(squares)} = ${isLong ? `√${formatSixDigits(total)} = ` : ""}${formatSixDigits(value)}`, value, inputs: [input] };
}

/** @param {Read} a @param {Read} b @param {[string, string]} [names] @returns {Calculation} */
export function calculateCosine(a, b, names = ["a", "b"]) {
  const lengths = [a, b].map(({ data }) => Math.sqrt(sum(data.map((x) => x * x)))), normProduct = lengths[0] * lengths[1], value = normProduct ? dotProductValue(a.data, b.data) / normProduct : 0;
  return {
    symbols: _("cosine = {a}·{b} / (‖{a}‖ ‖{b}‖)", { a: names[0], b: names[1] }), value, inputs: [a.input, b.input],
    numbers: _("cosine = {product} / ({lengths}) = {value}", { product: formatDotProduct(a.data, b.data), lengths: lengths.map(formatSixDigits).join(" · "), value: formatSixDigits(value) }),
  };
}

/** Calculate a·b. @param {string} symbols @param {ArrayLike<number>} a @param {ArrayLike<number>} b @param {string[]} inputs @returns {Calculation} */
export function calculateDotProduct(symbols, a, b, inputs) {
  const value = dotProductValue(a, b);
  return { symbols, numbers: `${formatDotProduct(a, b)} = ${formatSixDigits(value)}`, value, inputs };
}

/** @param {string} symbols @param {ArrayLike<number>} terms @param {string[]} inputs @returns {Calculation} */
export function calculateMean(symbols, terms, inputs) {
  const value = sum(terms) / terms.length;
  return { symbols, numbers: `${formatSum(terms)} / ${terms.length} = ${formatSixDigits(value)}`, value, inputs };
}

/** ln Σ e^values. @param {ArrayLike<number>} values */
const logSumExp = (values) => {
  const max = Array.prototype.reduce.call(values, (a, b) => Math.max(a, b), -Infinity);
  return max + Math.log(sum(Array.from(values, (value) => Math.exp(value - max))));
};

/** Measures of a distribution, from its logits (V,). @type {Record<string, (logits: Float64Array, tokenId: number, inputs: string[]) => Calculation>} */
export const measures = {
  probability(logits, tokenId, inputs) {
    const total = logSumExp(logits), value = Math.exp(logits[tokenId] - total);
    return { symbols: _("p = e^(logit − ln Σ e^logits)"), numbers: `p = e^(${formatSixDigits(logits[tokenId])} − ${formatFactor(total)}) = ${formatSixDigits(value)}`, value, inputs };
  },
  rank(logits, tokenId, inputs) {
    const numLikelier = logits.reduce((count, logit) => count + +(logit > logits[tokenId]), 0);
    return { symbols: _("rank = 1 + how many tokens have a larger logit"), numbers: _("rank = 1 + {likelier:,} = {rank:,}", { likelier: formatCount(numLikelier), rank: formatCount(numLikelier + 1) }), value: numLikelier + 1, inputs };
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
