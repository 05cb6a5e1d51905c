// @ts-check
import { tune } from "../../static/choosing.js";
import { syncControls } from "../../static/controls.js";
import { _ } from "../../static/language.js";
import { onState, state } from "../../static/state.js";

// A setting, with its value.
const WORDS = {
  temperature: (value) => _("temperature {value}", { value }),
  top_k: (value) => _("top k {value}", { value }),
  top_p: (value) => _("top p {value}", { value }),
  min_p: (value) => _("min p {value}", { value }),
  repetition_penalty: (value) => _("repetition penalty {value}", { value }),
};

/** @param {HTMLElement} element */
export default function presets(element) {
  const buttons = [...element.querySelectorAll("button")].map((button) => ({ button, settings: JSON.parse(button.dataset.settings) }));

  function follow() {
    for (const { button, settings } of buttons) {
      const isActive = Object.entries(settings).every(([name, value]) => Math.abs(state[name] - value) < 1e-9);
      button.ariaPressed = String(isActive);
    }
  }

  for (const { button, settings } of buttons) {
    button.title = Object.entries(settings).map(([name, value]) => WORDS[name](value)).join(", ");
    button.addEventListener("click", () => {
      tune(settings);
      syncControls(null, settings);
    });
  }
  follow();
  onState(element, follow);
}
