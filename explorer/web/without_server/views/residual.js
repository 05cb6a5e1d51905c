// @ts-check
// The view of the residual stream, as explorer/views/residual/ draws it.
import { _ } from "../../static/translations.js";
import { ATTENTION, FEED_FORWARD, argmax, columnBand, cosine, label, largest, length, median, positionLabels, range, rowsOf, smallest, stageAxis, sublayerAxis, tokenAxis } from "../figures.js";
import { formatNumber, formatSixDigits, quoteToken } from "../notation.js";
import { depthNames } from "./prediction.js";

/** @typedef {import("../views.js").About} About */

const MAX_RELATIVE_NORM = 2;

/** The norms and sums of the chosen token's stream, in numbers. @param {About} about */
async function formula(about) {
  const { config, tokens, layer, position } = about, layernorm = config.norm === "layernorm", epsilon = config.norm_eps.toExponential().replace(/e-(\d)$/, "e−0$1");
  const lines = [_("layer {layer}, {token} ({position}); {norm}", { layer, token: quoteToken(tokens[position]), position, norm: layernorm ? _("LayerNorm(x) = (x − mean x) / σ · γ + β") : "RMSNorm(x) = x / RMS · g" })];
  for (const [name, before] of [["attn_norm", "resid_pre"], ["ffn_norm", "resid_mid"]]) {
    const { divisor, mean, error } = await about.ask("normScale", { name: `blocks.${layer}.${before}`, norm: `blocks.${layer}.${name}`, position });
    const values = { mean: formatSixDigits(mean), square: formatSixDigits(divisor ** 2 - config.norm_eps), epsilon, scale: formatSixDigits(divisor) };
    const divided = layernorm ? _("mean x = {mean}, σ = √(var x + ε) = √({square} + {epsilon}) = {scale}", values) : _("RMS = √(mean x² + ε) = √({square} + {epsilon}) = {scale}", values);
    lines.push(_("{norm} of x = {value}: {divided}   recomputed, off by {error}", { norm: name, value: before, divided, error: formatNumber(error) }));
  }
  const { error } = await sublayerUpdates(about);
  lines.push(_("stream + what is added: {sums} sums at this token, off by {error}", { sums: 2 * config.num_layers, error: formatNumber(error) }));
  return lines.join("\n");
}

/** The stream at every stage: the embedding, then after each sum, (S, T, D). @param {About} about @returns {Promise<Float32Array[][]>} */
const stream = (about) => about.once("stream", () => {
  const { config, value } = about, taps = ["blocks.0.resid_pre", ...range(config.num_layers).flatMap((layer) => [`blocks.${layer}.resid_mid`, `blocks.${layer}.resid_post`])];
  return Promise.all(taps.map(async (tap) => rowsOf((await value(tap)).data, config.d_model)));
});

/** What each sublayer adds to the chosen token's stream, (2 L, D). @param {About} about @returns {Promise<Float32Array[]>} */
const updates = ({ config, value, position }) => Promise.all(range(config.num_layers).flatMap((layer) => [`blocks.${layer}.attn.out`, `blocks.${layer}.ffn.out`]).map(async (tap) => rowsOf((await value(tap)).data, config.d_model)[position]));

/** @param {About} about */
async function sublayerUpdates(about) {
  const stages = await stream(about), added = await updates(about), before = stages.slice(0, -1).map((stage) => stage[about.position]);
  const error = largest(added.map((update, i) => largest(Array.from(update, (x, dim) => Math.abs(x + before[i][dim] - stages[i + 1][about.position][dim])))));
  return { added, before, error, cosines: added.map((update, i) => cosine(update, before[i])) };
}

const sublayerNames = (config) => depthNames(config).slice(1);
/** The layer that a click on each cell selects. @param {About["config"]} config @param {number} columns */
const clickLayers = (config, columns) => [0, ...range(config.num_layers).flatMap((layer) => [layer, layer])].map((layer) => Array(columns).fill(layer));
/** Of the bars of sublayers. @param {About["config"]} config */
const colours = ({ num_layers }) => range(num_layers).flatMap(() => [ATTENTION, FEED_FORWARD]);

/** @param {About} about */
async function lengths(about) {
  const { config, tokens, position } = about, values = (await stream(about)).map((stage) => stage.map(length)), stages = depthNames(config);
  const end = MAX_RELATIVE_NORM * largest(values.map(median)), most = largest(values.map(largest));
  return {
    labels: positionLabels(tokens), stages, lengths: values, colour_end: Math.min(end, most) || 1, layers: clickLayers(config, tokens.length), measure: most > end ? _("length ‖x‖₂ (longer ones alike)") : _("length ‖x‖₂"),
    num_tokens: tokens.length, num_stages: stages.length, least: formatNumber(smallest(values.map(smallest))), most: formatNumber(most), token: quoteToken(tokens[argmax(values.at(-1))]),
    tokens: tokenAxis(tokens), depths: stageAxis(stages), frames: [columnBand(position, 2)],
  };
}

/** @param {About} about */
async function norms(about) {
  const { config, tokens, position } = about, values = (await stream(about)).map((stage) => stage.map(length)), stages = depthNames(config), own = values.map((stage) => stage[position]);
  return {
    indices: range(stages.length), stages, median: values.map(median), stream: own, name: label(tokens[position]), bars: range(1, stages.length), bar_width: 0.7, updates: (await updates(about)).map(length), sublayers: sublayerNames(config),
    colours: colours(config), token: quoteToken(tokens[position]), first: formatNumber(own[0]), last: formatNumber(own.at(-1)), axis: sublayerAxis(stages), measure: _("length ‖x‖₂"),
  };
}

/** @param {About} about */
async function directions(about) {
  const { config, tokens, position } = about, { added, before, cosines } = await sublayerUpdates(about), names = sublayerNames(config), most = argmax(cosines, Math.abs);
  return {
    bars: range(names.length), cosines, layers: range(names.length).map((i) => i >> 1), colours: colours(config), token: quoteToken(tokens[position]), name: names[most], cosine: formatNumber(cosines[most]), axis: sublayerAxis(names),
    hover: names.map((name, i) => _("{name}: length {length} onto a stream of {before}", { name, length: formatNumber(length(added[i])), before: formatNumber(length(before[i])) })),
  };
}

/** @param {About} about */
async function similarity(about) {
  const { config, tokens, position } = about, own = (await stream(about)).map((stage) => stage[position]), stages = depthNames(config), cosines = own.map((a) => own.map((b) => cosine(a, b)));
  return { stages, cosines, layers: clickLayers(config, stages.length), num_stages: stages.length, token: quoteToken(tokens[position]), cosine: formatNumber(cosines[0].at(-1)), axis: stageAxis(stages, 26) };
}

export default { formula, panels: { lengths, norms, directions, similarity } };
