// @ts-check
// SVG whose nodes stay: only those of their attributes change that have another value.

const SVG = "http://www.w3.org/2000/svg";

/** @param {string} tag @param {string} [className] @param {...(string | Node)} children @returns {SVGElement} */
export function makeSvg(tag, className, ...children) {
  const node = document.createElementNS(SVG, tag);
  if (className) node.setAttribute("class", className);
  node.append(...children);
  return node;
}

/** @param {Element} node @param {Record<string, any>} attributes */
export function set(node, attributes) {
  for (const [name, now] of Object.entries(attributes))
    if (node.getAttribute(name) !== String(now)) node.setAttribute(name, String(now));
}

/**
 * As many children as wanted; those that are there stay.
 * @param {Element} group
 * @param {number} count
 * @param {() => SVGElement} make
 * @returns {SVGElement[]}
 */
export function many(group, count, make) {
  while (group.children.length > count) group.lastChild.remove();
  while (group.children.length < count) group.append(make());
  return /** @type {SVGElement[]} */ (Array.from(group.children));
}
