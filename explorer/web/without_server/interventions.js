// @ts-check
// Controls that ablate heads and neurons, and descriptions of interventions, as explorer/views/intervention_controls.py and explorer/interventions/.
import { _ } from "../static/translations.js";

/** @typedef {import("./views.js").ViewContext} ViewContext */

/** View -> titles of its switch and its slider, and the tap of its head or neuron. @type {Record<string, (context: ViewContext) => [string, string, string]>} */
const CONTROLS_BY_VIEW = {
  attention: ({ layer, head }) => [_("Switch head {head} of layer {layer} off (ablate it)", { head, layer }), _("Strength of head {head} of layer {layer}", { head, layer }), `blocks.${layer}.attn.z.${head}`],
  feed_forward: ({ layer, neuron }) => [_("Switch neuron {neuron} of layer {layer} off (ablate it)", { neuron, layer }), _("Strength of neuron {neuron} of layer {layer}", { neuron, layer }), `blocks.${layer}.ffn.hidden.${neuron}`],
};

/** Return the controls of a view (InterventionControls.pack). @param {string} view @param {ViewContext} context */
export function packInterventionControls(view, context) {
  if (!CONTROLS_BY_VIEW[view]) return [];
  const [offTitle, scaleTitle, tap] = CONTROLS_BY_VIEW[view](context), tapHere = `${tap}@${context.position}`, sharedFields = { group: view === "attention" ? _("heads") : _("neurons"), scopes: [], log: false, minimum: 0, maximum: 2, step: 0.05 };
  const editTexts = (kind) => ({ edit: `${tap}*${kind}`, everywhere: [`${tap}*${kind}`, `${tap}*${kind}`], here: [`${tapHere}*${kind}`, `${tapHere}*${kind}`] }), isOff = (index) => +context.edits.includes(`${index}*zero`);
  return [
    { title: offTitle, ...editTexts("zero"), ...sharedFields, switch: true, ablates: false, default: 0, amount: isOff(tap), amountHere: isOff(tapHere) },
    { title: scaleTitle, ...editTexts("scale"), ...sharedFields, switch: false, ablates: true, default: 1, amount: strengthIn(context.edits, tap), amountHere: strengthIn(context.edits, tapHere) },
  ];
}

/** Return the factor of a head or neuron in a run. @param {string[]} edits @param {string} index */
function strengthIn(edits, index) {
  if (edits.includes(`${index}*zero`)) return 0;
  const text = edits.find((edit) => edit.startsWith(`${index}*scale*`));
  return text ? +text.split("*")[2] : 1;
}

/** Describe an intervention in words. @param {string} text */
export function describeIntervention(text) {
  const [, layer, kind, index, position, factor] = /^blocks\.(\d+)\.(attn\.z|ffn\.hidden)[.[]?(\d*)\]?(?:@(\d+))?\*(?:zero|scale\*(.*))$/.exec(text) ?? [];
  const values = { layer, index, factor: (factor ?? "").replace("-", "−") }, isScaled = +(factor ?? 0) !== 0;
  const describeOne = { "attn.z": () => (isScaled ? _("head {layer}.{index} × {factor}", values) : _("head {layer}.{index}: off", values)), "ffn.hidden": () => (isScaled ? _("neuron {layer}.{index} × {factor}", values) : _("neuron {layer}.{index}: off", values)) };
  const describeAll = { "attn.z": () => (isScaled ? _("all heads of layer {layer} × {factor}", values) : _("all heads of layer {layer}: off", values)), "ffn.hidden": () => (isScaled ? _("all neurons of layer {layer} × {factor}", values) : _("all neurons of layer {layer}: off", values)) };
  const change = (index ? describeOne : describeAll)[kind]();
  return position ? _("{change}, {where}", { change, where: _("at position {position}", { position }) }) : change;
}
