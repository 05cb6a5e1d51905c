// @ts-check
// Views that the page without a server draws besides the whole model, packed as in explorer/web/browser_api/page_contents.py:
// their figures, dropdowns, code, controls and verifications.
import { _, formatMessage, lookUpMessage } from "../static/text.js";
import { drawFigure, range, sum, escapeToken, quoteToken, quoteTokenInText, formatNumber, joinNames } from "./figures.js";
import { CHOICES, CODE, FIGURES, VIEWS, TOLERANCE } from "./page_data.js";
import attention from "./views/attention.js";
import feed_forward, { neuronContributions } from "./views/feed_forward.js";
import positions from "./views/positions.js";
import prediction, { attribution } from "./views/prediction.js";
import residual from "./views/residual.js";
import tokens from "./views/tokens.js";
import { logitLabel, contrastOptions, nextTokenOptions, wholeModelNumbers } from "./whole_model.js";
import { readValue, modelFormulas, modelName } from "./derivations.js";
import { compareValues } from "./analysis.js";

/** Input of a view's figures: the run, the selection in it, and functions that call the worker.
 * @typedef {{ config: any, vocabulary: string[], tokens: string[], ids: number[], state: any, position: number, key: number, layer: number, head: number, neuron: number, chosenHeads: number[][],
 *   model: import("./actions.js").Model, earlier: number, before: number, prediction: import("./actions.js").Prediction, unchanged: Float32Array, predict: (position: number, logits: Float32Array) => import("./actions.js").Prediction,
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
    ...Object.fromEntries(allPanels.filter((panel) => !panels.includes(panel)).flatMap((panel) => ["", "-mark"].map((suffix) => [`${name}-${panel.name}${suffix}`, null]))),
    ...Object.fromEntries(folded.map((id) => [id, { folded: true }])),
    ...Object.fromEntries(panels.map((panel) => [`${name}-${panel.name}-heading`, folded.includes(`${name}-${panel.name}`) ? lookUpMessage(panel.title) : formatHeading(panel, context)])),
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
  return formatMessage(lookUpMessage(heading || title), { layer, head, neuron, query: quoteTokenInText(tokens, position), key: quoteTokenInText(tokens, key), target: quoteToken(vocabulary[tokenId]), logit: logitLabel(vocabulary, context) });
}

/** Return the dropdowns of a view (selection.py). @param {string} view @param {ViewContext} context @param {string[]} [names] only these */
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
  attention: ({ layer, head }) => [_("Switch head {head} of layer {layer} off (ablate to 0)", { head, layer }), _("Scale head {head} of layer {layer} by", { head, layer }), `blocks.${layer}.attn.z.${head}`],
  feed_forward: ({ layer, neuron }) => [_("Switch neuron {neuron} of layer {layer} off (ablate to 0)", { neuron, layer }), _("Scale neuron {neuron} of layer {layer} by", { neuron, layer }), `blocks.${layer}.ffn.hidden.${neuron}`],
};

/** Return the controls of a view (InterventionControls.pack). @param {string} view @param {ViewContext} context */
function packInterventionControls(view, context) {
  if (!CONTROLS_BY_VIEW[view]) return [];
  const [offTitle, scaleTitle, tap] = CONTROLS_BY_VIEW[view](context), tapHere = `${tap}@${context.position}`, sharedFields = { group: view === "attention" ? _("heads") : _("neurons"), scopes: [], log: false, minimum: 0, maximum: 2, step: 0.05 };
  const editTexts = (kind) => ({ edit: `${tap}*${kind}`, everywhere: [`${tap}*${kind}`, `${tap}*${kind}`], here: [`${tapHere}*${kind}`, `${tapHere}*${kind}`] }), isOff = (index) => +context.edits.includes(`${index}*zero`);
  return [
    { title: offTitle, ...editTexts("zero"), ...sharedFields, switch: true, ablates: false, default: 0, amount: isOff(tap), amountHere: isOff(tapHere) },
    { title: scaleTitle, ...editTexts("scale"), ...sharedFields, switch: false, ablates: true, default: 1, amount: factorIn(context.edits, tap), amountHere: factorIn(context.edits, tapHere) },
  ];
}

/** Return the factor of a head or neuron in a run. @param {string[]} edits @param {string} index */
function factorIn(edits, index) {
  if (edits.includes(`${index}*zero`)) return 0;
  const text = edits.find((edit) => edit.startsWith(`${index}*scale*`));
  return text ? +text.split("*")[2] : 1;
}

// Verifications below figures (explorer/views/verification.py). The worker recomputes each captured value that a figure shows from its own
// inputs (analysis.js), and totals of an analysis are compared with captured values.

/** @typedef {import("./analysis.js").Check} Check */
/** Subject of a verification: captured values, or the values from which an analysis derives its numbers, and a message that names the comparison. @typedef {{ kind: "captured" | "derived" | "learned", names: string[], against?: string }} Declared */

