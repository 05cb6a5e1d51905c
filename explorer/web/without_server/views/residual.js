// @ts-check
// The residual stream view, as in explorer/views/residual/.
import { _ } from "../../static/text.js";
import { ATTENTION, FEED_FORWARD, NORM, RESIDUAL, argmax, columnBand, columnLine, cosine, tokenLabel, largest, vectorNorm, median, positionLabels, range, rowsOf, smallest, stageAxis, sublayerAxis, sum, tokenAxis, formatNumber, formatSixDigits, joinNames, quoteToken } from "../figures.js";
import { readValue, normNumbers } from "../derivations.js";
import { depthNames } from "./prediction.js";

/** @typedef {import("../views.js").ViewContext} ViewContext */

const MAX_RELATIVE_NORM = 2, MAX_OUTLIERS = 16, GAP = 0.08, DASHES = ["solid", "dot"];

/** Return the norms and sums of the selected token's stream, in numbers. @param {ViewContext} context */
async function formula(context) {
  const { config, tokens, layer, position } = context, layernorm = config.norm === "layernorm", epsilon = config.norm_eps.toExponential().replace(/e-(\d)$/, "e−0$1");
  const lines = [_("layer {layer}, {token} ({position}); {norm}", { layer, token: quoteToken(tokens[position]), position, norm: layernorm ? _("LayerNorm(x) = (x − mean x) / σ · γ + β") : "RMSNorm(x) = x / RMS · g" })];
  for (const [name, before] of [["attn_norm", "resid_pre"], ["ffn_norm", "resid_mid"]]) {
    const { divisor, mean, error } = await context.ask("normScale", { name: `blocks.${layer}.${before}`, norm: `blocks.${layer}.${name}`, position });
    const values = { mean: formatSixDigits(mean), square: formatSixDigits(divisor ** 2 - config.norm_eps), epsilon, scale: formatSixDigits(divisor) };
    const divided = layernorm ? _("mean x = {mean}, σ = √(var x + ε) = √({square} + {epsilon}) = {scale}", values) : _("RMS = √(mean x² + ε) = √({square} + {epsilon}) = {scale}", values);
    lines.push(_("{norm} of x = {value}: {divided}   recomputed, off by {error}", { norm: name, value: before, divided, error: formatNumber(error) }));
  }
  const { error } = await sublayerUpdates(context);
  lines.push(_("stream + what is added: {sums} sums at this token, off by {error}", { sums: 2 * config.num_layers, error: formatNumber(error) }));
  return lines.join("\n");
}

/** Describe the stream's first and last norm, and the largest update (residual_sentence). @param {ViewContext} context */
async function sentence(context) {
  const stages = await residualStream(context), { position, tokens } = context, norms = (await updates(context)).map(vectorNorm), maxUpdate = argmax(norms);
  const values = { token: quoteToken(tokens[position]), first: formatNumber(vectorNorm(stages[0][position])), last: formatNumber(vectorNorm(stages.at(-1)[position])), layer: maxUpdate >> 1, added: formatNumber(norms[maxUpdate]) };
  const description = maxUpdate % 2 ? _("The stream of {token} goes from length {first} to {last}; the feed-forward of layer {layer} adds most ({added}).", values)
    : _("The stream of {token} goes from length {first} to {last}; the attention of layer {layer} adds most ({added}).", values);
  return `${description} ${_("Choose a token or layer.")}`;
}

/** Return the taps of the stream: the embedding, then after each sublayer. @param {ViewContext["config"]} config */
export const streamTaps = ({ num_layers }) => ["blocks.0.resid_pre", ...range(num_layers).flatMap((layer) => [`blocks.${layer}.resid_mid`, `blocks.${layer}.resid_post`])];
/** Return the stream at every stage, (S, T, D). @param {ViewContext} context @returns {Promise<Float32Array[][]>} */
export const residualStream = (context) => context.once("stream", () => Promise.all(streamTaps(context.config).map(async (tap) => rowsOf((await context.value(tap)).data, context.config.d_model))));

/** Return each sublayer's update of the selected token's stream, (2 L, D). @param {ViewContext} context @returns {Promise<Float32Array[]>} */
export const updates = ({ config, value, position }) => Promise.all(range(config.num_layers).flatMap((layer) => [`blocks.${layer}.attn.out`, `blocks.${layer}.ffn.out`]).map(async (tap) => rowsOf((await value(tap)).data, config.d_model)[position]));

/** @param {ViewContext} context */
async function sublayerUpdates(context) {
  const stages = await residualStream(context), added = await updates(context), before = stages.slice(0, -1).map((stage) => stage[context.position]);
  const error = largest(added.map((update, i) => largest(Array.from(update, (x, dim) => Math.abs(x + before[i][dim] - stages[i + 1][context.position][dim])))));
  return { added, before, error, cosines: added.map((update, i) => cosine(update, before[i])) };
}

