// @ts-check
// Going through a computation bit by bit, on the whole screen, with its numbers; and the button that begins it.
import { call, Refused } from "../../static/server_connection.js";
import { setContent } from "../../static/widget_contents.js";
import { countDraw, find, findAll, make, makeSvg, focusableWhileScrolling, setText, set, span } from "../../static/dom.js";
import { _ } from "../../static/translations.js";
import { PROBLEM } from "../../static/shared_constants.js";
import { state } from "../../static/page_state.js";

// Going through a computation bit by bit: buttons ask for it, widgets/teaching shows it.

const told = new EventTarget();

/** @param {string} name of analysis/walkthroughs */
const startWalk = (name) => void told.dispatchEvent(new CustomEvent("start", { detail: name }));

/** @param {(name: string) => void} start */
const onWalk = (start) => told.addEventListener("start", (event) => start(/** @type {CustomEvent<string>} */ (event).detail));

/**
 * @typedef {object} Segment
 * @property {string} says
 * @property {string} kind
 * @property {Record<string, any>[]} frames
 */
/** Where a walk is: a segment, and a frame of it. @typedef {{ segment: number, frame: number }} Place */

/** The place that a press of the space bar leads to: the segment's end first, then the next segment. @param {Segment[]} segments @param {Place} at @param {boolean} isStill whether nothing moves @returns {Place} */
export function pressed(segments, { segment, frame }, isStill) {
  const last = segments[segment].frames.length - 1;
  if (frame < last) return { segment, frame: last };
  return segment + 1 < segments.length ? beginning(segments, segment + 1, isStill) : { segment, frame };
}

/** Where a segment begins: with its first frame, or where nothing is to move with its last. @param {Segment[]} segments @param {number} segment @param {boolean} isStill @returns {Place} */
export function beginning(segments, segment, isStill) {
  const within = Math.max(0, Math.min(segments.length - 1, segment));
  return { segment: within, frame: isStill ? segments[within].frames.length - 1 : 0 };
}

// The drawings of a walk, a function a kind: what Python sent of a frame (analysis/walkthroughs), as elements.

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

/** A table: a row a key, a column a stage, the newest stage and the chosen key framed. @param {Frame} frame */
function rows({ columns, rows: of }) {
  const head = make("tr", {}, make("th", {}, ""), ...columns.map((name) => make("th", { scope: "col" }, name)));
  const body = of.map(({ label, chosen, cells }) => {
    const numbers = cells.map((cell, j) => {
      const made = make("td", { className: j === columns.length - 1 ? "newest" : "" }, cell.text);
      tint(made, cell.share, MOST_SHADE);
      return made;
    });
    return make("tr", { className: chosen ? "chosen" : "" }, make("th", { scope: "row" }, label), ...numbers);
  });
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
}

/** Vectors as strips of cells, as strong as their weights. @param {Frame} frame */
function strips({ strips: of }) {
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
function hands({ hands: of, angle, position }) {
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
  const figure = makeSvg("svg", "", shape("circle", ["face"], { r: 100 }), ...drawn);
  set(figure, { viewBox: "-110 -110 220 220", "aria-hidden": "true" });
  const told = of.map(({ name, text, is_before: isBefore }) => make("li", { className: `of-${name}` }, span("label", isBefore ? _("{name} before", { name }) : name), " ", span("number pair", text)));
  if (position !== undefined) told.push(make("li", {}, _("position {position}", { position })));
  if (angle !== undefined) told.push(make("li", {}, position === undefined ? _("rotated apart by {angle} radians", { angle }) : _("rotated by {angle} radians", { angle })));
  return make("div", { className: "clock" }, figure, make("ul", { className: "legend" }, ...told));
}

/** The stream, sum upon sum, and the likeliest next tokens at its top. @param {Frame} frame */
function tower({ floors, guesses }) {
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
const DRAWINGS = { rows, strips, hands, tower };

const EVERY_MS = 450; // a frame of a segment
const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** @param {HTMLElement} element */
export function walk(element) {
  const box = find(element, ".walk"), drawing = focusableWhileScrolling(find(box, ".drawing")), next = /** @type {HTMLButtonElement} */ (find(box, ".next"));
  const back = /** @type {HTMLButtonElement} */ (find(box, ".back"));
  let title = "", at = { segment: 0, frame: 0 }, timer = null, focused = null;
  /** @type {Segment[]} */
  let segments = [];

  async function start(name) {
    focused = document.activeElement;
    try { ({ title, segments } = await call("walk", [state, name])); } catch (error) {
      if (error instanceof Refused) setContent(PROBLEM, error.message);
      return;
    }
    box.hidden = false;
    document.body.classList.add("walking");
    setText(find(box, "h2"), title);
    goToState(beginning(segments, 0, isStill()));
    next.focus();
  }

  function goToState(place) {
    clearTimeout(timer);
    at = place;
    draw();
    if (at.frame < segments[at.segment].frames.length - 1) timer = setTimeout(() => goToState({ ...at, frame: at.frame + 1 }), EVERY_MS);
  }

  function draw() {
    const { says, kind, frames } = segments[at.segment];
    setText(find(box, ".says"), says);
    drawing.replaceChildren(DRAWINGS[kind](frames[at.frame]));
    setText(find(box, ".at"), `${at.segment + 1} / ${segments.length}`);
    back.disabled = at.segment === 0;
    next.disabled = at.segment === segments.length - 1 && at.frame === frames.length - 1;
    if (next.disabled && document.activeElement === document.body) find(box, ".leave").focus();
    drawing.dataset.frame = `${at.segment}.${at.frame}`;
    countDraw(drawing);
  }

  const ACTS = {
    next: () => goToState(pressed(segments, at, isStill())),
    back: () => goToState(beginning(segments, at.segment - 1, true)),
    leave() {
      clearTimeout(timer);
      box.hidden = true;
      document.body.classList.remove("walking");
      focused?.focus();
    },
  };
  const KEYS = { " ": "next", ArrowRight: "next", PageDown: "next", ArrowLeft: "back", PageUp: "back", Escape: "leave" };

  for (const [name, act] of Object.entries(ACTS)) find(box, `.${name}`).addEventListener("click", act);
  document.addEventListener("keydown", (event) => {
    if (box.hidden) return;
    event.stopPropagation(); // nothing behind it listens
    const act = KEYS[event.key], isOnButton = event.key === " " && /** @type {Element} */ (event.target).matches(".walk .back, .walk .leave");
    if (event.key === "Tab") return keepInside(event);
    if (!act || isOnButton || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    ACTS[act]();
  }, { capture: true });

  // The Tab key goes round among its words and buttons.
  function keepInside(event) {
    const stops = findAll(box, ".term, button:not(:disabled)");
    const here = stops.indexOf(/** @type {any} */ (document.activeElement)), by = event.shiftKey ? -1 : 1;
    event.preventDefault();
    stops[(here + by + stops.length) % stops.length].focus();
  }

  onWalk(start);
}

/** @param {HTMLElement} element */
export function walkthroughButton(element) {
  const open = find(element, ".walks");
  open.addEventListener("click", () => startWalk(JSON.parse(open.dataset.walk)));
}
