// @ts-check
// Keys that work anywhere on the page, but where somebody writes.

/** Whether a key belongs to what has the focus: somebody writes there, or a modifier makes it the browser's. @param {KeyboardEvent} event */
export function isElsewhere({ target, altKey, ctrlKey, metaKey }) {
  const at = /** @type {Element} */ (target);
  if (altKey || ctrlKey || metaKey) return true;
  return "closest" in at && Boolean(at.closest("textarea, select, [contenteditable=true], input:not([type=checkbox], [type=radio], [type=button], [type=range])"));
}
