// @ts-check
// Derivations of the number at a clicked point of each figure, as in the analyses of explorer/analysis/.
import { _, lookUpMessage, ngettext } from "../../static/translations.js";
import { parseInterventions } from "../../static/in_browser/trace.js";
import { argmax, median, range } from "../figures.js";
import { formatCount, formatSixDigits, quoteToken } from "../notation.js";
import { CHOICES, VIEWS } from "../page_data.js";
import attention, { displayedPattern } from "../views/attention.js";
import feed_forward, { affectedTokens, NEAR_ZERO_RATIO } from "../views/feed_forward.js";
import positions, { sampleDimensions } from "../views/positions.js";
import { attribution, depthNames, lensNumbers, sourceTotals } from "../views/prediction.js";
import residual, { divisorLines, layerNorms, outlierDimensions, streamTaps } from "../views/residual.js";
import tokens, { EDGES } from "../views/tokens.js";
import { ALL, attentionCell, calculateCosine, dotProductValue, calculateDotProduct, formatDotProduct, formatFactor, formatInput, formatSum, calculateMean, measures, queryAndKey, readValue, sum, formatTokenAt, formatTokenId, calculateNorm } from "./calculations.js";
import { deriveElement, normNumbers } from "./captured.js";

/** @typedef {import("../views.js").About} About @typedef {import("./calculations.js").Calculation} Calculation @typedef {import("./calculations.js").Derivation} Derivation @typedef {import("./calculations.js").Read} Read */
/** @typedef {{ x: number, y: number, curve?: number | null, item?: number | null, layer?: number, head?: number }} Point */
/** @typedef {(about: About, point: Point) => Promise<Derivation | (Derivation | null)[] | null>} Inspector */

/** Derive the number at a point of a figure, or both numbers that it stands for. @param {About} about @param {string} id of the figure's element @param {Point} point @returns {Promise<Derivation[]>} */
export async function derivePoint(about, id, point) {
  const [view, name] = id.split(/-(.*)/), inspected = VIEWS[view]?.panels.find((panel) => panel.name === name)?.inspect;
  const derivations = inspected ? await deriveCell(about, inspected, point) : await INSPECTORS[id]?.(about, point);
  return [derivations ?? []].flat().filter(Boolean);
}

/** Derive a cell of a captured value (CapturedCellInspector). @param {About} about @param {{ template: string, axes: string[] }} declared @param {Point} point */
function deriveCell(about, { template, axes }, point) {
  const { layer, head, position: query, key, neuron } = about, fields = { layer, head, query, key, neuron, ...Object.fromEntries(Object.entries(point).filter(([, value]) => typeof value === "number")) };
  return deriveElement(about, template.replace("{layer}", String(fields.layer)), ...axes.map((axis) => fields[axis]));
}

// Attention.

/** Return ‖W_O v‖ of a key and its inputs. @param {About} about @param {number} key */
async function outputNorm(about, key) {
  const { layer, head, dHead, config: { d_model: D } } = about, [v, output] = await Promise.all([readValue(about, `blocks.${layer}.attn.v`, head, key), readValue(about, `blocks.${layer}.attn.o_proj.weight`, ALL, [head * dHead, (head + 1) * dHead])]);
  return { norm: Math.hypot(...range(D).map((row) => dotProductValue(output.data.subarray(row * dHead, (row + 1) * dHead), v.data))), inputs: [v.input, output.input] };
}

/** Calculate weight × ‖W_O v‖. @param {About} about @param {number} query @param {number} key @returns {Promise<Calculation>} */
async function valueWeighted(about, query, key) {
  const { data: [weight], input } = await readValue(about, `blocks.${about.layer}.attn.pattern`, about.head, query, key), { norm, inputs } = await outputNorm(about, key), value = weight * norm;
  return { symbols: _("moved = weight · ‖W_O v‖"), numbers: `${formatSixDigits(weight)} · ${formatSixDigits(norm)} = ${formatSixDigits(value)}`, value, inputs: [input, ...inputs] };
}

/** Calculate the mean or the largest of several heads' weights. @param {string} kind @param {[number, number][]} heads @param {string[]} labels @param {About} about @param {number} query @param {number} key @param {string[]} [inputs] names of the inputs, if they are read at once @returns {Promise<Calculation>} */
async function aggregate(kind, heads, labels, about, query, key, inputs) {
  const reads = await Promise.all(heads.map(([layer, head]) => readValue(about, `blocks.${layer}.attn.pattern`, head, query, key))), weights = reads.map(({ data }) => data[0]), inputNames = inputs ?? reads.map(({ input }) => input);
  const symbols = { layer_mean: () => _("mean = Σ weights of the heads / H"), layer_max: () => _("the largest weight of the heads"), chosen_mean: () => _("mean = Σ weights of the chosen heads / how many"), chosen_max: () => _("the largest weight of the chosen heads") }[kind]();
  if (kind.endsWith("mean")) return calculateMean(symbols, weights, inputNames);
  const value = Math.max(...weights);
  return { symbols, numbers: _("that of {whose}: {value}", { whose: labels[weights.indexOf(value)], value: formatSixDigits(value) }), value, inputs: inputNames };
}

