// @ts-check
// The tokens view, as in explorer/views/tokens/.
import { _ } from "../../static/text.js";
import { EMBEDDING, SELECTED, argmax, tokenLabel, largest, range, rankedIds, rowBand, rowsOf, smallest, softmax, bracketNegative, formatFixed, formatNumber, formatPercent, formatSixDigits, quoteToken } from "../figures.js";
import { vectors } from "./positions.js";

/** @typedef {import("../views.js").ViewContext} ViewContext */

const MAX_ROWS = 20, MAX_NEIGHBOURS = 15, COLUMN_WIDTHS = [1, 2, 1, 3.2, 1.6, 1.6, 1.1], FIGURE_SPACE = "\u2007";
/** Left edges of the table's columns, and the right edge of the last. */
export const EDGES = COLUMN_WIDTHS.reduce((all, width) => [...all, all.at(-1) + width], [0]);

/** Format at most `max` bytes in hexadecimal; "none" for a special token. @param {Uint8Array | null} bytes @param {number} max */
function formatHex(bytes, max) {
  if (!bytes) return _("none");
  return Array.from(bytes.subarray(0, max), (byte) => byte.toString(16).padStart(2, "0")).join(" ") + (bytes.length > max ? " …" : "");
}

/** Return the terms of the selected token's embedding (embedding_parts). @param {ViewContext} context */
const embeddingParts = (context) => context.once("embedding", async () => {
  const { config, value, ask, ids, position } = context, row = await ask("embeddingRow", { tokenId: ids[position] }), readRow = async (name) => rowsOf((await value(name)).data, config.d_model)[position];
  const scale = config.scale_embeddings ? Math.sqrt(config.d_model) : 1, added = config.position === "sinusoidal" ? await readRow("position_embed") : null;
  const total = Float64Array.from(row, (x, dim) => x * scale + (added ? added[dim] : 0)), captured = await readRow("embed");
  return { row, scale, added, total, error: largest(total.map((x, dim) => Math.abs(x - captured[dim]))) };
});

/** Return the selected token's embedding, element by element. @param {ViewContext} context */
async function formula(context) {
  const { config, tokens, ids, position, measures, state, ask } = context, { row, scale, added, total, error } = await embeddingParts(context), dim = Math.min(state.dim, config.d_model - 1);
  const [bytes] = await ask("tokenBytes", { ids: [ids[position]] }), bits = measures.surprisal[position];
  const symbols = `row[${dim}]${scale === 1 ? "" : " · √D"}${added ? ` + position[${dim}]` : ""}`, numbers = `${formatSixDigits(row[dim])}${scale === 1 ? "" : ` · √${config.d_model}`}${added ? ` + ${bracketNegative(formatSixDigits(added[dim]))}` : ""}`;
  const totalText = scale === 1 && !added ? "" : ` = ${formatSixDigits(total[dim])}`;
  return [
    _("{token} ({position}): bytes {bytes} → id {id} → row {id} of the {size:,} × {width} embedding table", { token: quoteToken(tokens[position]), position, bytes: formatHex(bytes, 24), id: ids[position], size: config.vocab_size, width: config.d_model }),
    _("embedding[{dim}] = {sum}   recomputed in all {width} dimensions, off by {error}", { dim, sum: `${symbols} = ${numbers}${totalText}`, width: config.d_model, error: formatNumber(error) }),
    Number.isNaN(bits) ? _("nothing predicted it: it is the first")
      : _("surprisal = −log₂ p = −log₂ {probability} = {bits} bits, rank {rank:.0f} of {size:,}", { probability: formatSixDigits(2 ** -bits), bits: formatSixDigits(bits), rank: measures.rank[position], size: config.vocab_size }),
  ].join("\n");
}

/** @param {ViewContext} context */
async function table(context) {
  const { config, tokens, ids, position, measures: { surprisal, entropy, rank }, ask, state } = context, T = tokens.length, start = Math.max(0, Math.min(position - MAX_ROWS / 2, T - MAX_ROWS)), rows = range(start, Math.min(start + MAX_ROWS, T));
  const bytes = await ask("tokenBytes", { ids: rows.map((index) => ids[index]) }), formatMeasure = (value, digits) => (Number.isNaN(value) ? "–" : formatFixed(value, digits));
  const columns = [
    rows.map(String), rows.map((index) => tokenLabel(tokens[index])), rows.map((index) => String(ids[index])), rows.map((_at, i) => formatHex(bytes[i], 7)),
    rows.map((index) => formatMeasure(surprisal[index], 2)), rows.map((index) => formatMeasure(entropy[index], 2)), rows.map((index) => formatMeasure(rank[index], 0)),
  ];
  const cells = columns.map((column, i) => ([1, 3].includes(i) ? column : column.map((text) => text.padStart(Math.max(...column.map(({ length }) => length)), FIGURE_SPACE))));
  const surprisalText = Number.isNaN(surprisal[position]) ? _("the first") : _("surprisal {bits} bits, rank {rank:.0f}", { bits: formatNumber(surprisal[position]), rank: rank[position] });
  return {
    meta: { numbers: "text" }, edges: EDGES, rows, most: 2 * Math.log2(config.vocab_size), shades: rows.map((index) => [0, 0, 0, 0, surprisal[index] || 0, entropy[index] || 0, Math.log2(rank[index]) || 0]), cells: rows.map((_at, i) => cells.map((column) => column[i])),
    hover: rows.map((index, i) => COLUMN_WIDTHS.map(() => formatRow(context, index, bytes[i]))), positions: rows.map((index) => COLUMN_WIDTHS.map(() => index)), first: rows[0], last: rows.at(-1), total: T, token: quoteToken(tokens[position]), fact: surprisalText,
    middles: COLUMN_WIDTHS.map((_width, i) => (EDGES[i] + EDGES[i + 1]) / 2), titles: [_("position"), _("token"), _("id"), _("bytes"), _("surprisal (bits)"), _("entropy (bits)"), _("rank")],
    column_range: [0, EDGES.at(state.lesson ? 3 : -1)], row_range: [rows[0] + Math.max(rows.length, 8) - 0.4, rows[0] - 0.6], band: rowBand(position, 2),
  };
}

