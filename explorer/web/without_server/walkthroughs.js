// @ts-check
// Walkthroughs: computations step by step, as in explorer/analysis/walkthroughs.py. Each step has a sentence and frames of a drawing.
import { _ } from "../static/translations.js";
import { largest, vectorNorm, range, rowsOf, escapeToken, escapeTokenInText, formatFixed, formatNumber, quoteToken, quoteTokenInText } from "./figures.js";
import { UserError } from "./actions.js";
import { headRows, selectKeys } from "./views/attention.js";
import { mainPair, rotatedPairs, rotationAngles } from "./views/positions.js";
import { depthNames } from "./views/prediction.js";
import { residualStream, updates } from "./views/residual.js";

/** @typedef {import("./views.js").ViewContext} ViewContext @typedef {{ title: string, segments: { says: string, kind: string, frames: Record<string, any>[] }[] }} Walkthrough */

const MAX_KEYS = 8, MAX_DIMENSIONS = 16, MAX_FRAMES = 24;

/** Return a number as text, and its share of the largest one. @param {number} value @param {number} max @param {(value: number) => string} [formatValue] */
const displayNumber = (value, max, formatValue = formatNumber) => ({ text: value === -Infinity ? "−∞" : formatValue(value), share: max > 0 && Number.isFinite(value) ? Math.max(-1, Math.min(1, value / max)) : 0 });
/** @param {number[]} values @param {(value: number) => string} [formatValue] */
const displayNumbers = (values, formatValue) => values.map((value) => displayNumber(value, largest(values.filter(Number.isFinite).map(Math.abs)), formatValue));
const formatWeight = (weight) => formatFixed(weight, 4);

/** Multiply each value by its weight, and add them up to the head's output. @param {ViewContext} context @param {number[]} keys */
async function mixValues(context, keys) {
  const { tokens, position, dHead } = context, truncate = (row) => row.subarray(0, MAX_DIMENSIONS), weights = (await headRows(context, "pattern"))[position], values = (await headRows(context, "v")).map(truncate), sum = truncate((await headRows(context, "z"))[position]);
  const maxValue = largest([...keys.map((key) => values[key]), sum].map((vector) => largest(vector.map(Math.abs))));
  const strip = (label, vector, weight) => ({ label, weight: formatWeight(weight), opacity: weight, shares: Array.from(vector, (value) => displayNumber(value, maxValue).share), first: formatNumber(vector[0]) });
  const strips = keys.map((key) => strip(escapeTokenInText(tokens, key), values[key], weights[key]));
  return {
    says: _("Each token’s value, as strong as its weight, is added up: that is what the head fetches. Shown are the first {count} of {all} numbers, and the first of them in digits.", { count: sum.length, all: dHead }), kind: "strips",
    frames: [...strips.map((_strip, i) => ({ strips: strips.slice(0, i + 1) })), { strips: [...strips, { ...strip(_("the sum, z"), sum, 1), is_sum: true }] }],
  };
}

/** Walk through dot products, scaling, mask, softmax, and the weighted sum of the values. @param {ViewContext} context @returns {Promise<Walkthrough>} */
async function attention(context) {
  const { tokens, layer, head, position, key: chosen, dHead } = context, query = quoteTokenInText(tokens, position), scores = (await headRows(context, "scores"))[position], weights = (await headRows(context, "pattern"))[position];
  const keys = selectKeys(weights, position, chosen, MAX_KEYS), hasMaskedKey = keys.at(-1) > position, showsAllKeys = keys.filter((key) => key <= position).length === position + 1;
  const shownText = showsAllKeys ? "" : hasMaskedKey ? _("Shown are the chosen key, those that {query} looks at most, and one after it.", { query }) : _("Shown are the chosen key and those that {query} looks at most.", { query });
  const positionText = keys.some((key) => escapeTokenInText(tokens, key).endsWith(` (${key})`)) ? _("A number in brackets is the token’s position.") : "";
  const titles = ["q·k", _("score"), _("after the mask"), _("weight")];
  const columns = [keys.map((key) => scores[key] * Math.sqrt(dHead)), keys.map((key) => scores[key]), keys.map((key) => (key <= position ? scores[key] : -Infinity))].map((values) => displayNumbers(values));
  columns.push(displayNumbers(keys.map((key) => weights[key]), formatWeight));
  function rows(says, count, isOneByOne = false) {
    const all = keys.map((key, i) => ({ label: escapeTokenInText(tokens, key), key, chosen: key === chosen, cells: columns.slice(0, count).map((cells) => cells[i]) }));
    return { says, kind: "rows", frames: (isOneByOne ? range(1, all.length + 1) : [all.length]).map((size) => ({ columns: titles.slice(0, count), rows: all.slice(0, size) })) };
  }
  return { title: _("Attention of head {head} in layer {layer}, from {query}", { head, layer, query }), segments: [
    rows([_("The query of {query} meets each key: q·k is the sum of the products of their {count} numbers. The better they fit, the larger it is.", { query, count: dHead }), positionText, shownText].filter(Boolean).join(" "), 1, true),
    rows(_("Each is divided by {divisor}: the score.", { divisor: `√d = √${dHead} = ${formatNumber(Math.sqrt(dHead))}` }), 2),
    rows(hasMaskedKey ? _("What comes after {query} must not be seen: −∞ in its place.", { query }) : _("The mask would hide what comes after {query}: here nothing does.", { query }), 3),
    rows(_("Softmax turns the scores into shares of 1: e to the power of each, divided by the sum of all."), 4),
    await mixValues(context, keys.filter((key) => key <= position)),
  ] };
}

