// @ts-check
// The positions view, as in explorer/views/positions/, for RoPE and for position vectors that are added.
import { _ } from "../../static/text.js";
import { EMBEDDING, KEY, QUERY, SELECTED, argmax, cellFrame, columnBand, columnLine, cosine, tokenLabel, largest, vectorNorm, positionLabels, range, rowBand, rowsOf, smallest, sum, tokenAxis, formatNumber, quoteToken, quoteTokenInText } from "../figures.js";
import { sinusoidalPositions } from "../../static/in_browser/transformer_lm.js";
import { headRows, scoreTermValues } from "./attention.js";

/** @typedef {import("../views.js").ViewContext} ViewContext */
/** Pairs of dimensions of a vector, before and after their rotation. @typedef {{ before: [number, number][], after: [number, number][], angles: Float32Array }} Pairs */

const WIDTH_TO_HEIGHT = 2, SPACING = 2.5, INITIAL_POSITIONS = 48;

/** @param {ArrayLike<number>} vector @returns {[number, number][]} */
const splitPairs = (vector) => range(vector.length / 2).map((i) => [vector[2 * i], vector[2 * i + 1]]);
/** Return the rotation angles in radians, (T, F). @param {ViewContext} context @returns {Promise<Float32Array[]>} */
export const rotationAngles = async ({ value, dHead }) => rowsOf((await value("rope.angles")).data, dHead / 2);

/** @param {ViewContext} context @param {"q" | "k"} vector @param {number} index @returns {Promise<Pairs>} */
export async function rotatedPairs(context, vector, index) {
  const [before, after] = await Promise.all([vector, `${vector}_rot`].map((name) => headRows(context, name)));
  return { before: splitPairs(before[index]), after: splitPairs(after[index]), angles: (await rotationAngles(context))[index] };
}

/** Return the rotation of the selected query and key, in numbers. @param {ViewContext} context */
async function formula(context) {
  const { config, tokens, position: query, key, dHead } = context;
  if (config.position === "sinusoidal") return vectorFormula(context);
  const { before, after, angles } = await rotatedPairs(context, "q", query), slowestPair = angles.length - 1, formatLength = (pairs) => formatNumber(vectorNorm(pairs.flat()));
  const error = largest(before.map(([a, b], i) => Math.hypot(a * Math.cos(angles[i]) - b * Math.sin(angles[i]) - after[i][0], a * Math.sin(angles[i]) + b * Math.cos(angles[i]) - after[i][1])));
  const angle = _("angle(position, pair) = position · θ^(−2·pair/{width}), θ = {theta:.10g}, {width} = {d}", { width: "d", theta: config.rope_theta, d: dHead });
  return [
    _("{angle}; pair i: dimensions {dimensions}", { angle, dimensions: _("2i and 2i + 1") }),
    _("query {query} ({query_position}): pair 0 is rotated by {first} rad, pair {slow} by {last} rad; its distance to key {key} ({key_position}) is {distance}", { query: quoteToken(tokens[query]), query_position: query, first: formatNumber(angles[0]), slow: slowestPair, last: formatNumber(angles[slowestPair]), key: quoteToken(tokens[key]), key_position: key, distance: query - key }),
    _("‖q‖ = {before} before, {after} after: rotation changes no length   recomputed from q and the angles, off by {error}", { before: formatLength(before), after: formatLength(after), error: formatNumber(error) }),
  ].join("\n");
}

/** Return the coordinates of several strokes, with a gap after each. @param {[number, number][][]} strokes */
function joinStrokes(strokes) {
  const points = strokes.flatMap((stroke) => [...stroke, [null, null]]);
  return [points.map(([x]) => x), points.map(([, y]) => y)];
}

/** Return the number of columns that fills all rows, with a shape as near as possible to WIDTH_TO_HEIGHT. @param {number} count */
function fullRowColumns(count) {
  const shape = WIDTH_TO_HEIGHT * count, distance = (columns) => Math.max(columns ** 2, shape) / Math.min(columns ** 2, shape);
  const all = range(1, count + 1).filter((columns) => count % columns === 0);
  return all.reduce((best, columns) => (distance(columns) < distance(best) ? columns : best));
}

