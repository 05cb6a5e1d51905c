// @ts-check
// Numbers of a run and conditions on it, as explorer/lessons/quantities.py works them out. A context is what a run and its selection
// are, with the same of other states that a lesson compares it with.
import { openQuery } from "../actions.js";
import { openRun } from "../answers.js";
import { cosine, vectorNorm, rowsOf, sum } from "../figures.js";
import { entropy } from "../next_token.js";
import { escapeToken } from "../notation.js";
import { ADDRESS_DEFAULTS } from "../../static/shared_constants.js";
import { headRows } from "../views/attention.js";

/** @typedef {import("../views.js").About & { replace: (change: Record<string, any>) => Promise<Context> }} Context */
/** A number of a run: its name in QUANTITIES, its own arguments, and fields of the state that differ. @typedef {{ name: string, arguments: Record<string, any>, change: Record<string, any> }} Quantity */
/** @typedef {{ name: string, arguments: any }} Condition by its name in CONDITIONS */

const OF_SELECTION = [...Object.keys(ADDRESS_DEFAULTS), "layer", "neuron"], OF_PROMPT = ["prompt", "generated", "query", "key", "dropped", "began"];

/** The context of an address. @param {Record<string, any>} query @returns {Promise<Context>} */
export const openContext = async (query) => makeContext(await openQuery(query, { view: "overview", depth: "numbers" }), query);

/** @param {Record<string, any>} state @param {Record<string, any>} [query] the address that names it @returns {Promise<Context>} */
export async function makeContext(state, query = state) {
  const about = await openRun(state), known = new Map();
  /** With other fields, worked out once; another text is read at its last token. @param {Record<string, any>} change @returns {Promise<Context>} */
  function replace(change) {
    const key = JSON.stringify(change), isSameRun = Object.keys(change).every((name) => OF_SELECTION.includes(name));
    const left = Object.entries(query).filter(([name]) => !("text" in change && OF_PROMPT.includes(name)));
    if (!known.has(key)) known.set(key, isSameRun ? makeContext({ ...state, ...change }, { ...query, ...change }) : openContext({ ...Object.fromEntries(left), ...change }));
    return known.get(key);
  }
  const context = { ...about, replace: (change) => (Object.keys(change).length ? replace(change) : Promise.resolve(context)) };
  return context;
}

/** @param {Context} context @param {{ token?: string, rank?: number }} named */
const tokenId = ({ now, vocabulary }, { token, rank }) => (rank ? now[rank - 1] : vocabulary.indexOf(token));
/** The chosen value's vector at the chosen token, of the chosen head if it has heads. @param {Context} context @returns {Promise<Float32Array>} */
async function vector(context) {
  const { tap } = context.state, { data, shape } = await context.value(tap), [, layer, name] = /^blocks\.(\d+)\.attn\.(.+)$/.exec(tap) ?? [];
  return (shape.length === 3 ? await headRows({ ...context, layer: +layer }, name) : rowsOf(data, shape[1]))[context.position];
}
/** A score of every head, (L, H). @param {Context} context @param {string} score @returns {Promise<Float64Array>} */
const headScores = (context, score) => context.once(`${score} scores`, () => context.ask("headScores", { score }));
/** @param {Context} context @param {{ token?: string, rank?: number }} named */
const attribution = (context, named) => context.once(`attribution ${JSON.stringify(named)}`, () => context.ask("attribution", { position: context.position, tokenId: tokenId(context, named), contrastId: null }));
const PARAMETERS = { all: "", embedding: "^token_embedding", attention: "\\.attn\\.", feed_forward: "\\.ffn\\.", norms: "norm" };
/** Both numbers of a calculation. @param {Context} context @param {{ a: Quantity, b: Quantity }} given */
const both = async (context, { a, b }) => [await evaluate(context, a), await evaluate(context, b)];

/** @type {Record<string, (context: Context, given: any) => number | Promise<number>>} */
const QUANTITIES = {
  number: (_context, { value }) => value,
  probability: (context, named) => context.prediction.plain[tokenId(context, named)],
  chance: (context, named) => context.prediction.sampled[tokenId(context, named)],
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
  head_adds: async (context, named) => (await attribution(context, named)).heads[context.layer * context.config.num_heads + context.head],
  feed_forward_adds: async (context, named) => (await attribution(context, named)).feed_forward[context.layer],
  tokens: ({ tokens }) => tokens.length,
  loss: ({ measures }) => (sum(measures.surprisal.slice(1)) / (measures.surprisal.length - 1)) * Math.LN2,
  mean_surprisal: ({ measures }) => sum(measures.surprisal.slice(1)) / (measures.surprisal.length - 1),
  parameters: (context, { part = "all" }) => context.ask("numParameters", { names: PARAMETERS[part] }),
  size: ({ config, dHead }, { name }) => (name === "d_head" ? dHead : config[name]),
  async sum(context, given) { const [a, b] = await both(context, given); return a + b; },
  async difference(context, given) { const [a, b] = await both(context, given); return a - b; },
  async ratio(context, given) { const [a, b] = await both(context, given); return b ? a / b : NaN; },
};
export const COUNTS = ["candidates", "heads_above", "tokens", "parameters"]; // quantities that are whole numbers
export const SHARES = ["probability", "chance", "head_score", "weight"]; // from 0 to 1

/** @param {Context} context @param {Quantity} quantity @returns {Promise<number>} */
export async function evaluate(context, { name, arguments: given, change }) { return QUANTITIES[name](await context.replace(change), given); }

/** A text with the tokens that a quantity counts, if it does, as in "3: ·un + ha + ppy". @param {string} text @param {Quantity | null} quantity @param {Context} context */
export async function appendTokens(text, quantity, context) {
  return quantity?.name === "tokens" ? `${text}: ${(await context.replace(quantity.change)).tokens.map(escapeToken).join(" + ")}` : text;
}

/** A quantity with another value of an argument that it has, or else of a field of the state. @param {Quantity} quantity @param {string} name @param {any} value @returns {Quantity} */
export function withValue(quantity, name, value) {
  const place = name in quantity.arguments ? "arguments" : "change";
  return { ...quantity, [place]: { ...quantity[place], [name]: value } };
}

/** Whether a run is so. @type {Record<string, (context: Context, given: any) => Promise<boolean>>} */
const CONDITIONS = {
  async more(context, [a, b]) { return (await evaluate(context, a)) > (await evaluate(context, b)); },
  async less(context, [a, b]) { return (await evaluate(context, a)) < (await evaluate(context, b)); },
  async about(context, { a, b, within }) { return Math.abs((await evaluate(context, a)) - (await evaluate(context, b))) <= (await evaluate(context, within)); },
  async all(context, conditions) { return (await Promise.all(conditions.map((one) => holds(context, one)))).every(Boolean); },
  async not(context, condition) { return !(await holds(context, condition)); },
};

/** @param {Context} context @param {Condition} condition */
export const holds = (context, { name, arguments: given }) => CONDITIONS[name](context, given);