const sublayerNames = (config) => depthNames(config).slice(1);
/** Return the layer that a click on each cell selects. @param {ViewContext["config"]} config @param {number} columns */
const clickLayers = (config, columns) => [0, ...range(config.num_layers).flatMap((layer) => [layer, layer])].map((layer) => Array(columns).fill(layer));
/** Return the colours of the sublayers' bars. @param {ViewContext["config"]} config */
const colours = ({ num_layers }) => range(num_layers).flatMap(() => [ATTENTION, FEED_FORWARD]);

/** @param {ViewContext} context */
async function lengths(context) {
  const { config, tokens, position } = context, values = (await residualStream(context)).map((stage) => stage.map(vectorNorm)), stages = depthNames(config);
  const colourLimit = MAX_RELATIVE_NORM * largest(values.map(median)), most = largest(values.map(largest));
  return {
    labels: positionLabels(tokens), stages, lengths: values, colour_end: Math.min(colourLimit, most) || 1, layers: clickLayers(config, tokens.length), measure: most > colourLimit ? _("length ‖x‖₂ (longer ones alike)") : _("length ‖x‖₂"),
    num_tokens: tokens.length, num_stages: stages.length, least: formatNumber(smallest(values.map(smallest))), most: formatNumber(most), token: quoteToken(tokens[argmax(values.at(-1))]),
    tokens: tokenAxis(tokens), depths: stageAxis(stages), frames: [columnBand(position, 2)],
  };
}

/** @param {ViewContext} context */
async function norms(context) {
  const { config, tokens, position } = context, values = (await residualStream(context)).map((stage) => stage.map(vectorNorm)), stages = depthNames(config), streamNorms = values.map((stage) => stage[position]);
  return {
    indices: range(stages.length), stages, median: values.map(median), stream: streamNorms, name: tokenLabel(tokens[position]), bars: range(1, stages.length), bar_width: 0.7, updates: (await updates(context)).map(vectorNorm), sublayers: sublayerNames(config),
    colours: colours(config), token: quoteToken(tokens[position]), first: formatNumber(streamNorms[0]), last: formatNumber(streamNorms.at(-1)), axis: sublayerAxis(stages), measure: _("length ‖x‖₂"),
  };
}

/** @param {ViewContext} context */
async function directions(context) {
  const { config, tokens, position } = context, { added, before, cosines } = await sublayerUpdates(context), names = sublayerNames(config), most = argmax(cosines, Math.abs);
  return {
    bars: range(names.length), cosines, layers: range(names.length).map((i) => i >> 1), colours: colours(config), token: quoteToken(tokens[position]), name: names[most], cosine: formatNumber(cosines[most]), axis: sublayerAxis(names),
    hover: names.map((name, i) => _("{name}: length {length} onto a stream of {before}", { name, length: formatNumber(vectorNorm(added[i])), before: formatNumber(vectorNorm(before[i])) })),
  };
}

/** @param {ViewContext} context */
async function similarity(context) {
  const { config, tokens, position } = context, selectedStream = (await residualStream(context)).map((stage) => stage[position]), stages = depthNames(config), cosines = selectedStream.map((a) => selectedStream.map((b) => cosine(a, b)));
  return { stages, cosines, layers: clickLayers(config, stages.length), num_stages: stages.length, token: quoteToken(tokens[position]), cosine: formatNumber(cosines[0].at(-1)), axis: stageAxis(stages, 26) };
}

/** Return the selected layer's norms: their inputs, and mean and divisor at each token. @param {ViewContext} context */
export const layerNorms = (context) => context.once("norms", () => Promise.all([["attn_norm", "resid_pre"], ["ffn_norm", "resid_mid"]].map(async ([norm, before]) => {
  const { config, layer, value } = context, rows = rowsOf((await value(`blocks.${layer}.${before}`)).data, config.d_model), numbers = rows.map((row) => normNumbers(config, Float64Array.from(row)));
  return { norm, before, rows, means: numbers.map(({ mean }) => mean), divisors: numbers.map(({ divisor }) => divisor) };
})));

/** Return the lines of the norms' divisors and, for LayerNorm, of the means that they subtract. @param {ViewContext} context */
export const divisorLines = async (context) => (await layerNorms(context)).flatMap((own, i) => (context.config.norm === "layernorm" ? [false, true] : [false]).map((isMean) => ({ ...own, isMean, dash: DASHES[i] })));

/** @param {ViewContext} context */
async function scales(context) {
  const { config, tokens, position, layer } = context, isCentred = config.norm === "layernorm", labels = positionLabels(tokens), token = quoteToken(tokens[position]);
  const divisors = joinNames((await layerNorms(context)).map(({ norm, divisors: all }) => _("{divisor} for {norm}", { divisor: formatNumber(all[position]), norm })));
  const lines = (await divisorLines(context)).map(({ norm, means, divisors: all, isMean, dash }) => {
    const name = isMean ? _("{norm}: mean", { norm }) : `${norm}: ${isCentred ? "√(var + ε)" : "RMS"}`;
    return { values: isMean ? means : all, name, line: { color: isMean ? RESIDUAL : NORM, dash }, hover: _("token %{{hovertext}}<br>{name} %{{y:.4g}}<extra></extra>", { name }) };
  });
  return {
    labels, lines, mode: tokens.length <= 48 ? "lines+markers" : "lines", tokens: tokenAxis(tokens, { maxLabels: 32 }), chosen: columnLine(position), title: isCentred ? _("divided by (grey: the mean,<br>taken off before)") : _("divided by"),
    alt: isCentred ? _("The standard deviation that layer {layer}’s norms divide tokens by: at {token} {divisors}.", { layer, token, divisors }) : _("The root mean square that layer {layer}’s norms divide tokens by: at {token} {divisors}.", { layer, token, divisors }),
  };
}