/** @param {ViewContext} context */
async function clocks(context) {
  const { tokens, position: query, key, layer, head, dHead } = context, numPairs = dHead / 2, columns = fullRowColumns(numPairs), rows = numPairs / columns;
  const centres = range(numPairs).map((i) => /** @type {[number, number]} */ ([SPACING * (i % columns), -SPACING * Math.floor(i / columns)]));
  const circlePoints = ([x, y]) => range(49).map((i) => /** @type {[number, number]} */ ([x + Math.cos((2 * Math.PI * i) / 48), y + Math.sin((2 * Math.PI * i) / 48)]));
  const [circlesAcross, circlesUp] = joinStrokes(centres.map(circlePoints)), main = await mainPair(context);
  const [highlightAcross, highlightUp] = joinStrokes(centres.map((centre, i) => (i === main ? circlePoints(centre) : circlePoints(centre).map(() => /** @type {[number, number]} */ ([null, null])))));
  const vectors = /** @type {[string, Pairs, string][]} */ ([[_("q of {token}", { token: tokenLabel(tokens[query]) }), await rotatedPairs(context, "q", query), QUERY], [_("k of {token}", { token: tokenLabel(tokens[key]) }), await rotatedPairs(context, "k", key), KEY]]);
  const hands = vectors.flatMap(([name, { before, after, angles }, color]) => {
    const maxLength = Math.max(1e-12, ...[...before, ...after].map(([a, b]) => Math.hypot(a, b))), texts = (pairs, index) => pairs.map(([a, b], pair) => {
      const values = { vector: name, pair, first: formatNumber(a), second: formatNumber(b), angle: formatNumber(angles[pair]) };
      return index ? _("{vector}, pair {pair} after rotation<br>({first}, {second}), rotated by {angle} rad", values) : _("{vector}, pair {pair} before rotation<br>({first}, {second}), rotated by {angle} rad", values);
    });
    const stages = /** @type {[[number, number][], string, number, number, number][]} */ ([[before, _("before"), 1.5, 0.4, 5], [after, name, 3, 1, 8]]);
    return stages.map(([values, title, width, opacity, size], index) => {
      const tips = values.map(([a, b], i) => /** @type {[number, number]} */ ([centres[i][0] + a / maxLength, centres[i][1] + b / maxLength])), [across, up] = joinStrokes(tips.map((tip, i) => [centres[i], tip]));
      return { across, up, tips_across: tips.map(([x]) => x), tips_up: tips.map(([, y]) => y), line: { color, width }, marker: { color, size }, name: title, hover: texts(values, index), group: index ? name : "before", is_in_legend: Boolean(index) || color === QUERY, rank: index ? 1000 : 1001, opacity };
    });
  });
  return {
    circles_across: circlesAcross, circles_up: circlesUp, highlight_across: highlightAcross, highlight_up: highlightUp, main, hands, num_pairs: numPairs, layer, head, columns: [-1.3, SPACING * (columns - 1) + 1.3], rows: [-SPACING * (rows - 1) - 1.4, 1.6],
    pairs: centres.map(([x, y], pair) => ({ pair, x, y: y + 1.2 })), meta: { grid: { count: numPairs, columns, spacing: SPACING } },
  };
}

/** Return the products of the pairs of q and k before rotation, as complex numbers |q||k| e^(iφ) / √d. @param {ViewContext} context @returns {Promise<[number, number][]>} */
async function pairProducts(context) {
  const { before: q } = await rotatedPairs(context, "q", context.position), { before: k } = await rotatedPairs(context, "k", context.key), divisor = Math.sqrt(context.dHead);
  return q.map(([a, b], i) => [(a * k[i][0] + b * k[i][1]) / divisor, (b * k[i][0] - a * k[i][1]) / divisor]);
}

/** Return each pair's contribution to the score, (F,). @param {ViewContext} context */
async function scoreByPair(context) {
  const { position: query, key } = context, angles = await rotationAngles(context);
  return (await pairProducts(context)).map(([re, im], i) => re * Math.cos(angles[query][i] - angles[key][i]) - im * Math.sin(angles[query][i] - angles[key][i]));
}