/** Derive a cell of the displayed pattern (displayed_weight). @type {Inspector} */
async function displayedWeight(about, { x: key, y: query }) {
  const { layer, head, state: { pattern: kind }, chosenHeads, config: { num_heads: H } } = about, tap = `blocks.${layer}.attn.pattern`;
  if (key > query) return null;
  if (kind === "weight") return deriveElement(about, tap, head, query, key);
  const name = lookUpMessage(CHOICES.pattern.options.find(([value]) => value === kind)[1]), value = (await displayedPattern(about, kind))[query][key];
  const heads = /** @type {[number, number][]} */ (chosenHeads.length ? chosenHeads : [[layer, head]]), layerHeads = /** @type {[number, number][]} */ (range(H).map((own) => [layer, own])), cell = attentionCell(about, layer, head, query, key);
  if (kind === "moved") return { name, location: cell, value, working: await valueWeighted(about, query, key) };
  if (kind.startsWith("layer")) {
    const location = _("layer {layer}, query {query} → key {key}", { layer, query: formatTokenAt(about, query), key: formatTokenAt(about, key) });
    return { name, location, value, working: await aggregate(kind, layerHeads, layerHeads.map(([, own]) => _("head {head}", { head: own })), about, query, key, [formatInput(tap, [ALL, query, key], [H])]) };
  }
  if (kind.startsWith("chosen")) {
    const location = ngettext("{count} chosen head, {ends}", "{count} chosen heads, {ends}", heads.length, { ends: queryAndKey(about, query, key) });
    return { name, location, value, working: await aggregate(kind, heads, heads.map(([l, h]) => _("layer {layer} head {head}", { layer: l, head: h })), about, query, key) };
  }
  const { data, input } = await readValue(about, tap, head, query, [1, query + 1]), rest = sum(data), share = key && rest > 1e-12 ? data[key - 1] / rest : 0;
  const numbers = key ? `${formatSixDigits(data[key - 1])} / ${formatSixDigits(rest)} = ${formatSixDigits(share)}` : _("0: the first is left out");
  return { name, location: cell, value, working: { symbols: _("weight without the first = weight / Σ weights of all keys but the first"), numbers, value: share, inputs: [input] } };
}

/** Derive a stage of the selected query's attention (attention_stage). @type {Inspector} */
async function attentionStage(about, { x: key, y: row }) {
  const { layer, head, position: query, dHead } = about, stage = ["q·k", "score", "masked", "weight", "length", "moved"][row], block = `blocks.${layer}.attn`;
  if (stage === "masked" && key > query) return null;
  if (stage === "weight") return deriveElement(about, `${block}.pattern`, head, query, key);
  if (stage === "score" || stage === "masked") return deriveElement(about, `${block}.scores`, head, query, key);
  const location = attentionCell(about, layer, head, query, key);
  if (stage === "q·k") {
    const suffix = about.config.position === "rope" ? "_rot" : "", [q, k, score] = await Promise.all([readValue(about, `${block}.q${suffix}`, head, query), readValue(about, `${block}.k${suffix}`, head, key), readValue(about, `${block}.scores`, head, query, key)]);
    const value = dotProductValue(q.data, k.data);
    return { name: "q·k", location, value: score.data[0] * Math.sqrt(dHead), working: { symbols: "q·k = Σ q · k", numbers: `q·k = ${formatDotProduct(q.data, k.data)} = ${formatSixDigits(value)}`, value, inputs: [q.input, k.input] } };
  }
  const drawnNorm = (await about.ask("outputNorms", { layer, head }))[key];
  if (stage === "moved") {
    const { data: [weight] } = await readValue(about, `${block}.pattern`, head, query, key), name = lookUpMessage(CHOICES.pattern.options.find(([kind]) => kind === "moved")[1]);
    return { name, location, value: drawnNorm * weight, working: await valueWeighted(about, query, key) };
  }
  const { norm, inputs } = await outputNorm(about, key), numbers = `√${formatSixDigits(norm ** 2)} = ${formatSixDigits(norm)}`;
  return { name: _("length of W_O v"), location, value: drawnNorm, working: { symbols: _("length of W_O v = √Σ (W_O v)²"), numbers, value: norm, inputs } };
}

/** @type {Inspector} */
async function dimension(about, { item: dim }) {
  const { layer, head, position: query, key, dHead } = about, suffix = about.config.position === "rope" ? "_rot" : "", [{ data: [q], input: fromQ }, { data: [k], input: fromK }] = await Promise.all([readValue(about, `blocks.${layer}.attn.q${suffix}`, head, query, dim), readValue(about, `blocks.${layer}.attn.k${suffix}`, head, key, dim)]);
  const value = (q * k) / Math.sqrt(dHead), { added } = await attention.panels.dimensions(about);
  return { name: _("what dimension {dim} adds to the score", { dim }), location: attentionCell(about, layer, head, query, key), value: added[dim], working: { symbols: "qᵢ kᵢ / √d", numbers: `${formatFactor(q)}·${formatFactor(k)} / √${dHead} = ${formatSixDigits(value)}`, value, inputs: [fromQ, fromK] } };
}

/** Derive the weight at a token: on the left a query of the selected key, on the right a key of the selected query. @type {Inspector} */
async function lineEnd(about, { x, y }) {
  const [query, key] = x ? [about.position, y] : [y, about.key];
  return key <= query ? deriveElement(about, `blocks.${about.layer}.attn.pattern`, about.head, query, key) : null;
}

// Positions.

/** Derive both elements of the pair at a hand's tip. @type {Inspector} */
async function clockHand(about, { curve, item: pair }) {
  const { layer, head, position, key } = about, hand = (curve - 2) / 2; // the circles and the hands' lines come first
  if (!(hand >= 0 && hand < 4 && Number.isInteger(hand))) return null;
  const [vector, at] = hand < 2 ? ["q", position] : ["k", key], name = `blocks.${layer}.attn.${vector}${hand % 2 ? "_rot" : ""}`;
  return Promise.all([deriveElement(about, name, head, at, 2 * pair), deriveElement(about, name, head, at, 2 * pair + 1)]);
}

