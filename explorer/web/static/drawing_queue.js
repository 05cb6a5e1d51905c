// @ts-check
// Figures are drawn one a frame, from the top of the page down: the first is seen before the last is drawn.
import { tellBroken } from "./contents.js";

/** @type {{ element: Element, draw: () => any, resolve: () => void }[]} */
const queue = [];
let isDrawing = false;

/**
 * Draws in its turn.
 * @param {Element} element where
 * @param {() => any} draw
 * @returns {Promise<void>} resolved once it is drawn, or failed to be
 */
export function inTurn(element, draw) {
  return new Promise((resolve) => {
    queue.push({ element, draw, resolve });
    if (!isDrawing) drawAll();
  });
}

async function drawAll() {
  isDrawing = true;
  await null; // what came with the first one is then here, too
  while (queue.length) {
    const { draw, resolve } = queue.sort((a, b) => (precedes(a.element, b.element) ? -1 : 1)).shift();
    try { await draw(); } catch (error) { tellBroken(error); }
    resolve();
    await frame();
  }
  isDrawing = false;
}

const precedes = (a, b) => a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING;

// A hidden page has no frames.
const frame = () => new Promise((resolve) => { requestAnimationFrame(resolve); setTimeout(resolve, 100); });
