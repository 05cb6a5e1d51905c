// @ts-check
// The line of all probability, a stretch a token, with a mark at the random number.
import { find, span } from "../../static/dom.js";
import { tokenNodes } from "../../static/token_text.js";

const LETTER = 7, AROUND = 6; // pixels that a label takes

/**
 * Gives the function to call with what there is to draw.
 * @param {HTMLElement} line
 * @returns {(value: any) => void}
 */
export function probabilityLine(line) {
  const stretches = find(line, ".stretches"), luck = find(line, ".luck");
  let value = null, width = 0;

  function draw() {
    while (stretches.children.length > value.stretches.length) stretches.lastChild.remove();
    while (stretches.children.length < value.stretches.length) stretches.append(span("stretch"));
    value.stretches.forEach(({ id, token, start, end, note }, i) => {
      const stretch = /** @type {HTMLElement} */ (stretches.children[i]), room = (end - start) * width;
      stretch.style.left = `${100 * start}%`;
      stretch.style.width = `${100 * (end - start)}%`;
      stretch.dataset.note = note;
      stretch.classList.toggle("drawn", id === value.drawn);
      stretch.replaceChildren(...(room > token.length * LETTER + AROUND ? tokenNodes(token) : []));
    });
    luck.style.left = `${100 * value.u}%`;
  }

  new ResizeObserver(([{ contentRect }]) => {
    width = contentRect.width;
    if (value) draw();
  }).observe(line);
  return (content) => {
    value = content;
    draw();
  };
}
