// @ts-check
// The map of the model's parts as SVG, each part a button for pointer and keyboard.
import { select } from "../../static/page_actions.js";
import { showEvidence, queueDraw, onFigureContent } from "../../static/widget_contents.js";
import { colourAt, centre, parseHexColour, countDraw, DIRECTIONS, find, setHidden, readableTextColour, make, makeSvg, resizeChildren, nearestInDirection, onThemeChange, setText, set, markSidewaysScroll, currentTheme } from "../../static/dom.js";
import { _ } from "../../static/text.js";
import { onState, state } from "../../static/page_state.js";

// Geometry of the map.

/** @typedef {import("../../static/dom.js").Box} Box */

const TIP_GAP = 8, POINTER_HEIGHT = 24; // pixels between a part and its tooltip: above it, and below it, where the pointer is
const ARROW_HALF_WIDTH = 3.5; // of an arrowhead, in the layout's pixels

/**
 * Return one layout of a map: each part with its box there, and with its label if that fits.
 * @param {any} map
 * @param {number} i
 */
export function partsOnSheet({ sheets, parts, ...rest }, i) {
  const sheet = sheets[i];
  const placedParts = parts.map(([kind, boxes, text, selects, value, label]) => (
    { kind, box: boxes[i], text, selects, value, label: sheet.written.includes(kind) ? label : "" }));
  return { ...rest, ...sheet, parts: placedParts };
}

/** Return a box as attributes of an SVG rectangle. @param {Box} box */
const rectAttributes = ([left, upper, right, lower]) => ({ x: left, y: upper, width: right - left, height: lower - upper });

/**
 * Return the left and top of a part's tooltip: above the part or else below, and within the bounds.
 * @param {{ left: number, top: number, right: number, bottom: number }} part
 * @param {{ width: number, height: number }} size
 * @param {{ left: number, top: number, right: number, bottom: number }} bounds
 */
function tooltipPosition(part, { width, height }, bounds) {
  const clamp = (position, size, low, high) => Math.max(low, Math.min(position, high - size));
  const above = part.top - TIP_GAP - height, y = above >= bounds.top ? above : part.bottom + POINTER_HEIGHT;
  return [clamp((part.left + part.right - width) / 2, width, bounds.left, bounds.right), clamp(y, height, bounds.top, bounds.bottom)];
}

/** Return the path of a line. @param {number[]} corners x and y alternately */
const linePath = (corners) => corners.map((coordinate, i) => `${i % 2 ? "," : i ? "L" : "M"}${coordinate}`).join("");

/** Return the path of the arrowhead at a line's end. @param {number[]} corners */
export function arrowHead(corners) {
  const [fromX, fromY, x, y] = corners.slice(-4), directionX = Math.sign(x - fromX), directionY = Math.sign(y - fromY);
  const corner = (back, sideways) => `${x - back * directionX - sideways * directionY},${y - back * directionY + sideways * directionX}`;
  return `M${corner(0, 0)}L${corner(2 * ARROW_HALF_WIDTH, ARROW_HALF_WIDTH)}L${corner(2 * ARROW_HALF_WIDTH, -ARROW_HALF_WIDTH)}Z`;
}

// The map as SVG: lines, parts, the legend, labels, and frames around the selected parts.

let numMaps = 0; // each has a gradient of its own id
const LINE_HEIGHT = 13; // of labels on parts
const ROUND_KINDS = ["norm", "addition", "rotation"];

/**
 * Append an empty map to a sheet, and return functions that update it.
 * @param {HTMLElement} sheet
 * @param {string} keyHint for screen readers
 * @param {() => import("../../static/shared_constants.js").Theme} getTheme
 */
