// @ts-check
// Past all that stands above the tabs, for those who go by the Tab key.
import { find, findAll, make } from "./dom.js";
import { _ } from "./language.js";

/** Puts a link first on the page, seen once it has the focus, that leads to the open tab. */
export function placeSkip() {
  const link = make("a", { href: "#view", className: "skip" }, _("Skip to the pictures"));
  link.addEventListener("click", (event) => {
    event.preventDefault();
    findAll(document, "[role=tab][aria-selected=true]").find((tab) => tab.offsetWidth)?.focus();
  });
  find(document, "body").prepend(link);
}
