// @ts-check
// Recomputation of whole values in float64, each from its own inputs by its formula (explorer/explain/captured/), with plain sums that
// do not use the model's code. The formulas are declared in Python and come as data.
import { interventionTap } from "../static/in_browser/transformer_lm.js";

/** @typedef {import("../static/in_browser/transformer_lm.js").Trace} Trace @typedef {Record<string, any>} Formula name of its class as `formula`, and its attributes */
/** Recomputed value, and the magnitude of each number's terms, relative to which rounding errors are measured. @typedef {{ value: Float64Array, sizes: Float64Array }} Recomputed */
/** Largest error, and largest ratio of an error to its tolerance. @typedef {{ error: number, times: number }} Check */

const MIN_NORMAL = 2 ** -126; // below it rounding is not relative

/** Return the formula of a value, with its layer filled in. @param {Record<string, Formula>} formulas @param {string} name @returns {Formula} */
export function findFormula(formulas, name) {
  const layer = +(/^blocks\.(\d+)\./.exec(name)?.[1] ?? 0), template = formulas[name] ? name : name.replace(/^blocks\.\d+\./, "blocks.{layer}.");
  return JSON.parse(JSON.stringify(formulas[template]).replaceAll("{layer}", String(layer)).replaceAll("{before}", String(layer - 1)));
}

/** Return the names of the values and weights that a formula reads. @param {Formula} formula @param {Trace} trace @returns {string[]} */
function inputNames({ formula, x, map, norm, terms, a, b, q, k, scores, pattern, v, angles, positions }, trace) {
  const withBias = (name) => [`${name}.weight`, ...(trace.lm.weights[`${name}.bias`] ? [`${name}.bias`] : [])];
  return {
    Copy: () => [x], Addition: () => terms, Product: () => [a, b], LinearLayer: () => [x, ...withBias(map)], Activation: () => [x], Norm: () => [x.x, ...withBias(norm)],
    Rotation: () => [x, x, angles], AttentionScore: () => [q, k], AttentionPattern: () => [scores], HeadOutput: () => [pattern, v],
    Embedding: () => ["token_embedding.weight", ...(positions ? ["position_embed"] : [])], SinusoidalPosition: () => [], RotaryAngle: () => [],
  }[formula]();
}

const map2 = (/** @type {ArrayLike<number>} */ a, /** @type {ArrayLike<number>} */ b, /** @type {(x: number, y: number, i: number) => number} */ f) => Float64Array.from(a, (x, i) => f(x, b[i], i));
const absolute = (/** @type {ArrayLike<number>} */ x) => Float64Array.from(x, Math.abs);
const rowNorm = (/** @type {Float32Array} */ x, /** @type {number} */ start, /** @type {number} */ width) => {
  let squares = 0;
  for (let i = start; i < start + width; i++) squares += x[i] ** 2;
  return Math.sqrt(squares);
};

/** Return the dot products of rows (n, D) with rows (m, D), and ‖·‖‖·‖ of each: (n, m). @param {Float32Array} x @param {Float32Array} rows @param {number} width D */
function products(x, rows, width) {
  const n = x.length / width, m = rows.length / width, value = new Float64Array(n * m), sizes = new Float64Array(n * m);
  const norms = Float64Array.from({ length: n }, (_none, i) => rowNorm(x, i * width, width));
  for (let j = 0; j < m; j++) {
    const size = rowNorm(rows, j * width, width);
    for (let i = 0; i < n; i++) {
      let sum = 0;
      for (let d = 0; d < width; d++) sum += x[i * width + d] * rows[j * width + d];
      value[i * m + j] = sum;
      sizes[i * m + j] = norms[i] * size;
    }
  }
  return { value, sizes };
}

/** (A, B, width) -> (B, A, width). @template {Float32Array | Float64Array} A @param {A} x @param {number} numA @param {number} width @returns {A} */
function swapAxes(x, numA, width) {
  const numB = x.length / numA / width, y = /** @type {A} */ (x.slice());
  for (let i = 0; i < x.length; i++) y[((Math.floor(i / width) % numB) * numA + Math.floor(i / width / numB)) * width + (i % width)] = x[i];
  return y;
}

