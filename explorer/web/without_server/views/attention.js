// @ts-check
// The attention view, as in explorer/views/attention/.
import { _, lookUpMessage } from "../../static/text.js";
import { bitmapRowBytes, encodeBase64 } from "../../static/plotly_figures.js";
import { ATTENTION, RESIDUAL, SELECTED, cellFrame, columnFrame, tokenLabel, largest, numberedAxis, positionLabels, dotProduct, range, rowBand, rowsOf, smallest, sum, tokenAxis, windowAround, argmax, formatGeneral, formatNumber, formatPercent, formatSixDigits, formatCellNumber, quoteToken, quoteTokenInText, repeatedPosition } from "../figures.js";
import { CHOICES } from "../page_data.js";

/** @typedef {import("../views.js").ViewContext} ViewContext */

const MAX_STAGE_KEYS = 12, BLOCK_GAP = 0.01, MAX_PIXELS = 96, MAX_LINE_TOKENS = 48, MIN_DRAWN_WEIGHT = 0.05;
const OPACITIES = range(6).map((level) => MIN_DRAWN_WEIGHT + (level * (1 - MIN_DRAWN_WEIGHT)) / 6);

/** Return a head's rows of a value (H, T, width). @param {ViewContext} context @param {string} name @param {number} [head] @returns {Promise<Float32Array[]>} */
export async function headRows({ value, layer, head: chosen }, name, head = chosen) {
  const { data, shape: [numHeads, , width] } = await value(`blocks.${layer}.attn.${name}`);
  return rowsOf(data, width).slice((head * data.length) / numHeads / width, ((head + 1) * data.length) / numHeads / width);
}

/** Return the queries and keys whose products are the scores. @param {ViewContext} context */
export async function queryKeyVectors(context) {
  const suffix = context.config.position === "rope" ? "_rot" : "";
  return Promise.all([headRows(context, `q${suffix}`), headRows(context, `k${suffix}`)]);
}

/** Return score, weight and output of the selected query and key, in numbers. @param {ViewContext} context */
async function formula(context) {
  const { config, tokens, layer, head, position: query, key, dHead } = context, [q, k] = await queryKeyVectors(context), pattern = await headRows(context, "pattern");
  const dots = range(query + 1).map((keyIndex) => dotProduct(q[query], k[keyIndex])), scores = dots.map((dot) => dot / Math.sqrt(dHead)), max = largest(scores);
  const exps = scores.map((score) => Math.exp(score - max)), total = sum(exps), weight = exps[key] / total;
  return _("{whose}, query {query} ({query_position}) → key {key} ({key_position})\nscore  = q·k / {divisor} = {dot} / {divided_by} = {score}\nweight = e^(score − max) / Σ e^(scores − max) = {exp_score} / {exp_total} = {weight}\n{recomputed}", {
    whose: _("layer {layer} head {head}", { layer, head }), query: quoteToken(tokens[query]), query_position: query, key: quoteToken(tokens[key]), key_position: key,
    dot: formatSixDigits(dots[key]), divisor: "√d", divided_by: `√${dHead}`, score: formatSixDigits(scores[key]), exp_score: formatSixDigits(exps[key]), exp_total: formatSixDigits(total),
    weight: formatSixDigits(weight),
    recomputed: _("recomputed from {vectors}, off by {error}", { vectors: config.position === "rope" ? _("the rotated q and k") : _("q and k"), error: formatNumber(Math.abs(weight - pattern[query][key])) }),
  });
}

/** Describe where the selected head's query looks (attention_sentence). @param {ViewContext} context */
async function sentence(context) {
  const { tokens, layer, head, position: query, key, edits } = context, weights = Array.from((await headRows(context, "pattern"))[query].subarray(0, query + 1)), strongest = argmax(weights), count = weights.filter((weight) => weight === weights[strongest]).length;
  const nameKey = (index) => (index === query ? _("itself") : quoteTokenInText(tokens.slice(0, query + 1), index));
  const values = { layer, head, query: quoteTokenInText(tokens, query), key: nameKey(key), share: formatPercent(weights[key]), most: nameKey(strongest), percent: formatPercent(weights[strongest]), count };
  let looks = _("Layer {layer} head {head}: {query} looks most at {most}, with {percent}.", values);
  if (query === 0) looks = _("Layer {layer} head {head}: {query} comes first and sees only itself.", values);
  else if (count > 1) looks = _("Layer {layer} head {head}: {query} looks most at {count} tokens, with {percent} each.", values);
  else if (key !== strongest) looks = _("Layer {layer} head {head}: {query} looks at {key} with {share}, most at {most} with {percent}.", values);
  if (edits.includes(`blocks.${layer}.attn.z.${head}*zero`)) return `${looks} ${_("It is switched off: it looks, but writes nothing.")}`;
  return key === strongest || query === 0 || count > 1 ? `${looks} ${_("A cell that you choose shows its numbers.")}` : looks;
}

