// @ts-check
// Derivations of the number at a clicked point of each figure, as in the analyses of explorer/analysis/.
import { _, lookUpMessage, ngettext } from "../static/text.js";
import { parseInterventions } from "../static/in_browser/transformer_lm.js";
import { argmax, dotProduct, median, range, sum, formatCount, formatSixDigits, quoteToken } from "./figures.js";
import { CHOICES, VIEWS } from "./page_data.js";
import attention, { displayedPattern } from "./views/attention.js";
import feed_forward, { affectedTokens, NEAR_ZERO_RATIO, neuronContributions, topNeurons } from "./views/feed_forward.js";
import positions, { sampleDimensions } from "./views/positions.js";
import { attribution, depthNames, lensNumbers, sourceTotals } from "./views/prediction.js";
import residual, { divisorLines, layerNorms, outlierDimensions, streamTaps } from "./views/residual.js";
import tokens, { EDGES } from "./views/tokens.js";
import { ALL, attentionCell, calculateCosine, calculateDotProduct, formatDotProduct, formatFactor, formatInput, formatSum, calculateMean, measures, queryAndKey, readValue, formatTokenAt, formatTokenId, calculateNorm, deriveElement, normNumbers } from "./derivations.js";

/** @typedef {import("./views.js").ViewContext} ViewContext @typedef {import("./derivations.js").Calculation} Calculation @typedef {import("./derivations.js").Derivation} Derivation @typedef {import("./derivations.js").Read} Read */
/** @typedef {{ x: number, y: number, curve?: number | null, item?: number | null, layer?: number, head?: number }} Point */
/** @typedef {(context: ViewContext, point: Point) => Promise<Derivation | (Derivation | null)[] | null>} Inspector */

/** Derive the number at a point of a figure, or both numbers that it stands for. @param {ViewContext} context @param {string} id of the figure's element @param {Point} point @returns {Promise<Derivation[]>} */
export async function derivePoint(context, id, point) {
  const [view, name] = id.split(/-(.*)/), inspected = VIEWS[view]?.panels.find((panel) => panel.name === name)?.inspect;
  const derivations = inspected ? await deriveCell(context, inspected, point) : await INSPECTORS[id]?.(context, point);
  return [derivations ?? []].flat().filter(Boolean);
}

/** Derive a cell of a captured value (CapturedCellInspector). @param {ViewContext} context @param {{ template: string, axes: string[] }} declared @param {Point} point */
function deriveCell(context, { template, axes }, point) {
  const { layer, head, position: query, key, neuron } = context, fields = { layer, head, query, key, neuron, ...Object.fromEntries(Object.entries(point).filter(([, value]) => typeof value === "number")) };
  return deriveElement(context, template.replace("{layer}", String(fields.layer)), ...axes.map((axis) => fields[axis]));
}

// Attention.

/** Return ‖W_O v‖ of a key and its inputs. @param {ViewContext} context @param {number} key */
async function outputNorm(context, key) {
  const { layer, head, dHead, config: { d_model: D } } = context, [v, output] = await Promise.all([readValue(context, `blocks.${layer}.attn.v`, head, key), readValue(context, `blocks.${layer}.attn.o_proj.weight`, ALL, [head * dHead, (head + 1) * dHead])]);
  return { norm: Math.hypot(...range(D).map((row) => dotProduct(output.data.subarray(row * dHead, (row + 1) * dHead), v.data))), inputs: [v.input, output.input] };
}

/** Calculate weight × ‖W_O v‖. @param {ViewContext} context @param {number} query @param {number} key @returns {Promise<Calculation>} */
async function valueWeighted(context, query, key) {
  const { data: [weight], input } = await readValue(context, `blocks.${context.layer}.attn.pattern`, context.head, query, key), { norm, inputs } = await outputNorm(context, key), value = weight * norm;
  return { symbols: _("moved = weight · ‖W_O v‖"), numbers: `${formatSixDigits(weight)} · ${formatSixDigits(norm)} = ${formatSixDigits(value)}`, value, inputs: [input, ...inputs] };
}

/** Calculate the mean or the largest of several heads' weights. @param {string} kind @param {[number, number][]} heads @param {string[]} labels @param {ViewContext} context @param {number} query @param {number} key @param {string[]} [inputs] names of the inputs, if they are read at once @returns {Promise<Calculation>} */
async function aggregate(kind, heads, labels, context, query, key, inputs) {
  const reads = await Promise.all(heads.map(([layer, head]) => readValue(context, `blocks.${layer}.attn.pattern`, head, query, key))), weights = reads.map(({ data }) => data[0]), inputNames = inputs ?? reads.map(({ input }) => input);
  const symbols = { layer_mean: () => _("mean = Σ weights of the heads / H"), layer_max: () => _("the largest weight of the heads"), chosen_mean: () => _("mean = Σ weights of the chosen heads / how many"), chosen_max: () => _("the largest weight of the chosen heads") }[kind]();
  if (kind.endsWith("mean")) return calculateMean(symbols, weights, inputNames);
  const value = Math.max(...weights);
  return { symbols, numbers: _("that of {whose}: {value}", { whose: labels[weights.indexOf(value)], value: formatSixDigits(value) }), value, inputs: inputNames };
}

