// @ts-check
// What would tell the answer to a lesson's question is covered until there is a reply.
import { _ } from "../../static/language.js";

const PICTURES = "#view .panels > .block", TOLD = ["-formula", "-written", "-in-full", "-walk"];
// What names the likeliest next tokens outside of pictures.
const NAMING = "#view :is(label:has(> :is([data-field=target], [data-field=rival])), .what-ifs)";
const sheet = new CSSStyleSheet();
document.adoptedStyleSheets.push(sheet);

/**
 * The selectors of what is covered: what is named, all pictures of other tabs, and what is told in words in any.
 * @param {{ ids: string[], view: string }} hides
 */
export const covered = ({ ids, view }) => ({
  pictures: [...ids.map((id) => `#${id}`), `${PICTURES}:not([id^="${view}-"])`],
  words: [...TOLD.map((end) => `#view [id$="${end}"]`), ...(ids.includes("next-token") ? [NAMING] : [])],
});

/** Covers that, or nothing. @param {{ ids: string[], view: string } | null | undefined} hides */
export function cover(hides) {
  if (!hides) return sheet.replaceSync("");
  const { pictures, words } = covered(hides), sentence = JSON.stringify(_("Shown once you have replied."));
  const all = [...pictures, ...words].join();
  sheet.replaceSync(`:is(${all}), :is(${all}) :is(*, ::before, ::after) { visibility: hidden !important; }
:is(${pictures.join()}) { --covered: ${sentence}; }`);
}
