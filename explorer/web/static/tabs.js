// @ts-check
// Gradio's bar of tabs by the keyboard.
import { find, findAll } from "./dom.js";
import { rove, stopAt } from "./roving.js";

/**
 * Makes a bar of tabs one stop of the Tab key, in which the arrow keys move, as Gradio's is not. Tabs that have no room are
 * in a menu behind the last one.
 * @param {string} selector
 */
export function roveTabs(selector) {
  const bar = find(document, selector);
  if (!bar) return requestAnimationFrame(() => roveTabs(selector)); // Gradio has yet to build it
  const stops = () => findAll(bar, "[role=tab], .overflow-menu > button").filter((stop) => stop.offsetWidth);
  const chosen = () => stops().find((stop) => stop.ariaSelected === "true") ?? stops()[0];
  let isDue = false;
  // With the next frame: to ask at once what has room would have the browser lay out a tab that is yet to be drawn.
  const mark = () => {
    if (!isDue) requestAnimationFrame(() => { isDue = false; stopAt(stops(), chosen()); });
    isDue = true;
  };
  rove(bar, {
    at: ({ target }) => {
      const column = stops().indexOf(/** @type {HTMLElement} */ (target));
      return column < 0 ? null : { row: 0, column };
    },
    size: () => ({ rows: 1, columns: stops().length }),
    go: ({ column }) => {
      const stop = stops()[column];
      stop.focus();
      if (stop.role === "tab") stop.click();
    },
    round: true,
  });
  new MutationObserver(mark).observe(bar, { subtree: true, childList: true, attributeFilter: ["aria-selected", "class"] });
  new ResizeObserver(mark).observe(bar);
  mark();
}
