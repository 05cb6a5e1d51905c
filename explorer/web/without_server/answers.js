// @ts-check
// What follows from the page's state, by element id, as explorer/web/browser_api/endpoints.py answers: from the model in the worker.
import { windowStart } from "../static/in_browser/generation.js";
import { uniformDraw } from "../static/in_browser/sampling.js";
import { _, ngettext } from "../static/translations.js";
import { showBanner } from "../static/dom.js";
import { describe } from "./interventions.js";
import { translateMarkup } from "./languages.js";
import { derivationText } from "./derivations/calculations.js";
import { derivePoint } from "./derivations/points.js";
import { ask } from "./model.js";
import { describeChangeEffect, makePrediction, packGuess, packTable, ranking, summariseDistribution } from "./next_token.js";
import { formatCount, formatFixed, formatGeneral } from "./notation.js";
import { MARKUP, MODELS } from "./page_data.js";
import { packMarks } from "./verification.js";
import { DRAWN_VIEWS, packCode, packDropdowns, packView } from "./views.js";
import { packChoosers, packWholeModel, targetAndContrast, wholeModelNumbers } from "./whole_model.js";

/** @typedef {Record<string, any>} State the page's */
/** @typedef {{ config: any, parameters: number, vocabulary: string[], endOfText: number }} Model */
/** @typedef {import("./views.js").About} About */

/** @type {Map<string, Promise<Model>>} */
const models = new Map();

/** A model, fetched once; the page says how much of it has come. @param {string} checkpoint @returns {Promise<Model>} */
export function openModel(checkpoint) {
  if (!models.has(checkpoint)) {
    const tell = ({ bytes, total }) => showBanner(_("The model is being fetched: {done} of {all} MB", { done: (bytes / 1e6).toFixed(1), all: (total / 1e6).toFixed(1) }));
    const opening = ask("model", { checkpoint }, { tell });
    opening.catch(() => models.delete(checkpoint)).finally(() => showBanner(""));
    models.set(checkpoint, opening);
  }
  return models.get(checkpoint);
}

/** @param {State} state @returns {string[]} */
export const editsOf = ({ edits }) => (edits ? edits.split("~") : []);

/** The ids that the model sees, and how many are before them. @param {State} state @param {Model} model */
export function visibleIds({ prompt, generated, dropped }, { config }) {
  const all = [...prompt, ...generated], start = windowStart(all.length, config.context_length);
  return { ids: all.slice(start), earlier: start, before: start + (+dropped || 0) };
}

/** A state's run and what is selected in it, as the run has it: numbers of the prediction, and functions that ask the worker.
 * @param {State} state @param {boolean} [isTraced] whether figures follow @returns {Promise<About>} */
export async function openRun(state, isTraced = true) {
  const model = await openModel(state.checkpoint), { config, vocabulary } = model, { ids, earlier, before } = visibleIds(state, model), position = Math.min(state.query, ids.length - 1);
  const edits = editsOf(state), run = { checkpoint: state.checkpoint, ids, edits }, { logits, measures } = await ask("prediction", { run, position, isTraced });
  const predict = (at, its) => makePrediction(its, /** @type {any} */ (state), ids.slice(0, at + 1), ids[at + 1] ?? null, uniformDraw(state.seed, before + at + 1)), prediction = predict(position, logits);
  const unchanged = edits.length ? (await ask("prediction", { run: { ...run, edits: [] }, position })).logits : logits; // by which ranks name tokens
  const order = ranking(unchanged), now = unchanged === logits ? order : ranking(logits), { tokenId, contrastId } = targetAndContrast(order, /** @type {any} */ (state));
  const known = new Map(), clamp = (value, size) => Math.max(0, Math.min(value ?? 0, size - 1)), once = (name, work) => { if (!known.has(name)) known.set(name, work()); return known.get(name); };
  return {
    model, config, vocabulary, ids, earlier, before, position, edits, measures, prediction, unchanged, predict, order, now, once, tokenId, contrastId, tokens: ids.map((id) => vocabulary[id]), actual: prediction.actual,
    rank: 1 + now.indexOf(tokenId), probability: prediction.plain[tokenId], dHead: config.d_model / config.num_heads, state: { ...state, dim: clamp(state.dim, config.d_model) },
    layer: clamp(state.layer, config.num_layers), head: clamp(state.head, config.num_heads), key: clamp(state.key, position + 1), neuron: clamp(state.neuron, config.d_ff),
    chosenHeads: (state.heads ?? "").split("~").filter(Boolean).map((place) => place.split(".").map(Number)),
    value: (name) => once(name, () => ask("value", { run, name })), ask: (name, given) => ask(name, { run, ...given }),
  };
}

/** How the number at a point of a figure is worked out, as lines of text; "" for none. @param {State} state @param {{ figure: string, point: any }} inspected */
export async function derivationOf(state, { figure, point }) {
  return derivationText(await derivePoint(await openRun(state), figure, point), state.depth);
}

/** The contents in stages, those that are quick first.
 * @param {string} scope "tune" for the prediction alone, "token" for the tokens as well, "pick" for the view, "view" for another, "show" for everything
 * @param {State} state @returns {AsyncGenerator<Record<string, any>>} */
