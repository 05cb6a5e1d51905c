// @ts-check
// The feed-forward view, as in explorer/views/feed_forward/__init__.py.
import { _ } from "../../static/text.js";
import { activeInterventions } from "../derivations.js";
import { FEED_FORWARD, RESIDUAL, SELECTED, horizontalLine, argmax, columnBand, tokenLabel, largest, positionLabels, range, rowsOf, smallest, tokenAxis, bracketNegative, describeIntervention, formatContribution, formatNumber, formatSixDigits, quoteToken } from "../figures.js";
import { logitLabel } from "../whole_model.js";

/** @typedef {import("../views.js").ViewContext} ViewContext */

export const NEAR_ZERO_RATIO = 0.1;
const MAX_NEURON_BARS = 20, NORMAL_SHARE = 0.07965567455405796, MAX_TOKENS_PER_SIDE = 10, MAX_DOTS = 600, PALE_COLOUR = "rgba(176, 82, 192, 0.45)", PALE_GREY = "rgba(136, 136, 136, 0.45)";

const isGated = ({ ffn }) => ffn === "swiglu";
const activationName = (config) => (isGated(config) ? "SiLU" : "ReLU");
const activate = (config, x) => (isGated(config) ? x / (1 + Math.exp(-x)) : Math.max(x, 0));

/** Return all neurons of the selected layer at the selected token, each (F,) (LayerNeurons). @param {ViewContext} context */
const layerNeurons = (context) => context.once("neurons", async () => {
  const { config, value, ask, layer, position } = context, readRow = async (name) => rowsOf((await value(`blocks.${layer}.ffn.${name}`)).data, config.d_ff)[position];
  const up = await readRow("up"), hidden = await readRow("hidden"), norms = await ask("neuronNorms", { layer, position });
  return isGated(config) ? { before: await readRow("gate_pre"), after: await readRow("gate"), up, hidden, norms } : { before: up, after: hidden, up: null, hidden, norms };
});

/** Return the neuron's projections and activation, in numbers. @param {ViewContext} context */
async function formula(context) {
  const { config, tokens, layer, neuron, position } = context, { gate, up, hidden: captured } = await context.ask("neuron", { layer, neuron, position }), name = activationName(config);
  const before = isGated(config) ? gate : up, after = activate(config, before), hidden = isGated(config) ? after * up : after;
  const projectionSymbols = (matrix) => `W_${matrix}[${neuron}]·x${config.bias ? ` + b_${matrix}[${neuron}]` : ""}`;
  const values = { name, into_gate: projectionSymbols("gate"), into_up: projectionSymbols("up"), before: formatSixDigits(before), after: formatSixDigits(after), up: formatSixDigits(isGated(config) ? up : 0), up_factor: bracketNegative(formatSixDigits(isGated(config) ? up : 0)), hidden: formatSixDigits(hidden) };
  const head = _("layer {layer} neuron {neuron} at {token} ({position}), which reads x = {value} ({width} numbers)", { layer, neuron, token: quoteToken(tokens[position]), position, value: `blocks.${layer}.ffn_norm`, width: config.d_model });
  const working = isGated(config) ? _("gate   = {name}({into_gate}) = {name}({before}) = {after}\nup     = {into_up} = {up}\nhidden = gate · up = {after} · {up_factor} = {hidden}", values)
    : _("before = {into_up} = {before}\nhidden = {name}(before) = {name}({before}) = {hidden}", values);
  const changes = activeInterventions(context, `blocks.${layer}.ffn.hidden`, [position, neuron]), changed = changes.reduce((value, { factor }) => value * factor, hidden), error = formatNumber(Math.abs(changed - captured));
  const recomputed = changes.length ? _("with the run’s changes ({changes}): {value}, off by {error}", { changes: changes.map(({ text }) => describeIntervention(text)).join("; "), value: formatSixDigits(captured), error }) : _("recomputed from x and the weights, off by {error}", { error });
  return `${head}\n${working}   ${recomputed}`;
}