/** Walk through the selected token's residual stream, layer by layer. @param {ViewContext} context @returns {Promise<Walkthrough>} */
async function layers(context) {
  const { config, tokens, vocabulary, position } = context, token = quoteToken(tokens[position]), norms = (await residualStream(context)).map((stage) => vectorNorm(stage[position])), updateNorms = (await updates(context)).map(vectorNorm);
  const { top, topProbabilities } = await context.ask("lens", { start: position, stop: position + 1, tokenIds: [] }), stages = depthNames(config).map((label, i) => ({ label, length: displayNumber(norms[i], largest(norms)) }));
  const segments = stages.map((_floor, i) => {
    const firstSentence = i ? _("In layer {layer} {part} writes a vector of length {length}.", { layer: (i - 1) >> 1, part: i % 2 ? _("attention") : _("feed-forward"), length: formatNumber(updateNorms[i - 1]) }) : _("The way begins with the embedding of {token}.", { token });
    const guesses = top[i][0].map((id, rank) => ({ token: escapeToken(vocabulary[id]), ...displayNumber(topProbabilities[i][0][rank], 1) }));
    return { says: `${firstSentence} ${_("Now the stream is {length} long.", { length: formatNumber(norms[i]) })}`, kind: "tower", frames: [{ floors: stages.slice(0, i + 1), guesses }] };
  });
  return { title: _("{token} on its way up the layers", { token }), segments };
}

/** Walk through the rotation of the pair that the view names (rotation_walkthrough): the query's pair by position, then the key's, then both with their angle. @param {ViewContext} context @returns {Promise<Walkthrough>} */
async function rotation(context) {
  const { config, dHead, tokens, position: query, key } = context;
  if (config.position !== "rope") throw new UserError(_("This layer has no RoPE."));
  const angles = await rotationAngles(context), positionOf = { q: query, k: key };
  const [q, k] = [await rotatedPairs(context, "q", query), await rotatedPairs(context, "k", key)], pair = await mainPair(context);
  const hands = Object.fromEntries(Object.entries({ q, k }).map(([name, { before, after }]) => [name, { before: before[pair], after: after[pair] }]));
  const dot = hands.q.after[0] * hands.k.after[0] + hands.q.after[1] * hands.k.after[1];
  const maxLength = largest(Object.values(hands).flatMap(({ before, after }) => [vectorNorm(before), vectorNorm(after)])) || 1, [queryToken, keyToken] = [query, key].map((index) => quoteToken(tokens[index]));
  const hand = (name, [a, b]) => ({ name, x: a / maxLength, y: b / maxLength, text: `(${formatNumber(a)}, ${formatNumber(b)})` });
  function frames(name) {
    const position = positionOf[name], { before: [a, b], after } = hands[name], endAngle = angles[position][pair], count = Math.min(position + 1, MAX_FRAMES), turningPositions = [...new Set(range(count).map((i) => Math.round((i * position) / (count - 1))))].slice(0, -1);
    const points = [...turningPositions.map((p) => [p, (endAngle * p) / position]).map(([p, angle]) => [p, angle, [a * Math.cos(angle) - b * Math.sin(angle), a * Math.sin(angle) + b * Math.cos(angle)]]), [position, endAngle, after]];
    return points.map(([p, angle, point]) => ({ hands: [hand(name, point), { ...hand(name, [a, b]), is_before: true }], position: p, angle: formatNumber(angle) }));
  }
  return { title: _("How position rotates pair {pair}: {query} at {at}, {key} at {other}", { pair, query: queryToken, at: query, key: keyToken, other: key }), segments: [
    { says: _("Pair {pair} of the query of {query}: two of its numbers, drawn as the hand of a clock, before its position is known.", { pair, query: queryToken }), kind: "hands", frames: [{ hands: [hand("q", hands.q.before)] }] },
    { says: _("Each position rotates it by the same angle, up to position {position}. Its length stays.", { position: query }), kind: "hands", frames: frames("q") },
    { says: _("The same pair of the key of {key} is rotated to its own position, {position}.", { key: keyToken, position: key }), kind: "hands", frames: frames("k") },
    { says: _("The score sees both rotated. This pair adds q·k ÷ {divisor} = {dot} ÷ {divisor} = {adds} to it. If both moved by equally many positions, their angle and the score would stay.", { divisor: `√${dHead}`, dot: formatNumber(dot), adds: formatNumber(dot / Math.sqrt(dHead)) }), kind: "hands",
      frames: [{ hands: [hand("q", hands.q.after), hand("k", hands.k.after)], angle: formatNumber(angles[query][pair] - angles[key][pair]) }] },
  ] };
}

/** Walkthroughs by their names in Python. @type {Record<string, (context: ViewContext) => Promise<Walkthrough>>} */
export const WALKTHROUGHS = { attention, rotation, layers };
