// @ts-check
// Checkpoints in checkpoints/<name>/ (model/checkpoint.py): config.json, model.safetensors, and tokenizer.tiktoken with its tokenizer.
import { ModelError, TransformerLM } from "./transformer_lm.js";

/** Read a safetensors file of float16, as the bundled models have, into float32 arrays by name. The file is the header's length in 8 bytes, the header, and the numbers.
 * @param {ArrayBuffer} buffer @returns {Record<string, Float32Array>} */
export function readSafetensors(buffer) {
  const damagedError = (reason) => new ModelError(`model.safetensors is damaged (${reason}): download it again.`);
  if (buffer.byteLength < 8) throw damagedError("it is too short");
  const start = 8 + Number(new DataView(buffer).getBigUint64(0, true)); // where the numbers begin
  if (start > buffer.byteLength) throw damagedError("its header ends after the file");
  /** @type {Record<string, any>} */
  let header;
  try { header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, start - 8))); } catch { throw damagedError("its header is no JSON"); }
  const tensors = {}, numbers = Float32Array.from({ length: 65536 }, (_none, bits) => halfToNumber(bits));
  for (const [name, { shape, data_offsets: [from, to] }] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const size = shape.reduce((product, length) => product * length, 1);
    if (start + to > buffer.byteLength || to - from !== 2 * size) throw damagedError(`${name} ends after the file, or has another size than its shape`);
    const bits = new Uint16Array(buffer.slice(start + from, start + to)), values = tensors[name] = new Float32Array(size);
    for (let i = 0; i < size; i++) values[i] = numbers[bits[i]];
  }
  return tensors;
}

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

// Byte-level BPE tokenizer, as model/tokenizer.py: text to token ids and back. A byte is one character of a string.

const END_OF_TEXT = "<|endoftext|>";

// GPT-2's pattern, which splits text into words before any merge. JavaScript's \s differs from Unicode's white space, which tiktoken uses.
const WORD_PATTERN = /'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+$|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}/gu;

/** Encode a text as a string of bytes. @param {string} text */
const utf8 = (text) => Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("");
/** @param {string} bytes */
const toBytes = (bytes) => Uint8Array.from(bytes, (character) => character.charCodeAt(0));
const decoder = new TextDecoder("utf-8", { ignoreBOM: true }), strict = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });

export class Tokenizer {
  /** @param {Map<string, number>} ranks bytes of each ordinary token -> its id, in the order of merging @param {string[]} special texts of the special tokens, whose ids follow */
  constructor(ranks, special) {
    this.ranks = ranks;
    /** Bytes of each id. */
    this.tokens = [...ranks.keys(), ...special.map(utf8)];
    this.endOfText = this.tokens.indexOf(END_OF_TEXT);
    /** @type {Map<string, number[]>} */
    this.words = new Map(); // cache: word -> ids
  }

  /** Parse tiktoken's format: a line per token with its bytes in base64 and its id; a third word for a special token. @param {string} file */
  static parse(file) {
    const lines = file.split("\n").filter(Boolean).map((line) => line.split(" ")), ranks = new Map(), special = [];
    try { for (const [token, , kind] of lines) if (kind) special.push(decoder.decode(toBytes(atob(token)))); else ranks.set(atob(token), ranks.size); } catch { ranks.clear(); }
    const isComplete = lines.every(([, rank], i) => Number(rank) === i) && Array.from({ length: 256 }, (_none, byte) => ranks.has(String.fromCharCode(byte))).every(Boolean);
    if (!isComplete || ranks.size + special.length < lines.length) throw new ModelError("tokenizer.tiktoken is damaged: download it again.");
    return new Tokenizer(ranks, special.length ? special : [END_OF_TEXT]);
  }

  /** Encode a text; special tokens in it are ordinary text. @param {string} text */
  encode(text) {
    const ids = [];
    for (const [word] of text.replace(/\p{Surrogate}/gu, "\ufffd").matchAll(WORD_PATTERN)) { // UTF-8 has no lone surrogates
      let merged = this.words.get(word);
      if (!merged) this.words.set(word, merged = this.merge(utf8(word)));
      for (const id of merged) ids.push(id);
      if (this.words.size > 10_000) this.words.clear();
    }
    return ids;
  }

  /** Merge a word. The neighbours with the lowest rank are merged first, the leftmost of equals, until none can be merged.
   * @param {string} word its bytes @returns {number[]} */
  merge(word) {
    const wholeId = this.ranks.get(word);
    if (wholeId !== undefined) return [wholeId];
    let pieces = [...word];
    const rank = (i) => this.ranks.get(pieces[i] + pieces[i + 1]) ?? Infinity;
    for (;;) {
      let lowest = Infinity;
      for (let i = 0; i + 1 < pieces.length; i++) lowest = Math.min(lowest, rank(i));
      if (lowest === Infinity) return pieces.map((piece) => this.ranks.get(piece));
      // Merge all pairs of this rank at once, up to one that creates a pair of a lower rank.
      const merged = [];
      let i = 0, isLower = false;
      while (i < pieces.length) {
        if (isLower || i + 1 === pieces.length || rank(i) !== lowest) merged.push(pieces[i++]);
        else {
          const piece = pieces[i] + pieces[i + 1], before = merged.at(-1) ?? "", after = pieces[i + 2];
          merged.push(piece);
          i += 2;
          isLower = [before && before + piece, after && piece + after].some((pair) => pair && this.ranks.get(pair) < lowest);
        }
      }
      pieces = merged;
    }
  }

  /** Decode ids; bytes that are not UTF-8 become U+FFFD. @param {ArrayLike<number>} ids */
  decode(ids) { return decoder.decode(toBytes(Array.from(ids, (id) => this.tokens[id]).join(""))); }

  /** Return a token's display text: its text, or hex values if its bytes are only part of a character. @param {number} id */
  tokenText(id) {
    const bytes = toBytes(this.tokens[id]);
    try { return strict.decode(bytes); } catch { return Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join(""); }
  }
}