export async function* contentsOf(scope, state) {
  const isQuick = scope === "tune" || scope === "token", about = await openRun(state, !isQuick), { model, vocabulary, tokens, position, earlier, before, edits, prediction } = about;
  const isWritten = position + earlier >= state.prompt.length && position > 0 && state.depth === "story", previous = isWritten ? about.predict(position - 1, (await about.ask("prediction", { position: position - 1 })).logits) : null;
  const text = Array.from(tokens.slice(0, position + 1).join("")).slice(-60).join("");
  const contents = {
    problem: "",
    "next-token": packTable(prediction, vocabulary, state.find ?? "", edits.length ? about.unchanged : null, (state.guess ?? "").trim()),
    "next-token-words": summariseDistribution(prediction, vocabulary, tokens[position], position),
    guess: { ...packGuess(prediction, vocabulary, tokens[position], state.guess ?? "", previous), text },
    "changes-effect": edits.length ? describeChangeEffect(prediction, about.predict(position, about.unchanged), vocabulary) : { words: "", chances: "" },
    brief: { text, next: vocabulary[prediction.drawn], probability: prediction.sampled[prediction.drawn] },
  };
  if (state.lesson) Object.assign(contents, await (await import("./lessons/lesson.js")).packLesson(scope, about));
  if (scope === "token" || scope === "show") Object.assign(contents, await packTokens(/** @type {any} */ (state), model, tokens, about.measures, earlier, before));
  if (scope === "token" && state.view === "overview") contents["overview-choosers"] = { ...packChoosers(/** @type {any} */ (about)), all: false };
  if (scope === "token" && state.view in DRAWN_VIEWS) contents[`${state.view}-choosers`] = packDropdowns(state.view, about, ["query", "key", "target", "rival"]);
  if (isQuick) return yield contents;
  if (scope === "show") Object.assign(contents, packAround(state, model));
  const { view } = state, markup = translateMarkup(MARKUP[view]), isWhole = view === "overview", isDrawn = view in DRAWN_VIEWS;
  yield scope === "pick" ? contents : { view: { name: view, markup }, ...contents };
  const code = isWhole || isDrawn ? { [`${view}-code`]: packCode(view, about) } : {};
  yield { changes: { edits: edits.map((text) => [text, describe(text)]) }, ...code, ...(isWhole ? await packWholeModel({ ...about, numbers: await wholeModelNumbers(about) }) : isDrawn ? {} : needsPython(view)) };
  if (isDrawn) yield* packView(view, about);
  if (isWhole) yield* packMarks(view, [{ name: "whole" }], about);
}

/** Of a view that this page does not compute: how to have it. @param {string} view */
function needsPython(view) {
  const words = _("This view needs Python: install it with “pip install .” in a copy of the project, then start “python app.py”.");
  return { [`${view}-words`]: words };
}

/** The tokens with their shades, and the text (TokenStrip.pack). */
async function packTokens({ checkpoint, prompt, generated }, { config, endOfText }, tokens, measures, earlier, before) {
  const V = config.vocab_size, first = Math.max(0, prompt.length - earlier - 1), text = (ids) => ask("decode", { checkpoint, ids });
  const shade = (values, share, words) => ({ shares: values.map((value) => +Math.min(1, Math.max(0, share(value) || 0)).toFixed(3)), words: values.map((value) => (Number.isNaN(value) ? "" : words(value))) });
  return {
    strip: {
      tokens, num_prompt: Math.max(0, prompt.length - earlier), earlier: before, beginning: ["", true],
      shades: {
        surprisal: shade(measures.surprisal, (bits) => bits / 12, (bits) => _("surprisal {bits:.2f} bits (probability {probability:.2g})", { bits: formatFixed(bits, 2), probability: formatGeneral(2 ** -bits, 2) })),
        entropy: shade(measures.entropy, (bits) => bits / Math.log2(V), (bits) => _("entropy before it {bits:.2f} bits (as open as {choices:,.1f} equal choices)", { bits: formatFixed(bits, 2), choices: (2 ** bits).toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 }) })),
        rank: shade(measures.rank, (rank) => Math.log2(rank) / Math.log2(V), (rank) => _("rank {place:,.0f} of the model’s guesses", { place: formatCount(rank) })),
      },
    },
    chat: null, "strip-b": null,
    story: { prompt: await text(prompt), generated: await text(generated), ended: generated.at(-1) === endOfText ? ngettext("The model ended the text after {count} token.", "The model ended the text after {count} tokens.", generated.length) : "" },
    playback: { first, tokens: tokens.slice(first), unseen: generated.length - tokens.length + first + 1 },
    branches: [],
  };
}

/** What stands around the views. @param {State} state @param {Model} model */
function packAround({ checkpoint }, { config, parameters }) {
  const names = { rmsnorm: "RMSNorm", layernorm: "LayerNorm", rope: "RoPE", sinusoidal: _("sinusoidal positions"), swiglu: "SwiGLU", relu: "ReLU" };
  const facts = [names[config.norm], names[config.position], names[config.ffn], _("{millions:.1f} M parameters", { millions: (parameters / 1e6).toFixed(1) }), _("{layers} layers × {heads} heads", { layers: config.num_layers, heads: config.num_heads }), _("context {tokens}", { tokens: config.context_length }), _("in this browser")];
  const series = Object.values(MODELS).find((checkpoints) => checkpoints.includes(checkpoint)) ?? [], step = (name) => +name.replace(/.*step-/, "");
  return {
    facts: facts.join(" · "), vocabulary: "", advice: { words: "", offer: "" },
    picker: Object.entries(MODELS).map(([name, checkpoints]) => [name, checkpoints.at(-1)]),
    series: { moments: series.length > 1 ? series.map((name) => [name, _("step {step}", { step: formatCount(step(name)) }), formatCount(step(name))]) : [], other: "" },
  };
}