/** @param {ViewContext} context */
async function gains(context) {
  const { config, layer } = context, names = ["attn_norm", "ffn_norm"], weights = await Promise.all(names.map(async (norm) => (await readValue(context, `blocks.${layer}.${norm}.weight`)).data));
  const orders = weights.map((values) => range(values.length).sort((a, b) => values[b] - values[a] || a - b));
  return {
    lines: names.map((norm, i) => ({ gains: orders[i].map((dim) => weights[i][dim]), dimensions: orders[i], name: norm, line: { color: NORM, dash: DASHES[i] }, hover: _("{norm}, dimension %{{customdata}}<br>gain %{{y:.4g}}<extra></extra>", { norm }) })),
    layer, dimensions: config.d_model, ranges: names.map((norm, i) => _("{norm} from {least} to {most}", { norm, least: formatNumber(smallest(weights[i])), most: formatNumber(largest(weights[i])) })).join(", "),
  };
}

/** @param {ViewContext} context */
async function normalised(context) {
  const { config, tokens, position, layer, value } = context, norms = await layerNorms(context), after = await Promise.all(norms.map(async ({ norm }) => rowsOf((await value(`blocks.${layer}.${norm}`)).data, config.d_model)[position])), axes = ["y", "y2"];
  const bars = norms.flatMap(({ norm, rows }, i) => [
    { numbers: rows[position], name: _("before the norm"), axis: axes[i], marker: { color: RESIDUAL, line: { width: 0 }, opacity: 0.6 }, hover: _("dimension %{{x}}<br>before {norm}: %{{y:.4g}}<extra></extra>", { norm }), is_named: !i },
    { numbers: after[i], name: _("after the norm"), axis: axes[i], marker: { color: NORM, line: { width: 0 }, opacity: 1 }, hover: _("dimension %{{x}}<br>after {norm}: %{{y:.4g}}<extra></extra>", { norm }), is_named: !i },
  ]);
  const changes = norms.map(({ norm, rows }, i) => _("{change} at {norm}", { change: _("{before} to {after}", { before: formatNumber(vectorNorm(rows[position])), after: formatNumber(vectorNorm(after[i])) }), norm })), height = (1 - GAP) / 2;
  return {
    bars, dimensions: range(config.d_model), count: config.d_model, token: quoteToken(tokens[position]), layer, lengths: joinNames(changes), anchor: axes.at(-1),
    axes: { yaxis: { title: { text: `${norms[0].before},<br>${norms[0].norm}` }, domain: [height + GAP, 1] }, yaxis2: { title: { text: `${norms[1].before},<br>${norms[1].norm}` }, domain: [0, height], matches: "y" } },
  };
}

/** Return the dimensions that are largest relative to the median one, and their sizes at each stage (find_outlier_dimensions). @param {ViewContext} context */
export const outlierDimensions = (context) => context.once("outliers", async () => {
  const { config: { d_model: D }, tokens } = context, sizes = (await residualStream(context)).map((stage) => range(D).map((dim) => sum(stage.map((row) => Math.abs(row[dim]))) / tokens.length));
  const ratios = sizes.map((stageRatios) => { const medianSize = median(stageRatios); return stageRatios.map((size) => (medianSize > 0 ? size / medianSize : 0)); }), maxRatios = range(D).map((dim) => largest(ratios.map((stageRatios) => stageRatios[dim])));
  return { sizes, ratios, dimensions: range(D).sort((a, b) => maxRatios[b] - maxRatios[a] || a - b).slice(0, MAX_OUTLIERS) };
});

/** @param {ViewContext} context */
async function outliers(context) {
  const { config } = context, { sizes, ratios, dimensions } = await outlierDimensions(context), stages = depthNames(config), shownRatios = ratios.map((own) => dimensions.map((dim) => own[dim])), strongest = argmax(shownRatios.flat()), stage = Math.floor(strongest / dimensions.length);
  return {
    names: dimensions.map(String), stages, ratios: shownRatios, colour_end: shownRatios.flat()[strongest] || 1, sizes: sizes.map((own) => dimensions.map((dim) => formatNumber(own[dim]))), layers: clickLayers(config, dimensions.length), count: dimensions.length,
    dimension: dimensions[strongest % dimensions.length], times: formatNumber(shownRatios.flat()[strongest]), stage: stages[stage], axis: stageAxis(stages),
  };
}

export default { formula, sentence, panels: { lengths, norms, directions, scales, gains, normalised, similarity, outliers } };
