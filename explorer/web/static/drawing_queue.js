// @ts-check
// Figures are drawn from the top of the page down, as many a frame as there is time for of those in sight, and one of the
// others: the first is seen before the last is drawn.
import { tellBroken } from "./contents.js";

/** @type {{ element: Element, draw: () => any, resolve: () => void }[]} */
const queue = [];
const BUDGET = 30; // milliseconds of drawing after which what is drawn is shown first
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
  let began = performance.now();
  while (queue.length) {
    const { draw, resolve } = queue.sort((a, b) => (precedes(a.element, b.element) ? -1 : 1)).shift();
    try { await draw(); } catch (error) { tellBroken(error); }
    resolve();
    if (performance.now() - began < BUDGET && queue.some(({ element }) => isInSight(element))) continue;
    await frame();
    began = performance.now();
  }
  isDrawing = false;
}

function isInSight(element) {
  const { top, bottom, height } = element.getBoundingClientRect();
  return height > 0 && top < innerHeight && bottom > 0;
}

const precedes = (a, b) => a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING;

// A hidden page has no frames.
const frame = () => new Promise((resolve) => { requestAnimationFrame(resolve); setTimeout(resolve, 100); });
