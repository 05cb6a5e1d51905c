// @ts-check
// The models, which a worker runs, runs of them with what is selected, and actions that change the page's state, as
// explorer/web/actions/page_actions.py.
import { drawToken, parseInterventions, samplingStages, windowStart, uniformDraw } from "../static/in_browser/transformer_lm.js";
import { withFieldsOfPlace } from "../static/page_state.js";
import { _, ngettext } from "../static/text.js";
import { ADDRESS_DEFAULTS } from "../static/shared_constants.js";
import { argmax, rankedIds, softmax } from "./figures.js";
import { FIRST_PROMPT, MARKUP, MODELS, RANGES } from "./page_data.js";
import { showBanner } from "../static/dom.js";
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

/** Compute the distribution of the token after a position.
 * @param {Float32Array} logits (V,) @param {State} settings @param {number[]} previousIds ids up to the position @param {number | null} actual next token of the text @param {number} u random number that draws a token */
function makePrediction(logits, settings, previousIds, actual, u) {
  const stages = samplingStages(logits, /** @type {any} */ (settings), previousIds), sampled = new Float64Array(logits.length), plain = softmax(logits);
  Array.from(stages.retained.min_p).forEach((id, i) => { sampled[id] = stages.probabilities[i]; });
  return { logits, settings, stages, sampled, plain, actual, u, drawn: drawToken(stages, u).tokenId };
}
/** @typedef {ReturnType<typeof makePrediction>} Prediction */

/** Open a state's run with its selection clamped to the run: the prediction's numbers, and functions that call the worker.
 * @param {State} state @param {boolean} [isTraced] whether figures follow @returns {Promise<ViewContext>} */