/** Derive a cell of the displayed pattern (displayed_weight). @type {Inspector} */
async function displayedWeight(context, { x: key, y: query }) {
  const { layer, head, state: { pattern: kind }, chosenHeads, config: { num_heads: H } } = context, tap = `blocks.${layer}.attn.pattern`;
  if (key > query) return null;
  if (kind === "weight") return deriveElement(context, tap, head, query, key);
  const name = lookUpMessage(CHOICES.pattern.options.find(([value]) => value === kind)[1]), value = (await displayedPattern(context, kind))[query][key];
  const heads = /** @type {[number, number][]} */ (chosenHeads.length ? chosenHeads : [[layer, head]]), layerHeads = /** @type {[number, number][]} */ (range(H).map((own) => [layer, own])), cell = attentionCell(context, layer, head, query, key);
  if (kind === "moved") return { name, location: cell, value, working: await valueWeighted(context, query, key) };
  if (kind.startsWith("layer")) {
    const location = _("layer {layer}, query {query} → key {key}", { layer, query: formatTokenAt(context, query), key: formatTokenAt(context, key) });
    return { name, location, value, working: await aggregate(kind, layerHeads, layerHeads.map(([, own]) => _("head {head}", { head: own })), context, query, key, [formatInput(tap, [ALL, query, key], [H])]) };
  }
  if (kind.startsWith("chosen")) {
    const location = ngettext("{count} chosen head, {ends}", "{count} chosen heads, {ends}", heads.length, { ends: queryAndKey(context, query, key) });
    return { name, location, value, working: await aggregate(kind, heads, heads.map(([l, h]) => _("layer {layer} head {head}", { layer: l, head: h })), context, query, key) };
  }
  const { data, input } = await readValue(context, tap, head, query, [1, query + 1]), rest = sum(data), share = key && rest > 1e-12 ? data[key - 1] / rest : 0;
  const numbers = key ? `${formatSixDigits(data[key - 1])} / ${formatSixDigits(rest)} = ${formatSixDigits(share)}` : _("0: the first is left out");
  return { name, location: cell, value, working: { symbols: _("weight without the first = weight / Σ weights of all keys but the first"), numbers, value: share, inputs: [input] } };
}

/** Derive a stage of the selected query's attention (attention_stage). @type {Inspector} */
async function attentionStage(context, { x: key, y: row }) {
  const { layer, head, position: query, dHead } = context, stage = ["q·k", "score", "masked", "weight", "length", "moved"][row], block = `blocks.${layer}.attn`;
  if (stage === "masked" && key > query) return null;
  if (stage === "weight") return deriveElement(context, `${block}.pattern`, head, query, key);
  if (stage === "score" || stage === "masked") return deriveElement(context, `${block}.scores`, head, query, key);
  const location = attentionCell(context, layer, head, query, key);
  if (stage === "q·k") {
    const suffix = context.config.position === "rope" ? "_rot" : "", [q, k, score] = await Promise.all([readValue(context, `${block}.q${suffix}`, head, query), readValue(context, `${block}.k${suffix}`, head, key), readValue(context, `${block}.scores`, head, query, key)]);
    const value = dotProduct(q.data, k.data);
    return { name: "q·k", location, value: score.data[0] * Math.sqrt(dHead), working: { symbols: "q·k = Σ q · k", numbers: `q·k = ${formatDotProduct(q.data, k.data)} = ${formatSixDigits(value)}`, value, inputs: [q.input, k.input] } };
  }
  const drawnNorm = (await context.ask("outputNorms", { layer, head }))[key];
  if (stage === "moved") {
    const { data: [weight] } = await readValue(context, `${block}.pattern`, head, query, key), name = lookUpMessage(CHOICES.pattern.options.find(([kind]) => kind === "moved")[1]);
    return { name, location, value: drawnNorm * weight, working: await valueWeighted(context, query, key) };
  }
  const { norm, inputs } = await outputNorm(context, key), numbers = `√${formatSixDigits(norm ** 2)} = ${formatSixDigits(norm)}`;
  return { name: _("length of W_O v"), location, value: drawnNorm, working: { symbols: _("length of W_O v = √Σ (W_O v)²"), numbers, value: norm, inputs } };
}

/** @type {Inspector} */
async function dimension(context, { item: dim }) {
  const { layer, head, position: query, key, dHead } = context, suffix = context.config.position === "rope" ? "_rot" : "", [{ data: [q], input: fromQ }, { data: [k], input: fromK }] = await Promise.all([readValue(context, `blocks.${layer}.attn.q${suffix}`, head, query, dim), readValue(context, `blocks.${layer}.attn.k${suffix}`, head, key, dim)]);
  const value = (q * k) / Math.sqrt(dHead), { added } = await attention.panels.dimensions(context);
  return { name: _("what dimension {dim} adds to the score", { dim }), location: attentionCell(context, layer, head, query, key), value: added[dim], working: { symbols: "qᵢ kᵢ / √d", numbers: `${formatFactor(q)}·${formatFactor(k)} / √${dHead} = ${formatSixDigits(value)}`, value, inputs: [fromQ, fromK] } };
}

/** Derive the weight at a token: on the left a query of the selected key, on the right a key of the selected query. @type {Inspector} */
async function lineEnd(context, { x, y }) {
  const [query, key] = x ? [context.position, y] : [y, context.key];
  return key <= query ? deriveElement(context, `blocks.${context.layer}.attn.pattern`, context.head, query, key) : null;
}

// Positions.