/** Calculate |q||k| cos(φ + angle) / √d of a pair (rotated_pair_product). @param {About} about @param {number} pair @param {number} angle */
async function pairProduct(about, pair, angle) {
  const { layer, head, position: query, key, dHead } = about, dims = /** @type {[number, number]} */ ([2 * pair, 2 * pair + 2]), [q, k] = await Promise.all([readValue(about, `blocks.${layer}.attn.q`, head, query, dims), readValue(about, `blocks.${layer}.attn.k`, head, key, dims)]);
  const lengths = [q, k].map(({ data }) => Math.hypot(...data)), [a, b] = [q, k].map(({ data: [x, y] }) => Math.atan2(y, x)), value = (lengths[0] * lengths[1] * Math.cos(a - b + angle)) / Math.sqrt(dHead);
  return { value, numbers: `${lengths.map(formatSixDigits).join("·")}·cos(${formatSixDigits(a - b)} + ${formatFactor(angle)}) / √${dHead} = ${formatSixDigits(value)}`, inputs: [q.input, k.input] };
}

/** @type {Inspector} */
async function pairContribution(about, { item: pair }) {
  const { layer, head, position: query, key } = about, [queryAngle, keyAngle] = await Promise.all([readValue(about, "rope.angles", query, pair), readValue(about, "rope.angles", key, pair)]), { value, numbers, inputs } = await pairProduct(about, pair, queryAngle.data[0] - keyAngle.data[0]);
  const symbols = _("|q||k| cos(φ + Δω) / {divisor}, φ from k’s pair to q’s, Δω the difference of their angles", { divisor: "√d" });
  const { added } = await positions.panels.pairs(about);
  return { name: _("what pair {pair} adds to the score", { pair }), location: attentionCell(about, layer, head, query, key), value: added[pair], working: { symbols, numbers, value, inputs: [...inputs, queryAngle.input, keyAngle.input] } };
}

/** @type {Inspector} */
async function scoreAtDistance(about, { x: distance }) {
  const { layer, head, position: query, key, dHead, tokens } = about, all = await readValue(about, "rope.angles"), F = dHead / 2, last = tokens.length - 1;
  const products = await Promise.all(range(F).map((pair) => pairProduct(about, pair, distance * ((all.data[last * F + pair] - all.data[pair]) / last || 0)))), terms = products.map(({ value }) => value), value = sum(terms);
  const reads = await Promise.all([readValue(about, `blocks.${layer}.attn.q`, head, query), readValue(about, `blocks.${layer}.attn.k`, head, key)]);
  return {
    name: _("score at a distance of {distance}", { distance }), location: _("layer {layer} head {head}, q and k of {ends}", { layer, head, ends: queryAndKey(about, query, key) }), value: (await positions.panels.distances(about)).scores[distance],
    working: { symbols: _("score = Σ over pairs of |q||k| cos(φ + distance · ω) / {divisor}", { divisor: "√d" }), numbers: _("score = {sum} = {value}", { sum: formatSum(terms), value: formatSixDigits(value) }), value, inputs: [...reads, all].map(({ input }) => input) },
  };
}

/** @type {Inspector} */
async function wavelength(about, { item: pair }) {
  const last = about.tokens.length - 1, [end, start] = await Promise.all([readValue(about, "rope.angles", last, pair), readValue(about, "rope.angles", 0, pair)]), angleRange = Math.abs(end.data[0] - start.data[0]), value = (2 * Math.PI * last) / angleRange;
  if (!angleRange) return null;
  const { periods } = await positions.panels.wavelengths(about);
  return {
    name: _("positions that pair {pair} takes for a whole turn", { pair }), location: _("from its angles at positions 0 and {last}", { last }), value: periods[pair],
    working: { symbols: _("2π / ω, ω = (last angle − first) / positions between"), numbers: `2π · ${last} / |${formatSixDigits(end.data[0])} − ${formatSixDigits(start.data[0])}| = ${formatSixDigits(value)}`, value, inputs: [end.input, start.input] },
  };
}

/** @type {Inspector} */
async function positionCosine(about, { x: key, y: query }) {
  const working = calculateCosine(await readValue(about, "position_embed", query), await readValue(about, "position_embed", key), ["p", "p′"]);
  return { name: _("cosine of the vectors added at positions {query} and {key}", { query, key }), location: _("{one} and {other}", { one: formatTokenAt(about, query), other: formatTokenAt(about, key) }), value: (await positions.panels.alike(about)).cosines[query][key], working };
}

/** Derive the mean over all pairs at a distance. @type {Inspector} */
async function meanCosine(about, { x: distance }) {
  const { config: { d_model: D }, tokens } = about, { data, input } = await readValue(about, "position_embed"), row = (at) => ({ data: data.subarray(at * D, (at + 1) * D), input }), cosines = range(tokens.length - distance).map((at) => calculateCosine(row(at + distance), row(at)).value), drawnValues = await positions.panels.by_distance(about);
  if (!cosines.length) return null;
  const location = ngettext("{count} pair {distance} apart", "all {count} pairs {distance} apart", cosines.length, { distance });
  return { name: _("mean cosine of the vectors added at two positions"), location, value: drawnValues.mean[distance], working: calculateMean(_("mean of p·p′ / (‖p‖ ‖p′‖)"), cosines, [input]) };
}

