// @ts-check
// Tokens and numbers as text, as explorer/explain/notation.py and views/style.py write them.
import { END_OF_TEXT_TOKENS } from "./shared_constants.js";
import { _ } from "./translations.js";

const MINUS = "−";

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
export const quoteTokenInText = (tokens, position) => quoteToken(tokens[position]) + repeatedPosition(tokens, position);

/** Return what to write after a token: its position, if the text repeats it (repeated_position). @param {string[]} tokens @param {number} position */
export const repeatedPosition = (tokens, position) => (tokens.filter((token) => token === tokens[position]).length > 1 ? ` (${position})` : "");

/** Name a token like `quoteTokenInText`, without quotation marks. @param {string[]} tokens @param {number} position */
export const escapeTokenInText = (tokens, position) => escapeToken(tokens[position]) + repeatedPosition(tokens, position);

/** Quote a token as a word, without its leading space. @param {string} token */
export const quoteWord = (token) => token === "\n" ? _("“↵ new line”") : quoteToken(token.startsWith(" ") && token.trim() ? token.slice(1) : token);

/** Shorten a token to `max` characters, and isolate its text direction. @param {string} token @param {number} [max] */
export function shortenToken(token, max = 14) {
  const text = Array.from(escapeToken(token));
  return `\u2068${text.length > max ? `${text.slice(0, max - 1).join("")}…` : text.join("")}\u2069`;
}

/** Format a number with three significant digits, like Python's `format_number`. @param {number} value */
export const formatNumber = (value) => formatDigits(value, 3);

/** Format a number with some significant digits. @param {number} value @param {number} digits */
export function formatDigits(value, digits) {
  if (value === 0 || !Number.isFinite(value)) return formatCellNumber(value);
  const scientific = value.toExponential(digits - 1), exponent = +scientific.split("e")[1];
  const text = exponent >= -4 && exponent < 4 ? value.toFixed(Math.max(0, digits - 1 - exponent)) : scientific.replace(/e([+-])(\d)$/, "e$10$2");
  return text.replaceAll("-", MINUS);
}

/** Format a logit, like Python's `format_logit`. @param {number} value */
export const formatLogit = (value) => (+value.toFixed(2) + 0).toFixed(2).replace("-", MINUS);

/** Format with two decimals and a sign; no sign if it rounds to 0. @param {number} value */
export function formatContribution(value) {
  const text = Math.abs(value).toFixed(2);
  return +text === 0 ? text : `${value < 0 ? MINUS : "+"}${text}`;
}

/** Format with three significant digits and a sign. @param {number} value */
export const formatSigned = (value) => `${value > 0 ? "+" : ""}${formatNumber(value)}`;

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
export const formatSixDigits = (value) => (Number.isFinite(value) ? formatGeneral(value).replaceAll("-", MINUS) : formatCellNumber(value));

/** Put a formatted number in brackets if it is negative. @param {string} number */
export const bracketNegative = (number) => (number.startsWith(MINUS) ? `(${number})` : number);

const MAX_CELL_CHARS = 6;
/** Format with three significant digits, or with fewer where three take more than `MAX_CELL_CHARS` (format_cell_number). @param {number} value */
export function formatCellNumber(value) {
  const size = Math.abs(value);
  if (size === Infinity) return value < 0 ? `${MINUS}∞` : "∞";
  const [threeDigits, twoDigits, oneDigit] = [3, 2, 1].map((digits) => String(+value.toPrecision(digits)));
  const text = size >= 999.5 ? value.toFixed(0) : size > 0 && size < 0.0001 ? value.toExponential(0) : size > 0 && size < 0.001 ? oneDigit : threeDigits.length <= MAX_CELL_CHARS ? threeDigits : twoDigits;
  return text.replaceAll("-", MINUS);
}

/** Format a share in percent: "84%", "3.1%", "over 99%". @param {number} share */
export function formatPercent(share) {
  if (share >= 0.995 && share < 1) return _("over 99%");
  if (share >= 0.1 || share === 0) return `${(100 * share).toFixed(0)}%`;
  return share >= 0.0001 ? `${(100 * share).toPrecision(2)}%` : _("less than 0.01%");
}

/** Format two shares that are compared, with one digit more if rounding changed their difference by a quarter. @param {number} before @param {number} after */
export function formatPercents(before, after) {
  const texts = [before, after].map(formatPercent), [first, second] = texts.map((text) => parseFloat(text) / 100), difference = after - before;
  if (!texts.every((text) => /^\d/.test(text)) || Math.abs(second - first - difference) <= Math.abs(difference) / 4) return texts;
  const longer = [before, after].map((share) => `${share >= 0.1 ? (100 * share).toFixed(1) : (100 * share).toPrecision(3)}%`);
  return longer[0] === longer[1] ? texts : longer;
}

/** Join distinct names: "a, b and c". @param {string[]} names */
export function joinNames(names) {
  const all = [...new Set(names)], last = all.pop() ?? "";
  return all.length ? _("{first} and {last}", { first: all.join(", "), last }) : last;
}

/** Format with thousands separators. @param {number} value */
export const formatCount = (value) => value.toLocaleString("en");
