// @ts-check
// The marks below figures, as explorer/views/verification.py makes them: the captured values that a figure shows, each worked out again
// from its own inputs in the worker (recompute.js), and what an analysis adds up to against what was captured.
import { _, lookUpMessage } from "../static/translations.js";
import { range, sum } from "./figures.js";
import { formatNumber, joinNames } from "./notation.js";
import { TOLERANCE } from "./page_data.js";
import { MARK } from "../static/shared_constants.js";
import { read } from "./derivations/calculations.js";
import { formulasOf } from "./derivations/captured.js";
import { compare } from "./recompute.js";
import { attribution } from "./views/prediction.js";
import { wholeModelNumbers } from "./whole_model.js";

/** @typedef {import("./views.js").About} About @typedef {import("./recompute.js").Check} Check */
/** What a mark is about: captured values, or those that an analysis derives its numbers from, and what that is compared with, a message. @typedef {{ kind: "captured" | "derived" | "learned", names: string[], against?: string }} Declared */

const MAX_NAMED = 2; // checks that failed

/** The marks of figures, one after another. @param {string} view @param {{ name: string, verify?: Declared }[]} panels @param {About} about */
export async function* packMarks(view, panels, about) {
  for (const { name, verify } of panels) {
    const declared = verify ?? SPECIAL[`${view}-${name}`]?.(about);
    yield { [`${view}-${name}${MARK}`]: declared ? await verifyPanel(about, declared) : null };
  }
}

/** @param {Check[]} checks */
const largestError = (checks) => formatNumber(checks.reduce((most, { error }) => (error <= most ? most : error), 0));

/** @param {About} about @param {Declared} declared */
async function verifyPanel(about, { kind, names: templates, against }) {
  if (kind === "learned") return { state: "unchecked", words: _("weights as learned"), details: joinNames(templates.map((name) => name.replace("{layer}", String(about.layer)))) };
  const { config } = about, formulas = formulasOf(about), known = (name) => name.replace(/^blocks\.[*\d]+\./, "blocks.{layer}.") in formulas || name in formulas;
  const names = templates.map((name) => name.replace("{layer}", String(about.layer))).filter((name) => known(name) || name.endsWith(".weight"));
  const expanded = [...new Set(names.filter(known).flatMap((name) => (name.includes("*") ? range(config.num_layers).map((layer) => name.replace("*", String(layer))) : [name])))];
  /** @type {Map<string, Check & { inputs?: string[] }>} */
  const checks = new Map();
  for (const name of expanded) checks.set(name, await about.ask("checkValue", { name, formulas, tolerance: TOLERANCE }));
  const values = joinNames(names), all = [...checks.values()];
  if (kind === "captured") {
    const inputs = joinNames(all.flatMap(({ inputs: own }) => own ?? []).map((name) => name.replace(/^blocks\.\d+\./, "")));
    return fromChecks(checks, _("recomputed, largest error {error}", { error: largestError(all) }), _("{values} from {inputs}", { values, inputs: inputs || _("the positions alone") }));
  }
  const texts = all.length ? [_("inputs recomputed, largest error {error}", { error: largestError(all) })] : [], source = _("worked out from {values}", { values });
  if (against) {
    const compared = lookUpMessage(against), check = await AGAINST[against](about);
    checks.set(compared, check);
    texts.unshift(_("{compared}, off by {error}", { compared, error: formatNumber(check.error) }));
  }
  return fromChecks(checks, texts.join("; ") || source, source);
}

/** @param {Map<string, Check>} checks @param {string} words if all passed @param {string} details */
function fromChecks(checks, words, details) {
  const failed = [...checks].filter(([, { times }]) => !(times <= 1)).sort(([, a], [, b]) => (Number.isNaN(b.times) ? Infinity : b.times) - (Number.isNaN(a.times) ? Infinity : a.times));
  if (!failed.length) return { state: checks.size ? "recomputed" : "unchecked", words, details };
  const texts = failed.slice(0, MAX_NAMED).map(([name, { error, times }]) => (Number.isFinite(error) ? _("{name} is off by {error}, {times} times what {dtype} rounding can explain", { name, error: formatNumber(error), times: formatNumber(times), dtype: "float32" })
    : _("{name} holds or gives something that is not a number (NaN or infinite)", { name })));
  if (failed.length > MAX_NAMED) texts.push(_("{count} more", { count: failed.length - MAX_NAMED }));
  return { state: "off", words: _("Wrong numbers: {which}", { which: texts.join("; ") }), details };
}

// What analyses give against what was captured.