/** @type {Inspector} */
async function positionNorm(about, { x: position, curve }) {
  const { config, ids } = about, location = formatTokenAt(about, position), scale = config.scale_embeddings ? Math.sqrt(config.d_model) : 1, row = await readValue(about, "token_embedding.weight", ids[position]);
  const { own, added, total } = await positions.panels.shares(about);
  const working = curve ? calculateNorm(await readValue(about, curve === 1 ? "position_embed" : "embed", position))
    : calculateNorm({ ...row, data: row.data.map((x) => x * scale) }, scale === 1 ? undefined : _("‖x‖₂ = √Σx², x = row · {factor}", { factor: "√D" }));
  return { name: [() => _("length of the token vector"), () => _("length of the position vector"), () => _("length of the sum")][curve](), location, value: [own, added, total][curve][position], working };
}

// Feed-forward.

/** @type {Inspector} */
async function neuronBar(about, { curve, item }) {
  const { neurons } = await feed_forward.panels.strongest(about), steps = about.config.ffn === "swiglu" ? ["gate", "up", "hidden"] : ["up", "hidden"];
  return steps[curve] && item < neurons.length ? deriveNeuron(about, neurons[item], [steps[curve]]) : null;
}

/** Derive some steps of a neuron. The last one's note contains the other steps, and the input's element with the largest term. @param {About} about @param {number} neuron @param {string[]} steps */
async function deriveNeuron(about, neuron, steps) {
  const { config, layer, position } = about, block = `blocks.${layer}.ffn`, isGated = config.ffn === "swiglu", names = isGated ? ["gate_pre", "gate", "up", "hidden"] : ["up", "hidden"];
  const all = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await deriveElement(about, `${block}.${name}`, position, neuron)])));
  const [{ data: weight }, { data: x }] = await Promise.all([readValue(about, `${block}.${isGated ? "gate" : "up"}_proj.weight`, neuron), readValue(about, `blocks.${layer}.ffn_norm`, position)]);
  const dim = argmax(Array.from(weight, (value, i) => Math.abs(value * x[i]))), { working: { numbers } } = await deriveElement(about, `blocks.${layer}.ffn_norm`, position, dim);
  const note = [_("x[{dim}], the largest term: {numbers}", { dim, numbers }), ...names.filter((name) => !steps.includes(name)).map((name) => all[name].working.numbers)];
  return steps.map((name, i) => (i === steps.length - 1 ? { ...all[name], note } : all[name]));
}

/** @type {Inspector} */
async function neuronDot(about, { curve, item }) {
  const { dots } = await feed_forward.panels.curve(about), neuron = dots[curve - 1]?.neurons[item], taps = about.config.ffn === "swiglu" ? ["gate_pre", "gate"] : ["up", "hidden"];
  return neuron === undefined ? null : deriveNeuron(about, neuron, taps);
}

/** @type {Inspector} */
async function logitEffect(about, { item }) {
  const { layer, neuron, position } = about, { ids, effects } = await affectedTokens(about), tokenId = ids[item];
  if (tokenId === undefined) return null;
  const column = await readValue(about, `blocks.${layer}.ffn.down_proj.weight`, ALL, neuron), { data, inputs } = await throughFinalNorm(about, column.data, [column.input]), row = await readValue(about, "lm_head.weight", tokenId);
  return {
    name: _("what neuron {neuron} of layer {layer} adds for each 1 of its hidden value", { neuron, layer }), location: _("after {place}, to the logit of {token}", { place: formatTokenAt(about, position), token: formatTokenId(about, tokenId) }), value: effects[tokenId],
    working: calculateDotProduct(_("norms({x}) · row of the unembedding; each norm keeps the divisor of this run", { x: _("column of W_down") }), data, row.data, [...inputs, row.input]),
  };
}

/** @type {Inspector} */
async function shareNearZero(about, { item: layer, curve }) {
  const { config: { ffn, d_ff: F }, tokens } = about, { data, input } = await readValue(about, `blocks.${layer}.ffn.hidden`), limit = ffn === "relu" ? 0 : NEAR_ZERO_RATIO * Math.sqrt(sum(data.map((x) => x * x)) / data.length), isNear = Array.from(data, (x) => Math.abs(x) <= limit);
  const isCounted = curve ? range(F).map((neuron) => tokens.every((_token, at) => isNear[at * F + neuron])) : isNear, count = isCounted.filter(Boolean).length, value = count / isCounted.length, sizes = await about.ask("sparsity", { ratio: limit ? NEAR_ZERO_RATIO : 0 });
  return {
    name: curve ? _("share of neurons near 0 at every token") : _("share of hidden values near 0"), location: ngettext("layer {layer}, over {count} token", "layer {layer}, over all {count} tokens", tokens.length, { layer }), value: (curve ? sizes.inactive : sizes.nearZero)[layer],
    working: {
      symbols: _("how many are at most {limit} in size / how many there are", { limit: limit ? _("{share:g} · √(mean hidden²)", { share: NEAR_ZERO_RATIO }) : "0" }), value, inputs: [input],
      numbers: _("{near:,} of at most {limit} / {size:,} = {value}", { near: formatCount(count), limit: formatSixDigits(limit), size: formatCount(isCounted.length), value: formatSixDigits(value) }),
    },
  };
}

// The residual stream.

/** @param {About} about @param {number} row */
const stageOf = ({ config }, row) => ({ tap: streamTaps(config)[row], stage: depthNames(config)[row] });

/** @type {Inspector} */
async function streamNorm(about, { x: position, y: row }) {
  const { tap, stage } = stageOf(about, row), working = calculateNorm(await readValue(about, tap, position), undefined, true);
  return { name: _("length of the stream at {stage}", { stage }), location: formatTokenAt(about, position), value: (await residual.panels.lengths(about)).lengths[row][position], working };
}

