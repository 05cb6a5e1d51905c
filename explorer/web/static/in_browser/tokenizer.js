// @ts-check
// Byte-level BPE tokenizer, as model/tokenizer.py: text to token ids and back. Bytes are kept as strings of one character a byte.
import { ModelError } from "./transformer_lm.js";

const END_OF_TEXT = "<|endoftext|>";

// How text is cut into words before any merge: GPT-2's pattern. JavaScript's \s differs from Unicode's white space, which tiktoken uses.
const WORD_PATTERN = /'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+$|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}/gu;

/** Bytes as a string. @param {string} text */
const utf8 = (text) => Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("");
/** @param {string} bytes */
const toBytes = (bytes) => Uint8Array.from(bytes, (character) => character.charCodeAt(0));
const decoder = new TextDecoder("utf-8", { ignoreBOM: true }), strict = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });

export class Tokenizer {
  /** @param {Map<string, number>} ranks bytes of each ordinary token -> its id; merges are made in the order of the ids @param {string[]} special texts of the special tokens, whose ids follow */
  constructor(ranks, special) {
    this.ranks = ranks;
    /** Bytes of every id. */
    this.tokens = [...ranks.keys(), ...special.map(utf8)];
    this.endOfText = this.tokens.indexOf(END_OF_TEXT);
    /** @type {Map<string, number[]>} */
    this.words = new Map(); // ids of words that were encoded before
  }

  /** Reads tiktoken's own format: a line per token with its bytes in base64 and its id; of a special token a third word. @param {string} file */
  static parse(file) {
    const lines = file.split("\n").filter(Boolean).map((line) => line.split(" ")), ranks = new Map(), special = [];
    try { for (const [token, , kind] of lines) if (kind) special.push(decoder.decode(toBytes(atob(token)))); else ranks.set(atob(token), ranks.size); } catch { ranks.clear(); }
    const isWhole = lines.every(([, rank], i) => Number(rank) === i) && Array.from({ length: 256 }, (_none, byte) => ranks.has(String.fromCharCode(byte))).every(Boolean);
    if (!isWhole || ranks.size + special.length < lines.length) throw new ModelError("tokenizer.tiktoken is damaged: download it again.");
    return new Tokenizer(ranks, special.length ? special : [END_OF_TEXT]);
  }

  /** Token ids of a text; in it special tokens are ordinary text. @param {string} text */
  encode(text) {
    const ids = [];
    for (const [word] of text.replace(/\p{Surrogate}/gu, "\ufffd").matchAll(WORD_PATTERN)) { // UTF-8 has no lone halves of a pair
      let merged = this.words.get(word);
      if (!merged) this.words.set(word, merged = this.merge(utf8(word)));
      for (const id of merged) ids.push(id);
      if (this.words.size > 10_000) this.words.clear();
    }
    return ids;
  }

  /** The ids of a word. The neighbours of the lowest rank are merged first, the leftmost of equals, until no two merge.
   * @param {string} word its bytes @returns {number[]} */
  merge(word) {
    const whole = this.ranks.get(word);
    if (whole !== undefined) return [whole];
    let pieces = [...word];
    const rank = (i) => this.ranks.get(pieces[i] + pieces[i + 1]) ?? Infinity;
    for (;;) {
      let lowest = Infinity;
      for (let i = 0; i + 1 < pieces.length; i++) lowest = Math.min(lowest, rank(i));
      if (lowest === Infinity) return pieces.map((piece) => this.ranks.get(piece));
      // All pairs of this rank in one go, up to one that brings about a pair of a lower rank.
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

  /** Text of ids; bytes that are not UTF-8 become U+FFFD. @param {ArrayLike<number>} ids */
  decode(ids) { return decoder.decode(toBytes(Array.from(ids, (id) => this.tokens[id]).join(""))); }

  /** A token's display text: its text, or hex values if its bytes are only part of a character. @param {number} id */
  tokenText(id) {
    const bytes = toBytes(this.tokens[id]);
    try { return strict.decode(bytes); } catch { return Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join(""); }
  }
}
