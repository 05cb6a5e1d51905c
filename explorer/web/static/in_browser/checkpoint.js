// @ts-check
// Checkpoints in checkpoints/<name>/: config.json, model.safetensors and tokenizer.tiktoken (model/checkpoint.py).
import { Tokenizer } from "./tokenizer.js";
import { ModelError, TransformerLM } from "./transformer_lm.js";

/** Read a safetensors file into float32 arrays by name. The file is the header's length in 8 bytes, the header, and the numbers.
 * @param {ArrayBuffer} buffer @returns {Record<string, import("./transformer_lm.js").Value>} */
export function readSafetensors(buffer) {
  const damagedError = (reason) => new ModelError(`model.safetensors is damaged (${reason}): download it again.`);
  if (buffer.byteLength < 8) throw damagedError("it is too short");
  const start = 8 + Number(new DataView(buffer).getBigUint64(0, true)); // where the numbers begin
  if (start > buffer.byteLength) throw damagedError("its header ends after the file");
  /** @type {Record<string, any>} */
  let header;
  try { header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, start - 8))); } catch { throw damagedError("its header is no JSON"); }
  const tensors = {};
  for (const [name, { dtype, shape, data_offsets }] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const convert = CONVERTERS[dtype], [from, to] = data_offsets, size = shape.reduce((product, length) => product * length, 1);
    if (!convert) throw new ModelError(`model.safetensors stores ${name} as ${dtype}: this page reads ${Object.keys(CONVERTERS).join(", ")}.`);
    if (start + to > buffer.byteLength || to - from !== size * (dtype === "F32" ? 4 : 2)) throw damagedError(`${name} ends after the file, or has another size than its shape`);
    tensors[name] = { data: convert(buffer.slice(start + from, start + to)), shape };
  }
  return tensors;
}

/** dtype in a file -> conversion to float32. @type {Record<string, (bytes: ArrayBuffer) => Float32Array>} */
const CONVERTERS = {
  F32: (bytes) => new Float32Array(bytes),
  F16(bytes) {
    halfTable ??= Float32Array.from({ length: 65536 }, (_none, bits) => halfToNumber(bits));
    const bits = new Uint16Array(bytes), numbers = new Float32Array(bits.length);
    for (let i = 0; i < bits.length; i++) numbers[i] = halfTable[bits[i]];
    return numbers;
  },
  BF16: (bytes) => new Float32Array(Uint32Array.from(new Uint16Array(bytes), (bits) => bits << 16).buffer), // the upper half of a float32
};
/** Float32 value of each of the 65,536 float16 bit patterns. @type {Float32Array | undefined} */
let halfTable;

/** @param {number} bits 1 of sign, 5 of exponent, 10 of fraction */
function halfToNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = (bits & 1023) / 1024;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction) : 2 ** -14 * fraction);
}

/** Load a model and its tokenizer. A series of snapshots shares the tokenizer of the parent folder.
 * @param {URL} folder ending in "/" @param {(bytes: number, total: number) => void} [onProgress] of the weights */
export async function loadCheckpoint(folder, onProgress = () => {}) {
  const [config, weights, tokenizer] = await Promise.all([
    fetchFile(new URL("config.json", folder)).then((response) => response.json()),
    fetchFile(new URL("model.safetensors", folder)).then((response) => readWithProgress(response, onProgress)),
    fetchFile(new URL(/\/step-\d+\/$/.test(folder.pathname) ? "../tokenizer.tiktoken" : "tokenizer.tiktoken", folder)).then((response) => response.text()),
  ]);
  return { lm: new TransformerLM(config, readSafetensors(weights)), tokenizer: Tokenizer.parse(tokenizer) };
}

/** @param {URL} url */
async function fetchFile(url) {
  const response = await fetch(url).catch((error) => ({ ok: false, status: 0, statusText: String(error) }));
  if (response instanceof Response && response.ok) return response;
  throw new ModelError(`${url.pathname} cannot be loaded (${response.status || ""} ${response.statusText}): serve the whole repository, so that its checkpoints are found.`);
}

/** Read a response's bytes without a second copy of them. @param {Response} response @param {(bytes: number, total: number) => void} onProgress */
async function readWithProgress(response, onProgress) {
  const total = Number(response.headers.get("content-length"));
  let bytes = 0;
  const counter = new TransformStream({ transform(chunk, stream) {
    onProgress(bytes += chunk.length, Math.max(bytes, total));
    stream.enqueue(chunk);
  } });
  return new Response(response.body?.pipeThrough(counter)).arrayBuffer();
}
