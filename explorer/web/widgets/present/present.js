// @ts-check
import { button, find, make, say, span } from "../../static/dom.js";
import { _, ngettext } from "../../static/language.js";
import { makeMove } from "../../static/moves.js";
import { added, askedIn, keepPlacesAs, keptPlaces, linkOf, MOST, onBrought, placeOf, placesInLink, reordered } from "../../static/places.js";
import { present } from "../../static/presenting.js";
import { download, MOST_LINK } from "../../static/saved.js";
import { onState, state } from "../../static/state.js";
import { pictureInSight } from "../stage/pictures_deck.js";

/** @typedef {import("../../static/places.js").Place} Place */

/** @param {HTMLElement} element */
export default function presentMenu(element) {
  const open = find(element, ".open"), list = find(element, ".list"), rows = find(list, ".places"), told = find(list, ".told");
  const offer = find(list, ".brought");
  let places = keptPlaces();

  function show() {
    say(told, places.length ? "" : _("None yet: save what you see, go on to the next, and present them in their order."));
    draw();
    const { bottom, left } = open.getBoundingClientRect();
    list.style.top = `${bottom + 4}px`;
    list.hidden = false;
    list.style.left = `${Math.max(8, Math.min(left, innerWidth - list.offsetWidth - 8))}px`;
    open.ariaExpanded = "true";
    find(list, ".begin").focus();
  }

  function hide() {
    if (list.contains(document.activeElement)) open.focus();
    list.hidden = true;
    open.ariaExpanded = "false";
  }

  function draw() {
    rows.replaceChildren(...places.map(row));
    tellWhat();
    for (const name of [".link", ".file"]) /** @type {HTMLButtonElement} */ (find(list, name)).disabled = !places.length;
    /** @type {HTMLButtonElement} */ (find(list, ".save")).disabled = places.length >= MOST.places;
  }

  // What P presents.
  function tellWhat() {
    if (state.lesson) return say(find(list, ".what"), _("the steps of this lesson"));
    say(find(list, ".what"), places.length ? ngettext("{count} saved place", "{count} saved places", places.length) : _("the pictures of this tab"));
  }

  /** @param {Place[]} changed */
  function change(changed) {
    places = changed;
    say(told, keepPlacesAs(places) ? "" : _("This browser keeps nothing: pass the places on as a link or a file before you leave."));
    draw();
  }

  function row(place, i) {
    const number = i + 1, last = places.length - 1;
    const caption = make("input", { type: "text", className: "caption", value: place.caption, maxLength: MOST.caption, ariaLabel: _("caption of place {number}", { number }), placeholder: _("Place {number}", { number }) });
    const notes = make("textarea", { className: "notes", value: place.notes, maxLength: MOST.notes, rows: 1, ariaLabel: _("notes on place {number}", { number }), placeholder: _("notes that only you see") });
    caption.addEventListener("change", () => edit(i, { caption: caption.value }));
    notes.addEventListener("change", () => edit(i, { notes: notes.value }));
    const act = (text, name, does, disabled = false) => button(text, does, { ariaLabel: name, title: name, disabled });
    return make("li", { className: "place" }, span("number", String(number)), caption,
      act("↗", _("go to place {number}", { number }), () => { hide(); makeMove({ kind: "place", words: askedIn(place) }); }),
      act("↑", _("move place {number} up", { number }), () => move(i, i - 1, 1), i === 0),
      act("↓", _("move place {number} down", { number }), () => move(i, i + 1, 2), i === last),
      act("✕", _("remove place {number}", { number }), () => { change(places.filter((other) => other !== place)); find(list, ".save").focus(); }),
      notes);
  }

  // Without drawing anew, as somebody may be on the way to the next box.
  function edit(i, words) {
    places[i] = { ...places[i], ...words };
    keepPlacesAs(places);
  }

  // The keyboard stays on the button of the same place.
  function move(from, to, nth) {
    change(reordered(places, from, to));
    const buttons = findButtons(to), stays = buttons[nth].disabled ? buttons[3 - nth] : buttons[nth];
    stays.focus();
  }
  const findButtons = (i) => Array.from(rows.children[i].querySelectorAll("button"));

  function save() {
    const picture = pictureInSight(), title = picture && find(document, `#${picture} h2`)?.textContent;
    const place = placeOf(state, picture, title ?? "");
    if (!place) return say(told, _("This is too long to be a place: shorten the text or the tree of continuations."));
    change([...places, place]);
    const caption = /** @type {HTMLInputElement} */ (rows.lastElementChild.querySelector(".caption"));
    caption.focus();
    caption.select();
  }

  async function copy() {
    const link = await linkOf(places, location.href);
    if (link.length > MOST_LINK) {
      download({ places });
      return say(told, _("These places are too long for a link ({count} characters): they were saved as a file. “Open a saved file”, at the end of the page, brings them back.", { count: link.length }));
    }
    try { await navigator.clipboard.writeText(link); } catch { return void prompt(_("Copy this link:"), link); }
    say(told, _("The link is copied: who opens it finds these places here."));
  }

  /** @param {Place[]} brought */
  function add(brought) {
    const [all, left] = added(places, brought);
    change(all);
    if (left) say(told, ngettext("{count} place was left out: at most {most} are kept.", "{count} places were left out: at most {most} are kept.", left, { most: MOST.places }));
  }

  // From a link or a file: nobody's own places are lost to it.
  /** @param {Place[]} brought */
  function take(brought) {
    if (!brought.length) say(told, _("This brought no place along that can be read."));
    else if (!places.length) change(brought);
    else {
      const done = () => { offer.hidden = true; };
      offer.replaceChildren(
        make("p", {}, ngettext("{count} place was brought along.", "{count} places were brought along.", brought.length)),
        span("line",
          button(_("Add to mine"), () => { done(); add(brought); }),
          button(_("In the place of mine"), () => { done(); change(brought); }),
          button(_("Present without keeping"), () => { done(); hide(); present({ places: brought }); }),
          button(_("Leave"), done)));
      offer.hidden = false;
    }
    const words = told.textContent;
    show();
    if (words) say(told, words);
  }

  open.addEventListener("click", () => (list.hidden ? show() : hide()));
  find(list, ".begin").addEventListener("click", () => { hide(); present(); });
  find(list, ".save").addEventListener("click", save);
  find(list, ".link").addEventListener("click", copy);
  find(list, ".file").addEventListener("click", () => download({ places }));
  element.addEventListener("keydown", (event) => { if (event.key === "Escape" && !list.hidden) hide(); });
  document.addEventListener("pointerdown", ({ target }) => {
    if (!list.hidden && target instanceof Node && !element.contains(target)) hide();
  });
  window.addEventListener("storage", () => { places = keptPlaces(); if (!list.hidden) draw(); }); // another tab changed them
  onState(element, tellWhat);
  onBrought(take);
  placesInLink(location.hash).then((brought) => {
    if (!brought) return;
    history.replaceState(history.state, "", location.pathname + location.search); // a reload brings them no second time
    take(brought);
  });
}
