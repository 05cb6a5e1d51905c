// @ts-check
// Quantities of a run and conditions on it, as in explorer/lessons/quantities.py. A context is a run with its selection; it also opens
// the other states with which a lesson compares it.
import { openQuery } from "../actions.js";
import { openRun } from "../answers.js";
import { cosine, vectorNorm, rowsOf, sum } from "../figures.js";
import { entropy } from "../next_token.js";
import { escapeToken, formatCount, formatNumber } from "../notation.js";
import { ADDRESS_DEFAULTS } from "../../static/shared_constants.js";
import { headRows } from "../views/attention.js";

/** @typedef {import("../views.js").ViewContext & { replace: (change: Record<string, any>) => Promise<Context> }} Context */
/** Quantity of a run: its name in QUANTITIES, its arguments, and changed fields of the state. @typedef {{ name: string, arguments: Record<string, any>, change: Record<string, any> }} Quantity */
/** Condition, by its name in CONDITIONS. @typedef {{ name: string, arguments: any }} Condition */

const SELECTION_FIELDS = [...Object.keys(ADDRESS_DEFAULTS), "layer", "neuron"], PROMPT_FIELDS = ["prompt", "generated", "query", "key", "dropped", "began"];

/** Open the context of a URL query. @param {Record<string, any>} query @returns {Promise<Context>} */
export const openContext = async (query) => makeContext(await openQuery(query, { view: "overview", depth: "numbers" }), query);

/** @param {Record<string, any>} state @param {Record<string, any>} [query] URL query of the state @returns {Promise<Context>} */
export async function makeContext(state, query = state) {
  const runContext = await openRun(state), contexts = new Map();
  /** Return the context with changed fields, computed once; another text has its last token selected. @param {Record<string, any>} change @returns {Promise<Context>} */
  function replace(change) {
    const key = JSON.stringify(change), isSameRun = Object.keys(change).every((name) => SELECTION_FIELDS.includes(name));
    const keptFields = Object.entries(query).filter(([name]) => !("text" in change && PROMPT_FIELDS.includes(name)));
    if (!contexts.has(key)) contexts.set(key, isSameRun ? makeContext({ ...state, ...change }, { ...query, ...change }) : openContext({ ...Object.fromEntries(keptFields), ...change }));
    return contexts.get(key);
  }
  const context = { ...runContext, replace: (change) => (Object.keys(change).length ? replace(change) : Promise.resolve(context)) };
  return context;
}

/** @param {Context} context @param {{ token?: string, rank?: number }} choice */
const tokenId = ({ now, vocabulary }, { token, rank }) => (rank ? now[rank - 1] : vocabulary.indexOf(token));
/** Return the selected value's vector at the selected token, and head if it has heads. @param {Context} context @returns {Promise<Float32Array>} */
async function vector(context) {
  const { tap } = context.state, { data, shape } = await context.value(tap), [, layer, name] = /^blocks\.(\d+)\.attn\.(.+)$/.exec(tap) ?? [];
  return (shape.length === 3 ? await headRows({ ...context, layer: +layer }, name) : rowsOf(data, shape[1]))[context.position];
}
/** Return a score of every head, (L, H). @param {Context} context @param {string} score @returns {Promise<Float64Array>} */
const headScores = (context, score) => context.once(`${score} scores`, () => context.ask("headScores", { score }));
/** @param {Context} context @param {{ token?: string, rank?: number }} choice */
const attribution = (context, choice) => context.once(`attribution ${JSON.stringify(choice)}`, () => context.ask("attribution", { position: context.position, tokenId: tokenId(context, choice), contrastId: null }));
const PARAMETERS = { all: "", embedding: "^token_embedding", attention: "\\.attn\\.", feed_forward: "\\.ffn\\.", norms: "norm" };
/** Evaluate both operands. @param {Context} context @param {{ a: Quantity, b: Quantity }} args */
const evaluateBoth = async (context, { a, b }) => [await evaluate(context, a), await evaluate(context, b)];

