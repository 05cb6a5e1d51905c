// @ts-check
// What is larger than its place, and scrolls there.
import { _ } from "./language.js";

/** Has the style sheet know what to say of them. */
export const nameSideways = () => document.documentElement.style.setProperty("--scrolls", JSON.stringify(_("scrolls sideways")));

/**
 * Tells the style sheet, as data-more, on which sides of a box that scrolls sideways there is more to see.
 * @param {HTMLElement} box
 * @param {Element} content
 */
export function tellSideways(box, content) {
  const tell = () => {
    const left = box.scrollLeft > 1, right = box.scrollLeft + box.clientWidth < box.scrollWidth - 1;
    const more = [left && "left", right && "right"].filter(Boolean).join(" ");
    if (box.dataset.more !== more) box.dataset.more = more;
  };
  box.addEventListener("scroll", tell, { passive: true });
  const resized = new ResizeObserver(tell);
  resized.observe(box);
  resized.observe(content);
}

/**
 * Lets the keyboard come to a box without buttons as long as there is more in it than is seen, and scroll it.
 * @template {HTMLElement} Box
 * @param {Box} box
 * @returns {Box}
 */
export function reachWhileScrolling(box) {
  const follow = () => {
    if (box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  };
  new ResizeObserver(follow).observe(box);
  new MutationObserver(() => requestAnimationFrame(follow)).observe(box, { childList: true, characterData: true, subtree: true });
  return box;
}
