// @ts-check
// Contents of the page by element id for a state, as explorer/web/browser_api/endpoints.py: from the model in the worker.
import { _, ngettext } from "../static/translations.js";
import { translateMarkup } from "./languages.js";
import { derivationText } from "./derivations.js";
import { derivePoint } from "./point_derivations.js";
import { callWorker, openRun } from "./model_runs.js";
import { describeChangeEffect, packGuess, packTable, summariseDistribution } from "./next_token.js";
import { describeIntervention, formatCount, formatFixed, formatGeneral, quoteToken, quoteWord } from "./notation.js";
import { MARKUP, MODELS } from "./page_data.js";
import { packMarks, DRAWN_VIEWS, packCode, packDropdowns, packView } from "./views.js";
import { packChoosers, packWholeModel, wholeModelNumbers } from "./whole_model.js";

/** State of the page. @typedef {Record<string, any>} State */
/** @typedef {import("./model_runs.js").Model} Model */
/** @typedef {import("./views.js").ViewContext} ViewContext */

/** Return the derivation of the number at a point of a figure, as lines of text; "" for none. @param {State} state @param {{ figure: string, point: any }} inspected */
export async function deriveText(state, { figure, point }) {
  return derivationText(await derivePoint(await openRun(state), figure, point), state.depth);
}

/** Yield the contents in stages, the quick ones first.
 * @param {string} scope "tune": only the prediction; "token": also the tokens; "pick": the view; "view": another view; "show": everything
 * @param {State} state @returns {AsyncGenerator<Record<string, any>>} */
export async function* stateContents(scope, state) {
  const isQuick = scope === "tune" || scope === "token", about = await openRun(state, !isQuick), { model, vocabulary, tokens, position, earlier, before, edits, prediction } = about;
  const last = Math.min(position, tokens.length - 2), isGenerated = last + 1 + earlier >= state.prompt.length && last >= 0 && state.depth === "story"; // the token after it
  const written = isGenerated ? /** @type {[string, any]} */ ([tokens[last], about.predict(last, (await about.ask("prediction", { position: last })).logits)]) : null;
  const text = Array.from(tokens.slice(0, position + 1).join("")).slice(-60).join("");
  const contents = {
    problem: "",
    "next-token": { ...packTable(prediction, vocabulary, state.find ?? "", edits.length ? about.unchanged : null, (state.guess ?? "").trim()), after: (state.depth === "story" ? quoteWord : quoteToken)(tokens[position]) },
    "next-token-words": summariseDistribution(prediction, vocabulary, tokens[position], position),
    guess: { ...packGuess(prediction, vocabulary, tokens[position], state.guess ?? "", written), text },
    "changes-effect": edits.length ? describeChangeEffect(prediction, about.predict(position, about.unchanged), vocabulary, state.depth === "story") : { words: "", chances: "" },
    brief: { text, next: vocabulary[prediction.drawn], probability: prediction.sampled[prediction.drawn] },
  };
  if (state.lesson) Object.assign(contents, await (await import("./lessons.js")).packLesson(scope, about));
  if (scope === "token" || scope === "show") Object.assign(contents, await packTokens(/** @type {any} */ (state), model, tokens, about.measures, earlier, before));
  if (scope === "token" && state.view === "overview") contents["overview-choosers"] = { ...packChoosers(/** @type {any} */ (about)), all: false };
  if (scope === "token" && state.view in DRAWN_VIEWS) contents[`${state.view}-choosers`] = packDropdowns(state.view, about, ["query", "key", "target", "rival"]);
  if (isQuick) return yield contents;
  if (scope === "show") Object.assign(contents, packFrame(state, model));
  const { view } = state, markup = translateMarkup(MARKUP[view]), isOverview = view === "overview", isDrawn = view in DRAWN_VIEWS;
  yield scope === "pick" ? contents : { view: { name: view, markup }, ...contents };
  const code = isOverview || isDrawn ? { [`${view}-code`]: packCode(view, about) } : {};
  yield { changes: { edits: edits.map((text) => [text, describeIntervention(text)]) }, ...code, ...(isOverview ? await packWholeModel({ ...about, numbers: await wholeModelNumbers(about) }) : isDrawn ? {} : needsPython(view)) };
  if (isDrawn) yield* packView(view, about);
  if (isOverview) yield* packMarks(view, [{ name: "whole" }], about);
}

