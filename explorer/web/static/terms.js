// @ts-check
// The page's terms of art, explained to whoever points at one, moves to it with the Tab key, or taps it: what it means, and
// then, once Python has said it, what it is in this run.
import { call } from "./connection.js";
import { make } from "./dom.js";
import { onState, state } from "./state.js";
import { termFinder } from "./term_finder.js";
import { markAll, PICTURES } from "./term_marks.js";
import { termIn } from "./words_in_pictures.js";

/**
 * What is explained: a term's name, what it is written in, and where that is on the screen.
 * @typedef {{ name: string, element: Element, box: () => DOMRect }} Shown
 */

const SOON_MS = 120;
const GRACE_MS = 300; // for the pointer to come from a term to what is told of it, which stays as long as it is there
/** @type {HTMLElement} */
let told;
/** @type {Shown | null} */
let shown = null;
let leaving = null; // what closes it
let isAsked = false; // whether Python is asked what it is in this run

/**
 * Has the terms explained from now on, in all that is written.
 * @param {Record<string, string>} forms each form -> the name of its entry
 * @param {Record<string, string>} meanings of each entry, until Python says more
 */
export function explainTerms(forms, meanings) {
  const findTerms = termFinder(forms);
  let timer = null;
  const renew = () => {
    if (!shown?.element.isConnected) follow(null);
    delete told.dataset.behind;
    markAll(findTerms);
  };
  const soon = () => { told.dataset.behind = "true"; clearTimeout(timer); timer = setTimeout(renew, SOON_MS); };
  told = make("div", { id: "definition", role: "tooltip", popover: "manual" });
  new MutationObserver(soon).observe(document.body, { childList: true, characterData: true, subtree: true });
  document.body.append(told);
  onState(told, () => { if (shown) tellOfRun(); });
  const explain = (event) => {
    if (told.contains(event.target)) return stay();
    if (isControlOfShown(event.target)) return;
    const term = termAt(event, findTerms);
    if (term || event.type === "focusin" || event.type === "click") follow(term, meanings);
    else leaving ??= setTimeout(() => follow(null), GRACE_MS);
  };
  for (const type of ["pointerover", "focusin", "click"]) document.addEventListener(type, explain);
  document.addEventListener("pointermove", (event) => { if (pictureAt(event)) explain(event); }); // in it are no elements to enter
  for (const type of ["click", "change"]) document.addEventListener(type, soon); // what they open, or choose
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") follow(null); });
  document.addEventListener("scroll", place, { capture: true, passive: true });
  soon();
}

/** @returns {Shown | null} */
function termAt(event, findTerms) {
  const { target, type } = event, heading = type === "focusin" && target.closest?.("th");
  const term = target.closest?.(".term") ?? (heading && heading.querySelector(".term"));
  if (term) return { name: term.dataset.term, element: term, box: () => term.getBoundingClientRect() };
  const picture = type !== "focusin" && pictureAt(event), found = picture && termIn(picture, event, findTerms);
  if (!found) return null;
  const box = new DOMRect(event.clientX, event.clientY - 8, 0, 20); // at the pointer: what is drawn can be long, and upright
  return { name: found.name, element: picture, box: () => box };
}

const pictureAt = ({ target }) => (target instanceof Element ? target.closest(PICTURES) : null);

// Whether it is what a click on the label that is explained leads to.
const isControlOfShown = (target) => [...(target.labels ?? [])].some((label) => label.contains(shown?.element));

function stay() {
  clearTimeout(leaving);
  leaving = null;
}

/** @param {Shown | null} next */
function follow(next, meanings = {}) {
  stay();
  if (next?.name === shown?.name && next?.element === shown?.element) return;
  shown?.element.removeAttribute("aria-describedby");
  shown = next;
  if (!next) return told.hidePopover();
  tell(meanings[next.name]);
  if (next.element.matches(".term")) next.element.setAttribute("aria-describedby", told.id);
  tellOfRun();
}

// What it is in this run, and again where that is another by the time that it is told.
async function tellOfRun() {
  if (isAsked) return;
  isAsked = true;
  for (let of = null; shown && (of?.shown !== shown || of.state !== state);) {
    of = { shown, state };
    const whole = await call("define", [state, shown.name]).catch(() => null); // its meaning stands
    if (whole !== null && of.shown === shown && of.state === state) tell(whole);
  }
  isAsked = false;
}

function tell(words) {
  told.textContent = words;
  told.showPopover();
  place();
}

// Below the term, or above it where there is no room.
function place() {
  if (!shown) return;
  const { top, bottom, left } = shown.box();
  told.style.left = `${Math.max(8, Math.min(left, innerWidth - told.offsetWidth - 8))}px`;
  told.style.top = `${bottom + told.offsetHeight + 8 > innerHeight ? top - told.offsetHeight - 6 : bottom + 6}px`;
}
