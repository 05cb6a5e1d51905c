// @ts-check
// The models, which a worker runs, and runs of them with what is selected.
import { windowStart, uniformDraw } from "../static/in_browser/transformer_lm.js";
import { showBanner } from "../static/dom.js";
import { _ } from "../static/translations.js";
import { makePrediction, rankedIds } from "./next_token.js";
import { targetAndContrast } from "./whole_model.js";

/** State of the page. @typedef {Record<string, any>} State */
/** @typedef {{ config: any, parameters: number, vocabulary: string[], endOfText: number }} Model */
/** @typedef {import("./views.js").ViewContext} ViewContext */

// The worker.

/** Error to show to the user. */
export class UserError extends Error {}

// The worker's script is beside the page, since a service worker only controls URLs below its own.
const worker = new Worker(new URL("worker.js", document.baseURI), { type: "module" });
/** Id of a request -> its callbacks. @type {Map<number, { resolve: (answer: any) => void, reject: (error: Error) => void, tell: (part: any) => void }>} */
const pendingRequests = new Map();
let lastId = 0;

worker.addEventListener("message", ({ data: { id, answer, error, part } }) => {
  const { resolve, reject, tell } = pendingRequests.get(id);
  if (part) return tell(part);
  pendingRequests.delete(id);
  if (error) reject(error.isUserError ? new UserError(error.message) : new Error(error.message)); else resolve(answer);
});
worker.addEventListener("error", ({ message }) => {
  for (const { reject } of pendingRequests.values()) reject(new UserError(`The model cannot run in this browser (${message || "its scripts did not load"}): a newer browser can, or Python: pip install, then python app.py.`));
  pendingRequests.clear();
});

/** Call a function of the worker (worker.js).
 * @param {string} name @param {any} args its arguments @param {{ tell?: (part: any) => void, signal?: AbortSignal }} [options] `tell` gets the parts that precede the answer
 * @returns {Promise<any>} */
export function callWorker(name, args, { tell: onPart = () => {}, signal } = {}) {
  const id = ++lastId;
  signal?.addEventListener("abort", () => worker.postMessage({ id, cancel: true }));
  return new Promise((resolve, reject) => {
    pendingRequests.set(id, { resolve, reject, tell: onPart });
    worker.postMessage({ id, name, given: args });
  });
}

// Models and runs.

/** @type {Map<string, Promise<Model>>} */
const models = new Map();

/** Return a model, fetched once with a progress banner. @param {string} checkpoint @returns {Promise<Model>} */
export function openModel(checkpoint) {
  if (!models.has(checkpoint)) {
    const showProgress = ({ bytes, total }) => showBanner(_("The model is being fetched: {done} of {all} MB", { done: (bytes / 1e6).toFixed(1), all: (total / 1e6).toFixed(1) }));
    const loading = callWorker("model", { checkpoint }, { tell: showProgress });
    loading.catch(() => models.delete(checkpoint)).finally(() => showBanner(""));
    models.set(checkpoint, loading);
  }
  return models.get(checkpoint);
}

/** @param {State} state @returns {string[]} */
export const interventionsOf = ({ edits }) => (edits ? edits.split("~") : []);

/** Return the ids that the model sees, and the number of ids before them. @param {State} state @param {Model} model */
export function visibleIds({ prompt, generated, dropped }, { config }) {
  const all = [...prompt, ...generated], start = windowStart(all.length, config.context_length);
  return { ids: all.slice(start), earlier: start, before: start + (+dropped || 0) };
}

/** Open a state's run with its selection clamped to the run: the prediction's numbers, and functions that call the worker.
 * @param {State} state @param {boolean} [isTraced] whether figures follow @returns {Promise<ViewContext>} */
export async function openRun(state, isTraced = true) {
  const model = await openModel(state.checkpoint), { config, vocabulary } = model, { ids, earlier, before } = visibleIds(state, model), position = Math.min(state.query, ids.length - 1);
  const edits = interventionsOf(state), run = { checkpoint: state.checkpoint, ids, edits }, { logits, measures } = await callWorker("prediction", { run, position, isTraced });
  const predict = (index, positionLogits) => makePrediction(positionLogits, /** @type {any} */ (state), ids.slice(0, index + 1), ids[index + 1] ?? null, uniformDraw(state.seed, before + index + 1)), prediction = predict(position, logits);
  const unchanged = edits.length ? (await callWorker("prediction", { run: { ...run, edits: [] }, position })).logits : logits; // target and contrast token are named by ranks without interventions
  const order = rankedIds(unchanged), changedOrder = unchanged === logits ? order : rankedIds(logits), { tokenId, contrastId } = targetAndContrast(order, /** @type {any} */ (state));
  const memo = new Map(), clamp = (value, size) => Math.max(0, Math.min(value ?? 0, size - 1)), memoize = (name, compute) => { if (!memo.has(name)) memo.set(name, compute()); return memo.get(name); };
  return {
    model, config, vocabulary, ids, earlier, before, position, edits, measures, prediction, unchanged, predict, order, now: changedOrder, once: memoize, tokenId, contrastId, tokens: ids.map((id) => vocabulary[id]), actual: prediction.actual,
    rank: 1 + changedOrder.indexOf(tokenId), probability: prediction.plain[tokenId], dHead: config.d_model / config.num_heads, state: { ...state, dim: clamp(state.dim, config.d_model) },
    layer: clamp(state.layer, config.num_layers), head: clamp(state.head, config.num_heads), key: clamp(state.key, position + 1), neuron: clamp(state.neuron, config.d_ff),
    chosenHeads: (state.heads ?? "").split("~").filter(Boolean).map((place) => place.split(".").map(Number)),
    value: (name) => memoize(name, () => callWorker("value", { run, name })), ask: (name, given) => callWorker(name, { run, ...given }),
  };
}
