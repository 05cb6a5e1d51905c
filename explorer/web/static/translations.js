// @ts-check
// In which words it is said: every sentence stands in English where it is used, marked by `_` or `ngettext`, and is
// looked up in Python's catalogue (explorer/translations).
import { LANGUAGES } from "./shared_constants.js";

const cookie = () => /(?:^|; )lang=([^;]*)/.exec(globalThis.document?.cookie ?? "")?.[1];
const inAddress = () => new URLSearchParams(globalThis.location?.search).get("lang");

/** The first of the page's languages that one of the tags names, exactly or by its first part. @param {(string | null | undefined)[]} tags */
function negotiate(tags) {
  const languages = Object.keys(LANGUAGES), first = (tag) => tag.toLowerCase().split("-")[0];
  for (const tag of tags.filter(Boolean)) {
    const found = languages.find((one) => one.toLowerCase() === tag.toLowerCase()) ?? languages.find((one) => first(one) === first(tag));
    if (found) return found;
  }
  return languages[0];
}

/** The page's, as a BCP 47 tag: the address's, or what was chosen last, or what the browser says. */
export const language = negotiate([inAddress(), cookie(), ...(globalThis.navigator?.languages ?? [])]);
/** A message -> what the page's language says in its place; English is what they are written in. @type {Record<string, any>} */
export const MESSAGES = language === "en" ? {} : (await import(`./messages.${language}.js`)).MESSAGES;

/** Has later visits without `lang` in the address be in a language: a cookie, as Python is to know it (request_locale.py).
 * @param {string} tag */
export const rememberLanguage = (tag) => { document.cookie = `lang=${tag}; max-age=31536000; samesite=lax`; };

const NAME = /{(\w+)(?::([^}]+))?}/; // of a value in a message, and its format in Python's terms

/** @typedef {string | number} Value */

/**
 * The message in the page's language, with values in the place of their names. They go in as they are: nothing in them is
 * looked up or put in place of a name.
 * @param {string} message a whole sentence, as a literal, with names in braces; without values it is left as a template
 * @param {Record<string, Value>} [values]
 */
export const _ = (message, values) => filled(lookUpMessage(message), values);

/** The message as it is: a literal that `lookUpMessage` finds later. @param {string} message */
export const N_ = (message) => message;

/** What `_` answers to a message that was marked by `N_`. @param {string} message @returns {string} */
export const lookUpMessage = (message) => MESSAGES[message] ?? message;

/**
 * The same of a sentence that a number of things changes.
 * @param {string} singular
 * @param {string} plural
 * @param {number} count
 * @param {Record<string, Value>} [values] `{count}` is the count, or what stands for it here
 */
export function ngettext(singular, plural, count, values) {
  const forms = MESSAGES[singular], english = count === 1 ? singular : plural;
  const form = forms && MESSAGES[""][count < 200 ? count : 100 + (count % 100)];
  return filled(forms ? forms[form] : english, { count, ...values });
}

/**
 * A message as text and nodes, in its language's order.
 * @param {string} template what `_` gives without values
 * @param {Record<string, Value | Node | Node[]>} values
 * @returns {(string | Node)[]}
 */
export function messagePieces(template, values) {
  const pieces = template.split(NAME).flatMap((piece, i) => (i % 3 === 1 ? values[piece] : i % 3 ? [] : piece));
  return pieces.filter((piece) => piece !== "").map((piece) => (typeof piece === "number" ? String(piece) : piece));
}

function filled(message, values) {
  return values ? format(message, values) : message;
}

/**
 * A message with values in the place of their names, as Python's `str.format`: two braces stand for one.
 * @param {string} message
 * @param {Record<string, Value>} values
 */
export const format = (message, values) => message.replace(PLACE, (whole, name, spec) => (name ? String(formatValue(values[name] ?? "", spec)) : whole[0]));
const PLACE = new RegExp(`{{|}}|${NAME.source}`, "g");

/** A number by a format of Python's: ",", ".2f", ",.0f", ".4g", "g" or ".0%"; text stays as it is. @param {Value} value @param {string} [spec] */
function formatValue(value, spec) {
  const [, comma, digits, kind] = /^(,?)(?:\.(\d+))?([fg%]?)$/.exec(spec ?? "") ?? [], number = +value;
  if (!spec || typeof value === "string") return value;
  if (kind === "%") return `${(100 * number).toFixed(+digits)}%`;
  if (kind === "g") return String(+number.toPrecision(+(digits ?? 6)));
  const places = kind ? +digits : undefined;
  return comma ? number.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places }) : number.toFixed(places);
}