/** Derive a point of the lines, or a bar. @type {Inspector} */
async function normOfLine(about, { curve, item }) {
  const { config: { d_model: D }, position, tokens } = about;
  if (curve === 1) return streamNorm(about, { x: position, y: item });
  const drawnValues = await residual.panels.norms(about);
  if (curve > 1) {
    const name = `blocks.${item >> 1}.${item % 2 ? "ffn" : "attn"}.out`, working = calculateNorm(await readValue(about, name, position));
    return { name: _("length of {value}", { value: name }), location: formatTokenAt(about, position), value: drawnValues.updates[item], working };
  }
  const { tap, stage } = stageOf(about, item), { data, input } = await readValue(about, tap), norms = tokens.map((_token, at) => Math.sqrt(sum(data.subarray(at * D, (at + 1) * D).map((x) => x * x)))), value = median(norms);
  const numbers = _("the middle of {least} to {most}: {value}", { least: formatSixDigits(Math.min(...norms)), most: formatSixDigits(Math.max(...norms)), value: formatSixDigits(value) });
  return { name: _("median length of the stream at {stage}", { stage }), location: ngettext("over {count} token", "over all {count} tokens", tokens.length), value: drawnValues.median[item], working: { symbols: _("median of ‖x‖₂ = √Σx²"), numbers, value, inputs: [input] } };
}

/** @type {Inspector} */
async function stageCosine(about, { x: column, y: row }) {
  const { position } = about, [rowStage, columnStage] = [row, column].map((at) => stageOf(about, at)), working = calculateCosine(await readValue(about, rowStage.tap, position), await readValue(about, columnStage.tap, position));
  return { name: _("cosine of the stream at {one} and at {other}", { one: rowStage.stage, other: columnStage.stage }), location: formatTokenAt(about, position), value: (await residual.panels.similarity(about)).cosines[row][column], working };
}

/** @type {Inspector} */
async function updateCosine(about, { item }) {
  const { position } = about, block = `blocks.${item >> 1}`, taps = item % 2 ? [`${block}.ffn.out`, `${block}.resid_mid`] : [`${block}.attn.out`, `${block}.resid_pre`], working = calculateCosine(await readValue(about, taps[0], position), await readValue(about, taps[1], position), [_("added"), "x"]);
  return { name: _("cosine of what {stage} adds and the stream", { stage: depthNames(about.config)[item + 1] }), location: formatTokenAt(about, position), value: (await residual.panels.directions(about)).cosines[item], working };
}

/** Derive a norm's divisor of a token's vector, or the mean that it subtracts. @type {Inspector} */
async function divisorOrMean(about, { curve, item: position }) {
  const line = (await divisorLines(about))[curve], { config, layer } = about;
  if (!line) return null;
  const vector = await readValue(about, `blocks.${layer}.${line.before}`, position), { square, divisor } = normNumbers(config, vector.data), location = formatTokenAt(about, position);
  if (line.isMean) return { name: _("mean that {norm} takes off", { norm: line.norm }), location, value: line.means[position], working: calculateMean(_("mean x = Σx / D"), vector.data, [vector.input]) };
  const symbols = config.norm === "layernorm" ? _("√(var x + ε)") : _("√(mean x² + ε)"), numbers = `√(${formatSixDigits(square)} + ${formatSixDigits(config.norm_eps)}) = ${formatSixDigits(divisor)}`;
  return { name: _("what the norm divides by"), location, value: line.divisors[position], working: { symbols, numbers, value: divisor, inputs: [vector.input] } };
}

/** Derive an element before or after a norm. @type {Inspector} */
async function normalisedElement(about, { curve, item }) {
  const panelNorm = (await layerNorms(about))[curve >> 1];
  return panelNorm ? deriveElement(about, `blocks.${about.layer}.${curve % 2 ? panelNorm.norm : panelNorm.before}`, about.position, item) : null;
}

/** @type {Inspector} */
async function outlierRatio(about, { x: column, y: row }) {
  const { config: { d_model: D }, tokens } = about, { tap, stage } = stageOf(about, row), { dimensions, ratios } = await outlierDimensions(about), dim = dimensions[column], { data, input } = await readValue(about, tap), sizes = range(D).map((own) => sum(tokens.map((_token, at) => Math.abs(data[at * D + own]))) / tokens.length), typical = median(sizes), value = typical ? sizes[dim] / typical : 0;
  const numbers = `${formatSixDigits(sizes[dim])} / ${formatSixDigits(typical)} = ${formatSixDigits(value)}`, location = ngettext("over {count} token", "over all {count} tokens", tokens.length);
  return { name: _("dimension {dimension} at {stage}, in multiples of the median dimension", { dimension: dim, stage }), location, value: ratios[row][dim], working: { symbols: _("mean |value| of the dimension / median of the mean |value| of all"), numbers, value, inputs: [input] } };
}

// The prediction.

/** Apply the final norm, with its divisor of this run, to a vector that was added to the stream. @param {About} about @param {Float64Array} vector @param {string[]} inputs @param {boolean} [isShifted] whether to add the norm's β */
async function throughFinalNorm(about, vector, inputs, isShifted = false) {
  const { config, position } = about, [stream, gain, beta] = await Promise.all([readValue(about, `blocks.${config.num_layers - 1}.resid_post`, position), readValue(about, "final_norm.weight"), isShifted ? readValue(about, "final_norm.bias") : null]);
  const { divisor } = normNumbers(config, stream.data), { mean } = normNumbers(config, vector);
  return { data: vector.map((x, i) => ((x - mean) / divisor) * gain.data[i] + (beta ? beta.data[i] : 0)), inputs: [...inputs, stream.input, gain.input, ...(beta ? [beta.input] : [])] };
}

