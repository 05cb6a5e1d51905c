// @ts-check
import { pick } from "../../static/choosing.js";
import { findAll } from "../../static/dom.js";
import { modeOf, openedIn, rememberMode, viewAtFirst } from "../../static/mode.js";
import { onState, state } from "../../static/state.js";

/** @param {HTMLElement} element */
export default function modeSwitch(element) {
  const buttons = /** @type {HTMLButtonElement[]} */ (findAll(element, "button"));
  for (const button of buttons)
    button.addEventListener("click", () => {
      const { mode } = button.dataset;
      rememberMode(mode);
      pick({ view: openedIn(mode) });
    });

  function follow() {
    const now = modeOf(state.view ?? viewAtFirst());
    for (const button of buttons) {
      button.ariaPressed = String(button.dataset.mode === now);
      button.disabled = !state.checkpoint; // until there is something to show
    }
  }

  onState(element, follow);
  follow();
}
