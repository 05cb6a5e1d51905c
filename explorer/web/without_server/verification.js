// @ts-check
// Verifications below figures, as in explorer/views/verification.py. The worker recomputes each captured value that a figure shows from
// its own inputs (recompute.js), and totals of an analysis are compared with captured values.
import { _, lookUpMessage } from "../static/translations.js";
import { range, sum } from "./figures.js";
import { formatNumber, joinNames } from "./notation.js";
import { TOLERANCE } from "./page_data.js";
import { MARK } from "../static/shared_constants.js";
import { readValue, modelFormulas } from "./derivations.js";
import { compareValues } from "./recompute.js";
import { neuronContributions } from "./views/feed_forward.js";
import { attribution } from "./views/prediction.js";
import { wholeModelNumbers } from "./whole_model.js";

/** @typedef {import("./views.js").ViewContext} ViewContext @typedef {import("./recompute.js").Check} Check */
/** Subject of a verification: captured values, or the values from which an analysis derives its numbers, and a message that names the comparison. @typedef {{ kind: "captured" | "derived" | "learned", names: string[], against?: string }} Declared */

const MAX_NAMED = 2; // failed checks that a message names

/** Yield the verifications of figures. @param {string} view @param {{ name: string, verify?: Declared }[]} panels @param {ViewContext} context */
export async function* packMarks(view, panels, context) {
  for (const { name, verify } of panels) {
    const declared = verify ?? SPECIAL_DECLARATIONS[`${view}-${name}`]?.(context);
    yield { [`${view}-${name}${MARK}`]: declared ? await verifyPanel(context, declared) : null };
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
  "attention-dimensions": ({ config }) => ({ kind: "derived", names: [...["q", "k"].map((vector) => `blocks.{layer}.attn.${vector}${config.position === "rope" ? "_rot" : ""}`), "blocks.{layer}.attn.scores"] }),
  "feed_forward-strongest": activations, "feed_forward-curve": activations,
  "feed_forward-promoted": ({ config }) => ({ kind: "derived", names: ["blocks.{layer}.ffn.down_proj.weight", "lm_head.weight", "blocks.{layer}.ffn.hidden", "blocks.{layer}.ffn_norm", `blocks.${config.num_layers - 1}.resid_post`] }),
  "residual-scales": norms, "residual-normalised": norms, "residual-gains": () => ({ kind: "learned", names: ["blocks.{layer}.attn_norm.weight", "blocks.{layer}.ffn_norm.weight"] }),
  "residual-lengths": stages, "residual-similarity": stages, "residual-outliers": stages, "residual-norms": updates, "residual-directions": updates,
  "prediction-lens": lens, "prediction-path": lens,
};

/** @param {ViewContext} context @returns {Declared} */
function activations({ config }) { return { kind: "captured", names: [...(config.ffn === "swiglu" ? ["gate_pre", "gate"] : []), "up", "hidden"].map((name) => `blocks.{layer}.ffn.${name}`) }; }
/** @returns {Declared} */
function stages() { return { kind: "derived", names: ["blocks.0.resid_pre", "blocks.*.resid_mid", "blocks.*.resid_post"] }; }
/** @returns {Declared} */
function norms() { return { kind: "captured", names: ["resid_pre", "resid_mid", "attn_norm", "ffn_norm"].map((name) => `blocks.{layer}.${name}`) }; }
/** @returns {Declared} */
function updates() { return { kind: "derived", names: [...stages().names, "blocks.*.attn.out", "blocks.*.ffn.out"] }; }
/** @returns {Declared} */
function lens() { return { kind: "derived", names: [...stages().names, "logits"], against: "at the last depth against the captured logits" }; }
