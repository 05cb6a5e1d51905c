// @ts-check
// Answers to the page's requests from the model in this browser, as explorer/web/browser_api/endpoints.py. An import map puts this file
// in place of static/server_connection.js.
import { applyAction, NEEDS_PYTHON, callWorker, interventionsOf, openModel, openRun, UserError, visibleIds } from "./actions.js";
import { samplingStages } from "../static/in_browser/transformer_lm.js";
import { _, ngettext, language, lookUpMessage, MESSAGES } from "../static/text.js";
import { derivationText } from "./derivations.js";
import { derivePoint } from "./point_derivations.js";
import { describeIntervention, entropy, formatCount, formatFixed, formatGeneral, quoteToken, quoteWord, rankedIds, softmax, sum } from "./figures.js";
import { MARKUP, MODELS } from "./page_data.js";
import { packMarks, DRAWN_VIEWS, packCode, packDropdowns, packView } from "./views.js";
import { packChoosers, packWholeModel, wholeModelNumbers } from "./whole_model.js";
import { findAll } from "../static/dom.js";
import { SETTINGS } from "../widgets/next_token/next_token.js";

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
  walk: async (state, name) => ({ name, ...await (await import("./lessons.js")).WALKTHROUGHS[name](await openRun(state)) }),
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
  const guess = matchGuess(prediction, vocabulary, (state.guess ?? "").trim()), text = Array.from(tokens.slice(0, position + 1).join("")).slice(-60).join("");
  const contents = {
    problem: "",
    "next-token": { ...packTable(prediction, vocabulary, state.find ?? "", edits.length ? about.unchanged : null, guess), after: (state.depth === "story" ? quoteWord : quoteToken)(tokens[position]) },
    "next-token-words": packSummary(prediction, vocabulary, tokens[position], position),
    guess: { ...packGuess(prediction, vocabulary, tokens[position], guess), written: written && packWritten(...written, vocabulary, edits.length > 0), text },
    "changes-effect": edits.length ? packChangeEffect(prediction, about.predict(position, about.unchanged), vocabulary, state.depth === "story") : null,
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

// The next token's numbers, as explorer/web/widgets/next_token/ and tokens/ pack them.

/** @typedef {import("./actions.js").Prediction} Prediction */

const NUM_ROWS = 10, MAX_MATCHES = 4, MIN_INTERVAL_WIDTH = 0.003;

/** Compute the numbers of each token at each stage (SamplingTable). @param {Prediction} prediction */
function samplingTable({ stages, logits, settings, sampled, plain }) {
  const scaled = Float64Array.from(stages.penalised, (logit) => logit / (settings.temperature || 1)), order = rankedIds(stages.penalised), rankById = new Map(order.map((id, i) => [id, i]));
  const largest = scaled[order[0]], limits = Object.entries(stages.retained).map(([name, ids]) => /** @type {[string, Set<number>]} */ ([name, new Set(Array.from(ids))]));
  const weight = scaled.map((value) => Math.exp(value - largest)), drawable = rankedIds(sampled), cumulative = new Map(), ahead = new Map();
  let cumulativeSum = 0, keptWeight = 0;
  for (const id of drawable) cumulative.set(id, cumulativeSum += sampled[id]);
  const total = sum(Array.from(stages.retained.top_k, (id) => weight[id]));
  for (const id of order) { ahead.set(id, keptWeight / total); if (limits[0][1].has(id)) keptWeight += weight[id]; }
  return {
    order, largest, total: 1 / sampled.reduce((a, b) => Math.max(a, b)), cumulative,
    row: (id) => ({
      token_id: id, rank: rankById.get(id) + 1, logit: logits[id], penalised: stages.penalised[id], scaled: scaled[id], plain: plain[id], weight: weight[id], ahead: ahead.get(id),
      cut_by: limits.find(([, ids]) => !ids.has(id))?.[0] ?? null, probability: sampled[id], cumulative: cumulative.get(id),
    }),
  };
}

/** Return the table of the next token, and its bar of probability (NextTokenTable.pack).
 * @param {Prediction} prediction @param {string[]} vocabulary @param {string} find @param {ArrayLike<number> | null} unchanged logits without interventions @param {ReturnType<typeof matchGuess>} guess */
function packTable(prediction, vocabulary, find, unchanged, guess) {
  const { settings, actual, drawn, u, sampled } = prediction, { order, row, cumulative, largest, total } = samplingTable(prediction), unchangedProbabilities = unchanged && softmax(unchanged);
  const fixedIds = new Set([drawn, ...(actual === null ? [] : [actual]), ...(unchanged ? [rankedIds(unchanged)[0]] : [])]), matchingIds = findTokens(vocabulary, find, order);
  const guessId = guess?.isExact ? guess.id : null, shownIds = new Set([...fixedIds, ...(guessId === null ? [] : [guessId])]);
  const bestIds = order.slice(0, NUM_ROWS).filter((id) => !shownIds.has(id)).slice(0, Math.max(0, NUM_ROWS - shownIds.size));
  return {
    run: "", settings: Object.fromEntries(SETTINGS.map((name) => [name, settings[name]])), size: vocabulary.length, largest, total, actual, drawn, find, found: matchingIds.length, u, other: null,
    rows: [...new Set([...shownIds, ...bestIds, ...matchingIds])].map((id) => ({
      ...row(id), token: vocabulary[id], found: matchingIds.includes(id), guessed: id === guessId, ...(unchanged && { before: { logit: unchanged[id], plain: unchangedProbabilities[id] } }),
    })).sort((a, b) => a.rank - b.rank),
    stretches: [...vocabulary.keys()].filter((id) => sampled[id] >= MIN_INTERVAL_WIDTH || (fixedIds.has(id) && sampled[id] > 0))
      .map((id) => ({ token_id: id, token: vocabulary[id], start: Math.max(0, cumulative.get(id) - sampled[id]), end: cumulative.get(id) })).sort((a, b) => a.start - b.start),
  };
}

/** Return the ids of the tokens that match a text best, or of the one whose id it is. @param {string[]} vocabulary @param {string} find @param {number[]} order */
function findTokens(vocabulary, find, order) {
  const text = find.replaceAll("·", " ").toLowerCase(), isId = /^\d{1,9}$/.test(text) && +text < vocabulary.length;
  if (!text) return [];
  const containing = order.filter((id) => vocabulary[id].toLowerCase().includes(text) && !(isId && id === +text));
  const isExact = (id) => vocabulary[id].toLowerCase().trim() === text.trim();
  return [...(isId ? [+text] : []), ...containing.filter(isExact), ...containing.filter((id) => !isExact(id))].slice(0, MAX_MATCHES);
}

/** Return the distribution's numbers for sentences (NextTokenSummary.pack). @param {Prediction} prediction @param {string[]} vocabulary @param {string} after @param {number} position */
function packSummary({ sampled, plain, actual }, vocabulary, after, position) {
  return {
    run: "a", after, position, kept: sampled.filter((p) => p > 0).length, size: sampled.length, entropy: entropy(sampled), plain_entropy: entropy(plain),
    actual: actual === null ? null : { token: vocabulary[actual], rank: rankBy(plain, actual), plain: plain[actual] },
  };
}

/** Return a token's rank: 1 + the number of more probable ones. @param {Float64Array} probabilities @param {number} id */
const rankBy = (probabilities, id) => 1 + probabilities.filter((p) => p > probabilities[id]).length;

/** Return what interventions did to the likeliest token (pack_change_effect). @param {Prediction} prediction @param {Prediction} before without them @param {string[]} vocabulary @param {boolean} isStory */
function packChangeEffect(prediction, before, vocabulary, isStory) {
  const runs = [before, prediction], [first, now] = runs.map(({ sampled, plain }) => rankedIds(isStory ? sampled : plain)[0]);
  const packToken = (id) => ({ token: vocabulary[id], plain: runs.map(({ plain }) => plain[id]), sampled: runs.map(({ sampled }) => sampled[id]), logits: runs.map(({ logits }) => logits[id]) });
  return { is_story: isStory, first: packToken(first), now: now === first ? null : packToken(now) };
}

/** Return the likeliest tokens, and the guess's token (NextTokenGuessForm.pack).
 * @param {Prediction} prediction @param {string[]} vocabulary @param {string} after @param {ReturnType<typeof matchGuess>} guess */
function packGuess({ sampled, plain }, vocabulary, after, guess) {
  const best = rankedIds(sampled)[0], distribution = sampled[guess?.id] > 0 ? sampled : plain;
  return {
    after, candidates: rankedIds(plain).slice(0, 10).map((id) => vocabulary[id]), likeliest: { token: vocabulary[best], sampled: sampled[best] },
    guess: guess && { text: guess.text, token: vocabulary[guess.id] ?? null, is_exact: guess.isExact, sampled: sampled[guess.id], rank: rankBy(distribution, guess.id) },
  };
}

/** Return a generated token's own chance and rank (pack_written_token). @param {string} after @param {Prediction} prediction @param {string[]} vocabulary @param {boolean} isChanged whether the run has interventions */
const packWritten = (after, { plain, actual }, vocabulary, isChanged) => ({ after, token: vocabulary[actual], plain: plain[actual], rank: rankBy(plain, actual), is_changed: isChanged });

/** Return a guess's token, without an id if there is none, and whether its text equals the guess; null for no guess (guessed_token).
 * @param {Prediction} prediction @param {string[]} vocabulary @param {string} text */
function matchGuess({ sampled, plain }, vocabulary, text) {
  if (!text) return null;
  const word = text.toLowerCase(), texts = vocabulary.map((token) => token.trim().toLowerCase()), ids = [...texts.keys()];
  const exact = ids.filter((id) => texts[id] === word), candidates = exact.length ? exact : ids.filter((id) => texts[id] && word.startsWith(texts[id]));
  const isInCase = (id) => text.startsWith(vocabulary[id].trim());
  const [id] = candidates.sort((a, b) => texts[b].length - texts[a].length || sampled[b] - sampled[a] || +isInCase(b) - +isInCase(a) || plain[b] - plain[a]);
  return { text, id, isExact: exact.length > 0 };
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