/** The sizes of the terms of logits after the query: ‖final norm‖ ‖row‖ of each. @param {About} about @param {number[]} ids */
async function logitSizes(about, ids) {
  const norm = async (name, index) => Math.hypot(...(await read(about, name, index)).data), final = await norm("final_norm", about.position);
  return Promise.all(ids.map(async (id) => final * (await norm("lm_head.weight", id))));
}

/** What all parts add, and the sizes of what they are. @param {About} about */
async function sumOfParts(about) {
  const parts = await attribution(about), { token, positions, heads, biases, feed_forward, shift } = parts, all = [token, positions, ...heads, ...biases, ...feed_forward, shift];
  const sizes = await logitSizes(about, [about.tokenId, about.contrastId].filter((id) => id !== null));
  return { ...parts, total: sum(all), own: sum(all.map(Math.abs)), size: sum(all.map(Math.abs)) + sum(sizes) };
}

/** @param {About} about @returns {Promise<Check>} */
async function checkParts(about) {
  const { total, logit, size } = await sumOfParts(about);
  return compare([total], [logit], [size], TOLERANCE);
}

/** A message that names what is compared -> how far it is off. @type {Record<string, (about: About) => Promise<Check>>} */
const AGAINST = {
  "the sum of all parts against the captured logit": checkParts,
  async "the sum of all curves and other parts against the captured logit"(about) {
    const { total, logit, size, own, heads } = await sumOfParts(about), { sources } = await wholeModelNumbers(about), T = about.tokens.length;
    const effects = (i) => sources.effects.subarray(i * T, (i + 1) * T), split = compare(Array.from(heads, (_none, i) => sum(effects(i)) + sources.changed[i]), heads, Array.from(heads, (head, i) => sum(effects(i).map(Math.abs)) + Math.abs(head) + own), TOLERANCE);
    const curves = total - sum(heads) + sum(sources.effects) + sum(sources.changed), whole = compare([curves], [logit], [size], TOLERANCE);
    return { error: Math.max(whole.error, split.error), times: Math.max(whole.times, split.times) };
  },
  async "the sum of the pairs against the captured score"(about) {
    const { layer, head, position: query, key, dHead } = about, block = `blocks.${layer}.attn`, [q, k, qRotated, kRotated, score, own, other] = await Promise.all([
      read(about, `${block}.q`, head, query), read(about, `${block}.k`, head, key), read(about, `${block}.q_rot`, head, query), read(about, `${block}.k_rot`, head, key), read(about, `${block}.scores`, head, query, key), read(about, "rope.angles", query), read(about, "rope.angles", key),
    ]);
    const terms = range(dHead / 2).map((pair) => {
      const [a, b, c, d] = [q.data[2 * pair], q.data[2 * pair + 1], k.data[2 * pair], k.data[2 * pair + 1]], angle = own.data[pair] - other.data[pair];
      return (a * c + b * d) * Math.cos(angle) - (b * c - a * d) * Math.sin(angle);
    });
    return compare(score.data, [sum(terms) / Math.sqrt(dHead)], [(Math.hypot(...qRotated.data) * Math.hypot(...kRotated.data)) / Math.sqrt(dHead)], TOLERANCE);
  },
  async "at the last depth against the captured logits"(about) {
    const { logits, read: again, sizes } = await about.ask("lastDepth", { position: about.position });
    return compare(logits, again, sizes, TOLERANCE);
  },
};

/** Id of a figure's element -> what its mark is about, where the run or the selection decides that. @type {Record<string, (about: About) => Declared>} */
const SPECIAL = {
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

/** @param {About} about @returns {Declared} */
function activations({ config }) { return { kind: "captured", names: [...(config.ffn === "swiglu" ? ["gate_pre", "gate"] : []), "up", "hidden"].map((name) => `blocks.{layer}.ffn.${name}`) }; }
/** @returns {Declared} */
function stages() { return { kind: "derived", names: ["blocks.0.resid_pre", "blocks.*.resid_mid", "blocks.*.resid_post"] }; }
/** @returns {Declared} */
function norms() { return { kind: "captured", names: ["resid_pre", "resid_mid", "attn_norm", "ffn_norm"].map((name) => `blocks.{layer}.${name}`) }; }
/** @returns {Declared} */
function updates() { return { kind: "derived", names: [...stages().names, "blocks.*.attn.out", "blocks.*.ffn.out"] }; }
/** @returns {Declared} */
function lens() { return { kind: "derived", names: [...stages().names, "logits"], against: "at the last depth against the captured logits" }; }
