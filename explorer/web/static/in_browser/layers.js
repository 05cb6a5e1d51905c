// @ts-check
// The layers of model/layers/ on row-major Float32Arrays; a weight is (out, in). Numbers are stored in float32 and summed in
// float64.

/** Linear map y = x Wᵀ + b: (T, in) -> (T, out). Blocks of four rows of x by three rows of W, as float64, save memory reads.
 * @param {Float32Array} x @param {Float32Array} weight (out, in) @param {Float32Array | undefined} bias (out,) @param {number} dIn */
export function linear(x, weight, bias, dIn) {
  const numRows = x.length / dIn, dOut = weight.length / dIn, y = new Float32Array(numRows * dOut);
  const numPacked = numRows - (numRows % 4), packed = new Float64Array(numPacked * dIn), w = new Float64Array(3 * dIn); // packed: (row / 4, in, 4)
  for (let t = 0; t < numPacked; t++) for (let i = 0; i < dIn; i++) packed[((t >> 2) * dIn + i) * 4 + (t & 3)] = x[t * dIn + i];
  for (let firstOut = 0; numPacked && firstOut < dOut; firstOut += 3) {
    const out = Math.min(firstOut, dOut - 3); // the last three rows may overlap the ones before
    w.set(weight.subarray(out * dIn, (out + 3) * dIn));
    for (let row = 0, packedIndex = 0; packedIndex < packed.length; row += 4) {
      const y0 = row * dOut + out, y1 = y0 + dOut, y2 = y1 + dOut, y3 = y2 + dOut;
      let a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0, c0 = 0, c1 = 0, c2 = 0, c3 = 0;
      for (let i = 0; i < dIn; i++, packedIndex += 4) {
        const a = w[i], b = w[dIn + i], c = w[2 * dIn + i], p = packed[packedIndex], q = packed[packedIndex + 1], r = packed[packedIndex + 2], s = packed[packedIndex + 3];
        a0 += a * p; a1 += a * q; a2 += a * r; a3 += a * s;
        b0 += b * p; b1 += b * q; b2 += b * r; b3 += b * s;
        c0 += c * p; c1 += c * q; c2 += c * r; c3 += c * s;
      }
      y[y0] = a0; y[y1] = a1; y[y2] = a2; y[y3] = a3; y[y0 + 1] = b0; y[y1 + 1] = b1; y[y2 + 1] = b2; y[y3 + 1] = b3;
      y[y0 + 2] = c0; y[y1 + 2] = c1; y[y2 + 2] = c2; y[y3 + 2] = c3;
    }
  }
  for (let row = numPacked; row < numRows; row++) {
    const x0 = row * dIn, y0 = row * dOut;
    let out = 0;
    for (; out + 4 <= dOut; out += 4) {
      const w0 = out * dIn, w1 = w0 + dIn, w2 = w1 + dIn, w3 = w2 + dIn;
      let a = 0, b = 0, c = 0, d = 0;
      for (let i = 0; i < dIn; i++) {
        const p = x[x0 + i];
        a += weight[w0 + i] * p; b += weight[w1 + i] * p; c += weight[w2 + i] * p; d += weight[w3 + i] * p;
      }
      y[y0 + out] = a; y[y0 + out + 1] = b; y[y0 + out + 2] = c; y[y0 + out + 3] = d;
    }
    for (; out < dOut; out++) y[y0 + out] = dot(x, x0, weight, out * dIn, dIn);
  }
  if (bias) for (let i = 0; i < y.length; i++) y[i] += bias[i % dOut];
  return y;
}

/** Dot product of two slices of `size` numbers. @param {Float32Array} a @param {number} i @param {Float32Array} b @param {number} j @param {number} size */
export function dot(a, i, b, j, size) {
  let sum = 0;
  for (let k = 0; k < size; k++) sum += a[i + k] * b[j + k];
  return sum;
}

/** Sum of two arrays. @param {Float32Array} x @param {Float32Array} y */
export const add = (x, y) => x.map((value, i) => value + y[i]);

/** Norm of each row, (T, D) -> (T, D): RMSNorm x / √(mean(x²) + ε) · g, or LayerNorm (x - mean(x)) / √(var(x) + ε) · γ + β.
 * @param {string} kind of `config.norm` @param {Float32Array} x @param {Float32Array} gain (D,) @param {Float32Array | undefined} shift (D,) @param {number} eps */
export function norm(kind, x, gain, shift, eps) {
  const width = gain.length, y = new Float32Array(x.length);
  for (let start = 0; start < x.length; start += width) {
    const { mean, divisor } = normScale(kind, x.subarray(start, start + width), eps);
    for (let i = 0; i < width; i++) y[start + i] = ((x[start + i] - mean) / divisor) * gain[i] + (shift ? shift[i] : 0);
  }
  return y;
}

/** Mean that a norm subtracts from a vector, and its divisor. @param {string} kind @param {ArrayLike<number>} x (D,) @param {number} eps */
export function normScale(kind, x, eps) {
  let mean = 0, squares = 0;
  if (kind === "layernorm") for (let i = 0; i < x.length; i++) mean += x[i] / x.length;
  for (let i = 0; i < x.length; i++) squares += (x[i] - mean) ** 2;
  return { mean, divisor: Math.sqrt(squares / x.length + eps) };
}

/** Sinusoidal position vectors (T, D): dimension 2i is sin(m / 10000²ⁱᐟᴰ), dimension 2i + 1 the cosine of the same angle.
 * @param {number} start the first position @param {number} count T @param {number} dModel D */
