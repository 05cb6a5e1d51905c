// @ts-check
import { call, Refused } from "../../static/connection.js";
import { give } from "../../static/contents.js";
import { countDraw, find, findAll, say } from "../../static/dom.js";
import { PROBLEM } from "../../static/protocol.js";
import { reachWhileScrolling } from "../../static/sideways.js";
import { state } from "../../static/state.js";
import { beginning, onWalk, pressed } from "../../static/walks.js";
import { DRAWINGS } from "./drawings.js";

const EVERY_MS = 450; // a frame of a segment
const still = matchMedia("(prefers-reduced-motion: reduce)");

/** @param {HTMLElement} element */
export default function walk(element) {
  const box = find(element, ".walk"), drawing = reachWhileScrolling(find(box, ".drawing")), next = /** @type {HTMLButtonElement} */ (find(box, ".next"));
  const back = /** @type {HTMLButtonElement} */ (find(box, ".back"));
  let title = "", at = { segment: 0, frame: 0 }, timer = null, focused = null;
  /** @type {import("../../static/walks.js").Segment[]} */
  let segments = [];

  async function start(name) {
    focused = document.activeElement;
    try { ({ title, segments } = await call("walk", [state, name])); } catch (error) {
      if (error instanceof Refused) give(PROBLEM, error.message);
      return;
    }
    box.hidden = false;
    document.body.classList.add("walking");
    say(find(box, "h2"), title);
    goTo(beginning(segments, 0, still.matches));
    next.focus();
  }

  function goTo(place) {
    clearTimeout(timer);
    at = place;
    draw();
    if (at.frame < segments[at.segment].frames.length - 1) timer = setTimeout(() => goTo({ ...at, frame: at.frame + 1 }), EVERY_MS);
  }

  function draw() {
    const { says, kind, frames } = segments[at.segment];
    say(find(box, ".says"), says);
    drawing.replaceChildren(DRAWINGS[kind](frames[at.frame]));
    say(find(box, ".at"), `${at.segment + 1} / ${segments.length}`);
    back.disabled = at.segment === 0;
    next.disabled = at.segment === segments.length - 1 && at.frame === frames.length - 1;
    if (next.disabled && document.activeElement === document.body) find(box, ".leave").focus();
    drawing.dataset.frame = `${at.segment}.${at.frame}`;
    countDraw(drawing);
  }

  const ACTS = {
    next: () => goTo(pressed(segments, at, still.matches)),
    back: () => goTo(beginning(segments, at.segment - 1, true)),
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
