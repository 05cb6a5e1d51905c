// @ts-check
// Walkthroughs: a computation shown step by step with its numbers, on the whole screen; and the button that starts one.
import { callServer, RefusedError } from "../../static/server_connection.js";
import { setContent } from "../../static/widget_contents.js";
import { countDraw, find, findAll, make, makeSvg, makeFocusableWhileScrolling, setText, set, span } from "../../static/dom.js";
import { _ } from "../../static/text.js";
import { state } from "../../static/page_state.js";
import { describeWalkthrough } from "./walkthrough_steps.js";

/** Start a walkthrough by its name in analysis/walkthroughs; the widget below sets it. @type {(name: string) => void} */
let startWalk = () => {};

/** @typedef {import("./walkthrough_steps.js").Segment} Segment */
/** The position in a walkthrough. @typedef {{ segment: number, frame: number }} FramePosition */

/** Return the position after “next”: the segment's last frame, then the next segment. @param {Segment[]} segments @param {FramePosition} position @param {boolean} isStill whether motion is reduced @returns {FramePosition} */
export function positionAfterNext(segments, { segment, frame }, isStill) {
  const last = segments[segment].frames.length - 1;
  if (frame < last) return { segment, frame: last };
  return segment + 1 < segments.length ? segmentStart(segments, segment + 1, isStill) : { segment, frame };
}

/** Return a segment's start: its first frame, or its last if motion is reduced. @param {Segment[]} segments @param {number} segment @param {boolean} isStill @returns {FramePosition} */
export function segmentStart(segments, segment, isStill) {
  const index = Math.max(0, Math.min(segments.length - 1, segment));
  return { segment: index, frame: isStill ? segments[index].frames.length - 1 : 0 };
}

// One function per kind of frame draws it.

/** @typedef {{ text: string, share: number }} Quantity */
/** @typedef {Record<string, any>} Frame */

const SIGNED = ["var(--negative)", "var(--positive)"];

const MAX_SHADE = 0.45; // so that the text stays legible on the darkest cell
/** Shade an element by the size and sign of a share. @param {HTMLElement} element @param {number} share @param {number} maxStrength */
function tint({ style }, share, maxStrength) {
  style.setProperty("--share", String(Math.abs(share) * maxStrength));
  style.setProperty("--tone", SIGNED[+(share >= 0)]);
}

/** Draw a table with a row per key and a column per stage; the newest stage and the chosen key are framed. @param {Frame} frame */
function drawTable({ columns, rows: tableRows }) {
  const head = make("tr", {}, make("th", {}, ""), ...columns.map((name) => make("th", { scope: "col" }, name)));
  const body = tableRows.map(({ label, chosen, cells }) => {
    const numbers = cells.map((cell, j) => {
      const node = make("td", { className: j === columns.length - 1 ? "newest" : "" }, cell.text);
      tint(node, cell.share, MAX_SHADE);
      return node;
    });
    return make("tr", { className: chosen ? "chosen" : "" }, make("th", { scope: "row" }, label), ...numbers);
  });
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
}

