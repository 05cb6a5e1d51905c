// @ts-check
// What is said above all else: that nobody answers, or that writing broke off.
import { make } from "./dom.js";

/** @type {HTMLElement} */
let banner;

/** Puts the banner, which says nothing yet, at the top of the page. */
export function placeBanner() {
  banner = make("div", { id: "connection", role: "status" });
  document.body.prepend(banner);
}

/** @param {string} words */
export function announce(words) { banner.textContent = words; }
