// @ts-check
// The pictures of the open tab, beginning with the one that was looked at last.
import { find, findAll, make } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { lastLookedAt } from "../../static/looked.js";

const OPEN = "#view .panels > .block";

/** The pictures that the open tab shows now. */
const pictures = () => findAll(document, OPEN).filter((picture) => picture.checkVisibility() && picture.querySelector("[data-draws]"));

/** The element id of the picture that a visitor looks at: the last one clicked, or else the first in sight. */
export function pictureInSight() {
  const all = pictures(), ids = all.map(({ id }) => id), last = lastLookedAt();
  if (ids.includes(last) || ["next-token", "strip"].includes(last)) return last;
  const inSight = all.find((picture) => picture.getBoundingClientRect().bottom > innerHeight / 4);
  return (inSight ?? all[0])?.id ?? "";
}

/** @param {() => void} changed @returns {import("./stage.js").Deck} */
export function picturesDeck(changed) {
  const first = pictureInSight(), ids = pictures().map(({ id }) => id);
  const deck = ids.includes(first) ? ids : [first, ...ids].filter(Boolean);
  const nameOf = (id) => document.getElementById(id)?.querySelector("h2")?.textContent ?? "";
  let at = Math.max(0, deck.indexOf(first));

  return {
    go(by) {
      at = Math.max(0, Math.min(deck.length - 1, at + by));
      changed();
    },
    shown: () => ({
      heading: nameOf(deck[at]) || find(document, "[role=tab][aria-selected=true]")?.textContent || "", at: `${at + 1} / ${deck.length}`, picture: deck[at] ?? "",
      problem: deck.length ? "" : _("This tab shows no picture now."),
      notes: [], next: [make("p", {}, at + 1 < deck.length ? nameOf(deck[at + 1]) : _("This was the last picture."))],
    }),
  };
}
