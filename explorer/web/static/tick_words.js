// @ts-check
// Words beside an axis. Plotly writes all it is given, however narrow their place: of those that would lie on one another
// some are hidden.
import { findAll } from "./dom.js";

const APART = 1.1; // from one to the next, in sizes of their letters

/** Hides what has no room beside the axes that Plotly has drawn; it may have more when the plot is drawn anew. */
export function thinTicks(plot) {
  for (const axis of axesOf(plot)) {
    const words = findAll(plot, `.${axis._id}tick text`);
    if (!words.length) continue; // an axis that is not to be seen has no letters of a size either
    const shown = withRoom(words.map((word) => axis.l2p(/** @type {any} */ (word).__data__.x)), APART * axis.tickfont.size);
    words.forEach((word, i) => { word.style.visibility = shown[i] ? "" : "hidden"; });
  }
}

const axesOf = ({ _fullLayout: layout }) => Object.keys(layout).filter((name) => /^[xy]axis\d*$/.test(name)).map((name) => layout[name]);

/**
 * Which of some places to keep, from the first on, so that each is as far from the one before as it must be.
 * @param {number[]} places pixels, in any order
 * @param {number} apart
 * @returns {boolean[]}
 */
export function withRoom(places, apart) {
  const order = places.map((_place, i) => i).sort((a, b) => places[a] - places[b]), shown = places.map(() => false);
  let last = -Infinity;
  for (const i of order) {
    if (places[i] - last < apart) continue;
    shown[i] = true;
    last = places[i];
  }
  return shown;
}
