// @ts-check
// A class in one room: this page leads it, or is in it. The address says which (`room`); that this page leads, and as whom
// it is there, this tab alone keeps, so that neither is in a link that is passed on.
import { ROOM, withoutRoom } from "./history.js";
import { askRoom } from "./room_calls.js";

/**
 * @typedef {object} Room
 * @property {string} code
 * @property {string} [key] of whom leads it
 * @property {string} [student] of whom is in it
 * @property {boolean} leads whether the class is to follow
 * @property {boolean} follows whether this page does
 * @property {boolean} isReached whether the server answers
 * @property {boolean} isHeard whether it has answered
 * @property {string} problem a sentence of the server's
 * @property {boolean} [isClosing] whether this page is about to close it
 * @property {number} people
 * @property {string} lesson whose questions are replied to
 * @property {number} step
 * @property {Record<string, number>} counts reply -> how many gave it
 */

const KEPT = "explorer:room"; // in the tab's storage
const OF_TAB = ["code", "key", "student", "leads", "follows"];

/** Null where there is none. @type {Room | null} */
export let room = null;
/** Why there is none any more; "" where nobody need know. */
export let ended = "";

const told = new EventTarget();
let leaving = new AbortController();

/** Calls `listener` with every change of the room. @param {() => void} listener */
export const onRoom = (listener) => told.addEventListener("room", listener);

/** Calls `listener` with each room that is entered, and what says that it was left. @param {(room: Room, left: AbortSignal) => void} listener */
export const onEntered = (listener) => told.addEventListener("entered", () => listener(room, leaving.signal));

export const isTeacher = () => Boolean(room?.key);

/** As whom this page asks. */
export const who = () => (room.key ? { code: room.code, key: room.key } : { code: room.code, student: room.student });

/** Changes what is known of the room. @param {Partial<Room>} change */
export function changeRoom(change) {
  Object.assign(room, change);
  keep();
  told.dispatchEvent(new Event("room"));
}

/** The address at which students join. @param {string} code @param {string} address */
export function linkOf(code, address) {
  const url = new URL(address);
  url.hash = "";
  url.search = `?${ROOM}=${code}`;
  return url.href;
}

/** @returns {Partial<Room>} */
function kept() {
  try { return JSON.parse(sessionStorage.getItem(KEPT)) ?? {}; } catch { return {}; } // not every frame has a storage
}
function keep() {
  try {
    if (!room) return sessionStorage.removeItem(KEPT);
    sessionStorage.setItem(KEPT, JSON.stringify(Object.fromEntries(OF_TAB.map((name) => [name, room[name]]))));
  } catch { /* until the page is left, then */ }
}

/** @param {Partial<Room> & { code: string }} given */
function enter(given) {
  room = { leads: true, follows: true, isReached: true, isHeard: false, problem: "", people: 0, lesson: "", step: 0, counts: {}, ...given };
  ended = "";
  leaving = new AbortController();
  inAddress(room.key ? null : room.code);
  changeRoom({});
  told.dispatchEvent(new Event("entered"));
}

/** The page goes on alone. @param {string} [why] */
export function end(why = "") {
  room = null;
  ended = why;
  leaving.abort();
  keep();
  inAddress(null);
  told.dispatchEvent(new Event("room"));
}

/** @param {string | null} code */
function inAddress(code) {
  const url = withoutRoom(new URL(location.href));
  if (code) url.searchParams.set(ROOM, code);
  history.replaceState(history.state, "", url);
}

/** Opens a room, which this page leads. Throws what `askRoom` does. */
export async function openRoom() { enter(await askRoom("open", {})); }

/** Joins one, as whom this tab was there before. @param {string} typed a code as somebody wrote it */
export function joinRoom(typed) {
  const code = typed.toUpperCase().replace(/[\s–—-]/g, ""), before = kept(), isSame = before.code === code && Boolean(before.student);
  enter({ code, student: isSame ? before.student : newName(), follows: isSame ? before.follows : true });
}
const newName = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Leaves the room that another leads. */
export function leaveRoom() {
  askRoom("leave", who()).catch(() => {}); // who no longer asks is gone anyway
  end();
}

/** Closes the room that this page leads; nothing of it stays. Throws what `askRoom` does. */
export async function closeRoom() {
  room.isClosing = true; // what is heard of it is no news
  try { await askRoom("close", who()); } catch (error) {
    room.isClosing = false;
    throw error;
  }
  end();
}

/** Enters the room that the address names, or that this tab leads. */
export function enterRoom() {
  const named = new URLSearchParams(location.search).get(ROOM), { code, key, leads } = kept();
  if (key && (!named || named === code)) enter({ code, key, leads });
  else if (named) joinRoom(named);
}
