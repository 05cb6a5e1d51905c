// @ts-check
// Terms of art in a text, by all forms in which the page writes them.

/** @typedef {{ name: string, form: string, from: number, to: number }} Found a term: its entry's name, and where it stands */

/**
 * Gives the function that finds the terms in a text, but for what stands between quotation marks, as tokens do, and for
 * a dot between spaces, which parts items of a line.
 * @param {Record<string, string>} forms each form -> the name of its entry
 * @returns {(text: string) => Found[]}
 */
export function termFinder(forms) {
  const pattern = finder(Object.keys(forms));
  const names = new Map(Object.entries(forms).map(([form, name]) => [form.toLowerCase(), name]));
  return (text) => [...text.matchAll(pattern)]
    .map(({ 0: form, index }) => ({ name: names.get(form.toLowerCase()), form, from: index, to: index + form.length }))
    .filter(({ name, from, to }) => name && !isQuoted(text, from) && text.slice(from - 1, to + 1) !== " · ");
}

/**
 * A pattern that finds each of some words, the longest first, as a whole where it is made of letters that join.
 * @param {string[]} forms
 */
export function finder(forms) {
  const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const joins = (character) => /[\p{Script=Latin}\p{N}·]/u.test(character);
  const alone = (text) => `(?<!\\p{Script=Han})${text}(?!\\p{Script=Han})`; // a character of which many words are made
  const whole = (text) => /^\p{Script=Han}$/u.test(text) ? alone(text) : `${joins(text[0]) ? "(?<![\\p{Script=Latin}\\p{N}_.-])" : ""}${escaped(text)}${joins(text.at(-1)) ? "(?![\\p{Script=Latin}\\p{N}_-])" : ""}`;
  return new RegExp([...forms].sort((a, b) => b.length - a.length).map(whole).join("|"), "giu");
}

const isQuoted = (text, index) => text.lastIndexOf("“", index) > text.lastIndexOf("”", index - 1);
