// @ts-check
import { pick } from "../../static/choosing.js";
import { along, channels, legibleOn } from "../../static/colour.js";
import { onContent } from "../../static/contents.js";
import { countDraw, find, make, say } from "../../static/dom.js";
import { inTurn } from "../../static/drawing_queue.js";
import { evidenceIn } from "../../static/evidence.js";
import { tellSideways } from "../../static/sideways.js";
import { onState, state } from "../../static/state.js";
import { makeSvg, many, set } from "../../static/svg.js";
import { onTheme, theme } from "../../static/theme.js";
import { beside, centre, DIRECTIONS, headOf, nextTo, pathOf, rectOf } from "./places.js";

const SCALE = "model-map-scale";
const LONG_PRESS = 500; // milliseconds
const LINE = 13; // of words on parts
const KEYS = "Enter opens it, Shift+Enter tells its working";

/** @param {HTMLElement} element */
export default function modelMap(element) {
  const picture = find(element, ".map"), sheet = find(picture, ".sheet"), tip = find(element, ".told");
  const inspect = evidenceIn(element), working = find(element, ".inspection");
  let value = null, parts = [], told = null, listening = null;

  const newPart = () => {
    const part = makeSvg("g", "", makeSvg("rect", "shape"), makeSvg("path", "detail"), makeSvg("text"));
    set(part, { role: "button", tabindex: -1 });
    return part;
  };
  const layer = (name, hidden) => {
    const group = makeSvg("g", name);
    if (hidden) group.setAttribute("aria-hidden", true); // its parts say it all
    return group;
  };
  const [lines, buttons, legend, words] = [layer("lines", true), layer("parts"), layer("legend", true), layer("words", true)];
  const gradient = makeSvg("linearGradient"), bar = makeSvg("rect", "scale"), ring = makeSvg("rect", "ring");
  const frames = ["rival", "target", "head"].map((name) => makeSvg("rect", `frame ${name}`));
  const svg = makeSvg("svg", "", gradient, lines, buttons, legend, bar, words, ...frames, ring);
  gradient.id = SCALE;
  bar.setAttribute("fill", `url(#${SCALE})`);
  set(svg, { role: "group", "aria-description": `Arrow keys go from part to part; ${KEYS}; Escape leaves.` });
  sheet.append(svg);

  function draw() {
    element.hidden = !value;
    if (!value) return tell(null);
    set(svg, { viewBox: `0 0 ${value.size.join(" ")}`, "aria-label": value.alt });
    many(lines, value.lines.length, () => makeSvg("g", "", makeSvg("path", "line"), makeSvg("path", "arrow"))).forEach((group, i) => {
      const [kind, corners, width, arrow] = value.lines[i], [line, head] = group.children;
      set(group, { class: kind });
      set(line, { d: pathOf(corners), "stroke-width": width });
      set(head, { d: arrow ? headOf(corners) : "" });
    });
    parts = many(buttons, value.parts.length, newPart);
    parts.forEach((node, i) => drawPart(node, value.parts[i]));
    if (!parts.some(({ tabIndex }) => tabIndex === 0)) parts[0].setAttribute("tabindex", 0);
    many(legend, value.legend.length, () => makeSvg("g", "", makeSvg("rect", "shape"), makeSvg("path", "detail"))).forEach((node, i) => {
      const [kind, box] = value.legend[i];
      set(node, { class: kind });
      drawShape(node, kind, box);
    });
    many(words, value.words.length, () => makeSvg("text")).forEach((node, i) => {
      const [x, y, text, kind, side] = value.words[i];
      set(node, { x, y, class: `word ${kind} ${side}` });
      say(node, text);
    });
    set(bar, rectOf(value.scale));
    mark();
    paint();
    if (told) tell(told.matches(":hover, :focus") ? told : null);
  }

  function drawPart(node, { kind, box, value: share, told: about, written }) {
    drawShape(node, kind, box, share);
    set(node, { class: `part ${kind}`, "aria-label": about.replaceAll("\n", ", ") });
    const [x, y] = centre(box), rows = kind === "next_token" ? [] : written.split("\n"); // a word stands there
    many(node.lastChild, rows.length, () => makeSvg("tspan")).forEach((row, i) => {
      set(row, { x, y: y + (i - (rows.length - 1) / 2) * LINE });
      say(row, rows[i]);
    });
  }

  const DISCS = ["norm", "addition", "rotation"];
  function drawShape(node, kind, box, share) {
    const [left, , right, lower] = box, [x, y] = centre(box), radius = (right - left) / 2;
    const detail = {
      addition: `M${x - radius},${y}h${2 * radius}M${x},${y - radius}v${2 * radius}`,
      next_token: `M${left},${lower - 5}h${(right - left) * share}v3H${left}Z`,
    };
    set(node.children[0], { ...rectOf(box), rx: DISCS.includes(kind) ? radius : 0 });
    set(node.children[1], { d: detail[kind] ?? "" });
  }

  // Colours of what is added, in the theme's.
  function paint() {
    if (!value) return;
    const scale = theme().template.layout.colorscale.diverging, stops = scale.map(([stop, colour]) => [stop, channels(colour)]);
    many(gradient, scale.length, () => makeSvg("stop")).forEach((stop, i) => set(stop, { offset: scale[i][0], "stop-color": scale[i][1] }));
    value.parts.forEach(({ kind, value: adds }, i) => {
      const rgb = kind === "next_token" || adds === null ? null : along(stops, (adds / value.largest + 1) / 2).map(Math.round);
      const [shape, , text] = parts[i].children;
      shape.style.fill = rgb ? `rgb(${rgb})` : "";
      text.style.fill = rgb ? legibleOn(rgb) : "";
    });
    countDraw(picture);
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
    frames.forEach((frame, i) => {
      frame.style.display = chosen[i] < 0 ? "none" : "";
      if (chosen[i] >= 0) set(frame, rectOf(value.parts[chosen[i]].box));
    });
    parts.forEach((node, i) => {
      if (chosen.includes(i)) node.setAttribute("aria-current", true);
      else node.removeAttribute("aria-current");
    });
  }

  // What is known of a part, beside it, until the pointer or the keyboard goes on; null for no part.
  function tell(node) {
    told = node;
    listening?.abort();
    tip.togglePopover(Boolean(node));
    if (!node) return;
    const part = value.parts[parts.indexOf(node)], keys = node.matches(":focus-visible") ? KEYS : "";
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
    const whole = picture.getBoundingClientRect();
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
    if (!(opens && stays)) pick(selects);
    if (opens && !stays) tell(null);
    else inspect({ x, y, item: i }).then(() => working.scrollIntoView({ block: "nearest" }));
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
  sheet.addEventListener("focusin", ({ target }) => {
    for (const node of parts) node.setAttribute("tabindex", node === target ? 0 : -1);
    const { x, y, width, height } = rectOf(value.parts[parts.indexOf(target)].box);
    set(ring, { x: x - 3, y: y - 3, width: width + 6, height: height + 6 });
    if (target.matches(":focus-visible")) tell(target);
  });
  sheet.addEventListener("focusout", ({ target }) => { if (told === target) tell(null); });
  sheet.addEventListener("keydown", (event) => {
    const node = partAt(event), step = DIRECTIONS[event.key];
    if (!node || event.altKey || event.ctrlKey || event.metaKey) return;
    if (step) parts[nextTo(value.parts.map(({ box }) => box), parts.indexOf(node), step)].focus();
    else if (event.key === "Enter" || event.key === " ") choose(node, event.shiftKey);
    else if (event.key === "Escape") node.blur();
    else return;
    event.preventDefault();
  });

  tellSideways(picture, sheet);
  onState(element, mark);
  onTheme(element, paint);
  onContent(element, (content) => { value = content; return inTurn(element, draw); });
}
