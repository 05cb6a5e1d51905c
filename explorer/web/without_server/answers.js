// @ts-check
// Answers to the page's requests from the model in this browser, as explorer/web/browser_api/endpoints.py. An import map puts this file
// in place of static/server_connection.js.
import { applyAction, NEEDS_PYTHON, callWorker, interventionsOf, openModel, openRun, UserError, visibleIds } from "./actions.js";
import { samplingStages } from "../static/in_browser/transformer_lm.js";
import { _, ngettext, language, lookUpMessage, MESSAGES } from "../static/translations.js";
import { derivationText } from "./derivations.js";
import { derivePoint } from "./point_derivations.js";
import { describeChangeEffect, packGuess, packTable, summariseDistribution } from "./next_token.js";
import { describeIntervention, formatCount, formatFixed, formatGeneral, quoteToken, quoteWord } from "./figures.js";
import { MARKUP, MODELS } from "./page_data.js";
import { packMarks, DRAWN_VIEWS, packCode, packDropdowns, packView } from "./views.js";
import { packChoosers, packWholeModel, wholeModelNumbers } from "./whole_model.js";
import { findAll } from "../static/dom.js";

/** The model refused a request; the message says why. */
export class RefusedError extends Error {}

export const clientId = "this-browser", isServerLost = false;
export function onServerReturn() {} // the worker is never lost
export function watchServer() {}
export async function checkConnection() {}

/** Functions of browser_api/endpoints.py that need no Python. @type {Record<string, (...args: any[]) => Promise<any>>} */
const functions = {
  async next_token_scores(state) {
    const { ids } = visibleIds(state, await openModel(state.checkpoint)), position = Math.min(state.query, ids.length - 1);
    const { logits } = await callWorker("prediction", { run: { checkpoint: state.checkpoint, ids, edits: interventionsOf(state) }, position });
    const { penalised } = samplingStages(logits, { repetition_penalty: state.repetition_penalty }, ids.slice(0, position + 1));
    const bytes = new Uint8Array(/** @type {Float32Array} */ (penalised).slice().sort().reverse().buffer);
    return { scores: btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")), size: penalised.length };
  },
  listed_lessons: async () => (await import("./lessons.js")).listLessons(),
  walk: async (state, name) => (await import("./walkthroughs.js")).WALKTHROUGHS[name](await openRun(state)),
  lesson_sheet: async (state, name, index) => (await import("./lessons.js")).packSheet(name, index),
};

/** @param {string} name @param {any[]} args */
export async function callServer(name, args) {
  if (!functions[name]) throw new RefusedError(NEEDS_PYTHON);
  try { return await functions[name](...args); } catch (error) { throw error instanceof UserError ? new RefusedError(error.message) : error; }
}

/** Yield the lines of a response as they are computed. @param {{ about: string, state: any, action?: any, inspect?: any }} request @param {AbortSignal} signal */
export async function* responseLines({ about: scope, state, action, inspect }, signal) {
  try {
    if (action) {
      const update = await applyAction(action, state);
      yield update;
      if (!update.done) return;
      state = { ...state, ...update.change };
    }
    for await (const contents of stateContents(scope, state)) {
      if (signal.aborted) throw signal.reason;
      yield { contents, version: state.checkpoint };
      if (inspect) yield { inspection: await deriveText(state, inspect) };
      inspect = null;
    }
  } catch (error) {
    if (error instanceof UserError) throw new RefusedError(error.message);
    throw error;
  }
}

// Contents of the page by element id for a state.

/** State of the page. @typedef {Record<string, any>} State */
/** @typedef {import("./actions.js").Model} Model */
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
    guess: { ...packGuess(prediction, vocabulary, tokens[position], state.guess ?? "", written, edits.length > 0), text },
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

// Translation of the page's markup, which is written in English. Only texts that are whole messages are translated.

const ATTRIBUTES = ["aria-label", "aria-description", "placeholder", "title", "data-label"];

/** Translate the texts in an element. @param {Element | DocumentFragment} root */
export function translateElement(root) {
  if (language === "en") return;
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.nodeValue = translateText(texts.currentNode.nodeValue);
  for (const name of ATTRIBUTES) for (const element of root.querySelectorAll(`[${name}]`)) element.setAttribute(name, translateText(element.getAttribute(name)));
  for (const list of findAll(root, "[data-known]")) { // forms and meanings of the glossary terms (GlossaryList)
    const [forms, meanings] = JSON.parse(list.dataset.known), entries = Object.entries;
    list.dataset.known = JSON.stringify([
      Object.fromEntries(entries(forms).map(([form, name]) => [translateText(form), name])),
      Object.fromEntries(entries(meanings).map(([name, meaning]) => [name, translateText(meaning)])),
    ]);
    for (const term of findAll(list.parentElement, "dt")) term.textContent = translateText(term.textContent);
  }
}

/** @param {string} text a message with any white space around it */
function translateText(text) {
  const message = text.trim();
  return message && message in MESSAGES ? text.replace(message, () => lookUpMessage(message)) : text;
}

/** @param {string} markup from this page's own files */
function translateMarkup(markup) {
  const template = document.createElement("template");
  template.innerHTML = markup;
  translateElement(template.content);
  return template.innerHTML;
}