/** Derive both elements of the pair at a hand's tip. @type {Inspector} */
async function clockHand(context, { curve, item: pair }) {
  const { layer, head, position, key } = context, hand = (curve - 2) / 2; // the circles and the hands' lines come first
  if (!(hand >= 0 && hand < 4 && Number.isInteger(hand))) return null;
  const [vector, index] = hand < 2 ? ["q", position] : ["k", key], name = `blocks.${layer}.attn.${vector}${hand % 2 ? "_rot" : ""}`;
  return Promise.all([deriveElement(context, name, head, index, 2 * pair), deriveElement(context, name, head, index, 2 * pair + 1)]);
}

/** Calculate |q||k| cos(φ + angle) / √d of a pair (rotated_pair_product). @param {ViewContext} context @param {number} pair @param {number} angle */
async function pairProduct(context, pair, angle) {
  const { layer, head, position: query, key, dHead } = context, dims = /** @type {[number, number]} */ ([2 * pair, 2 * pair + 2]), [q, k] = await Promise.all([readValue(context, `blocks.${layer}.attn.q`, head, query, dims), readValue(context, `blocks.${layer}.attn.k`, head, key, dims)]);
  const lengths = [q, k].map(({ data }) => Math.hypot(...data)), [a, b] = [q, k].map(({ data: [x, y] }) => Math.atan2(y, x)), value = (lengths[0] * lengths[1] * Math.cos(a - b + angle)) / Math.sqrt(dHead);
  return { value, numbers: `${lengths.map(formatSixDigits).join("·")}·cos(${formatSixDigits(a - b)} + ${formatFactor(angle)}) / √${dHead} = ${formatSixDigits(value)}`, inputs: [q.input, k.input] };
}

/** @type {Inspector} */
async function pairContribution(context, { item: pair }) {
  const { layer, head, position: query, key } = context, [queryAngle, keyAngle] = await Promise.all([readValue(context, "rope.angles", query, pair), readValue(context, "rope.angles", key, pair)]), { value, numbers, inputs } = await pairProduct(context, pair, queryAngle.data[0] - keyAngle.data[0]);
  const symbols = _("|q||k| cos(φ + Δω) / {divisor}, φ from k’s pair to q’s, Δω the difference of their angles", { divisor: "√d" });
  const { added } = await positions.panels.pairs(context);
  return { name: _("what pair {pair} adds to the score", { pair }), location: attentionCell(context, layer, head, query, key), value: added[pair], working: { symbols, numbers, value, inputs: [...inputs, queryAngle.input, keyAngle.input] } };
}

/** @type {Inspector} */
async function scoreAtDistance(context, { x: distance }) {
  const { layer, head, position: query, key, dHead, tokens } = context, all = await readValue(context, "rope.angles"), F = dHead / 2, last = tokens.length - 1;
  const products = await Promise.all(range(F).map((pair) => pairProduct(context, pair, distance * ((all.data[last * F + pair] - all.data[pair]) / last || 0)))), terms = products.map(({ value }) => value), value = sum(terms);
  const reads = await Promise.all([readValue(context, `blocks.${layer}.attn.q`, head, query), readValue(context, `blocks.${layer}.attn.k`, head, key)]);
  return {
    name: _("score at a distance of {distance}", { distance }), location: _("layer {layer} head {head}, q and k of {ends}", { layer, head, ends: queryAndKey(context, query, key) }), value: (await positions.panels.distances(context)).scores[distance],
    working: { symbols: _("score = Σ over pairs of |q||k| cos(φ + distance · ω) / {divisor}", { divisor: "√d" }), numbers: _("score = {sum} = {value}", { sum: formatSum(terms), value: formatSixDigits(value) }), value, inputs: [...reads, all].map(({ input }) => input) },
  };
}

/** @type {Inspector} */
async function wavelength(context, { item: pair }) {
  const last = context.tokens.length - 1, [end, start] = await Promise.all([readValue(context, "rope.angles", last, pair), readValue(context, "rope.angles", 0, pair)]), angleRange = Math.abs(end.data[0] - start.data[0]), value = (2 * Math.PI * last) / angleRange;
  if (!angleRange) return null;
  const { periods } = await positions.panels.wavelengths(context);
  return {
    name: _("positions that pair {pair} takes for a whole turn", { pair }), location: _("from its angles at positions 0 and {last}", { last }), value: periods[pair],
    working: { symbols: _("2π / ω, ω = (last angle − first) / positions between"), numbers: `2π · ${last} / |${formatSixDigits(end.data[0])} − ${formatSixDigits(start.data[0])}| = ${formatSixDigits(value)}`, value, inputs: [end.input, start.input] },
  };
}

/** @type {Inspector} */
async function positionCosine(context, { x: key, y: query }) {
  const working = calculateCosine(await readValue(context, "position_embed", query), await readValue(context, "position_embed", key), ["p", "p′"]);
  return { name: _("cosine of the vectors added at positions {query} and {key}", { query, key }), location: _("{one} and {other}", { one: formatTokenAt(context, query), other: formatTokenAt(context, key) }), value: (await positions.panels.alike(context)).cosines[query][key], working };
}

/** Derive the mean over all pairs at a distance. @type {Inspector} */
async function meanCosine(context, { x: distance }) {
  const { config: { d_model: D }, tokens } = context, { data, input } = await readValue(context, "position_embed"), row = (index) => ({ data: data.subarray(index * D, (index + 1) * D), input }), cosines = range(tokens.length - distance).map((index) => calculateCosine(row(index + distance), row(index)).value), drawnValues = await positions.panels.by_distance(context);
  if (!cosines.length) return null;
  const location = ngettext("{count} pair {distance} apart", "all {count} pairs {distance} apart", cosines.length, { distance });
  return { name: _("mean cosine of the vectors added at two positions"), location, value: drawnValues.mean[distance], working: calculateMean(_("mean of p·p′ / (‖p‖ ‖p′‖)"), cosines, [input]) };
}