const MAX_NAMED = 2; // failed checks that a message names

/** Yield the verifications of figures. @param {string} view @param {Pick<import("./page_data.js").Panel, "name" | "verify">[]} panels @param {ViewContext} context */
export async function* packMarks(view, panels, context) {
  for (const { name, verify } of panels) {
    const declared = verify ? { ...verify, names: verify.names[modelName(context)] } : SPECIAL_DECLARATIONS[`${view}-${name}`]?.(context);
    yield { [`${view}-${name}-mark`]: declared ? await verifyPanel(context, declared) : null };
  }
}

/** @param {Check[]} checks */
const largestError = (checks) => formatNumber(checks.reduce((max, { error }) => (error <= max ? max : error), 0));

/** @param {ViewContext} context @param {Declared} declared */
async function verifyPanel(context, { kind, names: templates, against }) {
  if (kind === "learned") return { state: "unchecked", words: _("weights as learned"), details: joinNames(templates.map((name) => name.replace("{layer}", String(context.layer)))) };
  const { config } = context, formulas = modelFormulas(context), hasFormula = (name) => name.replace(/^blocks\.[*\d]+\./, "blocks.{layer}.") in formulas || name in formulas;
  const names = templates.map((name) => name.replace("{layer}", String(context.layer))).filter((name) => hasFormula(name) || name.endsWith(".weight"));
  const expanded = [...new Set(names.filter(hasFormula).flatMap((name) => (name.includes("*") ? range(config.num_layers).map((layer) => name.replace("*", String(layer))) : [name])))];
  /** @type {Map<string, Check & { inputs?: string[] }>} */
  const checks = new Map();
  for (const name of expanded) checks.set(name, await context.ask("checkValue", { name, formulas, tolerance: TOLERANCE }));
  const values = joinNames(names), checkList = [...checks.values()];
  if (kind === "captured") {
    const inputs = joinNames(checkList.flatMap(({ inputs: inputNames }) => inputNames ?? []).map((name) => name.replace(/^blocks\.\d+\./, "")));
    return fromChecks(checks, _("recomputed, largest error {error}", { error: largestError(checkList) }), _("{values} from {inputs}", { values, inputs: inputs || _("the positions alone") }));
  }
  const texts = checkList.length ? [_("inputs recomputed, largest error {error}", { error: largestError(checkList) })] : [], source = _("worked out from {values}", { values });
  if (against) {
    const comparisonName = lookUpMessage(against), check = await COMPARISONS[against](context);
    checks.set(comparisonName, check);
    texts.unshift(_("{compared}, off by {error}", { compared: comparisonName, error: formatNumber(check.error) }));
  }
  return fromChecks(checks, texts.join("; ") || source, source);
}

/** @param {Map<string, Check>} checks @param {string} words message if all passed @param {string} details */
function fromChecks(checks, words, details) {
  const failed = [...checks].filter(([, { times }]) => !(times <= 1)).sort(([, a], [, b]) => (Number.isNaN(b.times) ? Infinity : b.times) - (Number.isNaN(a.times) ? Infinity : a.times));
  if (!failed.length) return { state: checks.size ? "recomputed" : "unchecked", words, details };
  const texts = failed.slice(0, MAX_NAMED).map(([name, { error, times }]) => (Number.isFinite(error) ? _("{name} is off by {error}, {times} times what {dtype} rounding can explain", { name, error: formatNumber(error), times: formatNumber(times), dtype: "float32" })
    : _("{name} holds or gives something that is not a number (NaN or infinite)", { name })));
  if (failed.length > MAX_NAMED) texts.push(_("{count} more", { count: failed.length - MAX_NAMED }));
  return { state: "off", words: _("Wrong numbers: {which}", { which: texts.join("; ") }), details };
}

// Totals of analyses, compared with captured values.

/** Return the sizes of the terms of logits after the query: ‖final norm‖ ‖row‖ of each. @param {ViewContext} context @param {number[]} ids */
async function logitSizes(context, ids) {
  const norm = async (name, index) => Math.hypot(...(await readValue(context, name, index)).data), finalNorm = await norm("final_norm", context.position);
  return Promise.all(ids.map(async (id) => finalNorm * (await norm("lm_head.weight", id))));
}

/** Return the sum of all components' contributions, and the size of its terms. @param {ViewContext} context */
async function sumComponents(context) {
  const components = await attribution(context), { token, positions, heads, biases, feed_forward, shift } = components, contributions = [token, positions, ...heads, ...biases, ...feed_forward, shift];
  const logitTermSizes = await logitSizes(context, [context.tokenId, context.contrastId].filter((id) => id !== null));
  return { ...components, total: sum(contributions), own: sum(contributions.map(Math.abs)), size: sum(contributions.map(Math.abs)) + sum(logitTermSizes) };
}

