// @ts-check
// Words that no mark can be in: those drawn in SVG, and what a list has chosen.
import { findAll } from "./dom.js";

/** @typedef {{ element: Element, text: string }} Words */

const TOKENS = ":is([data-field=query], [data-field=key], [data-field=target], [data-field=rival])"; // lists of them

/**
 * All words of a place, without its tokens, which are typed in mono wherever they are drawn.
 * @param {Element} place
 * @returns {Words[]}
 */
export function wordsOf(place) {
  if (place.matches("button, .clauses, .in-full, .changes")) return [{ element: place, text: place.textContent }];
  const lists = /** @type {HTMLSelectElement[]} */ (findAll(place, `select:not(${TOKENS})`));
  const chosen = lists.map((list) => ({ element: list, text: list.selectedOptions[0]?.text ?? "" }));
  const drawn = findAll(place, "text").filter((text) => text.textContent.trim() && !getComputedStyle(text).fontFamily.includes("mono"));
  return [...chosen, ...drawn.map((text) => ({ element: text, text: text.textContent }))];
}

/**
 * The term at a point of a place, or else the first of the words that are there; null where there is none.
 * @param {Element} place
 * @param {{ clientX: number, clientY: number }} point
 * @param {(text: string) => import("./term_finder.js").Found[]} findTerms
 */
export function termIn(place, { clientX: x, clientY: y }, findTerms) {
  for (const { element, text } of wordsOf(place)) {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    if (x < left || x > right || y < top || y > bottom || element.closest(".part")) continue; // the map tells of its parts
    const terms = findTerms(text), at = characterAt(element, x, y);
    const term = terms.find(({ from, to }) => from <= at && at < to) ?? terms[0];
    if (term) return term;
  }
  return null;
}

// Which character of a text drawn in SVG is at a point, -1 for none.
function characterAt(element, x, y) {
  if (!(element instanceof SVGTextContentElement)) return -1;
  const to = element.getScreenCTM()?.inverse(), { x: across, y: down } = new DOMPoint(x, y).matrixTransform(to);
  const point = element.ownerSVGElement.createSVGPoint();
  [point.x, point.y] = [across, down];
  return element.getCharNumAtPosition(point);
}
