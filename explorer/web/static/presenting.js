// @ts-check
// That the page is presented, and what is to be: widgets ask, the stage (widgets/stage) does.

const told = new EventTarget();

/**
 * Something to go through on the stage: places, or nothing for what the page has to show.
 * @typedef {{ places?: import("./places.js").Place[], at?: number }} Wanted
 */

/** Has the stage begin. @param {Wanted} [wanted] */
export const present = (wanted = {}) => void told.dispatchEvent(new CustomEvent("present", { detail: wanted }));

/** Calls `begin` whenever the page is to be presented. @param {(wanted: Wanted) => void} begin */
export const onPresent = (begin) => told.addEventListener("present", (event) => begin(/** @type {CustomEvent} */ (event).detail));