/** Return the message of a view that this page does not compute. @param {string} view */
function needsPython(view) {
  const words = _("This view needs Python: install it with “pip install .” in a copy of the project, then start “python app.py”.");
  return { [`${view}-words`]: words };
}

/** Return the tokens with their shades, and the text (TokenStrip.pack). */
async function packTokens({ checkpoint, prompt, generated }, { config, endOfText }, tokens, measures, earlier, before) {
  const V = config.vocab_size, numPrompt = Math.max(0, prompt.length - earlier), first = Math.max(0, numPrompt - 1), text = (ids) => callWorker("decode", { checkpoint, ids });
  const shade = (values, toShare, toWords) => ({ shares: values.map((value) => +Math.min(1, Math.max(0, toShare(value) || 0)).toFixed(3)), words: values.map((value) => (Number.isNaN(value) ? "" : toWords(value))) });
  return {
    strip: {
      tokens, num_prompt: numPrompt, earlier: before, beginning: ["", true],
      shades: {
        surprisal: shade(measures.surprisal, (bits) => bits / 12, (bits) => _("surprisal {bits:.2f} bits (probability {probability:.2g})", { bits: formatFixed(bits, 2), probability: formatGeneral(2 ** -bits, 2) })),
        entropy: shade(measures.entropy, (bits) => bits / Math.log2(V), (bits) => _("entropy before it {bits:.2f} bits (as open as {choices:,.1f} equal choices)", { bits: formatFixed(bits, 2), choices: (2 ** bits).toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 }) })),
        rank: shade(measures.rank, (rank) => Math.log2(rank) / Math.log2(V), (rank) => _("rank {place:,.0f} of the model’s guesses", { place: formatCount(rank) })),
      },
    },
    chat: null, "strip-b": null,
    story: { prompt: await text(prompt), generated: await text(generated), ended: generated.at(-1) === endOfText ? ngettext("The model ended the text after {count} token.", "The model ended the text after {count} tokens.", generated.length) : "", tokens: tokens.slice(numPrompt), position: numPrompt },
    playback: { first, tokens: tokens.slice(first), unseen: generated.length - tokens.length + first + 1 },
    branches: [],
  };
}

/** Return the contents around the views. @param {State} state @param {Model} model */
function packFrame({ checkpoint }, { config, parameters }) {
  const layerNames = { rmsnorm: "RMSNorm", layernorm: "LayerNorm", rope: "RoPE", sinusoidal: _("sinusoidal positions"), swiglu: "SwiGLU", relu: "ReLU" };
  const facts = [layerNames[config.norm], layerNames[config.position], layerNames[config.ffn], _("{millions:.1f} M parameters", { millions: (parameters / 1e6).toFixed(1) }), _("{layers} layers × {heads} heads", { layers: config.num_layers, heads: config.num_heads }), _("context {tokens}", { tokens: config.context_length }), _("in this browser")];
  const series = Object.values(MODELS).find((checkpoints) => checkpoints.includes(checkpoint)) ?? [], stepNumber = (name) => +name.replace(/.*step-/, "");
  return {
    facts: facts.join(" · "), vocabulary: "", advice: { words: "", offer: "" },
    picker: Object.entries(MODELS).map(([name, checkpoints]) => [name, checkpoints.at(-1)]),
    series: { moments: series.length > 1 ? series.map((name) => [name, _("step {step}", { step: formatCount(stepNumber(name)) }), formatCount(stepNumber(name))]) : [], other: "" },
  };
}
