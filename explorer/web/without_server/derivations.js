// @ts-check
// Derivations, as in explorer/explain/: calculations and their text, and the derivation of an element of a captured value.
import { _, formatMessage, lookUpMessage, ngettext } from "../static/text.js";
import { describeIntervention, bracketNegative, formatCount, formatNumber, formatSixDigits, quoteToken, formatGeneral, dotProduct, sum } from "./figures.js";
import { FORMULA_TEXTS, ELEMENT_NAMES, FORMULAS } from "./page_data.js";
import { parseInterventions } from "../static/in_browser/transformer_lm.js";
import { findFormula } from "./analysis.js";

/** @typedef {import("./views.js").ViewContext} ViewContext */
/** Index on an axis, or start and end of a slice (null: the end of the axis). @typedef {number | [number | null, number | null]} Place */
/** Formula in symbols and in numbers, its result, and its inputs. @typedef {{ symbols: string, numbers: string, value: number, inputs: string[] }} Calculation */
/** Derivation of a number on the page: its name and location, its captured or drawn value, and its recomputation.
 * @typedef {{ name: string, location: string, value: number, working: Calculation, kind?: "captured" | "drawn", words?: string, note?: string[], source?: string }} Derivation */
/** Numbers, and the name of the array that they are read from. @typedef {{ data: Float64Array, input: string }} Read */

const MAX_TERMS = 3; // terms of a sum that are written out
/** @type {[null, null]} */
export const ALL = [null, null];

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
  const lengths = [a, b].map(({ data }) => Math.sqrt(sum(data.map((x) => x * x)))), normProduct = lengths[0] * lengths[1], value = normProduct ? dotProduct(a.data, b.data) / normProduct : 0;
  return {
    symbols: _("cosine = {a}·{b} / (‖{a}‖ ‖{b}‖)", { a: names[0], b: names[1] }), value, inputs: [a.input, b.input],
    numbers: _("cosine = {product} / ({lengths}) = {value}", { product: formatDotProduct(a.data, b.data), lengths: lengths.map(formatSixDigits).join(" · "), value: formatSixDigits(value) }),
  };
}

