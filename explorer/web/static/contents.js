// @ts-check
// What Python gives the widgets to show, by their elements' ids. A widget that starts later gets
// what came before.
import { _ } from "./language.js";
import { renew } from "./old_pictures.js";
import { PROBLEM } from "./protocol.js";

const contents = {}, receivers = {};

/**
 * Has the widget with an id show a content. One that fails leaves the others as they should be.
 * @param {string} id
 * @param {any} content
 * @param {number} [number] of the question that it answers
 */
export async function give(id, content, number) {
  contents[id] = content;
  try { await receivers[id]?.(content); } catch (error) { return tellBroken(error); }
  renew(document.getElementById(id), number);
}

/**
 * Calls `show` with every content that Python gives the widget of an element, beginning with the last one.
 * @param {Element} element
 * @param {(content: any) => any} show it is drawn once that resolves
 * @param {string} [part] the end of the id, where a widget has several
 */
export function onContent(element, show, part = "") {
  const id = (blockOf(element) ?? element).id + part;
  receivers[id] = show;
  if (id in contents) show(contents[id]);
}

/** The element around a widget's. @param {Element} element @returns {HTMLElement} */
export const blockOf = (element) => element.closest("[data-widget]");

/**
 * Something of the page failed.
 * @param {unknown} error
 * @param {string} [told]
 */
export function tellBroken(error, told = _("A part of the page could not be drawn. Reload the page to try again: its address holds all you chose.")) {
  console.error(error);
  give(PROBLEM, told);
}
