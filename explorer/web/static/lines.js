// @ts-check
// Lines between tokens at the left and at the right of a picture: pointing at a token, or at a line, shows its lines alone
// and all others faint. A tap does so, too, and the arrow keys go from token to token. Nothing is drawn anew: copies of
// the lines' own paths are laid over them.
import { pick } from "./choosing.js";
import { rove } from "./roving.js";
import { state } from "./state.js";

/** @typedef {{ query?: number, key?: number }} Chosen the tokens whose lines are shown */

const NEAR = 8; // pixels from a line
const EDGE = 0.12; // of the way across, where tokens are pointed at
const SIDES = ["query", "key"];
/** What is known of a picture: what is shown, the length of the text, the tokens that have lines. */
const known = new WeakMap();

// What a place of the pointer means: { query }, { key }, both of a line, or null.
function under(plot, event) {
  const { xaxis, yaxis } = plot._fullLayout, box = plot.getBoundingClientRect();
  const across = xaxis.p2c(event.clientX - box.left - xaxis._offset), down = event.clientY - box.top - yaxis._offset;
  const token = Math.round(yaxis.p2c(down)), { tokens } = known.get(plot);
  if (across < EDGE || across > 1 - EDGE) return tokens.has(token) ? { [SIDES[+(across > 0.5)]]: token } : null;
  let nearest = null, least = NEAR;
  for (const { query, key } of lineTraces(plot).flatMap(segmentsOf)) {
    const far = Math.abs(yaxis.c2p(query + (key - query) * across) - down);
    if (far <= least) [nearest, least] = [{ query, key }, far];
  }
  return nearest;
}

const lineTraces = (plot) => plot.calcdata.filter(([{ trace }]) => trace.mode === "lines");

/** Every line of a trace as its query and key. @param {{ x: number, y: number }[]} points */
export function segmentsOf(points) {
  const found = [];
  for (let i = 0; i + 1 < points.length; i++)
    if (points[i].x === 0 && points[i + 1].x === 1) found.push({ query: points[i].y, key: points[i + 1].y });
  return found;
}

/** Shows the lines of what is chosen alone; all where that is null. */
function show(plot, chosen) {
  known.get(plot).chosen = chosen;
  for (const copy of plot.querySelectorAll(".alone")) copy.remove();
  plot.classList.toggle("isolating", Boolean(chosen));
  if (!chosen) return;
  const { xaxis, yaxis } = plot._fullLayout;
  for (const points of lineTraces(plot)) {
    const path = points[0].node3?.node?.()?.querySelector("path.js-line") ?? null;
    const d = segmentsOf(points).filter((line) => SIDES.every((side) => !(side in chosen) || line[side] === chosen[side]))
      .map(({ query, key }) => `M${xaxis.c2p(0)},${yaxis.c2p(query)}L${xaxis.c2p(1)},${yaxis.c2p(key)}`).join("");
    if (!path || !d) continue;
    const copy = path.cloneNode();
    copy.setAttribute("class", "alone");
    copy.setAttribute("d", d);
    path.after(copy);
  }
}

function listen(plot) {
  const point = (event) => show(plot, under(plot, event)), isMouse = ({ pointerType }) => pointerType === "mouse";
  plot.setAttribute("role", "application");
  plot.addEventListener("pointermove", (event) => { if (isMouse(event)) point(event); });
  plot.addEventListener("pointerleave", (event) => { if (isMouse(event)) show(plot, null); });
  plot.addEventListener("pointerdown", (event) => { if (!isMouse(event)) point(event); });
  plot.addEventListener("focus", () => { if (plot.matches(":focus-visible")) show(plot, { query: state.query }); });
  plot.addEventListener("blur", () => show(plot, null));
  plot.addEventListener("keydown", ({ key }) => { if (key === "Escape") show(plot, null); });
  rove(plot, {
    at: () => ({ row: state.query, column: 0 }),
    size: () => ({ rows: known.get(plot).length, columns: 1 }),
    go: ({ row }) => {
      show(plot, { query: row });
      pick({ query: row });
    },
  });
}

/** To be called after every drawing of such a picture. @param {any} plot @param {number} length of the text */
export function followLines(plot, length) {
  const dots = plot.calcdata.at(-1), before = known.get(plot);
  known.set(plot, { chosen: before?.chosen ?? null, length, tokens: new Set(dots.map(({ y }) => y)) });
  if (!before) listen(plot);
  show(plot, known.get(plot).chosen);
}
