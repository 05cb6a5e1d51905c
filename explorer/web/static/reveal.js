// @ts-check
// Bringing a picture into sight.
import { find } from "./dom.js";
import { areOld } from "./old_pictures.js";

const SCROLLS = ["wheel", "touchmove", "keydown", "pointerdown"]; // what a visitor scrolls with

/** Scrolls to a picture once it is drawn; its tab may be about to open. @param {string} id of its element */
export function reveal(id) {
  const picture = find(document, `#${id} [data-draws]`);
  if (!picture?.clientWidth) return requestAnimationFrame(() => reveal(id));
  intoView(id);
  const leftAlone = new AbortController(), { signal } = leftAlone;
  for (const event of SCROLLS) window.addEventListener(event, () => leftAlone.abort(), { signal, passive: true });
  const again = () => {
    if (!signal.aborted) intoView(id);
    leftAlone.abort();
  };
  requestAnimationFrame(() => whenDrawn(again)); // what a question makes old is marked once that is on its way
}

/** @param {string} id */
function intoView(id) {
  const { matches: still } = matchMedia("(prefers-reduced-motion: reduce)");
  find(document, `#${id}`).scrollIntoView({ block: "nearest", behavior: still ? "auto" : "smooth" });
}

// Pictures above it that are still to come may push it out of sight.
/** @param {() => void} act */
function whenDrawn(act) {
  if (areOld()) requestAnimationFrame(() => whenDrawn(act)); else act();
}
