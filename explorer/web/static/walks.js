// @ts-check
// Going through a computation bit by bit: buttons ask for it, widgets/walk shows it.

const told = new EventTarget();

/** @param {string} name of explain/walks */
export const startWalk = (name) => void told.dispatchEvent(new CustomEvent("start", { detail: name }));

/** @param {(name: string) => void} start */
export const onWalk = (start) => told.addEventListener("start", (event) => start(/** @type {CustomEvent<string>} */ (event).detail));

/**
 * @typedef {object} Segment
 * @property {string} says
 * @property {string} kind
 * @property {Record<string, any>[]} frames
 */
/** Where a walk is: a segment, and a frame of it. @typedef {{ segment: number, frame: number }} Place */

/** The place that a press of the space bar leads to: the segment's end first, then the next segment. @param {Segment[]} segments @param {Place} at @param {boolean} isStill whether nothing moves @returns {Place} */
export function pressed(segments, { segment, frame }, isStill) {
  const last = segments[segment].frames.length - 1;
  if (frame < last) return { segment, frame: last };
  return segment + 1 < segments.length ? beginning(segments, segment + 1, isStill) : { segment, frame };
}

/** Where a segment begins: with its first frame, or where nothing is to move with its last. @param {Segment[]} segments @param {number} segment @param {boolean} isStill @returns {Place} */
export function beginning(segments, segment, isStill) {
  const within = Math.max(0, Math.min(segments.length - 1, segment));
  return { segment: within, frame: isStill ? segments[within].frames.length - 1 : 0 };
}