/** @type {Inspector} */
async function positionNorm(context, { x: position, curve }) {
  const { config, ids } = context, location = formatTokenAt(context, position), scale = config.scale_embeddings ? Math.sqrt(config.d_model) : 1, row = await readValue(context, "token_embedding.weight", ids[position]);
  const { own, added, total } = await positions.panels.shares(context);
  const working = curve ? calculateNorm(await readValue(context, curve === 1 ? "position_embed" : "embed", position))
    : calculateNorm({ ...row, data: row.data.map((x) => x * scale) }, scale === 1 ? undefined : _("‖x‖₂ = √Σx², x = row · {factor}", { factor: "√D" }));
  return { name: [() => _("length of the token vector"), () => _("length of the position vector"), () => _("length of the sum")][curve](), location, value: [own, added, total][curve][position], working };
}

// Feed-forward.

/** @type {Inspector} */
async function neuronBar(context, { curve, item }) {
  const { neurons } = await feed_forward.panels.strongest(context), steps = context.config.ffn === "swiglu" ? ["gate", "up", "hidden"] : ["up", "hidden"];
  return steps[curve] && item < neurons.length ? deriveNeuron(context, neurons[item], [steps[curve]]) : null;
}

/** Derive some steps of a neuron. The last one's note contains the other steps, and the input's element with the largest term. @param {ViewContext} context @param {number} neuron @param {string[]} steps */
async function deriveNeuron(context, neuron, steps) {
  const { config, layer, position } = context, block = `blocks.${layer}.ffn`, isGated = config.ffn === "swiglu", names = isGated ? ["gate_pre", "gate", "up", "hidden"] : ["up", "hidden"];
  const all = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await deriveElement(context, `${block}.${name}`, position, neuron)])));
  const [{ data: weight }, { data: x }] = await Promise.all([readValue(context, `${block}.${isGated ? "gate" : "up"}_proj.weight`, neuron), readValue(context, `blocks.${layer}.ffn_norm`, position)]);
  const dim = argmax(Array.from(weight, (value, i) => Math.abs(value * x[i]))), { working: { numbers } } = await deriveElement(context, `blocks.${layer}.ffn_norm`, position, dim);
  const note = [_("x[{dim}], the largest term: {numbers}", { dim, numbers }), ...names.filter((name) => !steps.includes(name)).map((name) => all[name].working.numbers)];
  return steps.map((name, i) => (i === steps.length - 1 ? { ...all[name], note } : all[name]));
}

/** @type {Inspector} */
async function neuronDot(context, { curve, item }) {
  const { dots } = await feed_forward.panels.curve(context), neuron = dots[curve - 1]?.neurons[item], taps = context.config.ffn === "swiglu" ? ["gate_pre", "gate"] : ["up", "hidden"];
  return neuron === undefined ? null : deriveNeuron(context, neuron, taps);
}

/** @type {Inspector} */
async function logitEffect(context, { item }) {
  const { layer, neuron, position } = context, { ids, unitEffects } = await affectedTokens(context), tokenId = ids[item];
  if (tokenId === undefined) return null;
  const hidden = await readValue(context, `blocks.${layer}.ffn.hidden`, position, neuron), column = await readValue(context, `blocks.${layer}.ffn.down_proj.weight`, ALL, neuron);
  const { data, inputs } = await throughFinalNorm(context, column.data.map((x) => hidden.data[0] * x), [hidden.input, column.input]), row = await readValue(context, "lm_head.weight", tokenId);
  return {
    name: _("what neuron {neuron} of layer {layer} adds", { neuron, layer }), location: _("after {place}, to the logit of {token}", { place: formatTokenAt(context, position), token: formatTokenId(context, tokenId) }), value: hidden.data[0] * unitEffects[tokenId],
    working: calculateDotProduct(_("norms({x}) · row of the unembedding; each norm keeps the divisor of this run", { x: _("hidden · column of W_down") }), data, row.data, [...inputs, row.input]),
  };
}

/** @type {Inspector} */
async function neuronContribution(context, { item }) {
  const { config: { d_ff: F }, position } = context, { added } = await neuronContributions(context), index = topNeurons(added)[item];
  if (index === undefined) return null;
  const layer = Math.floor(index / F), neuron = index % F, [hidden, column] = await Promise.all([readValue(context, `blocks.${layer}.ffn.hidden`, position, neuron), readValue(context, `blocks.${layer}.ffn.down_proj.weight`, ALL, neuron)]);
  const final = await throughFinalNorm(context, column.data.map((x) => hidden.data[0] * x), [hidden.input, column.input]);
  return logitContribution(context, _("what neuron {neuron} of layer {layer} adds", { neuron, layer }), added[index], _("hidden · column of W_down"), final);
}