/** Derive the contribution of a vector after the final norm to the logit, or to the difference of two. @param {About} about @param {string} name @param {number} value @param {string} x @param {{ data: Float64Array, inputs: string[] }} final @returns {Promise<Derivation>} */
async function logitContribution(about, name, value, x, final) {
  const { position, tokenId, contrastId, vocabulary } = about, row = await readValue(about, "lm_head.weight", tokenId), contrastRow = contrastId === null ? null : await readValue(about, "lm_head.weight", contrastId);
  const names = { place: formatTokenAt(about, position), token: quoteToken(vocabulary[tokenId]) }, direction = row.data.map((number, i) => number - (contrastRow ? contrastRow.data[i] : 0));
  const symbols = contrastRow ? _("norms({x}) · row of the unembedding less the rival’s; each norm keeps the divisor of this run", { x }) : _("norms({x}) · row of the unembedding; each norm keeps the divisor of this run", { x });
  const location = contrastRow ? _("after {place}, to the logit of {token} less that of {rival}", { ...names, rival: quoteToken(vocabulary[contrastId]) }) : _("after {place}, to the logit of {token}", names);
  return { name, location, value, working: calculateDotProduct(`= ${symbols}`, final.data, direction, [...final.inputs, row.input, ...(contrastRow ? [contrastRow.input] : [])]) };
}

/** Return W_O z of one or more heads. @param {Read} z @param {Read} output @param {number} numRows */
const headOutput = (z, output, numRows) => Float64Array.from({ length: numRows }, (_none, row) => dotProductValue(output.data.subarray(row * z.data.length, (row + 1) * z.data.length), z.data));

/** Return each bar's kind and layer. @param {About} about @returns {[string, number][]} */
const componentKeys = ({ config: { position, bias, norm, num_layers } }) => /** @type {any} */ ([
  ["token", 0], ...(position === "sinusoidal" ? [["position", 0]] : []), ...range(num_layers).flatMap((layer) => ["heads", ...(bias ? ["bias"] : []), "feed_forward"].map((kind) => [kind, layer])), ...(norm === "layernorm" ? [["shift", 0]] : []),
]);

/** Derive a component's bar. @type {Inspector} */
async function component(about, { item }) {
  const { config, position } = about, D = config.d_model, parts = await attribution(about), hasPositions = config.position === "sinusoidal", H = config.num_heads, keys = componentKeys(about);
  if (!keys[item]) return null;
  const [kind, layer] = keys[item], block = `blocks.${layer}`, readMany = (...names) => Promise.all(names.map(([name, ...index]) => readValue(about, name, ...index))), deriveContribution = async (name, value, vector, reads) => logitContribution(about, name, value, "x", await throughFinalNorm(about, vector, reads.map(({ input }) => input), kind === "shift"));
  if (kind === "token") {
    const reads = await readMany(["embed", position], ...(hasPositions ? [["position_embed", position]] : []));
    return deriveContribution(_("what the token’s embedding adds"), parts.token, reads[0].data.map((x, i) => x - (reads[1]?.data[i] ?? 0)), reads);
  }
  if (kind === "heads") {
    const [z, output] = await readMany([`${block}.attn.z`, ALL, position], [`${block}.attn.o_proj.weight`]);
    return deriveContribution(_("what all heads of layer {layer} add", { layer }), sum(parts.heads.subarray(layer * H, (layer + 1) * H)), headOutput(z, output, D), [z, output]);
  }
  if (kind === "shift") return deriveContribution(_("added by {shifts}", { shifts: _("the shift β of all norms") }), parts.shift, new Float64Array(D), []);
  const [name, value, tap, ...index] = /** @type {[string, number, string, ...number[]]} */ ({
    position: () => [_("what its position adds"), parts.positions, "position_embed", position],
    bias: () => [_("what the bias of W_O of layer {layer} adds", { layer }), parts.biases[layer], `${block}.attn.o_proj.bias`],
    feed_forward: () => [_("what the feed-forward of layer {layer} adds", { layer }), parts.feed_forward[layer], `${block}.ffn.out`, position],
  }[kind]()), [vector] = await readMany([tap, ...index]);
  return deriveContribution(name, value, vector.data, [vector]);
}

/** @type {Inspector} */
async function headContribution(about, { x: head, y: layer }) {
  const { config: { num_heads: H, d_model: D }, position, dHead } = about, { heads } = await attribution(about), [z, output] = await Promise.all([readValue(about, `blocks.${layer}.attn.z`, head, position), readValue(about, `blocks.${layer}.attn.o_proj.weight`, ALL, [head * dHead, (head + 1) * dHead])]);
  return logitContribution(about, _("what layer {layer} head {head} adds", { layer, head }), heads[layer * H + head], "W_O z", await throughFinalNorm(about, headOutput(z, output, D), [z.input, output.input]));
}

/** Derive a token's contribution through all heads, or the rest of the logit. @type {Inspector} */
async function source(about, { x: key, curve }) {
  const { config: { num_layers: L, num_heads: H, d_model: D }, position, dHead } = about, { values, rest } = await sourceTotals(about), added = new Float64Array(D), isChanged = changedHeads(about);
  if (curve) return withoutSource(about, rest);
  if (key > position) return null;
  for (let layer = 0; layer < L; layer++) {
    const block = `blocks.${layer}.attn`, [weights, v, output] = await Promise.all([readValue(about, `${block}.pattern`, ALL, position, key), readValue(about, `${block}.v`, ALL, key), readValue(about, `${block}.o_proj.weight`)]);
    const z = v.data.map((x, i) => (isChanged(layer, Math.floor(i / dHead)) ? 0 : x * weights.data[Math.floor(i / dHead)]));
    headOutput({ data: z, input: "" }, output, D).forEach((x, i) => { added[i] += x; });
  }
  const inputs = [formatInput("blocks.*.attn.pattern", [ALL, position, key], [L, H]), formatInput("blocks.*.attn.v", [ALL, key], [L, H, dHead]), formatInput("blocks.*.attn.o_proj.weight", [], [L, D, D])];
  return logitContribution(about, _("what all heads take from {token}", { token: formatTokenAt(about, key) }), values[key], "Σ W_O (weight · v)", { data: (await throughFinalNorm(about, added, [])).data, inputs });
}

