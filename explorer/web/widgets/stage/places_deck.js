// @ts-check
// Saved places, one after another.
import { make } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { makeMove, onMove } from "../../static/moves.js";
import { askedIn } from "../../static/places.js";
import { state } from "../../static/state.js";

/**
 * @param {import("../../static/places.js").Place[]} places
 * @param {number} at the first
 * @param {() => void} changed
 * @returns {import("./stage.js").Deck}
 */
export function placesDeck(places, at, changed) {
  const leaving = new AbortController();
  let isThere = false, problem = "";

  onMove((move, isMade) => {
    if (move.kind !== "place" || JSON.stringify(move.words) !== JSON.stringify(askedIn(places[at]))) return; // of one that was passed by
    isThere = isMade;
    const { checkpoint } = askedIn(places[at]);
    problem = isMade ? "" : _("This place cannot be shown here: it asks for {checkpoint}.", { checkpoint: checkpoint || "?" });
    changed();
  }, leaving.signal);

  function goThere() {
    isThere = false;
    problem = "";
    makeMove({ kind: "place", words: askedIn(places[at]) });
    changed();
  }
  goThere();

  const captionOf = (place, i) => place.caption || _("Place {number}", { number: i + 1 });
  return {
    go(by) {
      const next = Math.max(0, Math.min(places.length - 1, at + by));
      if (next === at) return;
      at = next;
      goThere();
    },
    shown: () => ({
      heading: captionOf(places[at], at), at: `${at + 1} / ${places.length}`, picture: isThere ? places[at].picture || firstOf() : "", problem,
      notes: [make("p", {}, places[at].notes)],
      next: [make("p", {}, at + 1 < places.length ? captionOf(places[at + 1], at + 1) : _("This was the last place."))],
    }),
    leave: () => leaving.abort(),
  };
}

/** The first picture of the open tab. */
const firstOf = () => document.querySelector(`.panels > .block[id^="${state.view}-"]:not(:has(> .html-container > [hidden]))`)?.id ?? "";
