// @ts-check
// What temperature, top-k, top-p and min-p make of the next token's scores, as model/generation/sampling.py does: the table
// follows a slider without asking Python.
import { call } from "./connection.js";
import { bytesOf } from "./plots.js";
import { state } from "./state.js";

/** @typedef {{ temperature: number, top_k: number, top_p: number, min_p: number }} Settings */

/** The settings that need nothing but the scores. */
export const SETTINGS = ["temperature", "top_k", "top_p", "min_p"];
const SLIDERS = SETTINGS.map((name) => `#${name}`).join();

/**
 * The distribution that the settings make. As every limit keeps the likeliest, each keeps the first so many.
 * @param {ArrayLike<number>} scores of all tokens, the largest first
 * @param {Settings} settings with a temperature above 0
 * @returns {{ probabilities: Float64Array, kept: { top_k: number, top_p: number, min_p: number } }} of the tokens that can be
 *   drawn; and how many are left after each limit
 */
export function sampledDistribution(scores, { temperature, top_k, top_p, min_p }) {
  const kept = { top_k: Math.min(top_k || scores.length, scores.length), top_p: 0, min_p: 0 };
  const weights = Float64Array.from({ length: kept.top_k }, (_none, i) => Math.exp((scores[i] - scores[0]) / temperature));
  kept.top_p = top_p < 1 ? reaching(weights, top_p * sum(weights)) : kept.top_k;
  kept.min_p = kept.top_p;
  while (min_p && weights[kept.min_p - 1] < min_p) kept.min_p--;
  const left = weights.subarray(0, kept.min_p), total = sum(left);
  return { probabilities: left.map((weight) => weight / total), kept };
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

/** How many of the first values reach a sum; at least one. */
function reaching(values, total) {
  let reached = 0, count = 0;
  while (count < values.length && (count === 0 || reached < total)) reached += values[count++];
  return count;
}

const MINUS = "−";

/** Three significant digits, as Python's `format_number`. @param {number} value */
export function formatNumber(value) {
  if (value === 0) return "0";
  const power = +value.toExponential(2).split("e")[1];
  const text = power >= -3 && power < 4 ? value.toFixed(Math.max(0, 2 - power)) : value.toExponential(2).replace(/e([+-])(\d)$/, "e$10$2");
  return text.replaceAll("-", MINUS);
}

/** As Python's `format_logit`. @param {number} value */
export const formatLogit = (value) => (+value.toFixed(2) + 0).toFixed(2).replace("-", MINUS);

// The scores are fetched once somebody is about to move a slider.

/** @type {{ place: string, values: Float32Array | Float64Array } | null} */
let scores = null;
let asked = "";

/** What the scores depend on. */
const place = () => [state.checkpoint, state.prompt, state.generated, state.edits, state.query, state.repetition_penalty].join(" ");

/** The scores of the present state; null where there are none. */
const presentScores = () => (scores?.place === place() ? scores.values : null);

/** Has the scores there when a slider is moved. */
export function watchSliders() {
  for (const kind of ["pointerover", "pointerdown", "focusin"])
    document.addEventListener(kind, ({ target }) => { if (/** @type {Element} */ (target).closest?.(SLIDERS)) fetchScores(); }, { passive: true });
  document.addEventListener("keydown", () => { if (document.activeElement?.closest(SLIDERS)) fetchScores(); });
}

async function fetchScores() {
  const now = place();
  if (asked === now || !state.checkpoint) return;
  asked = now;
  try {
    const { scores: packed, size } = await call("next_token_scores", [state]), { buffer } = bytesOf(packed);
    scores = { place: now, values: buffer.byteLength === 4 * size ? new Float32Array(buffer) : new Float64Array(buffer) };
  } catch { asked = ""; } // Python is asked at every move, then
}

/**
 * A table's content (`NextTokenTable.pack`) by the present settings; null where that takes Python.
 * @param {any} content
 */
export function tunedTable(content) {
  const values = presentScores(), names = content.columns.map(({ name }) => name);
  const stages = ["scaled", ...["top_k", "top_p", "min_p"].filter((name) => (name === "top_p" ? state.top_p < 1 : state[name]))];
  const shown = names.filter((name) => ["argmax", "scaled", "top_k", "top_p", "min_p"].includes(name));
  if (!values || !state.temperature || !["", "a"].includes(content.run) || stages.join() !== shown.join()) return null;
  const { probabilities, kept } = sampledDistribution(values, /** @type {any} */ (state));
  const cumulative = probabilities.map(((total) => (value) => (total += value))(0));
  const rows = content.rows.map((row) => {
    const i = row.rank - 1, cutBy = ["top_k", "top_p", "min_p"].find((name) => i >= kept[name]);
    const limits = ["top_k", "top_p", "min_p"];
    const cell = (name, before) => {
      if (name === "scaled") return formatLogit(values[i] / state.temperature);
      if (name === "probability") return cutBy ? "0" : formatNumber(probabilities[i]);
      if (name === "cumulative") return cutBy ? "" : formatNumber(cumulative[i]);
      if (!limits.includes(name)) return before;
      if (cutBy && limits.indexOf(cutBy) < limits.indexOf(name)) return "";
      return cutBy === name ? content.cut : "✓";
    };
    const cells = names.map((name, column) => cell(name, row.cells[column]));
    const notes = row.notes.map((note, column) => (cells[column] === row.cells[column] ? note : ""));
    return { ...row, cells, notes, cut: Boolean(cutBy), probability: probabilities[i] ?? 0 };
  });
  const columns = content.columns.map((column) => ({ ...column, title: column.title.replace(/[\d.,]+$/, shown.includes(column.name) ? titleNumber(column.name) : "$&") }));
  // The random number may fall on another token, which is marked if it is seen; what is said of it is Python's.
  const hit = cumulative.findIndex((end) => end > content.u), drawn = rows.find(({ rank }) => rank === hit + 1)?.id ?? null;
  const stretches = rows.filter(({ probability }) => probability).map(({ id, token, rank, probability }) => {
    const end = cumulative[rank - 1];
    return { id, token, start: end - probability, end, note: "" };
  });
  return { ...content, rows, columns, stretches, drawn, words: drawn === content.drawn ? content.words : "" };
}

const titleNumber = (name) => (name === "top_k" ? state.top_k.toLocaleString("en") : String(state[name === "scaled" ? "temperature" : name]));