/** Return a function that returns whether interventions change a head at the selected token. @param {About} about @returns {(layer: number, head: number) => boolean} */
function changedHeads({ edits, config, position: queryPosition }) {
  const changes = parseInterventions(edits, config);
  return (layer, head) => changes.some(({ tap, index, position }) => tap === `blocks.${layer}.attn.z` && (index ?? head) === head && (position ?? queryPosition) === queryPosition);
}

/** Derive the part of the logit that attention does not take from a token, as a sum. @param {About} about @param {number} drawnValue @returns {Promise<Derivation>} */
async function withoutSource(about, drawnValue) {
  const { config: { num_layers: L, num_heads: H } } = about, keys = componentKeys(about), isChanged = changedHeads(about), indicesOfKind = (kinds) => range(keys.length).filter((i) => kinds.includes(keys[i][0]));
  const parts = await Promise.all([...indicesOfKind(["token", "position"]), ...indicesOfKind(["shift"]), ...indicesOfKind(["feed_forward"]), ...indicesOfKind(["bias"])].map((item) => component(about, { x: 0, y: 0, item })));
  for (let layer = 0; layer < L; layer++) for (let head = 0; head < H; head++) if (isChanged(layer, head)) parts.push(await headContribution(about, { x: head, y: layer }));
  const derivations = /** @type {Derivation[]} */ (parts), [first, ...others] = derivations.map(({ working }) => working.value), value = sum([first, ...others]);
  const numbers = `${[formatSixDigits(first), ...others.map(formatFactor)].join(" + ")} = ${formatSixDigits(value)}`;
  return { name: _("what comes from no earlier token"), location: derivations[0].location, value: drawnValue, working: { symbols: _("the token’s own embedding + all feed-forwards + constants"), numbers, value, inputs: [...new Set(derivations.flatMap(({ working }) => working.inputs))] } };
}

/** Derive probability or rank of the text's next token. @type {Inspector} */
async function actualToken(about, { curve, item: position }) {
  const { ids, measures: tokenMeasures } = about, tokenId = ids[position + 1];
  if (curve) return tokenMeasure(about, position + 1, "rank");
  const { data, input } = await readValue(about, "logits", position), location = _("of {token} after {before}", { token: formatTokenId(about, tokenId), before: formatTokenAt(about, position) });
  return { name: _("probability"), location, value: 2 ** -tokenMeasures.surprisal[position + 1], working: measures.probability(data, tokenId, [input]) };
}

/** Derive a cell of the logit lens. @param {About} about @param {number} depth @param {number} position @param {string} kind of LENSES @param {number} which of the lens's tokens */
async function lensCell(about, depth, position, kind, which = 0) {
  const { config, vocabulary } = about, numbers = await lensNumbers(about), column = position - numbers.page[0], tap = streamTaps(config)[depth];
  if (!tap || !(numbers.top[depth][column])) return null;
  const tokenId = kind === "probability" ? numbers.top[depth][column][0] : numbers.ids[which], isOfToken = kind !== "entropy";
  const value = { probability: () => numbers.topProbabilities[depth][column][0], target: () => numbers.probabilities[which][depth][column], rank: () => numbers.ranks[which][depth][column], entropy: () => numbers.entropy[depth][column] }[kind]();
  const [stream, gain, beta] = await Promise.all([readValue(about, tap, position), readValue(about, "final_norm.weight"), config.norm === "layernorm" ? readValue(about, "final_norm.bias") : null]), { mean, divisor } = normNumbers(config, stream.data);
  const x = stream.data.map((number, i) => ((number - mean) / divisor) * gain.data[i] + (beta ? beta.data[i] : 0)), logits = await about.ask("unembed", { x }), row = await readValue(about, "lm_head.weight", tokenId);
  const inputs = [stream, gain, beta, isOfToken ? row : null].filter(Boolean).map(({ input }) => input), working = measures[kind === "target" ? "probability" : kind](logits, tokenId, [...inputs, formatInput("lm_head.weight", [], [vocabulary.length, config.d_model])]);
  const logit = isOfToken && _("logit = {sum} = {logit}; {rest}", { sum: formatDotProduct(row.data, x), logit: formatSixDigits(logits[tokenId]), rest: working.numbers }), measure = lookUpMessage(CHOICES.lens.options.find(([option]) => option === kind)[1]);
  return {
    name: _("{measure} by the logit lens at {stage}", { measure, stage: depthNames(config)[depth] }), value, location: isOfToken ? _("after {token}, of {of}", { token: formatTokenAt(about, position), of: formatTokenId(about, tokenId) }) : _("after {token}", { token: formatTokenAt(about, position) }),
    working: logit ? { ...working, symbols: _("{symbols}, {logit} = x · row of the unembedding", { symbols: working.symbols, logit: "logit" }), numbers: logit } : working,
  };
}