/** Return each pair's contribution to the score without rotation, (F,). @param {ViewContext} context */
const scoreByUnrotatedPair = async (context) => (await pairProducts(context)).map(([re]) => re);
/** Return the change of each pair's contribution by its rotation, (F,). @param {ViewContext} context */
async function rotationEffects(context) {
  const unrotated = await scoreByUnrotatedPair(context);
  return (await scoreByPair(context)).map((part, i) => part - unrotated[i]);
}

/** Return the pair whose contribution RoPE changes most; if it changes none, the pair with the largest. @param {ViewContext} context */
export async function mainPair(context) {
  const effects = await rotationEffects(context);
  return argmax((effects.some(Boolean) ? effects : await scoreByPair(context)).map(Math.abs));
}

/** @param {ViewContext} context */
async function pairs(context) {
  const { tokens, position: query, key } = context, terms = await scoreByPair(context), score = (await headRows(context, "scores"))[query][key];
  return { ...scoreTermValues(terms), frames: [columnBand(await mainPair(context))], pairs: terms.length, score: formatNumber(score), key: quoteToken(tokens[key]) };
}

/** Return the radians per position of each pair; NaN for a single token. @param {Float32Array[]} angles (T, F) */
const frequenciesFromAngles = (angles) => Array.from(angles[0], (first, pair) => (angles.at(-1)[pair] - first) / (angles.length - 1));

/** @param {ViewContext} context */
async function distances(context) {
  const { config, tokens, position: query, key } = context, products = await pairProducts(context), frequencies = frequenciesFromAngles(await rotationAngles(context)).map((frequency) => frequency || 0), currentDistance = query - key;
  const all = range(tokens.length > 1 ? config.context_length : 1), scores = all.map((distance) => sum(products.map(([re, im], i) => re * Math.cos(distance * frequencies[i]) - im * Math.sin(distance * frequencies[i]))));
  return {
    distances: all, scores, here: [currentDistance], score_here: [scores[currentDistance]], query: quoteToken(tokens[query]), key: quoteToken(tokens[key]), score: formatNumber(scores[currentDistance]), distance: currentDistance, most: formatNumber(largest(scores)), furthest: argmax(scores), divisor: "√d",
  };
}

/** @param {ViewContext} context */
async function angles(context) {
  const { tokens, position: query, key } = context, radians = await rotationAngles(context), fullTurn = 2 * Math.PI, wrapped = radians.map((row) => Array.from(row, (angle) => Math.PI - ((((Math.PI - angle) % fullTurn) + fullTurn) % fullTurn)));
  return { labels: positionLabels(tokens), wrapped, radians, positions: tokens.length, pairs: radians[0].length, tokens: tokenAxis(tokens), bands: [rowBand(query, 1.5, { dash: "solid" }), rowBand(key, 1.5, { dash: "dot" })] };
}

/** @param {ViewContext} context */
async function wavelengths(context) {
  const { config: { context_length: contextLength }, tokens } = context, periods = frequenciesFromAngles(await rotationAngles(context)).map((frequency) => (Math.abs(frequency) > 0 ? (2 * Math.PI) / Math.abs(frequency) : NaN));
  const numWithinContext = periods.filter((period) => period <= contextLength).length, alt = _("{turning} of {pairs} pairs make a whole turn within the context of {context}.", { turning: numWithinContext, pairs: periods.length, context: contextLength });
  return { pairs: range(periods.length), periods, context: contextLength, context_power: Math.log10(contextLength), alt: tokens.length > 1 ? alt : _("One token alone shows no speed: type two.") };
}