/** @param {ViewContext} context @returns {Promise<Check>} */
async function checkComponentSum(context) {
  const { total, logit, size } = await sumComponents(context);
  return compareValues([total], [logit], [size], TOLERANCE);
}

/** Message that names a comparison -> its check. @type {Record<string, (context: ViewContext) => Promise<Check>>} */
const COMPARISONS = {
  "the sum of all parts against the captured logit": checkComponentSum,
  async "the sum of the neurons against what each feed-forward adds"(context) {
    const { added, biases, sizes } = await neuronContributions(context), { feed_forward } = await attribution(context), F = context.config.d_ff;
    return compareValues(feed_forward, Array.from(biases, (bias, layer) => sum(added.subarray(layer * F, (layer + 1) * F)) + bias), Array.from(sizes, (size, layer) => size + Math.abs(feed_forward[layer])), TOLERANCE);
  },
  async "the sum of all curves and other parts against the captured logit"(context) {
    const { total, logit, size, own, heads } = await sumComponents(context), { sources } = await wholeModelNumbers(context), T = context.tokens.length;
    const effects = (i) => sources.effects.subarray(i * T, (i + 1) * T), headCheck = compareValues(Array.from(heads, (_none, i) => sum(effects(i)) + sources.changed[i]), heads, Array.from(heads, (head, i) => sum(effects(i).map(Math.abs)) + Math.abs(head) + own), TOLERANCE);
    const curveTotal = total - sum(heads) + sum(sources.effects) + sum(sources.changed), totalCheck = compareValues([curveTotal], [logit], [size], TOLERANCE);
    return { error: Math.max(totalCheck.error, headCheck.error), times: Math.max(totalCheck.times, headCheck.times) };
  },
  async "the sum of the pairs against the captured score"(context) {
    const { layer, head, position: query, key, dHead } = context, block = `blocks.${layer}.attn`, [q, k, qRotated, kRotated, score, queryAngles, keyAngles] = await Promise.all([
      readValue(context, `${block}.q`, head, query), readValue(context, `${block}.k`, head, key), readValue(context, `${block}.q_rot`, head, query), readValue(context, `${block}.k_rot`, head, key), readValue(context, `${block}.scores`, head, query, key), readValue(context, "rope.angles", query), readValue(context, "rope.angles", key),
    ]);
    const terms = range(dHead / 2).map((pair) => {
      const [a, b, c, d] = [q.data[2 * pair], q.data[2 * pair + 1], k.data[2 * pair], k.data[2 * pair + 1]], angle = queryAngles.data[pair] - keyAngles.data[pair];
      return (a * c + b * d) * Math.cos(angle) - (b * c - a * d) * Math.sin(angle);
    });
    return compareValues(score.data, [sum(terms) / Math.sqrt(dHead)], [(Math.hypot(...qRotated.data) * Math.hypot(...kRotated.data)) / Math.sqrt(dHead)], TOLERANCE);
  },
  async "at the last depth against the captured logits"(context) {
    const { logits, read: recomputed, sizes } = await context.ask("lastDepth", { position: context.position });
    return compareValues(logits, recomputed, sizes, TOLERANCE);
  },
};

/** Id of a figure's element -> subject of its verification, if that depends on the run or the selection. @type {Record<string, (context: ViewContext) => Declared>} */
const SPECIAL_DECLARATIONS = {
  "overview-whole"({ config, state }) {
    const suffix = config.position === "rope" ? "_rot" : "", cell = state.open === "cell" ? [`q${suffix}`, `k${suffix}`, "q", "k", "scores"].map((name) => `blocks.{layer}.attn.${name}`) : [];
    const parts = ["attn.z", "attn.out", "ffn.out", "resid_mid", "resid_post", "attn_norm", "ffn_norm"].map((name) => `blocks.*.${name}`), names = ["embed", "position_embed", ...parts, "blocks.0.resid_pre", "blocks.*.attn.pattern", "blocks.*.attn.v", "final_norm", "logits", ...cell];
    return { kind: "derived", names, against: "the sum of all curves and other parts against the captured logit" };
  },
  "attention-pattern"({ state: { pattern } }) {
    if (pattern === "weight") return { kind: "captured", names: ["blocks.{layer}.attn.pattern"] };
    return { kind: "derived", names: pattern.startsWith("chosen") ? ["blocks.*.attn.pattern"] : ["blocks.{layer}.attn.pattern", ...(pattern === "moved" ? ["blocks.{layer}.attn.v"] : [])] };
  },
  "feed_forward-promoted": ({ config }) => ({ kind: "derived", names: ["blocks.{layer}.ffn.down_proj.weight", "lm_head.weight", "blocks.{layer}.ffn.hidden", "blocks.{layer}.ffn_norm", `blocks.${config.num_layers - 1}.resid_post`] }),
  "residual-gains": () => ({ kind: "learned", names: ["blocks.{layer}.attn_norm.weight", "blocks.{layer}.ffn_norm.weight"] }),
};