/** @type {Inspector} */
async function rolloutWeight(about, { x: key }) {
  const { config: { num_layers: L, num_heads: H }, position: query, tokens: { length: T } } = about, inputs = [];
  let row = range(T).map((at) => +(at === query)), previousRow = row, mean = [];
  for (let layer = L - 1; layer >= 0; layer--) {
    const { data, input } = await readValue(about, `blocks.${layer}.attn.pattern`), upperRow = row;
    mean = range(T).map((from) => {
      const weights = range(T).map((to) => sum(range(H).map((head) => data[(head * T + from) * T + to])) / H), total = sum(weights);
      return weights.map((weight) => weight / total);
    });
    previousRow = upperRow;
    row = range(T).map((to) => (sum(range(T).map((from) => upperRow[from] * mean[from][to])) + upperRow[to]) / 2);
    inputs.unshift(input);
  }
  const column = mean.map((weights) => weights[key]), value = row[key];
  return {
    name: _("share of attention rollout"), location: queryAndKey(about, query, key), value: (await about.ask("rollout", { position: query }))[key],
    working: { symbols: _("½ Σ share after layer 0 · mean weight of layer 0’s heads + ½ own share after layer 0"), numbers: `½ ${formatDotProduct(previousRow, column)} + ½ ${formatSixDigits(previousRow[key])} = ${formatSixDigits(value)}`, value, inputs },
  };
}

// Tokens.

/** @type {Inspector} */
async function tableCell(about, { x, y: position }) {
  const measure = { 4: "surprisal", 5: "entropy", 6: "rank" }[EDGES.findLastIndex((edge) => edge <= x)];
  return measure && position ? tokenMeasure(about, position, measure) : null;
}

/** Derive a measure of a token's prediction. @param {About} about @param {number} position @param {string} measure */
async function tokenMeasure(about, position, measure) {
  const { ids, measures: tokenMeasures } = about;
  const { data, input } = await readValue(about, "logits", position - 1), location = _("of {token}, id {token_id}, after {before}", { token: formatTokenAt(about, position), token_id: ids[position], before: formatTokenAt(about, position - 1) });
  return { name: { surprisal: () => _("surprisal"), entropy: () => _("entropy"), rank: () => _("rank") }[measure](), location, value: tokenMeasures[measure][position], working: measures[measure](data, ids[position], [input]) };
}

/** @type {Inspector} */
async function nearestCosine(about, { item }) {
  const { ids: own, tokens, position } = about, { ids, cosines } = await about.ask("nearest", { tokenId: own[position], count: item + 1 }), working = calculateCosine(await readValue(about, "token_embedding.weight", own[position]), await readValue(about, "token_embedding.weight", ids[item]));
  return { name: _("cosine of two tokens’ vectors"), location: _("{one} and {other}", { one: quoteToken(tokens[position]), other: formatTokenId(about, ids[item]) }), value: cosines[item], working };
}

/** @type {Inspector} */
async function vectorElement(about, { x: dim, curve }) {
  const { config, ids, position } = about, row = Math.floor(curve / 2); // each row has a trace of all bars and one of the selected bar
  if (row) return deriveElement(about, row === 1 ? "position_embed" : "embed", position, dim);
  const { data: [element], input } = await readValue(about, "token_embedding.weight", ids[position], dim), isScaled = config.scale_embeddings, value = element * (isScaled ? Math.sqrt(config.d_model) : 1);
  const symbols = isScaled ? _("row of the token’s id · {factor}, as it was learned", { factor: "√D" }) : _("row of the token’s id, as it was learned");
  return { name: _("token {token_id}’s own vector[{dim}]", { token_id: ids[position], dim }), location: formatTokenAt(about, position), value: (await tokens.panels.vector(about)).bars[0].values[dim], working: { symbols, numbers: `${isScaled ? `${formatFactor(element)} · √${config.d_model} = ` : ""}${formatSixDigits(value)}`, value, inputs: [input] } };
}

/** Id of a figure's element -> function that derives the number at a point, unless that is declared. @type {Record<string, Inspector>} */
const INSPECTORS = {
  "attention-pattern": displayedWeight, "attention-stages": attentionStage, "attention-dimensions": dimension, "attention-lines": lineEnd,
  "positions-clocks": clockHand, "positions-pairs": pairContribution, "positions-distances": scoreAtDistance, "positions-wavelengths": wavelength, "positions-alike": positionCosine, "positions-by_distance": meanCosine, "positions-shares": positionNorm,
  "positions-curves": (about, { curve, item }) => (curve % 2 ? deriveElement(about, "position_embed", item, sampleDimensions(about)[curve >> 1]) : Promise.resolve(null)), // only the dots belong to the run
  "positions-angles": (about, { x, y }) => deriveElement(about, "rope.angles", y, x),
  "feed_forward-strongest": neuronBar, "feed_forward-curve": neuronDot, "feed_forward-promoted": logitEffect, "feed_forward-layers": shareNearZero,
  "residual-lengths": streamNorm, "residual-norms": normOfLine, "residual-directions": updateCosine, "residual-similarity": stageCosine, "residual-scales": divisorOrMean, "residual-normalised": normalisedElement, "residual-outliers": outlierRatio,
  "prediction-lens": (about, { x, y }) => lensCell(about, y, x, about.state.lens), "prediction-path": (about, { curve, item }) => (curve < (about.contrastId === null ? 1 : 2) ? lensCell(about, item, about.position, "target", curve) : Promise.resolve(null)),
  "prediction-rollout": rolloutWeight, "prediction-parts": component, "prediction-heads": headContribution, "prediction-by_source": source, "prediction-actual": actualToken,
  "tokens-table": tableCell, "tokens-nearest": nearestCosine, "tokens-vector": vectorElement,
};
