// @ts-check
// Below a picture: what vouches for its numbers, and how the one that was clicked comes about.
import { inspect } from "./asking.js";
import { blockOf, onContent } from "./contents.js";
import { find, say } from "./dom.js";
import { MARK } from "./protocol.js";
import { onState, state } from "./state.js";

/**
 * Shows both in a picture's widget. Gives the function to call with a clicked point (point_derivation.py), before the click
 * changes the state; its answer stays until that changes again.
 * @param {Element} element
 * @returns {(point: Record<string, any>) => Promise<void>}
 */
export function evidenceIn(element) {
  const mark = find(element, ".evidence-mark"), words = find(element, ".inspection"), { id } = blockOf(element);
  let about = null;
  onContent(element, (found) => {
    mark.dataset.state = found?.state ?? "";
    say(mark, found?.words ?? ""); // or else the terms marked in it would be lost
    mark.title = [found?.words, found?.details].filter(Boolean).join(" · ");
  }, MARK);
  onState(element, () => { words.hidden ||= about !== state; });
  return async (point) => {
    queueMicrotask(() => { about = state; });
    const text = await inspect(id, point);
    if (about !== state) return;
    words.textContent = text;
    words.hidden = !text;
  };
}
