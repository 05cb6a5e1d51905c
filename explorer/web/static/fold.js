// @ts-check
// On a telephone, what is chosen seldom is behind a button that says what is chosen (page.css); on a wide screen it is
// there without one.
import { button } from "./dom.js";

/** A button that opens what page.css says; it says nothing yet. */
export function foldButton() {
  const made = button("", () => toggleFold(made), { className: "fold", ariaExpanded: "false" });
  return made;
}

/** @param {HTMLElement} fold */
export function toggleFold(fold) {
  fold.ariaExpanded = String(fold.ariaExpanded !== "true");
}
