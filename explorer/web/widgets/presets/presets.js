// @ts-check
import { tune } from "../../static/choosing.js";
import { onState, state } from "../../static/state.js";

/** @param {HTMLElement} element @param {import("../../static/contents.js").Gradio} gradio */
export default function presets(element, { emit }) {
  const buttons = [...element.querySelectorAll("button")].map((button) => ({ button, settings: JSON.parse(button.dataset.settings) }));

  function follow() {
    for (const { button, settings } of buttons) {
      const isActive = Object.entries(settings).every(([name, value]) => Math.abs(state[name] - value) < 1e-9);
      button.ariaPressed = String(isActive);
    }
  }

  for (const { button, settings } of buttons) {
    button.title = Object.entries(settings).map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`).join(", ");
    button.addEventListener("click", () => {
      tune(settings);
      emit.choose();
    });
  }
  follow();
  onState(element, follow);
}