/** Return the vectors that are added at each position, (T, D). @param {ViewContext} context @returns {Promise<Float32Array[]>} */
export const positionVectors = async ({ config, value }) => rowsOf((await value("position_embed")).data, config.d_model);
/** Return the norms of the token vectors, the position vectors, and their sums, (3, T). @param {ViewContext} context */
async function vectorNorms(context) {
  const { config, value } = context, added = await positionVectors(context), total = rowsOf((await value("embed")).data, config.d_model);
  return [total.map((vector, index) => vectorNorm(vector.map((x, dim) => x - added[index][dim]))), added.map(vectorNorm), total.map(vectorNorm)];
}
/** Return the vector added at the selected position, and its effect, in numbers. @param {ViewContext} context */
async function vectorFormula(context) {
  const { config, tokens, position: query, key } = context, vectors = await positionVectors(context), [own, added, total] = (await vectorNorms(context)).map((norms) => formatNumber(norms[query])), D = config.d_model, distance = query - key;
  const waves = sum(range(D / 2).map((i) => Math.cos(distance * 10000 ** ((-2 * i) / D)))) / (D / 2), cosineText = _("cosine of positions {query} and {key} = p·p′ / (‖p‖ ‖p′‖) = {cosine}", { query, key, cosine: formatNumber(cosine(vectors[query], vectors[key])) });
  return [
    _("position_embed[m, 2i] = sin(m / 10000^(2i/D)), [m, 2i + 1] = its cosine; D = {width}", { width: D }),
    _("{token} ({position}): ‖token + position‖ = {total}, of lengths {own} and {added}", { token: quoteToken(tokens[query]), position: query, total, own, added }),
    _("{likeness}; of waves it depends on the distance alone: 2/D · Σ cos({distance} · ω) = {cosine}", { likeness: cosineText, distance, cosine: formatNumber(waves) }),
  ].join("\n");
}

/** @param {ViewContext} context */
export async function vectors(context) {
  const { tokens, position, state } = context, values = await positionVectors(context), dimensions = values[0].length, most = largest(values.map((row) => largest(row.map(Math.abs)))) || 1;
  return {
    labels: positionLabels(tokens), values, least_colour: -most, most_colour: most, positions: values.length, dimensions, least: formatNumber(smallest(values.map(smallest))), most: formatNumber(largest(values.map(largest))),
    tokens: tokenAxis(tokens, { maxLabels: 32 }), frames: [rowBand(position), ...(state.dim < dimensions ? [cellFrame(position, state.dim)] : [])],
  };
}

/** @param {ViewContext} context */
async function alike(context) {
  const { tokens, position: query, key } = context, rows = await positionVectors(context), cosines = rows.map((a) => rows.map((b) => cosine(a, b))), axis = () => tokenAxis(tokens, { maxLabels: 32 });
  return { labels: positionLabels(tokens), cosines, positions: rows.length, cosine: formatNumber(cosines[query][key]), query, key, keys: axis(), queries: axis(), frame: cellFrame(query, key) };
}

/** @param {ViewContext} context */
async function shares(context) {
  const { tokens, position } = context, [own, added, total] = await vectorNorms(context), index = (norms) => formatNumber(norms[position]);
  return { labels: positionLabels(tokens), own, added, total, token: quoteToken(tokens[position]), own_length: index(own), added_length: index(added), total_length: index(total), tokens: tokenAxis(tokens, { maxLabels: 32 }), frame: columnBand(position) };
}

/** Return the selected dimension and four others (sample_dimensions). @param {ViewContext} context */
export const sampleDimensions = ({ config: { d_model: D }, state: { dim } }) => [...new Set([Math.min(dim, D - 1), 0, D >> 3, D >> 2, D >> 1])];

/** @param {ViewContext} context */
async function curves(context) {
  const { config: { context_length: contextLength, d_model: D }, tokens, position } = context, run = await positionVectors(context), table = rowsOf(sinusoidalPositions(0, contextLength, D), D), dimensions = sampleDimensions(context), share = 1 / dimensions.length, axis = (i) => (i ? String(i + 1) : "");
  return {
    lines: dimensions.map((dimension, i) => ({
      wave: table.map((row) => row[dimension]), wave_line: { color: i ? EMBEDDING : SELECTED, width: 1.2 }, axis: `y${axis(i)}`, dots: run.map((row) => row[dimension]), marker: { color: i ? EMBEDDING : SELECTED, size: 6 },
      hover: _("token %{{hovertext}}, dimension {dimension}<br>%{{y:.4g}}<extra></extra>", { dimension }),
    })),
    context: range(contextLength), positions: range(run.length), indices: range(run.length), labels: positionLabels(tokens), anchor: `y${axis(dimensions.length - 1)}`, range: [-1, Math.min(contextLength, Math.max(INITIAL_POSITIONS, 2 * run.length))], chosen: { ...columnLine(position), yref: "paper" },
    alt: _("{dimensions} dimensions of what is added at {positions} positions, waves: dimension {dimension} is {value} at {token}.", { dimensions: dimensions.length, positions: contextLength, dimension: dimensions[0], value: formatNumber(run[position][dimensions[0]]), token: quoteToken(tokens[position]) }),
    axes: Object.fromEntries(dimensions.map((dimension, i) => [`yaxis${axis(i)}`, { domain: [1 - i * share - 0.85 * share, 1 - i * share], nticks: 3, title: { text: _("dim {dimension}", { dimension }), font: { size: 11 } } }])),
  };
}

