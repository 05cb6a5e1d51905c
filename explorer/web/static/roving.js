// @ts-check
// The keyboard among items in rows and columns: the Tab key stops at one of them, the arrow keys go on from there.

/** @typedef {{ row: number, column: number }} Place */
/** @typedef {{ rows: number, columns: number }} Size */

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * Where a key leads; null where it leads nowhere at all, as up and down do in a single row. Home and End lead to the ends
 * of a single row or column. Beyond an end is that end, or the other one where the items go `round`.
 * @param {string} key
 * @param {Place} from
 * @param {Size} size
 * @returns {Place | null}
 */
export function placeAfter(key, { row, column }, { rows, columns }, round = false) {
  const isRow = rows === 1 && columns > 1, isColumn = columns === 1 && rows > 1;
  const end = { Home: 0, End: Math.max(rows, columns) - 1 }[key];
  if (end !== undefined) return isRow ? { row, column: end } : isColumn ? { row: end, column } : null;
  const [down, right] = STEPS[key] ?? [0, 0];
  const within = (at, count) => (round ? (at + count) % count : Math.max(0, Math.min(count - 1, at)));
  if (down && rows > 1) return { row: within(row + down, rows), column };
  if (right && columns > 1) return { row, column: within(column + right, columns) };
  return null;
}

/**
 * Lets the arrow keys, Home and End go about in a box. With Alt, Ctrl or Meta they are the browser's own.
 * @param {HTMLElement} box
 * @param {object} items
 * @param {(event: KeyboardEvent) => Place | null} items.at where the keyboard is; null where it is at no item
 * @param {() => Size} items.size
 * @param {(to: Place, from: Place) => void} items.go
 * @param {boolean} [items.round] whether the first item comes after the last
 */
export function rove(box, { at, size, go, round }) {
  box.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const from = at(event), to = from && placeAfter(event.key, from, size(), round);
    if (!to) return;
    event.preventDefault();
    if (to.row !== from.row || to.column !== from.column) go(to, from);
  });
}

/**
 * Makes one of the items the only stop of the Tab key.
 * @param {Iterable<HTMLElement>} items
 * @param {HTMLElement | null} stop
 */
export function stopAt(items, stop) {
  for (const item of items) item.tabIndex = item === stop ? 0 : -1;
}