/** @type {Inspector} */
async function shareNearZero(context, { item: layer, curve }) {
  const { config: { ffn, d_ff: F }, tokens } = context, { data, input } = await readValue(context, `blocks.${layer}.ffn.hidden`), limit = ffn === "relu" ? 0 : NEAR_ZERO_RATIO * Math.sqrt(sum(data.map((x) => x * x)) / data.length), isNear = Array.from(data, (x) => Math.abs(x) <= limit);
  const isCounted = curve ? range(F).map((neuron) => tokens.every((_token, index) => isNear[index * F + neuron])) : isNear, count = isCounted.filter(Boolean).length, value = count / isCounted.length, sizes = await context.ask("sparsity", { ratio: limit ? NEAR_ZERO_RATIO : 0 });
  return {
    name: curve ? _("share of neurons near 0 at every token") : _("share of hidden values near 0"), location: ngettext("layer {layer}, over {count} token", "layer {layer}, over all {count} tokens", tokens.length, { layer }), value: (curve ? sizes.inactive : sizes.nearZero)[layer],
    working: {
      symbols: _("how many are at most {limit} in size / how many there are", { limit: limit ? _("{share:g} · √(mean hidden²)", { share: NEAR_ZERO_RATIO }) : "0" }), value, inputs: [input],
      numbers: _("{near:,} of at most {limit} / {size:,} = {value}", { near: formatCount(count), limit: formatSixDigits(limit), size: formatCount(isCounted.length), value: formatSixDigits(value) }),
    },
  };
}

// The residual stream.

/** @param {ViewContext} context @param {number} row */
const stageOf = ({ config }, row) => ({ tap: streamTaps(config)[row], stage: depthNames(config)[row] });

/** @type {Inspector} */
async function streamNorm(context, { x: position, y: row }) {
  const { tap, stage } = stageOf(context, row), working = calculateNorm(await readValue(context, tap, position), undefined, true);
  return { name: _("length of the stream at {stage}", { stage }), location: formatTokenAt(context, position), value: (await residual.panels.lengths(context)).lengths[row][position], working };
}

/** Derive a point of the lines, or a bar. @type {Inspector} */
async function normOfLine(context, { curve, item }) {
  const { config: { d_model: D }, position, tokens } = context;
  if (curve === 1) return streamNorm(context, { x: position, y: item });
  const drawnValues = await residual.panels.norms(context);
  if (curve > 1) {
    const name = `blocks.${item >> 1}.${item % 2 ? "ffn" : "attn"}.out`, working = calculateNorm(await readValue(context, name, position));
    return { name: _("length of {value}", { value: name }), location: formatTokenAt(context, position), value: drawnValues.updates[item], working };
  }
  const { tap, stage } = stageOf(context, item), { data, input } = await readValue(context, tap), norms = tokens.map((_token, index) => Math.sqrt(sum(data.subarray(index * D, (index + 1) * D).map((x) => x * x)))), value = median(norms);
  const numbers = _("the middle of {least} to {most}: {value}", { least: formatSixDigits(Math.min(...norms)), most: formatSixDigits(Math.max(...norms)), value: formatSixDigits(value) });
  return { name: _("median length of the stream at {stage}", { stage }), location: ngettext("over {count} token", "over all {count} tokens", tokens.length), value: drawnValues.median[item], working: { symbols: _("median of ‖x‖₂ = √Σx²"), numbers, value, inputs: [input] } };
}

/** @type {Inspector} */
async function stageCosine(context, { x: column, y: row }) {
  const { position } = context, [rowStage, columnStage] = [row, column].map((index) => stageOf(context, index)), working = calculateCosine(await readValue(context, rowStage.tap, position), await readValue(context, columnStage.tap, position));
  return { name: _("cosine of the stream at {one} and at {other}", { one: rowStage.stage, other: columnStage.stage }), location: formatTokenAt(context, position), value: (await residual.panels.similarity(context)).cosines[row][column], working };
}

/** @type {Inspector} */
async function updateCosine(context, { item }) {
  const { position } = context, block = `blocks.${item >> 1}`, taps = item % 2 ? [`${block}.ffn.out`, `${block}.resid_mid`] : [`${block}.attn.out`, `${block}.resid_pre`], working = calculateCosine(await readValue(context, taps[0], position), await readValue(context, taps[1], position), [_("added"), "x"]);
  return { name: _("cosine of what {stage} adds and the stream", { stage: depthNames(context.config)[item + 1] }), location: formatTokenAt(context, position), value: (await residual.panels.directions(context)).cosines[item], working };
}

/** Derive a norm's divisor of a token's vector, or the mean that it subtracts. @type {Inspector} */
async function divisorOrMean(context, { curve, item: position }) {
  const line = (await divisorLines(context))[curve], { config, layer } = context;
  if (!line) return null;
  const vector = await readValue(context, `blocks.${layer}.${line.before}`, position), { square, divisor } = normNumbers(config, vector.data), location = formatTokenAt(context, position);
  if (line.isMean) return { name: _("mean that {norm} takes off", { norm: line.norm }), location, value: line.means[position], working: calculateMean(_("mean x = Σx / D"), vector.data, [vector.input]) };
  const symbols = config.norm === "layernorm" ? _("√(var x + ε)") : _("√(mean x² + ε)"), numbers = `√(${formatSixDigits(square)} + ${formatSixDigits(config.norm_eps)}) = ${formatSixDigits(divisor)}`;
  return { name: _("what the norm divides by"), location, value: line.divisors[position], working: { symbols, numbers, value: divisor, inputs: [vector.input] } };
}

/** Derive an element before or after a norm. @type {Inspector} */
async function normalisedElement(context, { curve, item }) {
  const panelNorm = (await layerNorms(context))[curve >> 1];
  return panelNorm ? deriveElement(context, `blocks.${context.layer}.${curve % 2 ? panelNorm.norm : panelNorm.before}`, context.position, item) : null;
}

