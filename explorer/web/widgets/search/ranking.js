// @ts-check
// How well a text that somebody types fits a name, and which element of the model it names by numbers.

/** A name in which case, accents, and what stands between words make no difference. @param {string} text */
export const normalize = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().replace(/[\s·_/-]+/g, " ").trim();

export const EXACT = 100;
export const WHOLE_TOKEN = 90, PART_OF_TOKEN = 25; // what has a name goes before a token of the same text
const BEGINNING_OF_TOKEN = 45;
const PREFIX = 80, WORDS = 60, PART = 40, FUZZY = 20;

/**
 * How well a query fits a name: the whole, its beginning, beginnings of its words, a part, or its letters in their
 * order; 0 where it does not. Of names that fit alike the shortest is best. Both are normalized.
 * @param {string} name
 * @param {string} query
 */
export function score(name, query) {
  if (name === query) return EXACT;
  const rest = Math.min(9, (name.length - query.length) / 10);
  if (name.startsWith(query)) return PREFIX - rest;
  const padded = ` ${name}`;
  if (query.split(" ").every((word) => padded.includes(` ${word}`))) return WORDS - rest;
  if (query.length > 1 && name.includes(query)) return PART - rest;
  return query.length > 3 && isAbbreviated(name, query) ? FUZZY - rest : 0;
}

/** Whether a query's letters are in a name in their order, from the beginning of a word on, with few others between. */
function isAbbreviated(name, query) {
  const letters = query.replaceAll(" ", "");
  for (let start = 0; start >= 0; start = name.indexOf(" ", start + 1)) {
    let at = name.startsWith(" ", start) ? start + 1 : start;
    const first = at;
    if (name[at] !== letters[0]) continue;
    let count = 0;
    for (; at < name.length && count < letters.length; at++) if (name[at] === letters[count]) count++;
    if (count === letters.length && at - first <= 2 * letters.length) return true;
  }
  return false;
}

/**
 * The places of a vocabulary's best tokens for a text, with their scores. A space or · before it makes a difference
 * only among equals.
 * @param {string[]} vocabulary in lower case
 * @param {string} typed
 * @param {number} count
 * @returns {{ id: number, score: number }[]}
 */
export function rankTokens(vocabulary, typed, count) {
  const text = typed.replaceAll("·", " ").replaceAll("↵", "\n").toLowerCase(), word = text.trim() || text;
  if (!text) return [];
  const found = [];
  for (let id = 0; id < vocabulary.length; id++) {
    const token = vocabulary[id], at = token.indexOf(word);
    if (at < 0) continue;
    const rest = Math.min(9, (token.length - word.length) / 10);
    const isWhole = token.trim() === word || token === word, begins = at === 0 || (at === 1 && token[0] === " ");
    if (!isWhole && word.length < 2) continue;
    found.push({ id, score: token === text ? WHOLE_TOKEN + 1 : isWhole ? WHOLE_TOKEN : (begins ? BEGINNING_OF_TOKEN : PART_OF_TOKEN) - rest });
  }
  return found.sort((a, b) => b.score - a.score || a.id - b.id).slice(0, count);
}

// Numbers that name a layer, a head, a neuron or a position.

/** @typedef {{ kind: "layer" | "head" | "neuron" | "position" | "token", layer?: number, index?: number }} Place */

/**
 * What a query names by numbers: "4.4", "L4H4" and "head 4 4" are a head, "n3.287" and "ffn 3 287" a neuron, "L4" a
 * layer; a number alone may be a layer, a position or a token's id. Without its layer a head or neuron is of the
 * chosen one.
 * @param {string} query
 * @param {Record<"layer" | "head" | "neuron" | "position", string[]>} [words] more words for each
 * @returns {Place[]}
 */
export function readNumbers(query, words = { layer: [], head: [], neuron: [], position: [] }) {
  const any = (/** @type {"layer" | "head" | "neuron" | "position"} */ kind, ...english) => `(?:${[...english, ...words[kind]].map(escapeRegExp).join("|")})`;
  const layer = any("layer", "layer", "block", "l"), head = any("head", "head", "h");
  const neuron = any("neuron", "feed-forward", "neuron", "ffn", "mlp", "n"), position = any("position", "position", "pos", "#");
  const match = (pattern) => new RegExp(`^${pattern}$`, "iu").exec(query.trim().replace(/\s+/g, " "))?.slice(1).map(Number);
  const number = "(\\d{1,6})", gap = "(?:\\s?[.,:/]\\s?| )";
  const two = (kind) => `(?:${kind} ?)?${number}${gap}${number}`;
  const both = (kind) => `${layer} ?${number}[ ,.]?\\s?${kind} ?${number}`;
  /** @type {Place[]} */
  const places = [];
  const neurons = match(`${neuron} ?${number}${gap}${number}`) ?? match(both(neuron));
  if (neurons) return [{ kind: "neuron", layer: neurons[0], index: neurons[1] }];
  const heads = match(two(head)) ?? match(both(head));
  if (heads) return [{ kind: "head", layer: heads[0], index: heads[1] }];
  for (const [kind, words] of /** @type {["layer" | "head" | "neuron" | "position", string][]} */ ([["layer", layer], ["head", head], ["neuron", neuron], ["position", position]])) {
    const one = match(`${words} ?${number}`);
    if (one) places.push(kind === "layer" ? { kind, layer: one[0] } : { kind, index: one[0] });
  }
  const alone = match(number);
  if (alone) places.push({ kind: "layer", layer: alone[0] }, { kind: "position", index: alone[0] }, { kind: "token", index: alone[0] });
  return places;
}

const escapeRegExp = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
