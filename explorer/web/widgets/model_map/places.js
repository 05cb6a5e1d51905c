// @ts-check
// Where things are on the map: of numbers alone.

/** Left, upper, right and lower edge. @typedef {number[]} Box */

const GAP = 8, POINTER = 24; // pixels between what is told and its part: above it, and below, where the pointer hangs
const HEAD = 3.5; // half the width of an arrow's head, in the plan's pixels

/** The step of an arrow key, to the right and down. @type {Record<string, [number, number]>} */
export const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * What is drawn on one of the sheets that a map comes with: each part where it stands there, and what is written on it
 * where that has room.
 * @param {any} map
 * @param {number} i
 */
export function onSheet({ sheets, parts, ...rest }, i) {
  const sheet = sheets[i];
  const placed = parts.map(([kind, boxes, told, selects, value, written]) => (
    { kind, box: boxes[i], told, selects, value, written: sheet.written.includes(kind) ? written : "" }));
  return { ...rest, ...sheet, parts: placed };
}

/** @param {Box} box @returns {[number, number]} */
export const centre = ([left, upper, right, lower]) => [(left + right) / 2, (upper + lower) / 2];

/** As an SVG rectangle has it. @param {Box} box */
export const rectOf = ([left, upper, right, lower]) => ({ x: left, y: upper, width: right - left, height: lower - upper });

/**
 * Which box is next to one of them in a direction, by their centres: what lies aside counts double. Itself if none is.
 * @param {Box[]} boxes
 * @param {number} from
 * @param {[number, number]} direction
 */
export function nextTo(boxes, from, [right, down]) {
  const [x, y] = centre(boxes[from]);
  let nearest = from, least = Infinity;
  boxes.forEach((box, i) => {
    const [dx, dy] = centre(box).map((at, axis) => at - [x, y][axis]);
    const ahead = dx * right + dy * down, far = ahead + 2 * Math.abs(dx * down + dy * right);
    if (ahead > 0.5 && far < least) [nearest, least] = [i, far];
  });
  return nearest;
}

/**
 * The left and upper edge of what is told of a part: above it, or else below, and not beyond the bounds.
 * @param {{ left: number, top: number, right: number, bottom: number }} part
 * @param {{ width: number, height: number }} size
 * @param {{ left: number, top: number, right: number, bottom: number }} bounds
 */
export function beside(part, { width, height }, bounds) {
  const within = (at, size, low, high) => Math.max(low, Math.min(at, high - size));
  const above = part.top - GAP - height, y = above >= bounds.top ? above : part.bottom + POINTER;
  return [within((part.left + part.right - width) / 2, width, bounds.left, bounds.right), within(y, height, bounds.top, bounds.bottom)];
}

/** The path of a line. @param {number[]} corners x and y in turn */
export const pathOf = (corners) => corners.map((at, i) => `${i % 2 ? "," : i ? "L" : "M"}${at}`).join("");

/** That of the arrow's head at its end. @param {number[]} corners */
export function headOf(corners) {
  const [fromX, fromY, x, y] = corners.slice(-4), right = Math.sign(x - fromX), down = Math.sign(y - fromY);
  const corner = (back, aside) => `${x - back * right - aside * down},${y - back * down + aside * right}`;
  return `M${corner(0, 0)}L${corner(2 * HEAD, HEAD)}L${corner(2 * HEAD, -HEAD)}Z`;
}
