// @ts-check
// Bringing a picture into sight.
import { find } from "./dom.js";

/** Scrolls to a picture once it is drawn; its tab may be about to open. @param {string} id of its element */
export function reveal(id) {
  const picture = find(document, `#${id} [data-draws]`);
  if (!picture?.clientWidth) return requestAnimationFrame(() => reveal(id));
  const { matches: still } = matchMedia("(prefers-reduced-motion: reduce)");
  find(document, `#${id}`).scrollIntoView({ block: "nearest", behavior: still ? "auto" : "smooth" });
}