export async function openRun(state, isTraced = true) {
  const model = await openModel(state.checkpoint), { config, vocabulary } = model, { ids, earlier, before } = visibleIds(state, model), position = Math.min(state.query, ids.length - 1);
  const edits = interventionsOf(state), run = { checkpoint: state.checkpoint, ids, edits }, { logits, measures } = await callWorker("prediction", { run, position, isTraced });
  const predict = (index, positionLogits) => makePrediction(positionLogits, state, ids.slice(0, index + 1), ids[index + 1] ?? null, uniformDraw(state.seed, before + index + 1)), prediction = predict(position, logits);
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

// Actions that change the page's state.

/** @typedef {{ change?: State, prompt?: string | null, done: boolean, notices?: string[] }} Update */

const MAX_TOKENS = 2048, FIRST_MODEL = Object.keys(MODELS)[0];
const NO_SECOND_RUN = { "b.checkpoint": "", "b.prompt": "", "b.generated": "", "b.dropped": "", "b.edits": "", "b.pins": "" }; // this page has one run
export const NEEDS_PYTHON = _("This needs Python: start “python app.py” in a copy of the project.");
const clampNumber = (value, low, high) => Math.max(low, Math.min(high, value));

/** Return the change that an action makes, or a notice if it is refused. @param {{ kind: string } & State} action @param {State} state @returns {Promise<Update>} */
export async function applyAction(action, state) {
  const handler = ACTIONS[action.kind];
  if (!handler) return { done: false, notices: [NEEDS_PYTHON] };
  try {
    const update = await handler(action, state);
    return update.change ? { ...update, change: withFieldsOfPlace(update.change, state) } : update;
  } catch (error) {
    if (action.kind === "load" || !(error instanceof UserError)) throw error;
    return { done: false, notices: [error.message] };
  }
}

/** @type {Record<string, (action: any, state: State) => Promise<Update>>} */
const ACTIONS = {
  /** Open a link, or the first example. */
  async load({ query }, state) {
    const complete = query.lesson ? (await import("./lessons.js")).completeQuery(query) : query, change = await openQuery(complete, state);
    const notices = query.edits && !change.edits ? [NEEDS_PYTHON] : [];
    return { change, prompt: await callWorker("decode", { checkpoint: change.checkpoint, ids: change.prompt }), done: true, notices };
  },
  async lesson(action, state) {
    const { goToStep } = await import("./lessons.js"), change = await goToStep(action, state);
    return { change: { ...change, turn: state.turn + 1 }, prompt: await callWorker("decode", { checkpoint: change.checkpoint, ids: change.prompt }), done: true };
  },
  prompt: (action, state) => runText(action.text, state.checkpoint, state),
  async example(action, state) {
    const update = await runText(action.text, state.checkpoint, { ...state, target: 1, rival: 0 });
    Object.assign(update.change, { target: 1, rival: 0 }, await selectStrongest({ ...state, ...update.change, target: 1, rival: 0 }, {}));
    return update;
  },
  /** Run the same text with another model, which shares the tokenizer. */
  async model({ text, checkpoint }, state) {
    if (text !== (await callWorker("decode", { checkpoint: state.checkpoint, ids: state.prompt }))) return runText(text, checkpoint, state);
    return { change: { ...runChange(state), checkpoint }, prompt: null, done: true };
  },
  async step(_action, state) {
    let change = null;
    await continueRun(state, { ...state, max_new_tokens: 1 }, (update) => { ({ change } = update); });
    return { change: change ?? undefined, done: change !== null };
  },
  undo: async ({ count = 1 }, state) => selectLast(state, { generated: state.generated.slice(0, Math.max(0, state.generated.length - count)) }),
  /** Replace the token after the selected one. */
  async take({ token }, state) {
    const { earlier } = visibleIds(state, await openModel(state.checkpoint)), cut = earlier + state.query + 1, { prompt, generated } = state;
    return selectLast(state, { prompt: prompt.slice(0, cut), generated: [...generated.slice(0, Math.max(0, cut - prompt.length)), token] });
  },
  async follow(_action, state) { return { prompt: await callWorker("decode", { checkpoint: state.checkpoint, ids: state.prompt }), change: {}, done: true }; },
};

/** Return the state that a URL names. @param {Record<string, any>} query @param {State} state current state, which gives the default view and depth @returns {Promise<State>} */
export async function openQuery(query, state) {
  const view = query.view ?? state.view, fields = Object.fromEntries(Object.entries(ADDRESS_DEFAULTS).map(([name, value]) => [name, readField(query[name], value)]));
  for (const [name, [low, high]] of Object.entries(RANGES)) fields[name] = clampNumber(fields[name], low, high);
  const checkpoint = MODELS[query.checkpoint]?.at(-1) ?? (Object.values(MODELS).flat().includes(query.checkpoint) ? query.checkpoint : FIRST_MODEL);
  const { config } = await openModel(checkpoint), ids = (name) => (query[name] ?? "").split(".").filter(Boolean).map(Number).filter((id) => Number.isInteger(id) && id >= 0 && id < config.vocab_size);
  const run = ids("prompt").length ? { prompt: ids("prompt").slice(0, MAX_TOKENS), generated: ids("generated").slice(0, MAX_TOKENS), dropped: fields.dropped } : { ...(await encode(checkpoint, query.text || FIRST_PROMPT)), generated: [] };
  const indices = Object.fromEntries(["layer", "head", "neuron"].map((name) => [name, +query[name] || 0]));
  const change = /** @type {State} */ ({ ...fields, ...NO_SECOND_RUN, ...run, ...indices, checkpoint, edits: readInterventions(query.edits, config), branches: "", began: 0, turn: 0, view: view in MARKUP ? view : "overview", depth: query.depth ?? state.depth, open: query.open ?? "" });
  Object.assign(change, await selectPosition(change, "query" in query ? change.query : Infinity, "query" in query ? change.key : Infinity));
  return Object.assign(change, await selectStrongest(change, query));
}

/** Return the interventions of a URL; "" if this page does not support them. @param {string | undefined} text @param {any} config */
function readInterventions(text = "", config) {
  try { parseInterventions(interventionsOf({ edits: text }), config); } catch { return ""; }
  return text;
}

/** Return a field of a URL, or its default. @param {string | undefined} text @param {string | number} value */
function readField(text, value) {
  if (text === undefined || (typeof value === "number" && !Number.isFinite(+text))) return value;
  return typeof value === "number" ? +text : text;
}

/** Encode a prompt. Return the ids in the model's window and the number of those before it. @param {string} checkpoint @param {string} text */
async function encode(checkpoint, text) {
  const model = await openModel(checkpoint), prompt = await callWorker("encode", { checkpoint, text });
  if (!prompt.length) throw new UserError(_("The prompt is empty. Type a few words for the model to continue."));
  const { ids, earlier } = visibleIds({ prompt, generated: [], dropped: 0 }, model);
  return { prompt: ids, dropped: earlier };
}

/** Return the run's fields with the next turn. @param {State} state */
const runChange = ({ checkpoint, prompt, generated, dropped, edits, began, query, key, turn }) => ({ checkpoint, prompt, generated, dropped, edits, ...NO_SECOND_RUN, branches: "", began, query, key, turn: turn + 1 });

/** Select a query position and a key position, by default the one before. @param {State} state @param {number} query @param {number} [key] */
async function selectPosition(state, query, key = Infinity) {
  const { ids } = visibleIds(state, await openModel(state.checkpoint)), queryPosition = clampNumber(query, 0, ids.length - 1);
  return { query: queryPosition, key: clampNumber(key, 0, key === Infinity ? Math.max(0, queryPosition - 1) : queryPosition) };
}

/** @param {string} text @param {string} checkpoint @param {State} state */
async function runText(text, checkpoint, state) {
  const run = { ...(await encode(checkpoint, text)), generated: [], checkpoint, began: 0 }, { config } = await openModel(checkpoint), tokens = run.dropped + run.prompt.length;
  const change = { ...runChange({ ...state, ...run }), ...(await selectPosition({ ...state, ...run }, Infinity)) };
  Object.assign(change, await selectStrongest({ ...state, ...change }, { layer: 0, head: 0, ...((await hasChosenNeuron(state)) && { neuron: 0 }) }));
  const notices = run.dropped ? [_("The prompt has {tokens:,} tokens; the model sees {context:,} at once: the last {seen:,} are used.", { tokens, context: config.context_length, seen: run.prompt.length })] : [];
  return { change, prompt: null, done: true, notices };
}

/** Return whether the neuron stays for another prompt: if its view is open, or another one is the strongest (has_chosen_neuron). @param {State} state */
async function hasChosenNeuron(state) {
  return !state.prompt?.length || state.view === "feed_forward" || state.neuron !== (await selectStrongest(state, { layer: 0, head: 0, key: 0 })).neuron;
}

/** Return the change to another run with its last token selected. @param {State} state @param {State} change */
async function selectLast(state, change) {
  const newState = { ...state, ...change }, hasOtherPrompt = String(newState.prompt) !== String(state.prompt);
  const prompt = hasOtherPrompt ? await callWorker("decode", { checkpoint: state.checkpoint, ids: newState.prompt }) : null;
  return { change: { ...runChange({ ...newState, began: newState.generated.length }), ...(await selectPosition(newState, Infinity)) }, prompt, done: true };
}

/** Select the head with the largest effect on the target's logit, the key that its query attends to most, and the neuron of its layer that writes most, unless chosen already.
 * @param {State} state @param {State} chosenFields */
async function selectStrongest(state, chosenFields) {
  const model = await openModel(state.checkpoint), run = { checkpoint: state.checkpoint, ids: visibleIds(state, model).ids, edits: interventionsOf(state) }, position = state.query, change = /** @type {State} */ ({});
  if (!("layer" in chosenFields || "head" in chosenFields)) {
    const { logits } = await callWorker("prediction", { run, position }), order = rankedIds(logits), { num_heads: H } = model.config;
    const { heads } = await callWorker("attribution", { run, position, tokenId: order[(state.target || 1) - 1], contrastId: state.rival ? order[state.rival - 1] : null });
    const strongest = argmax(heads, Math.abs);
    Object.assign(change, { layer: Math.floor(strongest / H), head: strongest % H });
  }
  const layer = change.layer ?? state.layer, head = change.head ?? state.head, T = run.ids.length;
  if (!("key" in chosenFields || "query" in chosenFields)) {
    const { data } = await callWorker("value", { run, name: `blocks.${layer}.attn.pattern` }), start = (head * T + position) * T;
    change.key = argmax(data.subarray(start, start + position + Number(!(state.view === "positions" && position))));
  }
  if (!("neuron" in chosenFields)) change.neuron = argmax(await callWorker("neuronNorms", { run, layer, position }));
  return change;
}

/** Continue the run, and report each token (Generation.generation_steps).
 * @param {State} state @param {State} settings @param {(update: { change: State, ask: string, steps: number[] }) => void} onUpdate @param {AbortSignal} [signal] */
export async function continueRun(state, settings, onUpdate, signal) {
  const model = await openModel(state.checkpoint), maxTokens = Math.min(settings.max_new_tokens, MAX_TOKENS - state.generated.length), steps = [];
  if (maxTokens < 1) throw new UserError(ngettext("{count} token was generated: press Run to start again.", "{count} tokens were generated: press Run to start again.", state.generated.length));
  let { generated } = state, text = "";
  const stopController = new AbortController(), { stop_strings: stop } = settings;
  signal?.addEventListener("abort", () => stopController.abort());
  const options = Object.fromEntries(["temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed"].map((name) => [name, settings[name]]));
  const ids = [...state.prompt, ...generated], request = { checkpoint: state.checkpoint, ids, edits: interventionsOf(state), settings: { ...options, num_dropped: +state.dropped || 0, max_new_tokens: maxTokens } };
  await callWorker("generate", request, { signal: stopController.signal, tell: ({ tokenId }) => {
    if (stopController.signal.aborted) return;
    generated = [...generated, tokenId];
    text += model.vocabulary[tokenId];
    const query = visibleIds({ ...state, generated }, model).ids.length - 1, isLast = steps.push(query) === maxTokens || tokenId === model.endOfText || Boolean(stop && text.includes(stop));
    if (isLast) stopController.abort();
    onUpdate({ change: { ...runChange({ ...state, generated }), query, key: Math.max(0, query - 1) }, ask: isLast ? "show" : "token", steps: [...steps] });
  } });
}