/** Calculate a·b. @param {string} symbols @param {ArrayLike<number>} a @param {ArrayLike<number>} b @param {string[]} inputs @returns {Calculation} */
export function calculateDotProduct(symbols, a, b, inputs) {
  const value = dotProduct(a, b);
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

// Elements of captured values (explain/captured/). Formulas with their names and texts are declared in Python.

/** @typedef {import("./analysis.js").Formula} Formula */

/** Derive one element of a captured value; null if there is none. @param {ViewContext} context @param {string} name @param {...number} index @returns {Promise<Derivation | null>} */
export async function deriveElement(context, name, ...index) {
  const captured = await readValue(context, name, ...index), formula = findFormula(modelFormulas(context), name);
  if (!captured) return null;
  const [value] = captured.data, working = withInterventions(context, name, index, await CALCULATIONS[formula.formula](formula, context, index));
  return { name: `${name}[${index.join(", ")}]`, location: describeElement(context, name, index), value, working, kind: "captured", words: await elementSentence(context, name, index, value), source: formula.source };
}

/** Return the name of a run's model, without the training step. @param {Pick<ViewContext, "state">} context */
export const modelName = ({ state: { checkpoint } }) => checkpoint.split("/")[0];
/** Return the formulas of the model's values, which all training steps share. @param {ViewContext} context */
export const modelFormulas = (context) => FORMULAS[modelName(context)];

/** Return the last part of a name; the last two for an output. @param {string} name */
const shortName = (name) => name.split(".").slice(name.endsWith(".out") ? -2 : -1).join(".");

/** Class of a formula -> function that calculates an element. @type {Record<string, (formula: Formula, context: ViewContext, index: number[]) => Promise<Calculation>>} */
const CALCULATIONS = {
  async Copy({ symbol, x }, context, index) {
    const { data: [value], input } = await readValue(context, x, ...index);
    return { symbols: `${symbol} = ${x}`, numbers: `${symbol} = ${formatSixDigits(value)}`, value, inputs: [input] };
  },
  async Addition({ symbol, terms }, context, index) {
    const parts = await Promise.all(terms.map((term) => readValue(context, term, ...index))), [first, ...rest] = parts.map(({ data }) => data[0]), value = sum([first, ...rest]);
    return { symbols: `${symbol} = ${terms.map(shortName).join(" + ")}`, numbers: `${symbol} = ${[formatSixDigits(first), ...rest.map(formatFactor)].join(" + ")} = ${formatSixDigits(value)}`, value, inputs: parts.map(({ input }) => input) };
  },
  async Product({ symbol, a, b }, context, index) {
    const [{ data: [x], input: fromX }, { data: [y], input: fromY }] = await Promise.all([readValue(context, a, ...index), readValue(context, b, ...index)]);
    return { symbols: `${symbol} = ${shortName(a)} · ${shortName(b)}`, numbers: `${symbol} = ${formatFactor(x)} · ${formatFactor(y)} = ${formatSixDigits(x * y)}`, value: x * y, inputs: [fromX, fromY] };
  },
  async LinearLayer({ symbol, x, map, heads }, context, index) {
    const token = index.at(-2), row = heads ? index[0] * context.dHead + index[2] : index[1], hasBias = context.config.bias && map !== "lm_head";
    const [vector, weight, bias] = await Promise.all([readValue(context, x, ...(x.endsWith("attn.z") ? [ALL] : []), token), readValue(context, `${map}.weight`, row), hasBias ? readValue(context, `${map}.bias`, row) : null]);
    const value = dotProduct(vector.data, weight.data) + (bias ? bias.data[0] : 0), biasTerm = bias ? ` + ${formatFactor(bias.data[0])}` : "";
    return { symbols: translate(FORMULA_TEXTS.linear[+hasBias || 0], { symbol, x: shortName(x) }), numbers: `${symbol} = ${formatDotProduct(weight.data, vector.data)}${biasTerm} = ${formatSixDigits(value)}`, value, inputs: [vector, weight, bias].filter(Boolean).map(({ input }) => input) };
  },
  async Activation({ symbol, x, kind }, context, index) {
    const { data: [preactivation], input } = await readValue(context, x, ...index), name = { swiglu: "SiLU", relu: "ReLU" }[kind], value = kind === "relu" ? Math.max(preactivation, 0) : preactivation / (1 + Math.exp(-preactivation));
    return { symbols: `${symbol} = ${name}(${shortName(x)}), ${FORMULA_TEXTS.activations[kind]}`, numbers: `${symbol} = ${name}(${formatSixDigits(preactivation)}) = ${formatSixDigits(value)}`, value, inputs: [input] };
  },
  async Norm({ symbol, x: { x }, norm }, context, [position, dim]) {
    const { config } = context, isCentred = config.norm === "layernorm", [vector, gain, beta] = await Promise.all([readValue(context, x, position), readValue(context, `${norm}.weight`, dim), isCentred ? readValue(context, `${norm}.bias`, dim) : null]);
    const { mean, square, divisor } = normNumbers(config, vector.data), numerator = isCentred ? `(${formatSixDigits(vector.data[dim])} − ${formatFactor(mean)})` : formatSixDigits(vector.data[dim]);
    const value = ((vector.data[dim] - mean) / divisor) * gain.data[0] + (beta ? beta.data[0] : 0), denominator = ` / √(${formatSixDigits(square)} + ${formatSixDigits(config.norm_eps)})`, betaTerm = beta ? ` + ${formatFactor(beta.data[0])}` : "";
    return { symbols: translate(FORMULA_TEXTS.norms[config.norm], { symbol }), numbers: `${symbol} = ${numerator}${denominator} · ${formatFactor(gain.data[0])}${betaTerm} = ${formatSixDigits(value)}`, value, inputs: [vector, gain, beta].filter(Boolean).map(({ input }) => input) };
  },
  async Rotation({ symbol, x, angles }, context, [head, token, dim]) {
    const pair = dim >> 1, isSecond = dim % 2, [{ data: [a], input: fromA }, { data: [b], input: fromB }, { data: [angle], input }] = await Promise.all([readValue(context, x, head, token, 2 * pair), readValue(context, x, head, token, 2 * pair + 1), readValue(context, angles, token, pair)]);
    const value = isSecond ? a * Math.sin(angle) + b * Math.cos(angle) : a * Math.cos(angle) - b * Math.sin(angle), [firstFunction, secondFunction, sign] = isSecond ? ["sin", "cos", "+"] : ["cos", "sin", "−"];
    return { symbols: translate(FORMULA_TEXTS.rotations[isSecond], { symbol, pair }), numbers: `${symbol} = ${formatFactor(a)} · ${firstFunction} ${formatSixDigits(angle)} ${sign} ${formatFactor(b)} · ${secondFunction} ${formatSixDigits(angle)} = ${formatSixDigits(value)}`, value, inputs: [fromA, fromB, input] };
  },
  async AttentionScore(formula, context, [head, query, key]) {
    const [q, k] = await Promise.all([readValue(context, formula.q, head, query), readValue(context, formula.k, head, key)]), dot = dotProduct(q.data, k.data), value = dot / Math.sqrt(context.dHead);
    const numbers = _("score = {sum} / {divisor} = {quotient} = {value}", { sum: formatDotProduct(q.data, k.data), divisor: `√${context.dHead}`, quotient: `${formatSixDigits(dot)} / ${formatSixDigits(Math.sqrt(context.dHead))}`, value: formatSixDigits(value) });
    return { symbols: _("score = q·k / {divisor}", { divisor: "√d" }), numbers, value, inputs: [q.input, k.input] };
  },
  async AttentionPattern({ scores }, context, [head, query, key]) {
    const { data, input } = await readValue(context, scores, head, query, [null, query + 1]), symbols = _("weight = e^(score − max) / Σ e^(scores − max)");
    if (key > query) return { symbols, numbers: _("weight = 0: key {key} comes after query {query}, masked", { key, query }), value: 0, inputs: [input] };
    const maxScore = Math.max(...data), exps = data.map((score) => Math.exp(score - maxScore)), total = sum(exps), value = exps[key] / total, divisor = formatSixDigits(total);
    const quotients = `e^(${formatSixDigits(data[key])} − ${formatFactor(maxScore)}) / ${divisor} = ${formatSixDigits(exps[key])} / ${divisor}`;
    return { symbols, numbers: _("weight = {quotients} = {value}", { quotients, value: formatSixDigits(value) }), value, inputs: [input] };
  },
  async HeadOutput({ pattern, v }, context, [head, query, dim]) {
    const [weights, values] = await Promise.all([readValue(context, pattern, head, query, [null, query + 1]), readValue(context, v, head, [null, query + 1], dim)]), value = dotProduct(weights.data, values.data);
    return { symbols: _("z = Σ weight · v, over the keys up to the query"), numbers: `z = ${formatDotProduct(weights.data, values.data)} = ${formatSixDigits(value)}`, value, inputs: [weights.input, values.input] };
  },
  async Embedding({ positions }, context, [position, dim]) {
    const { config, ids } = context, [{ data: [row], input }, positionElement] = await Promise.all([readValue(context, "token_embedding.weight", ids[position], dim), positions ? readValue(context, "position_embed", position, dim) : null]), scale = config.scale_embeddings ? Math.sqrt(config.d_model) : 1;
    const value = row * scale + (positionElement ? positionElement.data[0] : 0), terms = `${scale === 1 ? formatSixDigits(row) : `${formatFactor(row)} · √${config.d_model}`}${positionElement ? ` + ${formatFactor(positionElement.data[0])}` : ""}`;
    return { symbols: translate(FORMULA_TEXTS.embeddings[+positions], { symbol: "embed", factor: "√D" }), numbers: `embed = ${terms}${positions ? ` = ${formatSixDigits(value)}` : ""}`, value, inputs: [input, ...(positionElement ? [positionElement.input] : [])] };
  },
  async SinusoidalPosition(_formula, { config: { d_model: D } }, [position, dim]) {
    const wave = dim % 2 ? "cos" : "sin", even = dim - (dim % 2), value = Math[wave](position / 10000 ** (even / D));
    return { symbols: _("position_embed = {wave}(m / 10000^(2i/D)), m the position, i = {i}", { wave, i: dim >> 1 }), numbers: `position_embed = ${wave}(${position} / 10000^(${even}/${D})) = ${formatSixDigits(value)}`, value, inputs: [] };
  },
  async RotaryAngle(_formula, { config: { rope_theta: theta }, dHead }, [position, pair]) {
    const omega = theta ** ((-2 * pair) / dHead), value = position * omega;
    const numbers = _("angle = {plain} = {result}", { plain: `${position} · ${formatGeneral(theta)}^(−${2 * pair}/${dHead})`, result: `${position} · ${formatSixDigits(omega)} = ${formatSixDigits(value)}` });
    return { symbols: _("angle = m · ω in radians, m the position, ω = θ^(−2·pair/d)"), numbers, value, inputs: [] };
  },
};

/** Return mean, mean square or variance, and divisor of a norm's input. @param {ViewContext["config"]} config @param {Float64Array} x */
export function normNumbers({ norm, norm_eps }, x) {
  const mean = norm === "layernorm" ? sum(x) / x.length : 0, square = sum(x.map((value) => (value - mean) ** 2)) / x.length;
  return { mean, square, divisor: Math.sqrt(square + norm_eps) };
}

/** Return the interventions on an element of a captured value, in the order in which they act. @param {ViewContext} context @param {string} name @param {number[]} index */
export function activeInterventions({ config, edits }, name, index) {
  const position = index.at(-2), elementIndex = name.endsWith("attn.z") ? index[0] : index.at(-1);
  const active = parseInterventions(edits, config).map((change, i) => ({ ...change, text: edits[i] })).filter((change) => change.tap === name && (change.index ?? elementIndex) === elementIndex && (change.position ?? position) === position);
  return active.sort((a, b) => +a.text.endsWith("*zero") - +b.text.endsWith("*zero"));
}

/** Apply the run's interventions to a calculation. @param {ViewContext} context @param {string} name @param {number[]} index @param {Calculation} working @returns {Calculation} */
function withInterventions(context, name, index, working) {
  return activeInterventions(context, name, index).reduce((calculation, { factor, text }) => {
    const factorText = `× ${formatGeneral(factor, 10).replace("-", "−")}`, value = calculation.value * factor;
    return { ...calculation, value, symbols: _("{symbols}; then {times}, as it was changed: {words}", { symbols: calculation.symbols, times: factorText, words: describeIntervention(text) }), numbers: `${calculation.numbers}; ${factorText} = ${formatSixDigits(value)}` };
  }, working);
}

/** Describe an element's layer, head, token and dimension. @param {ViewContext} context @param {string} name @param {number[]} index */
function describeElement(context, name, index) {
  const layer = /^blocks\.(\d+)\./.exec(name)?.[1], token = formatTokenAt(context, index.at(-2)), last = index.at(-1);
  if (/\.(scores|pattern)$/.test(name)) return attentionCell(context, +layer, index[0], index[1], index[2]);
  if (name === "logits") return _("after {token}, of {of}", { token, of: formatTokenId(context, last) });
  const axis = name.endsWith("rope.angles") ? "pair" : /\.(gate_pre|gate|up|hidden)$/.test(name) ? "neuron" : "dimension", owner = index.length > 2 ? "head" : layer ? "layer" : "";
  return translate(FORMULA_TEXTS.elements[axis][owner], { layer: layer ?? "", head: index[0], token, last });
}

/** Describe an element and its value in a sentence. @param {ViewContext} context @param {string} name @param {number[]} index @param {number} value */
async function elementSentence(context, name, index, value) {
  if (name.endsWith(".pattern") && value > 0) {
    const [, query, key] = index, { data: [score] } = await readValue(context, name.replace("pattern", "scores"), ...index);
    return _("{query} looks at {key} with {weight}: q·k {product} ÷ {divisor} = {score}, then softmax", { query: quoteToken(context.tokens[query]), key: quoteToken(context.tokens[key]), weight: formatNumber(value), product: formatNumber(score * Math.sqrt(context.dHead)), divisor: `√${context.dHead}`, score: formatNumber(score) });
  }
  const element = ELEMENT_NAMES[name.split(".").slice(-2).join(".")] ?? ELEMENT_NAMES[name.split(".").at(-1)];
  return element ? `${lookUpMessage(element)} = ${formatSixDigits(value)}` : "";
}
