// @ts-check
// Views that the page without a server draws besides the whole model, packed as in explorer/web/browser_api/page_contents.py.
import { _, formatMessage, lookUpMessage } from "../static/translations.js";
import { drawFigure } from "./figures.js";
import { escapeToken, quoteToken } from "./notation.js";
import { CHOICES, CODE, FIGURES, VIEWS } from "./page_data.js";
import attention from "./views/attention.js";
import feed_forward from "./views/feed_forward.js";
import positions from "./views/positions.js";
import prediction from "./views/prediction.js";
import residual from "./views/residual.js";
import tokens from "./views/tokens.js";
import { HEADING, MARK } from "../static/shared_constants.js";
import { packMarks } from "./verification.js";
import { logitLabel, contrastOptions, nextTokenOptions } from "./whole_model.js";

/** Input of a view's figures: the run, the selection in it, and functions that call the worker.
 * @typedef {{ config: any, vocabulary: string[], tokens: string[], ids: number[], state: any, position: number, key: number, layer: number, head: number, neuron: number, chosenHeads: number[][],
 *   model: import("./answers.js").Model, earlier: number, before: number, prediction: import("./next_token.js").Prediction, unchanged: Float32Array, predict: (position: number, logits: Float32Array) => import("./next_token.js").Prediction,
 *   tokenId: number, contrastId: number | null, rank: number, probability: number, measures: Record<string, number[]>, order: number[], now: number[], actual: number | null, dHead: number, edits: string[],
 *   value: (name: string) => Promise<{ data: Float32Array, shape: number[] }>, ask: (name: string, given: any) => Promise<any>, once: <T>(name: string, work: () => T) => T }} ViewContext */

/** View -> its formula, and a function per panel that returns the values of its template, or its content if it has no template. `lacks` returns whether a model has no such panel.
 * @type {Record<string, { formula: (context: ViewContext) => Promise<string>, sentence?: (context: ViewContext) => Promise<string>, panels: Record<string, (context: ViewContext) => any>, lacks?: (config: any, name: string) => boolean }>} */
export const DRAWN_VIEWS = { attention, feed_forward, positions, prediction, residual, tokens };
const MAX_OPTIONS = 100, WINDOW_SIZES = [16, 32, 64, 128];

/** Yield the contents of a view in stages: everything but the figures, then each figure, then the verifications. @param {string} name @param {ViewContext} context */
export async function* packView(name, context) {
  const { description, panels: allPanels } = VIEWS[name], { formula, sentence, panels: panelFunctions, lacks } = DRAWN_VIEWS[name], { state } = context;
  const panels = allPanels.filter((panel) => !lacks?.(context.config, panel.name));
  const [first, second] = panels, numFirst = first.width === "half" && second?.width === "half" ? 2 : 1;
  const isUnfolded = (id) => Boolean(state.lesson) || state.unfolded === "all" || (state.unfolded ?? "").split("~").includes(id);
  const folded = panels.slice(numFirst).map((panel) => `${name}-${panel.name}`).filter((id) => !isUnfolded(id));
  yield {
    [`${name}-words`]: sentence && !["formula", "code"].includes(state.depth) ? await sentence(context) : lookUpMessage(description), [`${name}-formula`]: await formula(context), [`${name}-choosers`]: packDropdowns(name, context), [`${name}-what-ifs`]: packInterventionControls(name, context),
    ...Object.fromEntries(allPanels.filter((panel) => !panels.includes(panel)).flatMap((panel) => ["", MARK].map((suffix) => [`${name}-${panel.name}${suffix}`, null]))),
    ...Object.fromEntries(folded.map((id) => [id, { folded: true }])),
    ...Object.fromEntries(panels.map((panel) => [`${name}-${panel.name}${HEADING}`, folded.includes(`${name}-${panel.name}`) ? lookUpMessage(panel.title) : formatHeading(panel, context)])),
  };
  for (const panel of panels) {
    const id = `${name}-${panel.name}`;
    if (folded.includes(id)) continue;
    const values = await panelFunctions[panel.name](context);
    yield { [id]: values && (id in FIGURES ? drawFigure(id, values) : values) };
  }
  yield* packMarks(name, panels.filter((panel) => !folded.includes(`${name}-${panel.name}`)), context);
}

/** Return this run's sizes and the model's code that computes what a view shows, as source_code.py. @param {string} view @param {Pick<ViewContext, "config" | "tokens" | "state" | "dHead">} context */
export function packCode(view, { config, tokens, state, dHead }) {
  const { d_model: D, num_heads: H, d_ff: F, vocab_size: V } = config, shapeSizes = Object.entries({ B: 1, T: tokens.length, D, H, d: dHead, F, V });
  if (state.depth !== "code") return "";
  const sizes = _("shapes in this run: {sizes}", { sizes: shapeSizes.map(([letter, size]) => `${letter} = ${size}`).join(", ") }), note = _("This is the model in Python. Here, JavaScript computes the same.");
  return `${sizes}\n${note}\n\n${CODE[state.checkpoint.split("/")[0]][view]}`;
}

/** Format the title of a figure, which names the selection (format_heading). @param {import("./page_data.js").Panel} panel @param {ViewContext} context */
export function formatHeading({ title, heading }, context) {
  const { layer, head, neuron, tokens, position, key, vocabulary, tokenId } = context;
  return formatMessage(lookUpMessage(heading || title), { layer, head, neuron, query: quoteToken(tokens[position]), key: quoteToken(tokens[key]), target: quoteToken(vocabulary[tokenId]), logit: logitLabel(vocabulary, context) });
}

/** Return the dropdowns of a view (selection_dropdowns.py). @param {string} view @param {ViewContext} context @param {string[]} [names] only these */
export function packDropdowns(view, context, names) {
  const fields = VIEWS[view].controls.filter((name) => !names || names.includes(name));
  const choices = fields.map((field) => {
    const options = (OPTIONS[field] ?? listedOptions(field))(context), isLong = options.length > MAX_OPTIONS && options.every(([, text], i) => text === String(i));
    return { field, title: lookUpMessage(CHOICES[field].title), ...(isLong ? { most: options.length - 1 } : { options }) };
  });
  return { choices, all: !names };
}

const numberOptions = (size) => Array.from({ length: size }, (_none, i) => [i, String(i)]);
const listedOptions = (field) => () => CHOICES[field].options.map(([value, ...parts]) => [value, parts.map(lookUpMessage).join(": ")]);

/** @type {Record<string, (context: ViewContext) => any[]>} */
const OPTIONS = {
  layer: ({ config }) => numberOptions(config.num_layers),
  head: ({ config }) => numberOptions(config.num_heads),
  neuron: ({ config }) => numberOptions(config.d_ff),
  query: ({ tokens }) => tokens.map((token, i) => [i, `${i}  ${escapeToken(token)}`]),
  key: ({ tokens, position }) => tokens.slice(0, position + 1).map((token, i) => [i, `${i}  ${escapeToken(token)}`]),
  target: (context) => nextTokenOptions(context),
  rival: (context) => contrastOptions(context),
  residual_depth: ({ config }) => [[0, _("0  embedding")], ...numberOptions(config.num_layers).map(([block]) => [+block + 1, _("{depth}  after block {block}", { depth: +block + 1, block })])],
  window: ({ tokens: { length } }) => [[0, _("all {count} tokens", { count: length })], ...WINDOW_SIZES.filter((count) => count < length).map((count) => [count, _("{count} around the chosen", { count })])],
  first_token: () => [["shown", _("counts")], ["hidden", _("left out")]],
};

// Controls that ablate heads and neurons (explorer/views/intervention_controls.py).

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