/** @type {Inspector} */
async function outlierRatio(context, { x: column, y: row }) {
  const { config: { d_model: D }, tokens } = context, { tap, stage } = stageOf(context, row), { dimensions, ratios } = await outlierDimensions(context), dim = dimensions[column], { data, input } = await readValue(context, tap), sizes = range(D).map((own) => sum(tokens.map((_token, index) => Math.abs(data[index * D + own]))) / tokens.length), typical = median(sizes), value = typical ? sizes[dim] / typical : 0;
  const numbers = `${formatSixDigits(sizes[dim])} / ${formatSixDigits(typical)} = ${formatSixDigits(value)}`, location = ngettext("over {count} token", "over all {count} tokens", tokens.length);
  return { name: _("dimension {dimension} at {stage}, in multiples of the median dimension", { dimension: dim, stage }), location, value: ratios[row][dim], working: { symbols: _("mean |value| of the dimension / median of the mean |value| of all"), numbers, value, inputs: [input] } };
}

// The prediction.

/** Apply the final norm, with its divisor of this run, to a vector that was added to the stream. @param {ViewContext} context @param {Float64Array} vector @param {string[]} inputs @param {boolean} [isShifted] whether to add the norm's β */
async function throughFinalNorm(context, vector, inputs, isShifted = false) {
  const { config, position } = context, [stream, gain, beta] = await Promise.all([readValue(context, `blocks.${config.num_layers - 1}.resid_post`, position), readValue(context, "final_norm.weight"), isShifted ? readValue(context, "final_norm.bias") : null]);
  const { divisor } = normNumbers(config, stream.data), { mean } = normNumbers(config, vector);
  return { data: vector.map((x, i) => ((x - mean) / divisor) * gain.data[i] + (beta ? beta.data[i] : 0)), inputs: [...inputs, stream.input, gain.input, ...(beta ? [beta.input] : [])] };
}

/** Derive the contribution of a vector after the final norm to the logit, or to the difference of two. @param {ViewContext} context @param {string} name @param {number} value @param {string} x @param {{ data: Float64Array, inputs: string[] }} final @returns {Promise<Derivation>} */
async function logitContribution(context, name, value, x, final) {
  const { position, tokenId, contrastId, vocabulary } = context, row = await readValue(context, "lm_head.weight", tokenId), contrastRow = contrastId === null ? null : await readValue(context, "lm_head.weight", contrastId);
  const names = { place: formatTokenAt(context, position), token: quoteToken(vocabulary[tokenId]) }, direction = row.data.map((number, i) => number - (contrastRow ? contrastRow.data[i] : 0));
  const symbols = contrastRow ? _("norms({x}) · row of the unembedding less the rival’s; each norm keeps the divisor of this run", { x }) : _("norms({x}) · row of the unembedding; each norm keeps the divisor of this run", { x });
  const location = contrastRow ? _("after {place}, to the logit of {token} less that of {rival}", { ...names, rival: quoteToken(vocabulary[contrastId]) }) : _("after {place}, to the logit of {token}", names);
  return { name, location, value, working: calculateDotProduct(`= ${symbols}`, final.data, direction, [...final.inputs, row.input, ...(contrastRow ? [contrastRow.input] : [])]) };
}

/** Return W_O z of one or more heads. @param {Read} z @param {Read} output @param {number} numRows */
const headOutput = (z, output, numRows) => Float64Array.from({ length: numRows }, (_none, row) => dotProduct(output.data.subarray(row * z.data.length, (row + 1) * z.data.length), z.data));

/** Return each bar's kind and layer. @param {ViewContext} context @returns {[string, number][]} */
const componentKeys = ({ config: { position, bias, norm, num_layers } }) => /** @type {any} */ ([
  ["token", 0], ...(position === "sinusoidal" ? [["position", 0]] : []), ...range(num_layers).flatMap((layer) => ["heads", ...(bias ? ["bias"] : []), "feed_forward"].map((kind) => [kind, layer])), ...(norm === "layernorm" ? [["shift", 0]] : []),
]);