/** Describe which neuron writes most, and the selected one (feed_forward_sentence). @param {ViewContext} context */
async function sentence(context) {
  const { config, tokens, layer, neuron, position } = context, { norms } = await layerNeurons(context), most = argmax(norms);
  const values = { layer, neuron, query: quoteToken(tokens[position]), count: config.d_ff, norm: formatNumber(norms[neuron]), most, largest: formatNumber(norms[most]) };
  let description = norms[neuron] === norms[most] ? _("Layer {layer}: neuron {neuron} of {count} writes most at {query}: length {norm}.", values)
    : _("Layer {layer}: neuron {neuron} writes a vector of length {norm} at {query}; neuron {most} writes most ({largest}).", values);
  if (norms[most] === 0) description = _("Layer {layer}: no neuron writes anything at {query}.", values);
  return `${description} ${_("Choose a neuron.")}`;
}

/** @param {ViewContext} context */
async function strongest(context) {
  const { config, tokens, layer, neuron, position, edits } = context, { after, before, up, hidden, norms } = await layerNeurons(context), activation = activationName(config);
  const qualifyFormula = (/** @type {string} */ formula) => (edits.some((edit) => edit.startsWith(`blocks.${layer}.ffn.hidden`)) ? _("{formula}, unless changed", { formula }) : formula);
  const neurons = range(config.d_ff).sort((a, b) => norms[b] - norms[a] || a - b).slice(0, MAX_NEURON_BARS), offsets = range(neurons.length);
  if (!neurons.includes(neuron)) {
    neurons.push(neuron);
    offsets.push(offsets.length + 1); // after a gap
  }
  const steps = up ? [[_("gate, after {activation}", { activation }), after, PALE_COLOUR], ["up", up, PALE_GREY], [qualifyFormula(_("hidden = gate × up")), hidden, FEED_FORWARD]]
    : [[_("before {activation}", { activation }), before, PALE_GREY], [qualifyFormula(_("hidden = {activation}(before)", { activation })), hidden, FEED_FORWARD]];
  return {
    offsets, neurons, names: neurons.map(String), lengths: neurons.map((id) => formatNumber(norms[id])), layer, count: config.d_ff, token: quoteToken(tokens[position]), most: neurons[0], value: formatNumber(hidden[neurons[0]]),
    chosen: neuron, chosen_value: formatNumber(hidden[neuron]), frame: columnBand(offsets[neurons.indexOf(neuron)], 2), meta: { labelled_axis: "x" },
    steps: steps.map(([step, values, color]) => ({
      step, color, values: neurons.map((id) => values[id]),
      hover: values === hidden ? _("{step}: %{{y:.4g}}<br>writes a vector of length %{{text}}<extra></extra>", { step: /** @type {string} */ (step) }) : `${step}: %{y:.4g}<extra></extra>`,
    })),
  };
}

/** @param {ViewContext} context */
async function curve(context) {
  const { config, tokens, neuron, position } = context, { before, after, norms, up } = await layerNeurons(context), activation = activationName(config), domain = [Math.min(-2, smallest(before)), Math.max(2, largest(before))];
  const line = range(241).map((i) => domain[0] + ((domain[1] - domain[0]) * i) / 240), most = Math.max(largest(norms), 1e-12), size = (id) => 4 + 12 * Math.sqrt(norms[id] / most);
  const others = otherDrawnNeurons(before, norms, neuron), dots = (ids, name, color, sizes, opacity) => ({
    before: ids.map((id) => before[id]), after: ids.map((id) => after[id]), neurons: ids, marker: { color, size: sizes, opacity, line: { width: 0 } }, name, is_chosen: color === SELECTED,
  });
  const hides = others.length + 1 < config.d_ff ? [_("where dots lie together, the largest is drawn")] : [];
  return {
    line, curve: line.map((x) => activate(config, x)), dots: [dots(others, _("the others"), FEED_FORWARD, others.map(size), 0.5), dots([neuron], _("neuron {neuron}", { neuron }), SELECTED, 13, 1)],
    title: [_("into {activation}: {weights}(x)<br>(larger dots write more)", { activation, weights: up ? "gate_proj" : "up_proj" }), ...hides].join("<br>"), count: config.d_ff, token: quoteToken(tokens[position]), activation,
    above: before.filter((x) => x > 0).length / config.d_ff, neuron, neuron_before: formatNumber(before[neuron]), neuron_after: formatNumber(after[neuron]),
  };
}

