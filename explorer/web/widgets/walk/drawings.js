// @ts-check
// The drawings of a walk, a function a kind: what Python sent of a frame (explain/walks), as elements.
import { make, span } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { makeSvg, set } from "../../static/svg.js";

/** @typedef {{ text: string, share: number }} Drawn */
/** @typedef {Record<string, any>} Frame */

const SIGNED = ["var(--negative)", "var(--positive)"];

// Shaded by how large it is; the letters stay as they are, as no cell gets darker than they can be read on.
const MOST_SHADE = 0.45;
/** @param {HTMLElement} element @param {number} share @param {number} most */
function tint({ style }, share, most) {
  style.setProperty("--share", String(Math.abs(share) * most));
  style.setProperty("--tone", SIGNED[+(share >= 0)]);
}

/** A table: a row a key, a column a stage, the newest framed. @param {Frame} frame */
export function rows({ columns, rows: of }) {
  const head = make("tr", {}, make("th", {}, ""), ...columns.map((name) => make("th", { scope: "col" }, name)));
  const body = of.map(({ label, cells }, i) => {
    const numbers = cells.map((cell, j) => {
      const isNewest = j === columns.length - 1 && (columns.length > 1 || i === of.length - 1);
      const made = make("td", { className: isNewest ? "newest" : "" }, cell.text);
      tint(made, cell.share, MOST_SHADE);
      return made;
    });
    return make("tr", {}, make("th", { scope: "row" }, label), ...numbers);
  });
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
}

/** Vectors as strips of cells, as strong as their weights. @param {Frame} frame */
export function strips({ strips: of }) {
  const lines = of.flatMap(({ label, weight, opacity, shares, first, is_sum: isSum }) => {
    const cells = shares.map((share) => {
      const cell = make("i");
      tint(cell, share, 1);
      cell.style.opacity = String(0.15 + 0.85 * opacity);
      return cell;
    });
    const kind = isSum ? " is-sum" : "";
    const strip = span(`strip${kind}`, ...cells);
    return [span(`label${kind}`, label), span(`number weight${kind}`, isSum ? "" : `${weight} ×`), strip, span(`number first${kind}`, `${first} …`)];
  });
  return make("div", { className: "strips" }, ...lines);
}

/** Hands of a clock. @param {Frame} frame */
export function hands({ hands: of, angle, position }) {
  const named = (name) => ["hand", `of-${name}`];
  const shape = (tag, classes, attributes) => {
    const made = makeSvg(tag);
    made.classList.add(...classes);
    set(made, attributes);
    return made;
  };
  const drawn = of.flatMap(({ name, x, y, is_before: isBefore }) => [
    shape("line", isBefore ? [...named(name), "before"] : named(name), { x1: 0, y1: 0, x2: 100 * x, y2: -100 * y }),
    ...(isBefore ? [] : [shape("circle", ["tip", `of-${name}`], { r: 5, cx: 100 * x, cy: -100 * y })]),
  ]);
  const picture = makeSvg("svg", "", shape("circle", ["face"], { r: 100 }), ...drawn);
  set(picture, { viewBox: "-110 -110 220 220", "aria-hidden": "true" });
  const told = of.map(({ name, text, is_before: isBefore }) => make("li", { className: `of-${name}` }, span("label", isBefore ? _("{name} before", { name }) : name), " ", span("number pair", text)));
  if (position !== undefined) told.push(make("li", {}, _("position {position}", { position })));
  if (angle !== undefined) told.push(make("li", {}, position === undefined ? _("turned apart by {angle} radians", { angle }) : _("turned by {angle} radians", { angle })));
  return make("div", { className: "clock" }, picture, make("ul", { className: "legend" }, ...told));
}

/** The stream, sum upon sum, and the likeliest next tokens at its top. @param {Frame} frame */
export function tower({ floors, guesses }) {
  const stacked = floors.map(({ label, length }, i) => {
    const floor = make("li", { className: "floor" }, span("name", label), bar(length), span("number", length.text));
    floor.classList.toggle("newest", i === floors.length - 1);
    return floor;
  });
  const likeliest = guesses.map((guess) => make("li", { className: "guess" }, span("label", guess.token), bar(guess), span("number", guess.text)));
  return make("div", { className: "tower" }, make("ol", { className: "floors" }, ...stacked),
    make("div", {}, make("h3", {}, _("If the model stopped here, it would say")), make("ol", { className: "guesses" }, ...likeliest)));
}

/** @param {Drawn} drawn */
function bar({ share }) {
  const made = span("bar");
  made.style.setProperty("--share", String(share));
  return made;
}

/** @type {Record<string, (frame: Frame) => HTMLElement>} */
export const DRAWINGS = { rows, strips, hands, tower };
