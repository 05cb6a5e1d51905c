// @ts-check
// The map of the model's parts, drawn as SVG: each part is a button for the pointer and for the keyboard.
import { select } from "../../static/page_actions.js";
import { showEvidence, queueDraw, onFigureContent } from "../../static/widget_contents.js";
import { colourAt, centre, parseHexColour, countDraw, DIRECTIONS, find, hide, readableTextColour, listenFor, make, makeSvg, resizeChildren, nearestInDirection, onThemeChange, setText, set, markSidewaysScroll, theme } from "../../static/dom.js";
import { _ } from "../../static/translations.js";
import { onState, state } from "../../static/page_state.js";

// Where things are on the map: of numbers alone.

/** @typedef {import("../../static/dom.js").Box} Box */

const GAP = 8, POINTER = 24; // pixels between what is told and its part: above it, and below, where the pointer hangs
const HEAD = 3.5; // half the width of an arrow's head, in the plan's pixels

/**
 * What is drawn on one of the sheets that a map comes with: each part where it stands there, and what is written on it
 * where that has room.
 * @param {any} map
 * @param {number} i
 */
export function partsOnSheet({ sheets, parts, ...rest }, i) {
  const sheet = sheets[i];
  const placed = parts.map(([kind, boxes, told, selects, value, written]) => (
    { kind, box: boxes[i], told, selects, value, written: sheet.written.includes(kind) ? written : "" }));
  return { ...rest, ...sheet, parts: placed };
}

/** As an SVG rectangle has it. @param {Box} box */
const rectOf = ([left, upper, right, lower]) => ({ x: left, y: upper, width: right - left, height: lower - upper });

/**
 * The left and upper edge of what is told of a part: above it, or else below, and not beyond the bounds.
 * @param {{ left: number, top: number, right: number, bottom: number }} part
 * @param {{ width: number, height: number }} size
 * @param {{ left: number, top: number, right: number, bottom: number }} bounds
 */
function beside(part, { width, height }, bounds) {
  const within = (at, size, low, high) => Math.max(low, Math.min(at, high - size));
  const above = part.top - GAP - height, y = above >= bounds.top ? above : part.bottom + POINTER;
  return [within((part.left + part.right - width) / 2, width, bounds.left, bounds.right), within(y, height, bounds.top, bounds.bottom)];
}

/** The path of a line. @param {number[]} corners x and y in turn */
const pathOf = (corners) => corners.map((at, i) => `${i % 2 ? "," : i ? "L" : "M"}${at}`).join("");

/** That of the arrow's head at its end. @param {number[]} corners */
export function arrowHead(corners) {
  const [fromX, fromY, x, y] = corners.slice(-4), right = Math.sign(x - fromX), down = Math.sign(y - fromY);
  const corner = (back, aside) => `${x - back * right - aside * down},${y - back * down + aside * right}`;
  return `M${corner(0, 0)}L${corner(2 * HEAD, HEAD)}L${corner(2 * HEAD, -HEAD)}Z`;
}

// The map as SVG: its lines, its parts, the legend, the words beside them, and the frames around what is chosen.

const SCALE = "model-map-scale";
const LINE = 13; // of words on parts
const DISCS = ["norm", "addition", "rotation"];

/**
 * Puts an empty map on a sheet.
 * @param {HTMLElement} sheet
 * @param {string} keys what the keyboard does
 * @param {() => import("../../static/shared_constants.js").Theme} coloured the theme that it is painted in
 */
