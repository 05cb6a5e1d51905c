// @ts-check
// A token's text on the page. What cannot be seen gets a mark that is drawn by CSS, so that the element's text stays
// exactly the token's.
import { make } from "./dom.js";
import { _ } from "./language.js";

/** Whether a token is some bytes of a character that takes several tokens, as Python writes them. @param {string} token */
export const isPartOfCharacter = (token) => /^(\\x[0-9a-f]{2})+$/.test(token);

const NO_TEXT = "∅"; // as Python writes it
const INVISIBLE = /[\s\p{Cc}\p{Cf}]/u;

/**
 * A token's text in pieces, in their order: each is visible as it is, or one character with the mark that stands for it.
 * @param {string} token
 * @returns {{ text: string, mark?: string }[]}
 */
export function pieces(token) {
  if (!token) return [{ text: "", mark: NO_TEXT }];
  const found = [];
  for (const character of token) {
    if (INVISIBLE.test(character)) found.push({ text: character, mark: markOf(character) });
    else if (found.length && !found.at(-1).mark) found.at(-1).text += character;
    else found.push({ text: character });
  }
  return found;
}

function markOf(character) {
  if (character === " ") return "·";
  if (character === "\n") return "↵";
  if (character === "\t") return "→";
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** A token's text as nodes of the page. @param {string} token @returns {(string | Node)[]} */
export function tokenNodes(token) {
  const meanings = { "·": _("a space, made visible"), "↵": _("a line break, made visible"), [NO_TEXT]: _("a token without a text") };
  return pieces(token).map(({ text, mark }) =>
    (mark ? make("span", { className: "mark", title: meanings[mark] ?? "", dataset: { mark } }, text) : text));
}