/** Pack the patterns of all heads, a byte per pixel (HeadGridWidget.pack). @param {ViewContext} context */
async function heads({ config, tokens, ask }) {
  const { num_layers: layers, num_heads: heads } = config, block = Math.ceil(tokens.length / MAX_PIXELS), pixels = Math.ceil(tokens.length / block), row = bitmapRowBytes(pixels);
  const bytes = await ask("patternPixels", { block, pixels, row });
  return {
    layers, heads, tokens: tokens.length, block, pixels, data: range(layers * heads).map((i) => encodeBase64(bytes.subarray(i * pixels * row, (i + 1) * pixels * row))),
    alt: _("Attention patterns of {heads} heads in each of {layers} layers; choose one.", { heads, layers }), signed: false,
  };
}

/** Return a pattern of the selected head or layer, one of PATTERNS, (T, T). @param {ViewContext} context @param {string} kind @returns {Promise<Float32Array[]>} */
export async function displayedPattern(context, kind) {
  const readAll = (places) => Promise.all(places.map(([layer, head]) => headRows({ ...context, layer }, "pattern", head)));
  const chosenPlaces = context.chosenHeads.length ? context.chosenHeads : [[context.layer, context.head]];
  const headPlaces = { layer_mean: range(context.config.num_heads).map((head) => [context.layer, head]), chosen_mean: chosenPlaces }[kind.replace("max", "mean")] ?? [[context.layer, context.head]];
  const patterns = await readAll(headPlaces), combine = (values) => (kind.endsWith("max") ? largest(values) : sum(values) / values.length);
  const weights = patterns.length === 1 ? patterns[0] : patterns[0].map((row, query) => row.map((_weight, key) => combine(patterns.map((pattern) => pattern[query][key]))));
  if (kind === "moved") {
    const norms = await context.ask("outputNorms", { layer: context.layer, head: context.head });
    return weights.map((row) => row.map((weight, key) => weight * norms[key]));
  }
  if (kind !== "without_first") return weights;
  return weights.map((row) => {
    const rest = sum(row.subarray(1));
    return row.map((weight, key) => (key && rest > 1e-12 ? weight / rest : 0));
  });
}

/** @param {ViewContext} context */
async function pattern(context) {
  const { tokens, position: query, key, layer, head, state, chosenHeads } = context, kind = state.pattern, values = await displayedPattern(context, kind);
  const [queries, keys] = [query, key].map((index) => windowAround(index, state.window, tokens.length));
  const headPlaces = kind.startsWith("chosen") && chosenHeads.length ? chosenHeads : [[layer, head]];
  return {
    labels: positionLabels(tokens), weights: values.map((row, index) => Array.from(row, (weight, i) => (i <= index ? weight : null))), most: kind === "moved" ? largest(values.map(largest)) || 1 : 1,
    measure: kind === "moved" ? _("weight × length") : _("weight"), gap: keys.length <= 48 ? 0.5 : 0,
    whose: kind.startsWith("layer") ? _("layer {layer}", { layer }) : headPlaces.map(([l, h]) => _("layer {layer} head {head}", { layer: l, head: h })).join(", "),
    tokens: tokens.length, kind: lookUpMessage(CHOICES.pattern.options.find(([value]) => value === kind)[1]),
    keys: tokenAxis(tokens, { maxLabels: 32, visible: keys }), key_range: [keys[0] - 0.5, keys.at(-1) + 0.5],
    queries: tokenAxis(tokens, { visible: queries }), query_range: [queries.at(-1) + 0.5, queries[0] - 0.5], frames: [rowBand(query), cellFrame(query, key)],
  };
}

