// @ts-check
// Numbers, tokens and interventions as text, as explorer/explain/notation.py, views/style.py and explorer/interventions/ format them.
import { END_OF_TEXT_TOKENS } from "../static/shared_constants.js";
import { _, N_, formatMessage, lookUpMessage } from "../static/translations.js";
import { formatNumber } from "../widgets/next_token/next_token.js";

/** Make a token's spaces, line breaks and control characters visible. @param {string} token */
export const escapeToken = (token) => (END_OF_TEXT_TOKENS.includes(token) ? _("■ end of text") : Array.from(token, escapeCharacter).join("") || "∅");

/** @param {string} character */
function escapeCharacter(character) {
  if (character in MARKS) return MARKS[character];
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Z}]/u.test(character) ? `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩` : character;
}
const MARKS = { " ": "·", "\n": "↵", "\t": "→", "\x7f": "␡" };

/** Quote a token for use in a sentence. @param {string} token */
export const quoteToken = (token) => `“${escapeToken(token)}”`;

/** Quote the token at a position, with the position if the text repeats it. @param {string[]} tokens @param {number} position */
export const quoteTokenInText = (tokens, position) => quoteToken(tokens[position]) + (tokens.filter((token) => token === tokens[position]).length > 1 ? ` (${position})` : "");

/** Quote a token as a word, without its leading space. @param {string} token */
export const quoteWord = (token) => token === "\n" ? _("“↵ new line”") : quoteToken(token.startsWith(" ") && token.trim() ? token.slice(1) : token);

const ORDINALS = [N_("the first {word}"), N_("the second {word}"), N_("the third {word}"), N_("the fourth {word}"), N_("the fifth {word}")];

/** Quote the token at a position as a word, and say which of them, in capitals or not, if the text repeats it. @param {string[]} tokens @param {number} position */
export function quoteWordAt(tokens, position) {
  const words = tokens.map((token) => quoteWord(token).toLowerCase()), word = quoteWord(tokens[position]), same = words[position];
  const index = words.slice(0, position).filter((other) => other === same).length;
  if (words.indexOf(same) === words.lastIndexOf(same)) return word;
  return index < ORDINALS.length ? formatMessage(lookUpMessage(ORDINALS[index]), { word }) : _("{word} number {number}", { word, number: index + 1 });
}

/** Shorten a token to `max` characters, and isolate its text direction. @param {string} token @param {number} [max] */
export function shortenToken(token, max = 14) {
  const text = Array.from(escapeToken(token));
  return `\u2068${text.length > max ? `${text.slice(0, max - 1).join("")}…` : text.join("")}\u2069`;
}

const MINUS = "−";

/** Format with two decimals and a sign; no sign if it rounds to 0. @param {number} value */
export function formatContribution(value) {
  const text = Math.abs(value).toFixed(2);
  return +text === 0 ? text : `${value < 0 ? MINUS : "+"}${text}`;
}

/** @param {number} value @param {number} digits */
export const formatFixed = (value, digits) => value.toFixed(digits).replace("-", MINUS);

/** Format as Python's "g". @param {number} value @param {number} [digits] */
export function formatGeneral(value, digits = 6) {
  if (!value) return "0";
  const power = +value.toExponential(digits - 1).split("e")[1];
  if (power >= -4 && power < digits) return String(+value.toFixed(Math.max(0, digits - 1 - power)));
  return value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace(/e([+-])(\d)$/, "e$10$2");
}

/** Format with six significant digits and a true minus sign. @param {number} value */
export const formatSixDigits = (value) => (Number.isFinite(value) ? formatGeneral(value).replaceAll("-", MINUS) : formatTwoDigits(value));

/** Put a formatted number in brackets if it is negative. @param {string} number */
export const bracketNegative = (number) => (number.startsWith(MINUS) ? `(${number})` : number);

/** Format with two significant digits, short enough for a small cell. @param {number} value */
export function formatTwoDigits(value) {
  const size = Math.abs(value);
  if (size === Infinity) return value < 0 ? `${MINUS}∞` : "∞";
  const text = size >= 99.5 ? value.toFixed(0) : size > 0 && size < 0.001 ? value.toExponential(0) : String(+value.toPrecision(2));
  return text.replaceAll("-", MINUS);
}

/** Format a share in percent: "84%", "3.1%", "over 99%". @param {number} share */
export function formatPercent(share) {
  if (share >= 0.995 && share < 1) return _("over 99%");
  if (share >= 0.1 || share === 0) return `${(100 * share).toFixed(0)}%`;
  return share >= 0.0001 ? `${(100 * share).toPrecision(2)}%` : _("less than 0.01%");
}

/** Join distinct names: "a, b and c". @param {string[]} names */
export function joinNames(names) {
  const all = [...new Set(names)], last = all.pop() ?? "";
  return all.length ? _("{first} and {last}", { first: all.join(", "), last }) : last;
}

/** Format with thousands separators. @param {number} value */
export const formatCount = (value) => value.toLocaleString("en");

export { formatNumber };

/** Describe an intervention in words. @param {string} text */
export function describeIntervention(text) {
  const [, layer, kind, index, position, factor] = /^blocks\.(\d+)\.(attn\.z|ffn\.hidden)[.[]?(\d*)\]?(?:@(\d+))?\*(?:zero|scale\*(.*))$/.exec(text) ?? [];
  const values = { layer, index, factor: (factor ?? "").replace("-", "−") }, isScaled = +(factor ?? 0) !== 0;
  const describeOne = { "attn.z": () => (isScaled ? _("head {layer}.{index} × {factor}", values) : _("head {layer}.{index}: off", values)), "ffn.hidden": () => (isScaled ? _("neuron {layer}.{index} × {factor}", values) : _("neuron {layer}.{index}: off", values)) };
  const describeAll = { "attn.z": () => (isScaled ? _("all heads of layer {layer} × {factor}", values) : _("all heads of layer {layer}: off", values)), "ffn.hidden": () => (isScaled ? _("all neurons of layer {layer} × {factor}", values) : _("all neurons of layer {layer}: off", values)) };
  const change = (index ? describeOne : describeAll)[kind]();
  return position ? _("{change}, {where}", { change, where: _("at position {position}", { position }) }) : change;
}