/** Class of a formula -> function that computes the whole value. @type {Record<string, (formula: Formula, trace: Trace) => Recomputed>} */
const FORMULAS = {
  Copy({ x }, trace) {
    const { data } = trace.get(x);
    return { value: Float64Array.from(data), sizes: absolute(data) };
  },
  Addition({ terms: [first, second] }, trace) {
    const [a, b] = [first, second].map((name) => trace.get(name).data);
    return { value: map2(a, b, (x, y) => x + y), sizes: map2(a, b, (x, y) => Math.abs(x) + Math.abs(y)) };
  },
  Product(formula, trace) {
    const value = map2(trace.get(formula.a).data, trace.get(formula.b).data, (x, y) => x * y);
    return { value, sizes: absolute(value) };
  },
  LinearLayer({ x, map, heads }, trace) {
    const { data, shape } = trace.get(x), rows = shape.length === 3 ? swapAxes(data, shape[0], shape[2]) : data, weight = trace.lm.weights[`${map}.weight`], bias = trace.lm.weights[`${map}.bias`];
    const { value, sizes } = products(rows, weight, rows.length / trace.tokenIds.length), numOut = value.length / trace.tokenIds.length;
    if (bias) for (let i = 0; i < value.length; i++) { value[i] += bias[i % numOut]; sizes[i] += Math.abs(bias[i % numOut]); }
    const splitByHead = (all) => (heads ? swapAxes(all, trace.tokenIds.length, numOut / heads) : all);
    return { value: splitByHead(value), sizes: splitByHead(sizes) };
  },
  Activation({ x, kind }, trace) {
    const { data } = trace.get(x);
    return { value: Float64Array.from(data, kind === "relu" ? (y) => Math.max(y, 0) : (y) => y / (1 + Math.exp(-y))), sizes: absolute(data) };
  },
  Norm({ x, norm }, trace) {
    const { data } = trace.get(x.x), { weights, config } = trace.lm, gain = weights[`${norm}.weight`], beta = weights[`${norm}.bias`], D = gain.length, value = new Float64Array(data.length), sizes = new Float64Array(data.length);
    for (let start = 0; start < data.length; start += D) {
      const row = Array.from(data.subarray(start, start + D)), isCentred = config.norm === "layernorm", meanOf = (numbers) => numbers.reduce((a, b) => a + b, 0) / D;
      const mean = isCentred ? meanOf(row) : 0, meanMagnitude = isCentred ? meanOf(row.map(Math.abs)) : 0, divisor = Math.sqrt(meanOf(row.map((y) => (y - mean) ** 2)) + config.norm_eps);
      row.forEach((y, i) => {
        value[start + i] = ((y - mean) / divisor) * gain[i] + (beta ? beta[i] : 0);
        sizes[start + i] = ((Math.abs(y) + meanMagnitude) / divisor) * Math.abs(gain[i]) + (beta ? Math.abs(beta[i]) : 0);
      });
    }
    return { value, sizes };
  },
  Rotation({ x, angles }, trace) {
    const { data } = trace.get(x), { data: angleValues } = trace.get(angles), value = new Float64Array(data.length), sizes = new Float64Array(data.length);
    for (let i = 0; i < data.length; i += 2) {
      const [a, b] = data.subarray(i, i + 2), angle = angleValues[(i / 2) % angleValues.length];
      value.set([a * Math.cos(angle) - b * Math.sin(angle), a * Math.sin(angle) + b * Math.cos(angle)], i);
      sizes.fill(Math.hypot(a, b), i, i + 2);
    }
    return { value, sizes };
  },
  AttentionScore({ q, k }, trace) {
    const { data: queries, shape: [H, T, d] } = trace.get(q), { data: keys } = trace.get(k), value = new Float64Array(H * T * T), sizes = new Float64Array(H * T * T), headRows = (data, head) => data.subarray(head * T * d, (head + 1) * T * d);
    for (let head = 0; head < H; head++) {
      const headScores = products(headRows(queries, head), headRows(keys, head), d);
      value.set(headScores.value.map((dot) => dot / Math.sqrt(d)), head * T * T);
      sizes.set(headScores.sizes.map((size) => size / Math.sqrt(d)), head * T * T);
    }
    return { value, sizes };
  },
  AttentionPattern({ scores }, trace) {
    const { data, shape: [, T] } = trace.get(scores), value = new Float64Array(data.length), sizes = new Float64Array(data.length);
    for (let start = 0; start < data.length; start += T) {
      const visibleScores = Array.from(data.subarray(start, start + ((start / T) % T) + 1)), maxScore = Math.max(...visibleScores), total = visibleScores.reduce((sum, score) => sum + Math.exp(score - maxScore), 0);
      visibleScores.forEach((score, key) => {
        value[start + key] = Math.exp(score - maxScore) / total;
        sizes[start + key] = value[start + key] * (1 + maxScore - score); // exp turns the difference's rounding error into a relative error
      });
    }
    return { value, sizes };
  },
  HeadOutput({ pattern, v }, trace) {
    const { data: weights, shape: [H, T] } = trace.get(pattern), { data, shape: [, , d] } = trace.get(v), value = new Float64Array(H * T * d), sizes = new Float64Array(H * T * d);
    for (let row = 0; row < H * T; row++) for (let key = 0; key <= row % T; key++) for (let i = 0; i < d; i++) {
      const term = weights[row * T + key] * data[(Math.floor(row / T) * T + key) * d + i];
      value[row * d + i] += term;
      sizes[row * d + i] += Math.abs(term);
    }
    return { value, sizes };
  },
  Embedding({ positions }, trace) {
    const { config, weights, embeddingScale } = trace.lm, D = config.d_model, table = weights["token_embedding.weight"], positionVectors = positions ? trace.get("position_embed").data : null;
    const rows = Float64Array.from({ length: trace.tokenIds.length * D }, (_none, i) => table[trace.tokenIds[Math.floor(i / D)] * D + (i % D)] * embeddingScale), zeros = new Float64Array(rows.length);
    return { value: map2(rows, positionVectors ?? zeros, (x, y) => x + y), sizes: map2(rows, positionVectors ?? zeros, (x, y) => Math.abs(x) + Math.abs(y)) };
  },
  SinusoidalPosition(_formula, trace) {
    const D = trace.lm.config.d_model;
    const value = Float64Array.from({ length: trace.tokenIds.length * D }, (_none, i) => {
      const dim = i % D, angle = Math.floor(i / D) / 10000 ** ((dim - (dim % 2)) / D);
      return dim % 2 ? Math.cos(angle) : Math.sin(angle);
    });
    return { value, sizes: value.map(() => 1) };
  },
  RotaryAngle(_formula, trace) {
    const { config: { rope_theta: theta = 0 }, dHead } = trace.lm, F = dHead / 2;
    const value = Float64Array.from({ length: trace.tokenIds.length * F }, (_none, i) => Math.floor(i / F) * theta ** ((-2 * (i % F)) / dHead));
    return { value, sizes: absolute(value) };
  },
};