export function sinusoidalPositions(start, count, dModel) {
  return Float32Array.from({ length: count * dModel }, (_none, k) => {
    const dimension = k % dModel, angle = (start + Math.floor(k / dModel)) * 10000 ** (-(dimension - (dimension % 2)) / dModel);
    return dimension % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

/** Rotation angles m · θ⁻²ⁱᐟᵈ (T, F), radians.
 * @param {number} start the first position @param {number} count T @param {number} dHead d = 2 F @param {number} theta */
export function rotaryAngles(start, count, dHead, theta) {
  const numPairs = dHead / 2;
  return Float32Array.from({ length: count * numPairs }, (_none, k) => (start + Math.floor(k / numPairs)) * theta ** ((-2 * (k % numPairs)) / dHead));
}

/** Rotate the pairs (x₀, x₁), (x₂, x₃), … of every head: (H, T, d) by angles (T, F). @param {Float32Array} x @param {Float32Array} angles */
export function rotateAdjacent(x, angles) {
  const y = new Float32Array(x.length), cos = angles.map(Math.cos), sin = angles.map(Math.sin);
  for (let i = 0; i < x.length; i += 2) {
    const a = x[i], b = x[i + 1], c = cos[(i / 2) % angles.length], s = sin[(i / 2) % angles.length];
    y[i] = a * c - b * s;
    y[i + 1] = a * s + b * c;
  }
  return y;
}

/** (T, H d) -> (H, T, d). @param {Float32Array} x @param {number} numHeads @param {number} dHead */
export const splitHeads = (x, numHeads, dHead) => swapAxes(x, x.length / (numHeads * dHead), numHeads, dHead);
/** (H, T, d) -> (T, H d). @param {Float32Array} x @param {number} numHeads @param {number} dHead */
export const mergeHeads = (x, numHeads, dHead) => swapAxes(x, numHeads, x.length / (numHeads * dHead), dHead);

/** (A, B, width) -> (B, A, width). @param {Float32Array} x @param {number} numA @param {number} numB @param {number} width */
function swapAxes(x, numA, numB, width) {
  const y = new Float32Array(x.length);
  for (let a = 0; a < numA; a++) for (let b = 0; b < numB; b++) y.set(x.subarray((a * numB + b) * width, (a * numB + b + 1) * width), (b * numA + a) * width);
  return y;
}

/** Attention scores q kᵀ / √d, before the mask: (H, T, d) and the first K of keys (H, C, d) -> (H, T, K).
 * @param {Float32Array} q @param {Float32Array} keys @param {{ numHeads: number, numKeys: number, dHead: number }} sizes */
export function attentionScores(q, keys, { numHeads, numKeys, dHead }) {
  const numRows = q.length / (numHeads * dHead), stride = keys.length / numHeads, scores = new Float32Array(numHeads * numRows * numKeys);
  for (let row = 0, i = 0; row < numHeads * numRows; row++) {
    const head = Math.floor(row / numRows);
    for (let key = 0; key < numKeys; key++, i++) scores[i] = dot(q, row * dHead, keys, head * stride + key * dHead, dHead) / Math.sqrt(dHead);
  }
  return scores;
}

/** Softmax of the scores over the keys up to each query's own position, 0 after it: (H, T, K) -> (H, T, K).
 * @param {Float32Array} scores @param {number} numRows T, the last T of the K positions @param {number} numKeys K */
export function attentionPattern(scores, numRows, numKeys) {
  const pattern = new Float32Array(scores.length);
  for (let start = 0, row = 0; start < scores.length; start += numKeys, row++) {
    const numVisible = numKeys - numRows + (row % numRows) + 1;
    pattern.set(softmax(scores.subarray(start, start + numVisible)), start);
  }
  return pattern;
}

/** Softmax exp(xᵢ - max x) / Σⱼ exp(xⱼ - max x). @param {Float32Array} x */
export function softmax(x) {
  let max = -Infinity, sum = 0;
  for (let i = 0; i < x.length; i++) if (x[i] > max) max = x[i];
  const y = new Float32Array(x.length);
  for (let i = 0; i < x.length; i++) sum += y[i] = Math.exp(x[i] - max);
  for (let i = 0; i < x.length; i++) y[i] /= sum;
  return y;
}

/** Average of the values by each query's pattern: (H, T, K) and the first K of values (H, C, d) -> (H, T, d).
 * @param {Float32Array} pattern @param {Float32Array} values @param {{ numHeads: number, numKeys: number, dHead: number }} sizes */
export function weightValues(pattern, values, { numHeads, numKeys, dHead }) {
  const numRows = pattern.length / (numHeads * numKeys), stride = values.length / numHeads, z = new Float32Array(numHeads * numRows * dHead);
  const sums = new Float64Array(dHead);
  for (let row = 0; row < numHeads * numRows; row++) {
    const start = Math.floor(row / numRows) * stride, numVisible = numKeys - numRows + (row % numRows) + 1;
    sums.fill(0);
    for (let key = 0; key < numVisible; key++) {
      const weight = pattern[row * numKeys + key], valueIndex = start + key * dHead;
      for (let i = 0; i < dHead; i++) sums[i] += weight * values[valueIndex + i];
    }
    z.set(sums, row * dHead);
  }
  return z;
}

/** max(x, 0). @param {Float32Array} x */
export const relu = (x) => x.map((value) => Math.max(value, 0));
/** x / (1 + e⁻ˣ). @param {Float32Array} x */
export const silu = (x) => x.map((value) => value / (1 + Math.exp(-value)));