/** Return all neurons but the chosen one. Of more than MAX_DOTS, return only the one that writes most in each of as many equal intervals.
 * @param {Float32Array} before @param {Float64Array} norms @param {number} chosen */
function otherDrawnNeurons(before, norms, chosen) {
  const others = range(before.length).filter((id) => id !== chosen);
  if (others.length <= MAX_DOTS) return others;
  const values = others.map((id) => before[id]), minBefore = smallest(values), width = Math.max(largest(values) - minBefore, 1e-12), bestByBin = new Map();
  for (const id of others) {
    const bin = Math.min(MAX_DOTS - 1, Math.floor(((before[id] - minBefore) / width) * MAX_DOTS));
    if (!bestByBin.has(bin) || norms[id] >= norms[bestByBin.get(bin)]) bestByBin.set(bin, id);
  }
  return [...bestByBin.values()].sort((a, b) => a - b);
}

/** Return the tokens whose logits the neuron raises and lowers most in this run, its effect on every logit per unit of the hidden value, and the hidden value (promoted_tokens).
 * @param {ViewContext} context @returns {Promise<{ ids: number[], unitEffects: Float32Array, hidden: number }>} */
export async function affectedTokens({ ask, vocabulary: { length: V }, layer, neuron, position }) {
  const unitEffects = await ask("neuronEffects", { layer, neuron, position }), { hidden } = await ask("neuron", { layer, neuron, position }), sign = hidden < 0 ? -1 : 1;
  const order = range(V).sort((a, b) => sign * (unitEffects[b] - unitEffects[a]) || a - b), count = Math.min(MAX_TOKENS_PER_SIDE, V >> 1);
  return { ids: [...order.slice(0, count), ...order.slice(-count)], unitEffects, hidden };
}

/** @param {ViewContext} context */
async function promoted(context) {
  const { vocabulary, layer, neuron } = context, { ids, unitEffects, hidden } = await affectedTokens(context), count = ids.length / 2;
  const names = ids.map((id) => vocabulary[id]), effects = ids.map((id) => hidden * unitEffects[id]), span = 1.25 * Math.max(...effects.map(Math.abs)) || 1; // leaves room for the written numbers
  return {
    effects, rows: range(ids.length), hover: ids.map((id, i) => _("{token}<br>{value} for each 1 of the hidden value", { token: tokenLabel(names[i]), value: formatContribution(unitEffects[id]) })), labels: names.map((name) => tokenLabel(name)),
    written: effects.map((effect) => formatContribution(effect)), range: [ids.length - 0.4, -0.6], span: [-span, span], neuron, layer,
    raised: names.slice(0, 3).map(quoteToken).join(", "), lowered: names.slice(-3).reverse().map(quoteToken).join(", "), value: formatNumber(hidden),
    divider: horizontalLine(count - 0.5, { color: RESIDUAL, width: 1, dash: "dot" }),
  };
}

/** Return what every neuron of all layers adds to the logit (analysis/feed_forward.py). @param {ViewContext} context */
export const neuronContributions = ({ once, ask, position, tokenId, contrastId }) => once("neuron contributions", () => ask("neuronContributions", { position, tokenId, contrastId }));