/** Derive a component's bar. @type {Inspector} */
async function component(context, { item }) {
  const { config, position } = context, D = config.d_model, parts = await attribution(context), hasPositions = config.position === "sinusoidal", H = config.num_heads, keys = componentKeys(context);
  if (!keys[item]) return null;
  const [kind, layer] = keys[item], block = `blocks.${layer}`, readMany = (...names) => Promise.all(names.map(([name, ...index]) => readValue(context, name, ...index))), deriveContribution = async (name, value, vector, reads) => logitContribution(context, name, value, "x", await throughFinalNorm(context, vector, reads.map(({ input }) => input), kind === "shift"));
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
async function headContribution(context, { x: head, y: layer }) {
  const { config: { num_heads: H, d_model: D }, position, dHead } = context, { heads } = await attribution(context), [z, output] = await Promise.all([readValue(context, `blocks.${layer}.attn.z`, head, position), readValue(context, `blocks.${layer}.attn.o_proj.weight`, ALL, [head * dHead, (head + 1) * dHead])]);
  return logitContribution(context, _("what layer {layer} head {head} adds", { layer, head }), heads[layer * H + head], "W_O z", await throughFinalNorm(context, headOutput(z, output, D), [z.input, output.input]));
}

/** Derive a token's contribution through all heads, or the rest of the logit. @type {Inspector} */
async function source(context, { x: key, curve }) {
  const { config: { num_layers: L, num_heads: H, d_model: D }, position, dHead } = context, { values, rest } = await sourceTotals(context), added = new Float64Array(D), isChanged = changedHeads(context);
  if (curve) return withoutSource(context, rest);
  if (key > position) return null;
  for (let layer = 0; layer < L; layer++) {
    const block = `blocks.${layer}.attn`, [weights, v, output] = await Promise.all([readValue(context, `${block}.pattern`, ALL, position, key), readValue(context, `${block}.v`, ALL, key), readValue(context, `${block}.o_proj.weight`)]);
    const z = v.data.map((x, i) => (isChanged(layer, Math.floor(i / dHead)) ? 0 : x * weights.data[Math.floor(i / dHead)]));
    headOutput({ data: z, input: "" }, output, D).forEach((x, i) => { added[i] += x; });
  }
  const inputs = [formatInput("blocks.*.attn.pattern", [ALL, position, key], [L, H]), formatInput("blocks.*.attn.v", [ALL, key], [L, H, dHead]), formatInput("blocks.*.attn.o_proj.weight", [], [L, D, D])];
  return logitContribution(context, _("what all heads take from {token}", { token: formatTokenAt(context, key) }), values[key], "Σ W_O (weight · v)", { data: (await throughFinalNorm(context, added, [])).data, inputs });
}

/** Return a function that returns whether interventions change a head at the selected token. @param {ViewContext} context @returns {(layer: number, head: number) => boolean} */
function changedHeads({ edits, config, position: queryPosition }) {
  const changes = parseInterventions(edits, config);
  return (layer, head) => changes.some(({ tap, index, position }) => tap === `blocks.${layer}.attn.z` && (index ?? head) === head && (position ?? queryPosition) === queryPosition);
}

/** Derive the part of the logit that attention does not take from a token, as a sum. @param {ViewContext} context @param {number} drawnValue @returns {Promise<Derivation>} */
async function withoutSource(context, drawnValue) {
  const { config: { num_layers: L, num_heads: H } } = context, keys = componentKeys(context), isChanged = changedHeads(context), items = range(keys.length).filter((i) => keys[i][0] !== "heads");
  const parts = await Promise.all(items.map((item) => component(context, { x: 0, y: 0, item })));
  for (let layer = 0; layer < L; layer++) for (let head = 0; head < H; head++) if (isChanged(layer, head)) parts.push(await headContribution(context, { x: head, y: layer }));
  const derivations = /** @type {Derivation[]} */ (parts), [first, ...others] = derivations.map(({ working }) => working.value), value = sum([first, ...others]);
  const numbers = `${[formatSixDigits(first), ...others.map(formatFactor)].join(" + ")} = ${formatSixDigits(value)}`;
  return { name: _("what comes from no earlier token"), location: derivations[0].location, value: drawnValue, working: { symbols: _("the token’s own embedding + all feed-forwards + constants"), numbers, value, inputs: [...new Set(derivations.flatMap(({ working }) => working.inputs))] } };
}

/** Derive probability or rank of the text's next token. @type {Inspector} */
async function actualToken(context, { curve, item: position }) {
  const { ids, measures: tokenMeasures } = context, tokenId = ids[position + 1];
  if (curve) return tokenMeasure(context, position + 1, "rank");
  const { data, input } = await readValue(context, "logits", position), location = _("of {token} after {before}", { token: formatTokenId(context, tokenId), before: formatTokenAt(context, position) });
  return { name: _("probability"), location, value: 2 ** -tokenMeasures.surprisal[position + 1], working: measures.probability(data, tokenId, [input]) };
}

/** Derive a cell of the logit lens. @param {ViewContext} context @param {number} depth @param {number} position @param {string} kind of LENSES @param {number} which of the lens's tokens */
async function lensCell(context, depth, position, kind, which = 0) {
  const { config, vocabulary } = context, numbers = await lensNumbers(context), column = position - numbers.page[0], tap = streamTaps(config)[depth];
  if (!tap || !(numbers.top[depth][column])) return null;
  const tokenId = kind === "probability" ? numbers.top[depth][column][0] : numbers.ids[which], isOfToken = kind !== "entropy";
  const value = { probability: () => numbers.topProbabilities[depth][column][0], target: () => numbers.probabilities[which][depth][column], rank: () => numbers.ranks[which][depth][column], entropy: () => numbers.entropy[depth][column] }[kind]();
  const [stream, gain, beta] = await Promise.all([readValue(context, tap, position), readValue(context, "final_norm.weight"), config.norm === "layernorm" ? readValue(context, "final_norm.bias") : null]), { mean, divisor } = normNumbers(config, stream.data);
  const x = stream.data.map((number, i) => ((number - mean) / divisor) * gain.data[i] + (beta ? beta.data[i] : 0)), logits = await context.ask("unembed", { x }), row = await readValue(context, "lm_head.weight", tokenId);
  const inputs = [stream, gain, beta, isOfToken ? row : null].filter(Boolean).map(({ input }) => input), working = measures[kind === "target" ? "probability" : kind](logits, tokenId, [...inputs, formatInput("lm_head.weight", [], [vocabulary.length, config.d_model])]);
  const logit = isOfToken && _("logit = {sum} = {logit}; {rest}", { sum: formatDotProduct(row.data, x), logit: formatSixDigits(logits[tokenId]), rest: working.numbers }), measure = lookUpMessage(CHOICES.lens.options.find(([option]) => option === kind)[1]);
  return {
    name: _("{measure} by the logit lens at {stage}", { measure, stage: depthNames(config)[depth] }), value, location: isOfToken ? _("after {token}, of {of}", { token: formatTokenAt(context, position), of: formatTokenId(context, tokenId) }) : _("after {token}", { token: formatTokenAt(context, position) }),
    working: logit ? { ...working, symbols: _("{symbols}, {logit} = x · row of the unembedding", { symbols: working.symbols, logit: "logit" }), numbers: logit } : working,
  };
}

/** @type {Inspector} */
async function rolloutWeight(context, { x: key }) {
  const { config: { num_layers: L, num_heads: H }, position: query, tokens: { length: T } } = context, inputs = [];
  let row = range(T).map((index) => +(index === query)), previousRow = row, mean = [];
  for (let layer = L - 1; layer >= 0; layer--) {
    const { data, input } = await readValue(context, `blocks.${layer}.attn.pattern`), upperRow = row;
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
    name: _("share of attention rollout"), location: queryAndKey(context, query, key), value: (await context.ask("rollout", { position: query }))[key],
    working: { symbols: _("½ Σ share after layer 0 · mean weight of layer 0’s heads + ½ own share after layer 0"), numbers: `½ ${formatDotProduct(previousRow, column)} + ½ ${formatSixDigits(previousRow[key])} = ${formatSixDigits(value)}`, value, inputs },
  };
}

// Tokens.

/** @type {Inspector} */
async function tableCell(context, { x, y: position }) {
  const measure = { 4: "surprisal", 5: "entropy", 6: "rank" }[EDGES.findLastIndex((edge) => edge <= x)];
  return measure && position ? tokenMeasure(context, position, measure) : null;
}

/** Derive a measure of a token's prediction. @param {ViewContext} context @param {number} position @param {string} measure */
async function tokenMeasure(context, position, measure) {
  const { ids, measures: tokenMeasures } = context;
  const { data, input } = await readValue(context, "logits", position - 1), location = _("of {token}, id {token_id}, after {before}", { token: formatTokenAt(context, position), token_id: ids[position], before: formatTokenAt(context, position - 1) });
  return { name: { surprisal: () => _("surprisal"), entropy: () => _("entropy"), rank: () => _("rank") }[measure](), location, value: tokenMeasures[measure][position], working: measures[measure](data, ids[position], [input]) };
}

/** @type {Inspector} */
async function nearestCosine(context, { item }) {
  const { ids: own, tokens, position } = context, { ids, cosines } = await context.ask("nearest", { tokenId: own[position], count: item + 1 }), working = calculateCosine(await readValue(context, "token_embedding.weight", own[position]), await readValue(context, "token_embedding.weight", ids[item]));
  return { name: _("cosine of two tokens’ vectors"), location: _("{one} and {other}", { one: quoteToken(tokens[position]), other: formatTokenId(context, ids[item]) }), value: cosines[item], working };
}

/** @type {Inspector} */
async function vectorElement(context, { x: dim, curve }) {
  const { config, ids, position } = context, row = Math.floor(curve / 2); // each row has a trace of all bars and one of the selected bar
  if (row) return deriveElement(context, row === 1 ? "position_embed" : "embed", position, dim);
  const { data: [element], input } = await readValue(context, "token_embedding.weight", ids[position], dim), isScaled = config.scale_embeddings, value = element * (isScaled ? Math.sqrt(config.d_model) : 1);
  const symbols = isScaled ? _("row of the token’s id · {factor}, as it was learned", { factor: "√D" }) : _("row of the token’s id, as it was learned");
  return { name: _("token {token_id}’s own vector[{dim}]", { token_id: ids[position], dim }), location: formatTokenAt(context, position), value: (await tokens.panels.vector(context)).bars[0].values[dim], working: { symbols, numbers: `${isScaled ? `${formatFactor(element)} · √${config.d_model} = ` : ""}${formatSixDigits(value)}`, value, inputs: [input] } };
}

/** Id of a figure's element -> function that derives the number at a point, unless that is declared. @type {Record<string, Inspector>} */
const INSPECTORS = {
  "attention-pattern": displayedWeight, "attention-stages": attentionStage, "attention-dimensions": dimension, "attention-lines": lineEnd,
  "positions-clocks": clockHand, "positions-pairs": pairContribution, "positions-distances": scoreAtDistance, "positions-wavelengths": wavelength, "positions-alike": positionCosine, "positions-by_distance": meanCosine, "positions-shares": positionNorm,
  "positions-curves": (context, { curve, item }) => (curve % 2 ? deriveElement(context, "position_embed", item, sampleDimensions(context)[curve >> 1]) : Promise.resolve(null)), // only the dots belong to the run
  "positions-angles": (context, { x, y }) => deriveElement(context, "rope.angles", y, x),
  "feed_forward-strongest": neuronBar, "feed_forward-curve": neuronDot, "feed_forward-promoted": logitEffect, "feed_forward-all_layers": neuronContribution, "feed_forward-layers": shareNearZero,
  "residual-lengths": streamNorm, "residual-norms": normOfLine, "residual-directions": updateCosine, "residual-similarity": stageCosine, "residual-scales": divisorOrMean, "residual-normalised": normalisedElement, "residual-outliers": outlierRatio,
  "prediction-lens": (context, { x, y }) => lensCell(context, y, x, context.state.lens), "prediction-path": (context, { curve, item }) => (curve < (context.contrastId === null ? 1 : 2) ? lensCell(context, item, context.position, "target", curve) : Promise.resolve(null)),
  "prediction-rollout": rolloutWeight, "prediction-parts": component, "prediction-heads": headContribution, "prediction-by_source": source, "prediction-actual": actualToken,
  "tokens-table": tableCell, "tokens-nearest": nearestCosine, "tokens-vector": vectorElement,
};
