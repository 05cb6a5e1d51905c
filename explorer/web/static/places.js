// @ts-check
// Saved places: states of the page, as the words of its address, each with a caption and notes. The browser keeps them,
// and a link's fragment or a file passes them on; no server does.
import { addressOf, MOST_LINK } from "./history.js";
import { base64Of, bytesOf } from "./plots.js";

/** @typedef {import("./state.js").State} State */

/**
 * @typedef {object} Place
 * @property {string} words the words of the address
 * @property {string} picture element id of the picture that fills the screen; "" for the first of its tab
 * @property {string} caption
 * @property {string} notes for whoever presents
 */

export const MOST = { places: 60, caption: 200, notes: 2000, words: MOST_LINK, text: 400_000 };
const KEPT = "explorer:places"; // in the browser's storage
const NOT_KEPT = ["lang", "turn", "version", "lesson", "step", "reply", "move", "own"]; // a place is no step of a lesson
const FRAGMENT = "places=", PICTURE = /^[a-z_]{1,40}-[a-z_]{1,40}$|^$|^strip$/;

/** A place of what is seen; null where its address is longer than a place may have. @param {State} state @param {string} picture @param {string} caption @returns {Place | null} */
export function placeOf(state, picture, caption) {
  const kept = Object.fromEntries(Object.entries(state).filter(([name]) => !NOT_KEPT.includes(name)));
  const words = addressOf(kept, "http://here/").search.slice(1);
  return words.length > MOST.words ? null : placeIn({ words, picture, caption });
}

/** What of anything is a place; null where it is none. @param {any} any @returns {Place | null} */
function placeIn(any) {
  if (typeof any?.words !== "string" || any.words.length > MOST.words || !any.words) return null;
  const text = (value, most) => (typeof value === "string" ? value.slice(0, most) : "");
  const picture = PICTURE.test(any.picture) ? any.picture : "";
  return { words: any.words, picture, caption: text(any.caption, MOST.caption), notes: text(any.notes, MOST.notes) };
}

/** The places in what anybody may have written: those that are none are left out. @param {any} any @returns {Place[]} */
export const placesIn = (any) => (Array.isArray(any) ? any.slice(0, MOST.places).map(placeIn).filter((place) => place !== null) : []);

/** All that the browser keeps. @returns {Place[]} */
export function keptPlaces() {
  try { return placesIn(JSON.parse(localStorage.getItem(KEPT))); } catch { return []; } // not every frame has a storage
}

/** Has the browser keep places in the place of all before; false where it does not. @param {Place[]} places */
export function keepPlacesAs(places) {
  try { localStorage.setItem(KEPT, JSON.stringify(places)); } catch { return false; }
  return true;
}

const brought = new EventTarget();

/** Brings places along, from a file or a link. @param {any} any */
export const bring = (any) => void brought.dispatchEvent(new CustomEvent("brought", { detail: placesIn(any) }));

/** Calls `take` with places that are brought along. @param {(places: Place[]) => void} take */
export const onBrought = (take) => brought.addEventListener("brought", (event) => take(/** @type {CustomEvent<Place[]>} */ (event).detail));

/** What a place asks, by name. @param {Place} place @returns {Record<string, string>} */
export const askedIn = ({ words }) => Object.fromEntries(new URLSearchParams(words));

/** As many as may be kept, and how many are not. @param {Place[]} mine @param {Place[]} brought @returns {[Place[], number]} */
export function added(mine, brought) {
  const all = [...mine, ...brought];
  return [all.slice(0, MOST.places), Math.max(0, all.length - MOST.places)];
}

/** The list with one of its items somewhere else. @template Item @param {Item[]} items @param {number} from @param {number} to */
export function reordered(items, from, to) {
  const others = items.filter((item, i) => i !== from);
  return [...others.slice(0, to), items[from], ...others.slice(to)];
}

/** A link to the page that brings places along: a fragment, which no server is sent. @param {Place[]} places @param {string} address */
export async function linkOf(places, address) {
  const url = new URL(address);
  url.search = "";
  const packed = await new Response(new Blob([JSON.stringify(places)]).stream().pipeThrough(new CompressionStream("deflate-raw"))).arrayBuffer();
  url.hash = FRAGMENT + base64Of(new Uint8Array(packed)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return url.href;
}

/** The places that a link's fragment brings; null where it has none. However much it unpacks to, no more is read than a list may have. @param {string} hash */
export async function placesInLink(hash) {
  const packed = hash.replace(/^#/, "");
  if (!packed.startsWith(FRAGMENT)) return null;
  try {
    const bytes = bytesOf(packed.slice(FRAGMENT.length).replaceAll("-", "+").replaceAll("_", "/"));
    return placesIn(JSON.parse(await unpacked(bytes)));
  } catch { return []; }
}

async function unpacked(bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let { value, done } = await reader.read(); !done; { value, done } = await reader.read()) {
    text += value;
    if (text.length > MOST.text) throw new RangeError("too-long");
  }
  return text;
}
