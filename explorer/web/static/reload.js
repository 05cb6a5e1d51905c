// @ts-check
// What outlives a reload: that writing was interrupted, what was typed and not run yet, and what the address
// that is loaded has not.
import { announce } from "./banner.js";
import { isLost, onReturn } from "./connection.js";
import { latestQuery } from "./history.js";
import { _ } from "./language.js";

const TYPED = "explorer:typed", INTERRUPTED = "explorer:interrupted", QUERY = "explorer:query"; // their places in the tab's storage
let isWriting = false, isInterrupted = false, isReloaded = false;

function tellInterrupted() {
  isInterrupted = true;
  announce(_("Writing was interrupted: press Generate to go on."));
}

/** Says what the page before this one left unfinished, and keeps what this one will. */
export function watchReloads() {
  const [opened] = performance.getEntriesByType("navigation");
  isReloaded = /** @type {PerformanceNavigationTiming} */ (opened)?.type === "reload";
  if (isReloaded && sessionStorage.getItem(INTERRUPTED)) tellInterrupted();
  sessionStorage.removeItem(INTERRUPTED);
  const query = isReloaded && sessionStorage.getItem(QUERY);
  if (query) history.replaceState(history.state, "", location.pathname + query + location.hash);
  sessionStorage.removeItem(QUERY);
  onReturn(() => { if (isWriting) tellInterrupted(); });
  window.addEventListener("pagehide", () => {
    if (isWriting || isInterrupted) sessionStorage.setItem(INTERRUPTED, "true");
    sessionStorage.setItem(QUERY, latestQuery()); // a reload goes to the address as it was when it began
  });
  document.addEventListener("input", ({ target }) => {
    const box = /** @type {HTMLTextAreaElement} */ (target);
    if (box.closest("#prompt")) sessionStorage.setItem(TYPED, box.value);
  });
}

/** Whether tokens are coming; where they stop by themselves, it is told. @param {boolean} now */
export function setWriting(now) {
  isWriting = now;
  isInterrupted = false;
  if (!isLost) announce("");
}

/** What is in the prompt's box has been run. */
export function forgetTyped() { sessionStorage.removeItem(TYPED); }

/** What the prompt's box begins with: what was typed before a reload, or else what has been run. @param {string} ran */
export function promptAtFirst(ran) {
  const typed = isReloaded && sessionStorage.getItem(TYPED);
  if (!isReloaded) forgetTyped();
  return typed || ran;
}