/** @type {Record<string, (context: Context, args: any) => number | Promise<number>>} */
const QUANTITIES = {
  number: (_context, { value }) => value,
  probability: (context, choice) => context.prediction.plain[tokenId(context, choice)],
  chance: (context, choice) => context.prediction.sampled[tokenId(context, choice)],
  entropy: ({ prediction }) => Math.max(0, entropy(prediction.plain)),
  candidates: ({ prediction }) => prediction.sampled.filter((p) => p > 0).length,
  weight: async (context) => (await headRows(context, "pattern"))[context.position][context.key],
  head_score: async (context, { score }) => (await headScores(context, score))[context.layer * context.config.num_heads + context.head],
  heads_above: async (context, { score, least }) => (await headScores(context, score)).filter((value) => value >= least).length,
  norm: async (context) => vectorNorm(await vector(context)),
  async rms(context) { const x = await vector(context); return vectorNorm(x) / Math.sqrt(x.length); },
  element: async (context) => (await vector(context))[context.state.dim],
  async positive(context) { const x = await vector(context); return x.filter((value) => value > 0).length / x.length; },
  async cosine(context, { a, b }) { return cosine(...await /** @type {Promise<[Float32Array, Float32Array]>} */ (Promise.all([a, b].map((token) => context.ask("embeddingRow", { tokenId: tokenId(context, { token }) }))))); },
  head_adds: async (context, choice) => (await attribution(context, choice)).heads[context.layer * context.config.num_heads + context.head],
  feed_forward_adds: async (context, choice) => (await attribution(context, choice)).feed_forward[context.layer],
  tokens: ({ tokens }) => tokens.length,
  loss: ({ measures }) => (sum(measures.surprisal.slice(1)) / (measures.surprisal.length - 1)) * Math.LN2,
  mean_surprisal: ({ measures }) => sum(measures.surprisal.slice(1)) / (measures.surprisal.length - 1),
  parameters: (context, { part = "all" }) => context.ask("numParameters", { names: PARAMETERS[part] }),
  size: ({ config, dHead }, { name }) => (name === "d_head" ? dHead : config[name]),
  async sum(context, args) { const [a, b] = await evaluateBoth(context, args); return a + b; },
  async difference(context, args) { const [a, b] = await evaluateBoth(context, args); return a - b; },
  async ratio(context, args) { const [a, b] = await evaluateBoth(context, args); return b ? a / b : NaN; },
};
/** Format integers in full, others with three digits. @param {number} value */
export const formatAnswer = (value) => (Number.isInteger(value) ? formatCount(value).replace("-", "−") : formatNumber(value));

export const COUNTS = ["candidates", "heads_above", "tokens", "parameters"]; // quantities that are integers
export const SHARES = ["probability", "chance", "head_score", "weight"]; // quantities from 0 to 1

/** @param {Context} context @param {Quantity} quantity @returns {Promise<number>} */
export async function evaluate(context, { name, arguments: args, change }) { return QUANTITIES[name](await context.replace(change), args); }

/** Append the tokens that a quantity counts, if it counts some: "3: ·un + ha + ppy". @param {string} text @param {Quantity | null} quantity @param {Context} context */
export async function appendTokens(text, quantity, context) {
  return quantity?.name === "tokens" ? `${text}: ${(await context.replace(quantity.change)).tokens.map(escapeToken).join(" + ")}` : text;
}

/** Return a quantity with another value of an argument or, if it has no such argument, of a field of the state. @param {Quantity} quantity @param {string} name @param {any} value @returns {Quantity} */
export function withValue(quantity, name, value) {
  const field = name in quantity.arguments ? "arguments" : "change";
  return { ...quantity, [field]: { ...quantity[field], [name]: value } };
}

/** Conditions on a run. @type {Record<string, (context: Context, given: any) => Promise<boolean>>} */
const CONDITIONS = {
  async more(context, [a, b]) { return (await evaluate(context, a)) > (await evaluate(context, b)); },
  async less(context, [a, b]) { return (await evaluate(context, a)) < (await evaluate(context, b)); },
  async about(context, { a, b, within }) { return Math.abs((await evaluate(context, a)) - (await evaluate(context, b))) <= (await evaluate(context, within)); },
  async all(context, conditions) { return (await Promise.all(conditions.map((condition) => isConditionMet(context, condition)))).every(Boolean); },
  async not(context, condition) { return !(await isConditionMet(context, condition)); },
};

/** @param {Context} context @param {Condition} condition */
export const isConditionMet = (context, { name, arguments: args }) => CONDITIONS[name](context, args);