export function buildMap(sheet, keyHint, getTheme = currentTheme) {
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
  for (const group of [lines, legend, words]) set(group, { "aria-hidden": true }); // the parts' labels say the same
  const gradient = makeSvg("linearGradient"), bar = makeSvg("rect", "scale"), ring = makeSvg("rect", "ring");
  const frames = ["rival", "target", "head"].map((name) => makeSvg("rect", `frame ${name}`));
  const svg = makeSvg("svg", "", gradient, lines, buttons, legend, bar, words, ...frames, ring);
  gradient.id = `model-map-scale-${numMaps++}`;
  bar.setAttribute("fill", `url(#${gradient.id})`);
  const description = _("Arrow keys go from part to part; {keys}; Escape leaves.", { keys: keyHint });
  set(svg, { role: "group", "aria-description": description });
  sheet.append(svg);

  /** Draw the map, and return the nodes of its parts. */
  function draw(content) {
    value = content;
    set(svg, { viewBox: `0 0 ${value.size.join(" ")}`, "aria-label": value.alt });
    resizeChildren(lines, value.lines.length, () => makeSvg("g", "", makeSvg("path", "line"), makeSvg("path", "arrow"))).forEach((group, i) => {
      const [kind, corners, width, arrow] = value.lines[i], [line, head] = group.children;
      set(group, { class: kind });
      set(line, { d: linePath(corners), "stroke-width": width });
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
    set(bar, rectAttributes(value.scale));
    paint();
    return parts;
  }

  function drawPart(node, { kind, box, value: share, text, label }) {
    drawShape(node, kind, box, share);
    const [x, y] = centre(box), lines = label.split("\n"), visibleText = lines.join(" "), name = text.replaceAll("\n", ", ");
    // Speech control needs the visible text in the accessible name.
    set(node, { class: `part ${kind}`, "aria-label": name.includes(visibleText) ? name : `${name} (${visibleText})` });
    resizeChildren(node.lastChild, lines.length, () => makeSvg("tspan")).forEach((row, i) => {
      set(row, { x, y: y + (i - (lines.length - 1) / 2) * LINE_HEIGHT });
      setText(row, lines[i]);
      if (i && row.previousSibling?.nodeType !== Node.TEXT_NODE) row.before(" ");
    });
  }

  function drawShape(node, kind, box, share) {
    const [left, , right, lower] = box, [x, y] = centre(box), radius = (right - left) / 2;
    const detail = {
      addition: `M${x - radius},${y}h${2 * radius}M${x},${y - radius}v${2 * radius}`,
      next_token: `M${left},${lower - 5}h${(right - left) * share}v3H${left}Z`,
    };
    set(node.children[0], { ...rectAttributes(box), rx: ROUND_KINDS.includes(kind) ? radius : 0 });
    set(node.children[1], { d: detail[kind] ?? "" });
  }

  /** Colour the parts by their contributions, in the theme's colours. */
  function paint() {
    const scale = getTheme().template.layout.colorscale.diverging, stops = scale.map(([stop, colour]) => [stop, parseHexColour(colour)]);
    resizeChildren(gradient, scale.length, () => makeSvg("stop")).forEach((stop, i) => set(stop, { offset: scale[i][0], "stop-color": scale[i][1] }));
    value.parts.forEach(({ kind, value: contribution }, i) => {
      const rgb = kind === "next_token" || contribution === null ? null : colourAt(stops, (contribution / value.largest + 1) / 2).map(Math.round);
      const [shape, , text] = /** @type {any} */ (parts[i].children);
      shape.style.fill = rgb ? `rgb(${rgb})` : "";
      text.style.fill = rgb ? readableTextColour(rgb) : "";
    });
  }

  /** Frame the contrast token, the target token and the head, given by their indices among the parts; -1 for none. */
  function frameParts(indices) {
    frames.forEach((node, i) => {
      node.style.display = indices[i] < 0 ? "none" : "";
      if (indices[i] >= 0) set(node, rectAttributes(value.parts[indices[i]].box));
    });
    parts.forEach((node, i) => {
      if (indices.includes(i)) set(node, { "aria-current": true });
      else node.removeAttribute("aria-current");
    });
  }

  /** Move the focus ring and the tab stop to a part. */
  function moveRing(i) {
    parts.forEach((node, other) => set(node, { tabindex: other === i ? 0 : -1 }));
    const { x, y, width, height } = rectAttributes(value.parts[i].box);
    set(ring, { x: x - 3, y: y - 3, width: width + 6, height: height + 6 });
  }

  return { draw, paint, frameParts, moveRing };
}

const LONG_PRESS_MS = 500;

/** The map of the model, with tooltips. @param {HTMLElement} element */
export function modelMap(element) {
  const figure = find(element, ".map"), sheet = find(figure, ".sheet"), tip = find(element, ".told");
  const isPhone = matchMedia("(max-width: 600px)"); // the style sheets' breakpoint
  const inspect = showEvidence(element);
  const keyHint = _("Enter opens it, Shift+Enter tells its working"), map = buildMap(sheet, keyHint);
  let mapContent = null, value = null, parts = [], tipNode = null, tipListeners = null; // value: the drawn layout of mapContent

  function draw() {
    value = mapContent && partsOnSheet(mapContent, isPhone.matches ? 1 : 0);
    setHidden(element, !value);
    if (!value) return showTip(null);
    sheet.style.setProperty("--ratio", value.size.join("/"));
    parts = map.draw(value);
    markSelection();
    countDraw(figure);
    if (tipNode) showTip(tipNode.matches(":hover, :focus") ? tipNode : null);
  }

  function paint() {
    if (!value) return;
    map.paint();
    countDraw(figure);
  }

  // Frame the target token, the contrast token (dotted) and the selected head.
  function markSelection() {
    if (!value) return;
    const { layer, head, target, rival } = state;
    const indices = [
      value.parts.findIndex(({ selects }) => rival && selects.target === rival),
      value.parts.findIndex(({ selects }) => selects.target === target),
      value.parts.findIndex(({ selects }) => selects.layer === layer && selects.head === head),
    ];
    map.frameParts(indices);
  }

  // Show a part's tooltip until the pointer or the focus moves on; null hides it.
  function showTip(node) {
    tipNode = node;
    tipListeners?.abort();
    tip.togglePopover(Boolean(node));
    if (!node) return;
    const part = value.parts[parts.indexOf(node)], keys = node.matches(":focus-visible") ? keyHint : "";
    tip.replaceChildren(part.text, make("div", { className: "keys" }, keys));
    tip.className = `told ${part.kind}`;
    placeTip();
    tipListeners = new AbortController();
    const { signal } = tipListeners;
    addEventListener("scroll", placeTip, { signal, capture: true, passive: true });
    addEventListener("keydown", ({ key }) => { if (key === "Escape") showTip(null); }, { signal });
    addEventListener("pointerdown", ({ pointerType }) => { if (pointerType !== "mouse") showTip(null); }, { signal });
  }
  function placeTip() {
    const figureBox = figure.getBoundingClientRect();
    const bounds = {
      left: Math.max(0, figureBox.left), right: Math.min(innerWidth, figureBox.right),
      top: Math.max(0, figureBox.top), bottom: Math.min(innerHeight, figureBox.bottom),
    };
    const [left, top] = tooltipPosition(tipNode.firstChild.getBoundingClientRect(), tip.getBoundingClientRect(), bounds);
    tip.style.left = `${left}px`;
    tip.style.top = `${top}px`;
  }

  // A click selects the part and shows its derivation. If it opens another tab, it does only that, or, with Shift, stays
  // here and only shows the derivation.
  function selectPart(node, stays) {
    const i = parts.indexOf(node), { selects, box } = value.parts[i], [x, y] = centre(box);
    const opensView = "view" in selects && selects.view !== state.view;
    if (opensView && !stays) showTip(null);
    else inspect({ x, y, item: i });
    if (!(opensView && stays)) select(selects);
  }

  // Listeners are on the sheet, as Chromium treats an SVG element with a focus listener as focusable.
  const partAt = ({ target }) => target.closest(".parts > .part");
  let pressTimer = 0, wasLongPress = false; // the click that ends a long press is ignored
  sheet.addEventListener("pointerover", (event) => { if (event.pointerType === "mouse") showTip(partAt(event)); });
  sheet.addEventListener("pointerleave", ({ pointerType }) => { if (pointerType === "mouse") showTip(null); });
  sheet.addEventListener("pointerdown", (event) => {
    const node = partAt(event);
    wasLongPress = false;
    if (event.pointerType === "mouse" || !node) return;
    pressTimer = setTimeout(() => { wasLongPress = true; showTip(node); selectPart(node, true); }, LONG_PRESS_MS);
  });
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) sheet.addEventListener(end, () => clearTimeout(pressTimer));
  sheet.addEventListener("contextmenu", (event) => { if (event.pointerType === "touch") event.preventDefault(); });
  sheet.addEventListener("click", (event) => {
    const node = partAt(event);
    if (node && !wasLongPress) selectPart(node, event.shiftKey);
    wasLongPress = false;
  });
  sheet.addEventListener("focusin", (event) => {
    const target = /** @type {SVGElement} */ (event.target);
    map.moveRing(parts.indexOf(target));
    if (target.matches(":focus-visible")) showTip(target);
  });
  sheet.addEventListener("focusout", ({ target }) => { if (tipNode === target) showTip(null); });
  sheet.addEventListener("keydown", (event) => {
    const node = partAt(event), step = DIRECTIONS[event.key];
    if (!node || event.altKey || event.ctrlKey || event.metaKey) return;
    if (step) parts[nearestInDirection(value.parts.map(({ box }) => box), parts.indexOf(node), step)].focus();
    else if (event.key === "Enter" || event.key === " ") selectPart(node, event.shiftKey);
    else if (event.key === "Escape") node.blur();
    else return;
    event.preventDefault();
  });

  markSidewaysScroll(figure, sheet);
  onState(markSelection);
  onThemeChange(paint);
  isPhone.addEventListener("change", draw);
  onFigureContent(element, figure, (content) => { mapContent = content; return queueDraw(element, draw); });
}
