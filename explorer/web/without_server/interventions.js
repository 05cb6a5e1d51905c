// @ts-check
// The controls that ablate heads and neurons, and interventions in words, as explorer/views/intervention_controls.py and explorer/interventions/ have them.
import { _ } from "../static/translations.js";

/** @typedef {import("./views.js").About} About */

/** View -> what is switched off or scaled there, a head or a neuron. @type {Record<string, (about: About) => [string, string, string]>} both titles, and the place */
const SCALED = {
  attention: ({ layer, head }) => [_("Switch head {head} of layer {layer} off (ablate it)", { head, layer }), _("Strength of head {head} of layer {layer}", { head, layer }), `blocks.${layer}.attn.z.${head}`],
  feed_forward: ({ layer, neuron }) => [_("Switch neuron {neuron} of layer {layer} off (ablate it)", { neuron, layer }), _("Strength of neuron {neuron} of layer {layer}", { neuron, layer }), `blocks.${layer}.ffn.hidden.${neuron}`],
};

/** The sliders of a view (InterventionControls.pack). @param {string} view @param {About} about */
export function packInterventionControls(view, about) {
  if (!SCALED[view]) return [];
  const [off, scaled, tap] = SCALED[view](about), here = `${tap}@${about.position}`, shared = { scopes: [], log: false, minimum: 0, maximum: 2, step: 0.05 };
  const texts = (kind) => ({ edit: `${tap}*${kind}`, everywhere: [`${tap}*${kind}`, `${tap}*${kind}`], here: [`${here}*${kind}`, `${here}*${kind}`] }), isOff = (place) => +about.edits.includes(`${place}*zero`);
  return [
    { title: off, ...texts("zero"), ...shared, switch: true, ablates: false, default: 0, amount: isOff(tap), amountHere: isOff(here) },
    { title: scaled, ...texts("scale"), ...shared, switch: false, ablates: true, default: 1, amount: amountIn(about.edits, tap), amountHere: amountIn(about.edits, here) },
  ];
}

/** The factor of a place in a run. @param {string[]} edits @param {string} place */
function amountIn(edits, place) {
  if (edits.includes(`${place}*zero`)) return 0;
  const text = edits.find((edit) => edit.startsWith(`${place}*scale*`));
  return text ? +text.split("*")[2] : 1;
}

/** An intervention in words. @param {string} text */
export function describe(text) {
  const [, layer, kind, index, position, factor] = /^blocks\.(\d+)\.(attn\.z|ffn\.hidden)[.[]?(\d*)\]?(?:@(\d+))?\*(?:zero|scale\*(.*))$/.exec(text) ?? [];
  const values = { layer, index, factor: (factor ?? "").replace("-", "−") }, isScaled = +(factor ?? 0) !== 0;
  const one = { "attn.z": () => (isScaled ? _("head {layer}.{index} × {factor}", values) : _("head {layer}.{index}: off", values)), "ffn.hidden": () => (isScaled ? _("neuron {layer}.{index} × {factor}", values) : _("neuron {layer}.{index}: off", values)) };
  const all = { "attn.z": () => (isScaled ? _("all heads of layer {layer} × {factor}", values) : _("all heads of layer {layer}: off", values)), "ffn.hidden": () => (isScaled ? _("all neurons of layer {layer} × {factor}", values) : _("all neurons of layer {layer}: off", values)) };
  const change = (index ? one : all)[kind]();
  return position ? _("{change}, {where}", { change, where: _("at position {position}", { position }) }) : change;
}