export function buildMap(sheet, keys, coloured = theme) {
  /** @type {any} */
  let value = null;
  /** @type {SVGElement[]} */
  let parts = [];

  const newPart = () => {
    const part = makeSvg("g", "", makeSvg("rect", "shape"), makeSvg("path", "detail"), makeSvg("text"));
    set(part, { role: "button", tabindex: -1 });
    return part;
  };
  const [lines, buttons, legend, words] = ["lines", "parts", "legend", "words"].map((name) => makeSvg("g", name));
  for (const group of [lines, legend, words]) set(group, { "aria-hidden": true }); // the parts say it all
  const gradient = makeSvg("linearGradient"), bar = makeSvg("rect", "scale"), ring = makeSvg("rect", "ring");
  const frames = ["rival", "target", "head"].map((name) => makeSvg("rect", `frame ${name}`));
  const svg = makeSvg("svg", "", gradient, lines, buttons, legend, bar, words, ...frames, ring);
  gradient.id = SCALE;
  bar.setAttribute("fill", `url(#${SCALE})`);
  const about = _("Arrow keys go from part to part; {keys}; Escape leaves.", { keys });
  set(svg, { role: "group", "aria-description": about });
  sheet.append(svg);

  /** Draws what the widget is given, and gives the nodes of the parts. */
  function draw(content) {
    value = content;
    set(svg, { viewBox: `0 0 ${value.size.join(" ")}`, "aria-label": value.alt });
    resizeChildren(lines, value.lines.length, () => makeSvg("g", "", makeSvg("path", "line"), makeSvg("path", "arrow"))).forEach((group, i) => {
      const [kind, corners, width, arrow] = value.lines[i], [line, head] = group.children;
      set(group, { class: kind });
      set(line, { d: pathOf(corners), "stroke-width": width });
      set(head, { d: arrow ? arrowHead(corners) : "" });
    });
    parts = resizeChildren(buttons, value.parts.length, newPart);
    parts.forEach((node, i) => drawPart(node, value.parts[i]));
    if (!parts.some(({ tabIndex }) => tabIndex === 0)) set(parts[0], { tabindex: 0 });
    resizeChildren(legend, value.legend.length, () => makeSvg("g", "", makeSvg("rect", "shape"), makeSvg("path", "detail"))).forEach((node, i) => {
      const [kind, box] = value.legend[i];
      set(node, { class: kind });
      drawShape(node, kind, box);
    });
    resizeChildren(words, value.words.length, () => makeSvg("text")).forEach((node, i) => {
      const [x, y, text, kind, side] = value.words[i];
      set(node, { x, y, class: `word ${kind} ${side}` });
      setText(node, text);
    });
    set(bar, rectOf(value.scale));
    paint();
    return parts;
  }

  function drawPart(node, { kind, box, value: share, told: about, written }) {
    drawShape(node, kind, box, share);
    const [x, y] = centre(box), rows = written.split("\n"), seen = rows.join(" "), name = about.replaceAll("\n", ", ");
    // Whoever speaks to the page says what is written on a part.
    set(node, { class: `part ${kind}`, "aria-label": name.includes(seen) ? name : `${name} (${seen})` });
    resizeChildren(node.lastChild, rows.length, () => makeSvg("tspan")).forEach((row, i) => {
      set(row, { x, y: y + (i - (rows.length - 1) / 2) * LINE });
      setText(row, rows[i]);
      if (i && row.previousSibling?.nodeType !== Node.TEXT_NODE) row.before(" ");
    });
  }

  function drawShape(node, kind, box, share) {
    const [left, , right, lower] = box, [x, y] = centre(box), radius = (right - left) / 2;
    const detail = {
      addition: `M${x - radius},${y}h${2 * radius}M${x},${y - radius}v${2 * radius}`,
      next_token: `M${left},${lower - 5}h${(right - left) * share}v3H${left}Z`,
    };
    set(node.children[0], { ...rectOf(box), rx: DISCS.includes(kind) ? radius : 0 });
    set(node.children[1], { d: detail[kind] ?? "" });
  }

  /** Colours what is added, in the theme's colours. */
  function paint() {
    const scale = coloured().template.layout.colorscale.diverging, stops = scale.map(([stop, colour]) => [stop, parseHexColour(colour)]);
    resizeChildren(gradient, scale.length, () => makeSvg("stop")).forEach((stop, i) => set(stop, { offset: scale[i][0], "stop-color": scale[i][1] }));
    value.parts.forEach(({ kind, value: adds }, i) => {
      const rgb = kind === "next_token" || adds === null ? null : colourAt(stops, (adds / value.largest + 1) / 2).map(Math.round);
      const [shape, , text] = /** @type {any} */ (parts[i].children);
      shape.style.fill = rgb ? `rgb(${rgb})` : "";
      text.style.fill = rgb ? readableTextColour(rgb) : "";
    });
  }

  /** Frames the rival of the explained token, that token, and the head: places among the parts, -1 for none. */
  function frame(chosen) {
    frames.forEach((node, i) => {
      node.style.display = chosen[i] < 0 ? "none" : "";
      if (chosen[i] >= 0) set(node, rectOf(value.parts[chosen[i]].box));
    });
    parts.forEach((node, i) => {
      if (chosen.includes(i)) set(node, { "aria-current": true });
      else node.removeAttribute("aria-current");
    });
  }

  /** Makes a part the one where the keyboard is. */
  function ringAround(i) {
    parts.forEach((node, other) => set(node, { tabindex: other === i ? 0 : -1 }));
    const { x, y, width, height } = rectOf(value.parts[i].box);
    set(ring, { x: x - 3, y: y - 3, width: width + 6, height: height + 6 });
  }

  return { draw, paint, frame, ringAround };
}

const LONG_PRESS = 500; // milliseconds