/** @param {ViewContext} context */
async function row(context) {
  const { tokens, position: query, key } = context, weights = (await headRows(context, "pattern"))[query].subarray(0, query + 1), strongest = argmax(weights), labels = positionLabels(tokens.slice(0, query + 1));
  return {
    labels, weights, chosen: [{ chosen_label: [labels[key]], chosen_weight: [weights[key]] }], token: quoteToken(tokens[query]), position: query, weight: formatNumber(weights[strongest]),
    key: quoteToken(tokens[strongest]), strongest, keys: tokenAxis(tokens.slice(0, query + 1)), range: [Math.min(0, smallest(weights)), Math.max(1, largest(weights))],
  };
}

/** Return the keys to show, in order: the chosen one, those with the largest weights, and the first masked one, if any. @param {ArrayLike<number>} weights @param {number} query @param {number} chosen @param {number} maxKeys */
export function selectKeys(weights, query, chosen, maxKeys) {
  const firstMasked = range(query + 1, weights.length).slice(0, 1), rank = (key) => (key === chosen ? Infinity : weights[key]);
  const top = range(query + 1).sort((a, b) => (rank(a) === rank(b) ? a - b : rank(b) - rank(a))).slice(0, maxKeys - firstMasked.length);
  return [...top.sort((a, b) => a - b), ...firstMasked];
}

/** Return the visible keys by axis, from left to right. Each run of neighbours has an axis; the chosen key's is "x". @param {number} numKeys @param {number[]} selected @param {number} chosen @returns {[string, number[]][]} */
function stageKeyBlocks(numKeys, selected, chosen) {
  if (numKeys <= MAX_STAGE_KEYS + 2) return [["x", range(numKeys)]];
  const starts = selected.flatMap((key, i) => (key - 1 === selected[i - 1] ? [] : [i]));
  let numOtherAxes = 1;
  return starts.map((start, i) => selected.slice(start, starts[i + 1])).map((keys) => [keys.includes(chosen) ? "x" : `x${++numOtherAxes}`, keys]);
}

/** Return the blocks' axes side by side, with widths proportional to their numbers of keys, and the title in the middle. @param {string[]} tokens @param {[string, number[]][]} blocks @param {string} title */
function stageAxes(tokens, blocks, title) {
  const visibleKeys = blocks.flatMap(([, keys]) => keys), middle = visibleKeys[visibleKeys.length >> 1], width = (1 - BLOCK_GAP * (blocks.length - 1)) / visibleKeys.length;
  let left = 0;
  return Object.fromEntries(blocks.map(([axis, keys]) => {
    const { of_tokens, ...settings } = numberedAxis(tokens, keys.includes(middle) ? title : "", keys), right = left + width * keys.length, domain = [left, Math.min(1, right)];
    left = right + BLOCK_GAP;
    return [axis.replace("x", "xaxis"), { ...settings, ticktext: keys.map((key) => tokenLabel(tokens[key]) + repeatedPosition(tokens, key)), tickangle: -90, ...(axis === "x" && { of_tokens }), domain }];
  }));
}

/** Return the stages of the selected query's attention, from q·k to the value-weighted attention. @param {ViewContext} context */
async function stages(context) {
  const { tokens, position: query, key, layer, head, dHead } = context, labels = positionLabels(tokens);
  const scores = (await headRows(context, "scores"))[query], weights = (await headRows(context, "pattern"))[query], norms = await context.ask("outputNorms", { layer, head });
  const blocks = stageKeyBlocks(tokens.length, selectKeys(weights, query, key, MAX_STAGE_KEYS), key);
  const rows = /** @type {[string, number[]][]} */ ([
    ["q·k", Array.from(scores, (score) => score * Math.sqrt(dHead))],
    [_("score = q·k / {divisor}", { divisor: `√${dHead}` }), Array.from(scores)],
    [query < tokens.length - 1 ? _("masked: no key after the query") : _("nothing to mask: the last query"), Array.from(scores, (score, index) => (index <= query ? score : -Infinity))],
    [_("weight = softmax"), Array.from(weights)],
    [_("length of Wₒ v"), Array.from(norms)],
    [_("moved = weight × length"), Array.from(weights, (weight, index) => weight * norms[index])],
  ]);
  const maxByRow = rows.map(([, values]) => largest(values.filter(Number.isFinite).map(Math.abs)) || 1);
  return {
    rows: rows.map(([name]) => name), blocks: blocks.map(([axis, keys]) => ({
      axis, keys, shades: rows.map(([, values], i) => keys.map((index) => (Number.isFinite(values[index]) ? values[index] / maxByRow[i] : null))),
      numbers: rows.map(([, values]) => keys.map((index) => formatCellNumber(values[index]))), exact: rows.map(([, values]) => keys.map((index) => `${labels[index]}: ${formatSixDigits(values[index])}`)),
    })),
    query: quoteTokenInText(tokens, query), key: quoteTokenInText(tokens, key), score: formatNumber(scores[key]), weight: formatNumber(weights[key]),
    axes: stageAxes(tokens, blocks, keyAxisTitle(weights, blocks.flatMap(([, keys]) => keys))), anchor: blocks[0][0], frame: columnFrame(key, rows.length),
  };
}

