// @ts-check
// The presenter's own window: notes, and what comes next.
import { find, make } from "../../static/dom.js";
import { _ } from "../../static/language.js";

/** @typedef {{ heading: string, at: string, notes: (Node | string)[], next: (Node | string)[] }} Notes */

/** A window for notes. @param {(event: KeyboardEvent) => void} onKey what a key in it does */
export function notesWindow(onKey) {
  /** @type {Window | null} */
  let opened = null;
  window.addEventListener("pagehide", () => opened?.close());

  return {
    /** Opens it, or brings it to the front; false where the browser does not let it. */
    open() {
      const isNew = !opened || opened.closed;
      opened = window.open("", "explorer-notes", "popup,width=720,height=640");
      if (!opened) return false;
      opened.focus();
      if (!isNew) return true;
      const there = opened.document;
      there.title = _("Notes");
      there.documentElement.lang = document.documentElement.lang;
      there.addEventListener("keydown", onKey);
      return true;
    },

    /** @param {Notes} notes */
    show({ heading, at, notes, next }) {
      if (!opened || opened.closed) return;
      const { body } = opened.document, { backgroundColor, color, fontFamily } = getComputedStyle(find(document, "gradio-app"));
      Object.assign(body.style, { backgroundColor, color, fontFamily, margin: "24px", lineHeight: "1.5", fontSize: "20px", whiteSpace: "pre-line" });
      const title = make("h1", {}, heading), following = make("h2", {}, _("Next")), place = make("p", { className: "at" }, at);
      for (const [line, size] of /** @type {[HTMLElement, string][]} */ ([[title, "24px"], [following, "16px"], [place, "16px"]])) line.style.fontSize = size;
      const after = make("section", { className: "next" }, following, ...next);
      after.style.borderTop = "solid";
      body.replaceChildren(place, title, make("section", { className: "notes" }, ...notes), after);
    },

    close() { opened?.close(); },
  };
}
