// @ts-check
// Elements, built of text: what comes from a prompt is never read as markup.

/**
 * An element with its own properties, `dataset` among them, and contents.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} [properties]
 * @param {...(string | Node)} contents
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, { dataset, ...properties } = {}, ...contents) {
  const element = Object.assign(document.createElement(tag), properties);
  Object.assign(element.dataset, dataset);
  element.append(...contents);
  return element;
}

/** @param {string} className @param {...(string | Node)} contents */
export const span = (className, ...contents) => make("span", { className }, ...contents);

/** @param {string} text @param {() => void} act @param {Record<string, any>} [properties] */
export function button(text, act, properties) {
  const made = make("button", { type: "button", ...properties }, text);
  made.addEventListener("click", act);
  return made;
}

/**
 * The first element in a box that a selector names.
 * @param {ParentNode} box
 * @param {string} selector
 * @returns {HTMLElement}
 */
export const find = (box, selector) => box.querySelector(selector);

/** All of them. @param {ParentNode} box @param {string} selector @returns {HTMLElement[]} */
export const findAll = (box, selector) => Array.from(box.querySelectorAll(selector));

/** Writes a text where another stands: what is as before costs the browser nothing. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Counts how often an element has been drawn, as data-draws. */
export function countDraw(element) {
  element.dataset.draws = String(+(element.dataset.draws || 0) + 1);
}

/**
 * Calls `listener` at every event of a target, until the element has left the page.
 * @param {Element} element
 * @param {EventTarget} target
 * @param {string} type
 * @param {() => void} listener
 */
export function listenFor(element, target, type, listener) {
  const wrapped = () => {
    if (element.isConnected) listener();
    else target.removeEventListener(type, wrapped);
  };
  target.addEventListener(type, wrapped);
}