/** @param {HTMLElement} element */
export function modelMap(element) {
  const figure = find(element, ".map"), sheet = find(figure, ".sheet"), tip = find(element, ".told");
  const narrow = matchMedia("(max-width: 600px)"); // as in the style sheets
  const inspect = showEvidence(element);
  const doing = _("Enter opens it, Shift+Enter tells its working"), map = buildMap(sheet, doing);
  let arrived = null, value = null, parts = [], told = null, listening = null; // what came; what is drawn of it

  function draw() {
    value = arrived && partsOnSheet(arrived, narrow.matches ? 1 : 0);
    hide(element, !value);
    if (!value) return tell(null);
    sheet.style.setProperty("--ratio", value.size.join("/"));
    parts = map.draw(value);
    mark();
    countDraw(figure);
    if (told) tell(told.matches(":hover, :focus") ? told : null);
  }

  function paint() {
    if (!value) return;
    map.paint();
    countDraw(figure);
  }

  // Frames around what is chosen: the explained token, dotted its rival, and the head.
  function mark() {
    if (!value) return;
    const { layer, head, target, rival } = state;
    const chosen = [
      value.parts.findIndex(({ selects }) => rival && selects.target === rival),
      value.parts.findIndex(({ selects }) => selects.target === target),
      value.parts.findIndex(({ selects }) => selects.layer === layer && selects.head === head),
    ];
    map.frame(chosen);
  }

  // What is known of a part, beside it, until the pointer or the keyboard goes on; null for no part.
  function tell(node) {
    told = node;
    listening?.abort();
    tip.togglePopover(Boolean(node));
    if (!node) return;
    const part = value.parts[parts.indexOf(node)], keys = node.matches(":focus-visible") ? doing : "";
    tip.replaceChildren(part.told, make("div", { className: "keys" }, keys));
    tip.className = `told ${part.kind}`;
    place();
    listening = new AbortController();
    const { signal } = listening;
    addEventListener("scroll", place, { signal, capture: true, passive: true });
    addEventListener("keydown", ({ key }) => { if (key === "Escape") tell(null); }, { signal });
    addEventListener("pointerdown", ({ pointerType }) => { if (pointerType !== "mouse") tell(null); }, { signal });
  }
  function place() {
    const whole = figure.getBoundingClientRect();
    const bounds = {
      left: Math.max(0, whole.left), right: Math.min(innerWidth, whole.right),
      top: Math.max(0, whole.top), bottom: Math.min(innerHeight, whole.bottom),
    };
    const [left, top] = beside(told.firstChild.getBoundingClientRect(), tip.getBoundingClientRect(), bounds);
    tip.style.left = `${left}px`;
    tip.style.top = `${top}px`;
  }

  // A click that opens another tab stays, with Shift, and tells the working; any other does both.
  function choose(node, stays) {
    const i = parts.indexOf(node), { selects, box } = value.parts[i], [x, y] = centre(box);
    const opens = "view" in selects && selects.view !== state.view;
    if (opens && !stays) tell(null);
    else inspect({ x, y, item: i });
    if (!(opens && stays)) select(selects);
  }

  // On the sheet, as Chromium takes an SVG element that listens to the focus for one that can have it.
  const partAt = ({ target }) => target.closest(".parts > .part");
  let pressing = 0, pressed = false; // a long press, until its click
  sheet.addEventListener("pointerover", (event) => { if (event.pointerType === "mouse") tell(partAt(event)); });
  sheet.addEventListener("pointerleave", ({ pointerType }) => { if (pointerType === "mouse") tell(null); });
  sheet.addEventListener("pointerdown", (event) => {
    const node = partAt(event);
    pressed = false;
    if (event.pointerType === "mouse" || !node) return;
    pressing = setTimeout(() => { pressed = true; tell(node); choose(node, true); }, LONG_PRESS);
  });
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) sheet.addEventListener(end, () => clearTimeout(pressing));
  sheet.addEventListener("contextmenu", (event) => { if (event.pointerType === "touch") event.preventDefault(); });
  sheet.addEventListener("click", (event) => {
    const node = partAt(event);
    if (node && !pressed) choose(node, event.shiftKey);
    pressed = false;
  });
  sheet.addEventListener("focusin", (event) => {
    const target = /** @type {SVGElement} */ (event.target);
    map.ringAround(parts.indexOf(target));
    if (target.matches(":focus-visible")) tell(target);
  });
  sheet.addEventListener("focusout", ({ target }) => { if (told === target) tell(null); });
  sheet.addEventListener("keydown", (event) => {
    const node = partAt(event), step = DIRECTIONS[event.key];
    if (!node || event.altKey || event.ctrlKey || event.metaKey) return;
    if (step) parts[nearestInDirection(value.parts.map(({ box }) => box), parts.indexOf(node), step)].focus();
    else if (event.key === "Enter" || event.key === " ") choose(node, event.shiftKey);
    else if (event.key === "Escape") node.blur();
    else return;
    event.preventDefault();
  });

  markSidewaysScroll(figure, sheet);
  onState(element, mark);
  onThemeChange(element, paint);
  listenFor(element, narrow, "change", draw);
  onFigureContent(element, figure, (content) => { arrived = content; return queueDraw(element, draw); });
}