/** Format a row of the table in full. @param {ViewContext} context @param {number} index @param {Uint8Array | null} bytes */
function formatRow({ config, tokens, ids, measures: { surprisal, entropy, rank } }, index, bytes) {
  const bits = surprisal[index], lines = [_("{token} at position {position}", { token: tokenLabel(tokens[index], 40), position: index }), _("id {id}, bytes {bytes}", { id: ids[index], bytes: formatHex(bytes, 24) })];
  if (Number.isNaN(bits)) return [...lines, _("the first token: nothing predicted it")].join("<br>");
  return [
    ...lines, _("probability {probability}, surprisal {bits} bits", { probability: formatNumber(2 ** -bits), bits: formatNumber(bits) }), _("expected: {bits} bits (entropy)", { bits: formatNumber(entropy[index]) }),
    _("rank {rank:.0f} of {size:,} tokens", { rank: rank[index], size: config.vocab_size }),
  ].join("<br>");
}

/** @param {ViewContext} context */
async function nearest({ tokens, vocabulary, ids: own, position, ask }) {
  const { ids, cosines } = await ask("nearest", { tokenId: own[position], count: MAX_NEIGHBOURS }), labels = ids.map((id) => tokenLabel(vocabulary[id]));
  return {
    cosines, rows: range(ids.length), hover: ids.map((id, i) => _("{token}, id {id}", { token: labels[i], id })), labels, token: quoteToken(tokens[position]), label: tokenLabel(tokens[position]),
    nearest: ids.slice(0, 3).map((id, i) => `${quoteToken(vocabulary[id])} ${formatNumber(cosines[i])}`).join(", "), range: [Math.min(0, smallest(cosines)), 1], rows_range: [ids.length - 0.4, -0.6],
  };
}

/** @param {ViewContext} context */
async function vector(context) {
  const { config, tokens, position, state } = context, { row, scale, added, total } = await embeddingParts(context), D = config.d_model, own = Array.from(row, (x) => x * scale);
  const rows = /** @type {[string, number[]][]} */ ([[scale === 1 ? _("embedding") : _("embedding × {factor}", { factor: "√D" }), own], added && [_("position"), Array.from(added)], added && [_("their sum"), Array.from(total)]].filter(Boolean));
  const most = largest(rows.flatMap(([, values]) => values.map(Math.abs))) || 1, axisOf = (i) => (i ? `y${i + 1}` : "y"), share = 1 / rows.length;
  return {
    bars: rows.flatMap(([name, values], i) => [
      { dims: range(D), values, marker: { color: EMBEDDING }, name, axis: axisOf(i) },
      ...(state.dim < D ? [{ dims: [state.dim], values: [values[state.dim]], marker: { color: SELECTED }, name, axis: axisOf(i) }] : []),
    ]),
    axes: Object.fromEntries(rows.map(([name], i) => [i ? `yaxis${i + 1}` : "yaxis", { domain: [Math.max(0, 1 - i * share - share + 0.03), 1 - i * share], range: [-1.05 * most, 1.05 * most], title: { text: name }, nticks: 5 }])),
    token: quoteToken(tokens[position]), position, dimensions: D, least: formatNumber(smallest(total)), most: formatNumber(largest(total)), parts: rows.map(([name]) => name).join(", "), anchor: rows.length > 1 ? `y${rows.length}` : "y", range: [-1, D], gap: D <= 256 ? 0.15 : 0,
  };
}

/** Describe what was expected in the selected token's place (tokens_sentence). @param {ViewContext} context */
async function sentence({ tokens, ids, vocabulary, position, measures: { surprisal }, ask }) {
  const choose = _("Choose a token: how it was built.");
  if (!position) {
    if (tokens.length === 1) return `${_("Nothing comes before the first token, so nothing predicted it.")} ${choose}`;
    const leastLikely = 1 + argmax(surprisal.slice(1)), values = { least: quoteToken(tokens[leastLikely]), percent: formatPercent(2 ** -surprisal[leastLikely]) };
    return `${_("Nothing predicted the first token; of the others the model expected {least} least, with {percent}.", values)} ${choose}`;
  }
  const { logits } = await ask("prediction", { position: position - 1 }), shares = softmax(logits), [first, second] = rankedIds(logits), id = ids[position];
  const formatGuess = (guess) => `${quoteToken(vocabulary[guess])} ${formatPercent(shares[guess])}`;
  const values = { before: quoteToken(tokens[position - 1]), guesses: [first, second].filter((guess) => guess !== id).map(formatGuess).join(", "), token: formatGuess(id) };
  return `${first === id ? _("After {before} the model most expected {token}, then {guesses}.", values) : _("After {before} the model expected {guesses}; {token}.", values)} ${choose}`;
}

export default { formula, sentence, panels: { table, nearest, vector, positions: vectors }, lacks: ({ position }, name) => name === "positions" && position !== "sinusoidal" };