/** Draw vectors as strips of cells, as opaque as their weights. @param {Frame} frame */
function drawStrips({ strips: vectors }) {
  const lines = vectors.flatMap(({ label, weight, opacity, shares, first, is_sum: isSum }) => {
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

/** Draw pairs of dimensions as hands of a clock. @param {Frame} frame */
function drawClock({ hands: handList, angle, position }) {
  const handClasses = (name) => ["hand", `of-${name}`];
  const makeShape = (tag, classes, attributes) => {
    const node = makeSvg(tag);
    node.classList.add(...classes);
    set(node, attributes);
    return node;
  };
  const shapes = handList.flatMap(({ name, x, y, is_before: isBefore }) => [
    makeShape("line", isBefore ? [...handClasses(name), "before"] : handClasses(name), { x1: 0, y1: 0, x2: 100 * x, y2: -100 * y }),
    ...(isBefore ? [] : [makeShape("circle", ["tip", `of-${name}`], { r: 5, cx: 100 * x, cy: -100 * y })]),
  ]);
  const figure = makeSvg("svg", "", makeShape("circle", ["face"], { r: 100 }), ...shapes);
  set(figure, { viewBox: "-110 -110 220 220", "aria-hidden": "true" });
  const legendItems = handList.map(({ name, text, is_before: isBefore }) => make("li", { className: `of-${name}` }, span("label", isBefore ? _("{name} before", { name }) : name), " ", span("number pair", text)));
  if (position !== undefined) legendItems.push(make("li", {}, _("position {position}", { position })));
  if (angle !== undefined) legendItems.push(make("li", {}, position === undefined ? _("q is rotated {angle} radians further than k", { angle }) : _("rotated by {angle} radians", { angle })));
  return make("div", { className: "clock" }, figure, make("ul", { className: "legend" }, ...legendItems));
}

/** Draw the residual stream as a tower of sums, and the most likely next tokens at its top. @param {Frame} frame */
function drawTower({ floors, guesses }) {
  const floorItems = floors.map(({ label, length }, i) => {
    const floor = make("li", { className: "floor" }, span("name", label), shareBar(length), span("number", length.text));
    floor.classList.toggle("newest", i === floors.length - 1);
    return floor;
  });
  const guessItems = guesses.map((guess) => make("li", { className: "guess" }, span("label", guess.token), shareBar(guess), span("number", guess.text)));
  return make("div", { className: "tower" }, make("ol", { className: "floors" }, ...floorItems),
    make("div", {}, make("h3", {}, _("If the model stopped here, it would say")), make("ol", { className: "guesses" }, ...guessItems)));
}

/** @param {Quantity} quantity */
function shareBar({ share }) {
  const node = span("bar");
  node.style.setProperty("--share", String(share));
  return node;
}

/** @type {Record<string, (frame: Frame) => HTMLElement>} */
const DRAWINGS = { rows: drawTable, strips: drawStrips, hands: drawClock, tower: drawTower };

const MIN_SCALE = 0.6, MAX_SCALE = 2.2; // of a table
const CLEARANCE = 6; // pixels below a table that fills the space, as an enlarged one is rounded to pixels
const FRAME_MS = 450; // between two frames
const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** The full-screen walkthrough. @param {HTMLElement} element */
export function walk(element) {
  const box = find(element, ".walk"), drawing = makeFocusableWhileScrolling(find(box, ".drawing")), next = /** @type {HTMLButtonElement} */ (find(box, ".next"));
  const back = /** @type {HTMLButtonElement} */ (find(box, ".back"));
  let title = "", position = { segment: 0, frame: 0 }, timer = null, previousFocus = null;
  /** @type {Segment[]} */
  let segments = [];

  startWalk = async (name) => {
    previousFocus = document.activeElement;
    try { ({ title, segments } = describeWalkthrough(await callServer("walk", [state, name]))); } catch (error) {
      if (error instanceof RefusedError) setContent("problem", error.message);
      return;
    }
    box.hidden = false;
    document.body.classList.add("walking");
    setText(find(box, "h2"), title);
    showFrame(segmentStart(segments, 0, isStill()));
    next.focus();
  };

  function showFrame(newPosition) {
    clearTimeout(timer);
    position = newPosition;
    draw();
    if (position.frame < segments[position.segment].frames.length - 1) timer = setTimeout(() => showFrame({ ...position, frame: position.frame + 1 }), FRAME_MS);
  }

  function draw() {
    const { says, kind, frames } = segments[position.segment];
    setText(find(box, ".says"), says);
    const scale = scaleOf(kind, frames[frames.length - 1]), node = DRAWINGS[kind](frames[position.frame]);
    node.style.zoom = String(scale);
    drawing.replaceChildren(node);
    setText(find(box, ".at"), `${position.segment + 1} / ${segments.length}`);
    back.disabled = position.segment === 0;
    next.disabled = position.segment === segments.length - 1 && position.frame === frames.length - 1;
    if (next.disabled && document.activeElement === document.body) find(box, ".leave").focus();
    drawing.dataset.frame = `${position.segment}.${position.frame}`;
    countDraw(drawing);
  }

  /** Return how much a table is enlarged, or reduced, so that its last frame fills the space above the bar. @param {string} kind @param {Frame} frame */
  function scaleOf(kind, frame) {
    if (kind !== "rows" && kind !== "strips") return 1;
    const node = DRAWINGS[kind](frame);
    drawing.replaceChildren(node);
    const height = node.offsetHeight + Number.parseFloat(getComputedStyle(node).marginTop);
    return Math.max(MIN_SCALE, Math.min(MAX_SCALE, drawing.clientWidth / Math.ceil(node.getBoundingClientRect().width), (drawing.clientHeight - CLEARANCE) / height));
  }

  const COMMANDS = {
    next: () => showFrame(positionAfterNext(segments, position, isStill())),
    back: () => showFrame(segmentStart(segments, position.segment - 1, true)),
    leave() {
      clearTimeout(timer);
      box.hidden = true;
      document.body.classList.remove("walking");
      previousFocus?.focus();
    },
  };
  const KEY_COMMANDS = { " ": "next", ArrowRight: "next", PageDown: "next", ArrowLeft: "back", PageUp: "back", Escape: "leave" };

  for (const [name, command] of Object.entries(COMMANDS)) find(box, `.${name}`).addEventListener("click", command);
  document.addEventListener("keydown", (event) => {
    if (box.hidden) return;
    event.stopPropagation(); // the page behind must not react
    const command = KEY_COMMANDS[event.key], isOnButton = event.key === " " && /** @type {Element} */ (event.target).matches(".walk .back, .walk .leave");
    if (event.key === "Tab") return trapFocus(event);
    if (!command || isOnButton || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    COMMANDS[command]();
  }, { capture: true });

  // Keep the Tab key within the explained terms and buttons of the walkthrough.
  function trapFocus(event) {
    const focusable = findAll(box, ".term, button:not(:disabled)");
    const index = focusable.indexOf(/** @type {any} */ (document.activeElement)), offset = event.shiftKey ? -1 : 1;
    event.preventDefault();
    focusable[(index + offset + focusable.length) % focusable.length].focus();
  }

  addEventListener("resize", () => { if (!box.hidden) draw(); });
}

/** The button that starts a walkthrough. @param {HTMLElement} element */
export function walkthroughButton(element) {
  const open = find(element, ".walks");
  open.addEventListener("click", () => startWalk(JSON.parse(open.dataset.walk)));
}
