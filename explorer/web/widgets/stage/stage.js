// @ts-check
import { find, say } from "../../static/dom.js";
import { isElsewhere } from "../../static/keys.js";
import { _ } from "../../static/language.js";
import { lessonTold } from "../../static/lessons.js";
import { keptPlaces } from "../../static/places.js";
import { onPresent, present } from "../../static/presenting.js";
import { keptBy, state } from "../../static/state.js";
import { meaningOf } from "./decks.js";
import { lessonDeck } from "./lesson_deck.js";
import { notesWindow } from "./notes.js";
import { picturesDeck } from "./pictures_deck.js";
import { placesDeck } from "./places_deck.js";
import { layOut, place } from "./scene.js";

/**
 * What is gone through.
 * @typedef {object} Deck
 * @property {(by: number) => void} go on or back
 * @property {() => Shown} shown what is to be seen now
 * @property {() => void} [leave]
 */
/**
 * @typedef {object} Shown
 * @property {string} heading
 * @property {string} at where that is, as "3 / 9"
 * @property {string} picture element id; "" for none
 * @property {string} [page] of a lesson's step, whose words stand beside the picture, or alone where there is none
 * @property {string} [problem] in the place of all else
 * @property {(Node | string)[]} notes
 * @property {(Node | string)[]} next
 */

const IN_PICTURE = ".presented, .lesson"; // where arrow keys go about by themselves
const PRESENTING = "presenting";

/** @param {HTMLElement} element */
export default function stage(element) {
  const box = find(element, ".stage"), head = find(box, "header"), black = find(box, ".blackout"), pointer = find(box, ".pointer");
  const notes = notesWindow(onKey);
  /** @type {Deck | null} */
  let deck = null;
  let focused = null; // what had it before

  function begin(wanted) {
    if (deck || !state.checkpoint) return;
    focused = document.activeElement;
    const places = wanted.places ?? keptPlaces();
    if (lessonTold() && !wanted.places) deck = lessonDeck(show);
    else if (places.length) deck = placesDeck(places, wanted.at ?? 0, show);
    else deck = picturesDeck(show);
    document.body.classList.add(PRESENTING);
    box.hidden = false;
    find(box, "h2").focus({ preventScroll: true });
    show();
  }

  function leave() {
    if (!deck) return;
    deck.leave?.();
    deck = null;
    notes.close();
    blacken(false);
    box.hidden = pointer.hidden = true;
    document.body.classList.remove(PRESENTING);
    place("");
    delete document.body.dataset.page;
    window.dispatchEvent(new Event("resize")); // pictures have their own room again
    if (focused?.isConnected) focused.focus({ preventScroll: true });
  }

  function show() {
    if (!deck) return;
    const shown = deck.shown();
    say(find(box, "h2"), shown.heading);
    say(find(box, ".text"), textOf());
    say(find(box, ".problem"), shown.problem ?? "");
    say(find(box, ".at"), shown.at);
    document.body.dataset.page = shown.page ?? "";
    place(shown.problem ? "" : shown.picture);
    lay();
    notes.show(shown);
  }

  // The prompt that the picture is of.
  const textOf = () => /** @type {HTMLTextAreaElement} */ (find(document, "#prompt textarea"))?.value.replaceAll("\n", " ↵ ") ?? "";

  const lay = () => { if (deck) layOut(head, deck.shown()); };

  function blacken(is = black.hidden) {
    if (!deck) return;
    black.hidden = !is;
    if (is) black.focus();
    else if (document.activeElement === black || document.activeElement === document.body) find(box, "h2").focus({ preventScroll: true });
  }

  function openNotes() {
    if (!notes.open()) return void say(find(box, ".problem"), _("The browser did not open a second window: allow pop-ups of this page, and press N again."));
    notes.show(deck.shown());
  }

  const ACTS = { next: () => deck.go(1), back: () => deck.go(-1), black: () => blacken(), leave, notes: openNotes };

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (isElsewhere(event)) {
      if (deck && event.key === "Escape") leave();
      return;
    }
    if (!deck) {
      const isCovered = find(document, "#sheet, #walk .walk:not([hidden])");
      if (event.key.toLowerCase() === "p" && !event.repeat && !isCovered) event.preventDefault(), present();
      return;
    }
    const meaning = meaningOf(event.key), target = /** @type {HTMLElement} */ (event.target);
    const isOnControl = "matches" in target && target.matches("button, a, input, summary") && target !== black;
    if (!meaning || (isOnControl && event.key === " ")) return;
    // Whoever went to a picture by the Tab key goes about in it by the arrow keys; a remote's keys still go on.
    const isInPicture = event.key.startsWith("Arrow") && target.closest?.(IN_PICTURE) && target.matches(":focus-visible");
    if (isInPicture) return;
    event.preventDefault();
    event.stopPropagation();
    if (!black.hidden) return blacken(false);
    ACTS[meaning]();
  }

  for (const name of Object.keys(ACTS)) find(box, `nav .${name}`).addEventListener("click", () => ACTS[name]());
  black.addEventListener("click", () => blacken(false));
  document.addEventListener("keydown", onKey, { capture: true });
  document.addEventListener("pointermove", ({ clientX, clientY, pointerType }) => {
    pointer.hidden = !deck || pointerType !== "mouse";
    if (deck) pointer.style.transform = `translate(${clientX}px, ${clientY}px)`;
  });
  window.addEventListener("resize", () => lay());
  keptBy(() => { if (deck) say(find(box, ".text"), textOf()); });
  onPresent(begin);
}
