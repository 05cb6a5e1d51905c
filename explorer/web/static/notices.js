// @ts-check
// What the page says besides what was asked for: that nobody answers, sentences that go by themselves, and how many wait.
import { button, find, make, say } from "./dom.js";
import { _, ngettext } from "./translations.js";

// What is said above all else: that nobody answers, or that writing broke off.

/** @type {HTMLElement} */
let banner;

/** Puts the banner, which says nothing yet, at the top of the page. */
export function placeBanner() {
  banner = make("div", { id: "connection", role: "status" });
  document.body.prepend(banner);
}

/** @param {string} words */
export function announce(words) { banner.textContent = words; }

// What Python tells a person besides what was asked for: sentences that go by themselves, and how many wait.

const STAYS_MS = 12_000;
/** @type {HTMLElement} */
let list;
/** @type {HTMLElement} */
let place;

/** Puts both into the page: the notices at its end, how many wait below the prompt. */
export function placeNotices() {
  list = make("div", { id: "notices", role: "status" });
  document.body.append(list);
}

/** @param {string} text */
export function notify(text) {
  for (const other of list.children) if (/** @type {HTMLElement} */ (other).dataset.text === text) other.remove();
  const notice = make("div", { className: "notice", dataset: { text } }, make("span", {}, text));
  notice.append(button("×", () => notice.remove(), { ariaLabel: _("Close") }));
  list.append(notice);
  setTimeout(() => notice.remove(), STAYS_MS);
}

/** How many requests wait, this one among them; null once it does not. @param {number | null} count */
export function showNumWaiting(count) {
  if (count === null && !place) return;
  if (!place) {
    place = make("div", { id: "place", role: "status" });
    find(document, "#prompt-row").append(place);
  }
  say(place, count === null ? "" : ngettext("Many people use this server: {count} request waits.", "Many people use this server: {count} requests wait.", count));
}