/** Return the indices (layer · F + neuron) of the neurons that add or take most. @param {ArrayLike<number>} added */
export const topNeurons = (added) => range(added.length).sort((a, b) => Math.abs(added[b]) - Math.abs(added[a]) || a - b).slice(0, MAX_NEURON_BARS);

/** Draw the neurons of all layers that add most (views/feed_forward/neuron_contributions.py). @param {ViewContext} context */
async function allLayers(context) {
  const { config: { d_ff: F }, tokens: all, vocabulary, position, layer, neuron } = context, { added, hidden } = await neuronContributions(context), top = topNeurons(added);
  const neurons = top.map((index) => [Math.floor(index / F), index % F]), values = top.map((index) => added[index]), names = neurons.map(([own, id]) => `L${own}<br>n${id}`), chosen = names.indexOf(`L${layer}<br>n${neuron}`);
  return {
    offsets: range(top.length), names, values, neurons, hover: neurons.map(([own, id], i) => _("layer {layer} neuron {neuron}<br>hidden {value}", { layer: own, neuron: id, value: formatNumber(hidden[top[i]]) })),
    count: added.length, logit: logitLabel(vocabulary, context), label: logitLabel(vocabulary, context, tokenLabel), token: quoteToken(all[position]), most: names[0].replace("<br>", " "), added: formatContribution(values[0]), shown: top.length,
    sum_shown: formatContribution(values.reduce((a, b) => a + b, 0)), total: formatContribution(added.reduce((a, b) => a + b, 0)), frames: chosen < 0 ? [] : [columnBand(chosen, 2)],
  };
}

/** @param {ViewContext} context */
async function tokens(context) {
  const { config, value, layer, neuron, position } = context, all = context.tokens, values = rowsOf((await value(`blocks.${layer}.ffn.hidden`)).data, config.d_ff).map((row) => row[neuron]), most = argmax(values, Math.abs);
  return {
    labels: positionLabels(all), values, colours: all.map((_token, i) => (i === position ? SELECTED : FEED_FORWARD)), layer, neuron, num_tokens: all.length, value: formatNumber(values[most]), token: quoteToken(all[most]),
    tokens: tokenAxis(all, { maxLabels: 32 }), frame: columnBand(position), notes: values.some(Boolean) ? [] : [{ xref: "paper", x: 0.5, showarrow: false, text: _("0 at every token: dead in this run"), yref: "paper", y: 0.75 }],
  };
}

/** @param {ViewContext} context */
async function layers(context) {
  const { config, tokens: all, layer, ask } = context, { nearZero, inactive } = await ask("sparsity", { ratio: isGated(config) ? NEAR_ZERO_RATIO : 0 }), isExact = !isGated(config), percents = (shares) => shares.map((share) => `${(100 * share).toFixed(0)}%`).join(", ");
  const values = { values: percents(nearZero), tokens: all.length, neurons: percents(inactive) };
  return {
    layers: range(config.num_layers), bars: [
      { shares: nearZero, name: isExact ? _("hidden values exactly 0") : _("hidden values near 0 (within {near:g} × RMS)", { near: NEAR_ZERO_RATIO }), color: FEED_FORWARD },
      { shares: inactive, name: isExact ? _("neurons exactly 0 at every token (dead here)") : _("neurons near 0 at every token"), color: RESIDUAL },
    ],
    alt: isExact ? _("By layer, hidden values exactly 0: {values}; neurons exactly 0 at all {tokens} tokens: {neurons}.", values) : _("By layer, hidden values near 0: {values}; neurons near 0 at all {tokens} tokens: {neurons}.", values),
    title: isExact ? _("share") : _("share<br>(dotted: a bell curve’s, {bell:.0%})", { bell: NORMAL_SHARE }),
    shapes: [...(isExact ? [] : [horizontalLine(NORMAL_SHARE, { color: RESIDUAL, dash: "dot", width: 1 })]), columnBand(layer, 2)],
  };
}

export default { formula, sentence, panels: { strongest, curve, promoted, all_layers: allLayers, tokens, layers } };
