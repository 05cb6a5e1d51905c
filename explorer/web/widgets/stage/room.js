// @ts-check
// How large things are on the stage.

const LEAST_TYPE = 20; // pixels that the smallest letters of a picture have, and those of a lesson's words
const SMALLEST = { picture: 10, words: 15 }; // as they are on the page; a lesson's smaller ones are made so (page.css)
const BAR = 60, MARGIN = 24, SHARES = [0.42, 0.58]; // of the width: a lesson's words have the first, and the second where they are many
const MAP_WIDTH = 985, MAP_LEFT = 40, CROWDED = 1300, TIGHT = 700; // pixels of the map of a model as it is drawn; of the picture's room below which its words have none
const NATURAL = { width: 800, height: 440, words: 400, phone: 320 }; // of a page that is not enlarged

/** @typedef {{ left: number, top: number, width: number, height: number, scale: number }} Room */

/**
 * The room of the picture, and by how much it is enlarged.
 * @param {{ width: number, height: number }} screen
 * @param {number} head the height of what stands above
 * @param {boolean} hasWords whether a lesson's words stand at the left
 * @param {boolean} [areMany] whether they need more than their usual room
 * @returns {Room}
 */
export function pictureRoom(screen, head, hasWords, areMany = false) {
  const left = (hasWords ? Math.round(screen.width * SHARES[+areMany]) : 0) + MARGIN;
  const width = screen.width - left - MARGIN, height = screen.height - head - BAR;
  const least = Math.min(LEAST_TYPE / SMALLEST.picture, screen.width / NATURAL.phone); // a telephone is held close
  const scale = Math.max(least, Math.min(width / NATURAL.width, height / NATURAL.height));
  return { left, top: head, width, height, scale };
}

/**
 * How large a map's letters are drawn, which grows and shrinks with its room, and whether not all of them fit then, or hardly any.
 * @param {Room} room
 */
export const lettersOfMap = ({ width }) => ({ type: (LEAST_TYPE * MAP_WIDTH) / (width - MAP_LEFT), isCrowded: width < CROWDED, isTight: width < TIGHT });

/**
 * The room of a lesson's words, and by how much they may be enlarged, the most first: what has no room is less, down to
 * letters of 20 pixels.
 * @param {{ width: number, height: number }} screen
 * @param {number} head
 * @param {boolean} isAlone
 * @param {boolean} [areMany]
 * @returns {Room & { scales: number[] }}
 */
export function wordsRoom(screen, head, isAlone, areMany = false) {
  const width = Math.round(isAlone ? screen.width - 2 * MARGIN : screen.width * SHARES[+areMany]), height = screen.height - head - BAR;
  const least = LEAST_TYPE / SMALLEST.words, most = Math.max(least, Math.min(2.4, width / NATURAL.words));
  const scales = [most, (2 * most + least) / 3, (most + 2 * least) / 3, least];
  return { left: isAlone ? MARGIN : 0, top: head, width, height, scale: most, scales };
}