/** @param {ViewContext} context */
async function by_distance(context) {
  const { config: { context_length: contextLength, d_model: D }, position: query, key } = context, rows = await positionVectors(context), pairs = rows.map((_row, distance) => range(rows.length - distance).map((index) => cosine(rows[index + distance], rows[index])));
  const least = pairs.map(smallest), most = pairs.map(largest), mean = pairs.map((own) => sum(own) / own.length), distance = query - key, wave = (distanceAt) => sum(range(D / 2).map((i) => Math.cos(distanceAt * 10000 ** ((-2 * i) / D)))) / (D / 2);
  return {
    distances: range(rows.length), least, most, mean, hover: pairs.map((own, i) => _("from {least} to {most} over {pairs} pairs", { least: formatNumber(least[i]), most: formatNumber(most[i]), pairs: own.length })),
    waves: [{ far: range(contextLength), cosines: range(contextLength).map(wave) }], cosine: formatNumber(mean[distance]), distance, spread: formatNumber(largest(most.map((value, i) => value - least[i]))), chosen: columnLine(distance),
  };
}

/** Kind of positions -> panels. */
const PANELS_BY_POSITION = { rope: { clocks, pairs, distances, angles, wavelengths }, sinusoidal: { vectors, curves, alike, by_distance, shares } };

/** Describe how far RoPE rotates the selected query and key, or how similar their vectors are (positions_sentence). @param {ViewContext} context */
async function sentence(context) {
  const described = await describePositions(context);
  if (context.config.position !== "rope") return `${described} ${_("Choose two tokens.")}`;
  if (!(await rotationEffects(context)).some(Boolean)) return `${described} ${_("Both turn alike: RoPE does not change the score.")}`;
  const pair = await mainPair(context), [before, after] = [await scoreByUnrotatedPair(context), await scoreByPair(context)].map((parts) => formatNumber(parts[pair]));
  return `${described} ${_("Its part of the score changes most: {before} → {after}.", { before, after })}`;
}


/** @param {ViewContext} context */
async function describePositions(context) {
  const { config, tokens, position, key } = context, values = { query: quoteToken(tokens[position]), key: quoteToken(tokens[key]), position, key_position: key };
  if (config.position === "rope") {
    const pair = await mainPair(context), angles = await rotationAngles(context), [angle, key_angle] = [position, key].map((index) => formatNumber(angles[index][pair]));
    Object.assign(values, { query: quoteTokenInText(tokens, position), key: quoteTokenInText(tokens, key) });
    if (key === position) return _("RoPE rotates pair {pair} of {query} by {angle} rad.", { ...values, pair, angle });
    return _("RoPE rotates pair {pair} of {query} by {angle} rad, of {key} by {key_angle} rad.", { ...values, pair, angle, key_angle });
  }
  if (key === position) return _("Each position adds a vector: {query} has that of position {position}.", values);
  const vectors = await positionVectors(context);
  return _("Each position adds a vector: those of {query} ({position}) and {key} ({key_position}) have cosine {cosine}.", { ...values, cosine: formatNumber(cosine(vectors[position], vectors[key])) });
}

export default { formula, sentence, panels: { ...PANELS_BY_POSITION.rope, ...PANELS_BY_POSITION.sinusoidal }, lacks: ({ position }, name) => !(name in PANELS_BY_POSITION[position]) };