/** Return the title of the key axis, with the share of attention to keys that are not drawn. @param {Float32Array} weights @param {number[]} keys */
function keyAxisTitle(weights, keys) {
  const numHidden = weights.length - keys.length;
  if (!numHidden) return _("key");
  const elsewhere = formatNumber(sum(weights.filter((_weight, index) => !keys.includes(index))));
  return _("the chosen key and the heaviest (the {count} others have {elsewhere} of the weight together)", { count: numHidden, elsewhere });
}

/** Return the terms of a score, and their sum (score_term_values). @param {number[]} terms */
export const scoreTermValues = (terms) => ({ terms: range(terms.length), added: terms, parts: terms.length, total: formatNumber(sum(terms)), frames: [] });

/** @param {ViewContext} context */
async function dimensions(context) {
  const { position: query, key, dHead } = context, [q, k] = await queryKeyVectors(context), score = (await headRows(context, "scores"))[query][key];
  const terms = Array.from(q[query], (x, i) => (x * k[key][i]) / Math.sqrt(dHead));
  return { ...scoreTermValues(terms), count: terms.length, score: formatNumber(score), divisor: "√d" };
}

/** @param {ViewContext} context */
async function lines(context) {
  const { tokens, position: query, key, layer, head } = context, T = tokens.length, weights = await headRows(context, "pattern"), end = Math.min(T, Math.max(MAX_LINE_TOKENS, query + 1 + (MAX_LINE_TOKENS >> 2))), visible = range(Math.max(0, end - MAX_LINE_TOKENS), end);
  const lineEnds = visible.flatMap((index) => visible.filter((to) => weights[index][to] >= MIN_DRAWN_WEIGHT).map((to) => ({ at: index, to, level: OPACITIES.filter((edge) => edge <= weights[index][to]).length - 1 })));
  const groups = OPACITIES.flatMap((opacity, level) => [false, true].map((chosen) => ({ opacity, chosen, ends: lineEnds.filter((line) => line.level === level && (line.at === query) === chosen) }))).filter(({ ends }) => ends.length);
  const weightHover = (from, to) => (to > from ? _("not seen: after the query") : _("from query {query} to key {key}: weight {weight:.6g}", { query: from, key: to, weight: formatGeneral(weights[from][to]) }));
  const side = (x, chosen, hover) => ({
    across: visible.map(() => x), down: visible, marker: { size: 6, color: visible.map((index) => (index === chosen ? SELECTED : RESIDUAL)) }, names: visible.map((index) => tokenLabel(tokens[index])), side: x ? "middle right" : "middle left",
    ends: visible.map((index) => (x ? [Math.max(query, index), index] : [index, Math.min(index, key)])), hover: visible.map((index) => `${hover({ position: index, token: tokenLabel(tokens[index]) })}<br>${x ? weightHover(query, index) : weightHover(index, key)}`),
  });
  const isTruncated = visible.length < T, title = isTruncated ? _("tokens {first} to {last} of {total}", { first: visible[0], last: end - 1, total: T }) : "", whose = _("layer {layer} head {head}", { layer, head });
  return {
    lines: groups.map(({ opacity, chosen, ends }) => ({ across: ends.flatMap(() => [0, 1, null]), down: ends.flatMap(({ at, to }) => [at, to, null]), line: { color: chosen ? SELECTED : ATTENTION, width: chosen ? 3 : 1.5 }, opacity })),
    sides: [side(0, query, (values) => _("query {position} {token}", values)), side(1, key, (values) => _("key {position} {token}", values))], whose: isTruncated ? `${whose} (${title})` : whose, token: quoteToken(tokens[query]), title,
    range: [end - 0.5, visible[0] - 0.5], meta: { lines: T },
  };
}

export default { formula, sentence, panels: { heads, pattern, row, stages, dimensions, lines } };
