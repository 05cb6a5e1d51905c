// @ts-check
import { pick } from "../../static/choosing.js";
import { countDraw, find, listenFor, make } from "../../static/dom.js";
import { inTurn } from "../../static/drawing_queue.js";
import { evidenceIn } from "../../static/evidence.js";
import { _ } from "../../static/language.js";
import { onPicture } from "../../static/pictures.js";
import { tellSideways } from "../../static/sideways.js";
import { onState, state } from "../../static/state.js";
import { onTheme } from "../../static/theme.js";
import { mapOn } from "./drawing.js";
import { beside, centre, DIRECTIONS, nextTo, onSheet } from "./places.js";

const LONG_PRESS = 500; // milliseconds
const narrow = matchMedia("(max-width: 600px)"); // as in the style sheets

/** @param {HTMLElement} element */
export default function modelMap(element) {
  const picture = find(element, ".map"), sheet = find(picture, ".sheet"), tip = find(element, ".told");
  const inspect = evidenceIn(element), working = find(element, ".inspection");
  const doing = _("Enter opens it, Shift+Enter tells its working"), map = mapOn(sheet, doing);
  let arrived = null, value = null, parts = [], told = null, listening = null; // what came; what is drawn of it

  function draw() {
    value = arrived && onSheet(arrived, narrow.matches ? 1 : 0);
    element.hidden = !value;
    if (!value) return tell(null);
    sheet.style.setProperty("--ratio", value.size.join("/"));
    parts = map.draw(value);
    mark();
    countDraw(picture);
    if (told) tell(told.matches(":hover, :focus") ? told : null);
  }

  function paint() {
    if (!value) return;
    map.paint();
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
    if (opens && !stays) tell(null);
    else inspect({ x, y, item: i }).then(() => working.scrollIntoView({ block: "nearest" }));
    if (!(opens && stays)) pick(selects);
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
    if (step) parts[nextTo(value.parts.map(({ box }) => box), parts.indexOf(node), step)].focus();
    else if (event.key === "Enter" || event.key === " ") choose(node, event.shiftKey);
    else if (event.key === "Escape") node.blur();
    else return;
    event.preventDefault();
  });

  tellSideways(picture, sheet);
  onState(element, mark);
  onTheme(element, paint);
  listenFor(element, narrow, "change", draw);
  onPicture(element, picture, (content) => { arrived = content; return inTurn(element, draw); });
}