/** Apply the run's interventions to a value and to its sizes. @param {Trace} trace @param {string} name @param {Recomputed} recomputed @returns {Recomputed} */
function withInterventions(trace, name, { value, sizes }) {
  const tap = interventionTap(trace.interventions, trace.lm.config), { shape } = trace.get(name), apply = (data) => /** @type {any} */ (tap(name, /** @type {any} */ (data), shape));
  return { value: apply(value), sizes: absolute(apply(sizes)) };
}

/** Compare numbers with their recomputation. @param {ArrayLike<number>} values @param {ArrayLike<number>} recomputed @param {ArrayLike<number>} sizes @param {number} tolerance a fraction of the sizes @returns {Check} */
export function compareValues(values, recomputed, sizes, tolerance) {
  const check = { error: 0, times: 0 };
  for (let i = 0; i < values.length; i++) {
    const error = Math.abs(values[i] - recomputed[i]), times = error / (tolerance * Math.abs(sizes[i]) + MIN_NORMAL);
    check.error = error <= check.error ? check.error : error; // keeps NaN
    check.times = times <= check.times ? check.times : times;
  }
  return check;
}

/** Checks of each run so far. @type {WeakMap<Trace, Map<string, Check & { inputs: string[] }>>} */
const checks = new WeakMap();

/** Check a whole value once, and return its inputs too. @param {Trace} trace @param {{ name: string, formulas: Record<string, Formula>, tolerance: number }} given */
export function checkValue(trace, { name, formulas, tolerance }) {
  const checksByName = checks.get(trace) ?? new Map();
  checks.set(trace, checksByName);
  if (!checksByName.has(name)) {
    const formula = findFormula(formulas, name), { value, sizes } = withInterventions(trace, name, FORMULAS[formula.formula](formula, trace));
    checksByName.set(name, { ...compareValues(trace.get(name).data, value, sizes, tolerance), inputs: inputNames(formula, trace) });
  }
  return checksByName.get(name);
}

/** Return a part of a value or weight as float64, with its shape. @param {Trace} trace @param {{ name: string, index: (number | [number | null, number | null])[] }} given per axis an index, or a start and an end */
export function readPart(trace, { name, index }) {
  const { config, weights } = trace.lm, isWeight = name in weights, data = isWeight ? weights[name] : trace.get(name).data, width = name.endsWith("down_proj.weight") ? config.d_ff : config.d_model;
  const shape = isWeight ? (/norm|bias$/.test(name) ? [data.length] : [data.length / width, width]) : trace.get(name).shape;
  const axes = shape.map((size, axis) => index[axis] ?? [null, null]).map((part, axis) => (typeof part === "number" ? [part] : Array.from({ length: (part[1] ?? shape[axis]) - (part[0] ?? 0) }, (_none, i) => i + (part[0] ?? 0))));
  if (axes.some((indices, axis) => indices.some((axisIndex) => !(axisIndex >= 0 && axisIndex < shape[axis])))) return null; // no such part
  const flatIndices = axes.reduce((all, axisIndices, axis) => all.flatMap((flatIndex) => axisIndices.map((axisIndex) => flatIndex * shape[axis] + axisIndex)), [0]);
  return { data: Float64Array.from(flatIndices, (flatIndex) => data[flatIndex]), shape: axes.filter((_places, axis) => typeof index[axis] !== "number").map(({ length }) => length) };
}
