// @ts-check
// Translations. Messages are written in English where they are used, marked by `_` or `ngettext`, and looked up in Python's
// catalogue (explorer/translations).
import { LANGUAGES } from "./shared_constants.js";

const cookie = () => /(?:^|; )lang=([^;]*)/.exec(globalThis.document?.cookie ?? "")?.[1];
const urlLanguage = () => new URLSearchParams(globalThis.location?.search).get("lang");

/** Return the first of the page's languages that matches a tag, exactly or by its first part. @param {(string | null | undefined)[]} tags */
function negotiate(tags) {
  const languages = Object.keys(LANGUAGES), first = (tag) => tag.toLowerCase().split("-")[0];
  for (const tag of tags.filter(Boolean)) {
    const match = languages.find((name) => name.toLowerCase() === tag.toLowerCase()) ?? languages.find((name) => first(name) === first(tag));
    if (match) return match;
  }
  return languages[0];
}

/** Page language as a BCP 47 tag: from the URL, the last choice, or the browser. */
export const language = negotiate([urlLanguage(), cookie(), ...(globalThis.navigator?.languages ?? [])]);
/** Message -> its translation; empty for English. @type {Record<string, any>} */
export const MESSAGES = language === "en" ? {} : (await import(`./messages.${language}.js`)).MESSAGES;

/** Store the language for later visits whose URL has no `lang`. A cookie, since Python needs it too (user_messages.py).
 * @param {string} tag */
export const storeLanguage = (tag) => { document.cookie = `lang=${tag}; max-age=31536000; samesite=lax`; };

const PLACEHOLDER = /{(\w+)(?::([^}]+))?}/; // placeholder of a value, with its format as in Python

/** @typedef {string | number} Value */

/**
 * Translate a message and fill in its values. Values are inserted as they are, without looking for placeholders in them.
 * @param {string} message a whole sentence, as a literal, with placeholders in braces; without values they stay
 * @param {Record<string, Value>} [values]
 */
export const _ = (message, values) => fillIn(lookUpMessage(message), values);

/** Mark a literal for translation without translating it. @param {string} message */
export const N_ = (message) => message;

/** Translate a message that was marked by `N_`. @param {string} message @returns {string} */
export const lookUpMessage = (message) => MESSAGES[message] ?? message;

/**
 * Translate a message that depends on a count.
 * @param {string} singular
 * @param {string} plural
 * @param {number} count
 * @param {Record<string, Value>} [values] may replace `count`
 */
export function ngettext(singular, plural, count, values) {
  const forms = MESSAGES[singular], english = count === 1 ? singular : plural;
  const form = forms && MESSAGES[""][count < 200 ? count : 100 + (count % 100)];
  return fillIn(forms ? forms[form] : english, { count, ...values });
}

/**
 * Return a message as text and nodes, in its language's order.
 * @param {string} template result of `_` without values
 * @param {Record<string, Value | Node | Node[]>} values
 * @returns {(string | Node)[]}
 */
export function splitMessage(template, values) {
  const pieces = template.split(PLACEHOLDER).flatMap((piece, i) => (i % 3 === 1 ? values[piece] : i % 3 ? [] : piece));
  return pieces.filter((piece) => piece !== "").map((piece) => (typeof piece === "number" ? String(piece) : piece));
}

function fillIn(message, values) {
  return values ? formatMessage(message, values) : message;
}

/**
 * Fill in values as Python's `str.format`; doubled braces stand for one.
 * @param {string} message
 * @param {Record<string, Value>} values
 */
export const formatMessage = (message, values) => message.replace(BRACES_OR_PLACEHOLDER, (match, name, spec) => (name ? String(formatValue(values[name] ?? "", spec)) : match[0]));
const BRACES_OR_PLACEHOLDER = new RegExp(`{{|}}|${PLACEHOLDER.source}`, "g");

/** Format a number by a Python format: ",", ".2f", ",.0f", ".4g", "g" or ".0%". Text stays as it is. @param {Value} value @param {string} [spec] */
function formatValue(value, spec) {
  const [, comma, digits, kind] = /^(,?)(?:\.(\d+))?([fg%]?)$/.exec(spec ?? "") ?? [], number = +value;
  if (!spec || typeof value === "string") return value;
  if (kind === "%") return `${(100 * number).toFixed(+digits)}%`;
  if (kind === "g") return String(+number.toPrecision(+(digits ?? 6)));
  const numDecimals = kind ? +digits : undefined;
  return comma ? number.toLocaleString("en", { minimumFractionDigits: numDecimals, maximumFractionDigits: numDecimals }) : number.toFixed(numDecimals);
}
