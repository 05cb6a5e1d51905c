// @ts-check
// A slider over the steps of its training that a model was kept at. They stand evenly, so that steps which double each
// time are on a logarithmic scale.
import { chooseStep } from "./choosing.js";
import { make, say, span } from "./dom.js";
import { state } from "./state.js";

/** A checkpoint's name, when it was kept in words, and what is written below its place. @typedef {[string, string, string]} Moment */

const MOST_TICKS = 14; // that have room on a wide screen; of a narrow one every second or fourth of them has

/**
 * @param {HTMLElement} box where it is put first
 * @param {"checkpoint" | "b.checkpoint"} of which run's
 * @param {string} name
 */
export function stepSlider(box, of, name) {
  const slider = make("input", { type: "range", min: "0", step: "1", ariaLabel: name });
  const told = make("output", { className: "step" }), ticks = make("span", { className: "ticks", ariaHidden: "true" });
  /** @type {Moment[]} */
  let moments = [];

  const last = () => moments.length - 1;
  const place = () => moments.findIndex(([checkpoint]) => checkpoint === state[of]);
  const go = (i) => chooseStep(moments[Math.max(0, Math.min(last(), i))][0], of);

  /** @param {Moment[]} content */
  function show(content) {
    if (JSON.stringify(content) !== JSON.stringify(moments)) {
      moments = content;
      slider.max = String(last());
      const every = Math.ceil(moments.length / MOST_TICKS);
      ticks.replaceChildren(...moments.map(([, , text], i) => tick(text, i / last(), last() - i, every)));
    }
    follow();
  }

  function follow() {
    const [, words] = moments[place()] ?? ["", ""], run = of === "checkpoint" ? "A" : "B";
    slider.value = String(place());
    slider.setAttribute("aria-valuetext", words);
    say(told, state["b.checkpoint"] && words ? `${run}: ${words}` : words);
  }

  slider.addEventListener("input", () => go(+slider.value));
  box.prepend(told, span("track", slider, ticks));
  return { show, follow, go, place, last, nameAt: (i) => moments[i][0] };
}

// The text stands below every so manieth place, counted from the last.
function tick(text, share, fromLast, every) {
  const isSaid = fromLast % every === 0, nth = fromLast / every;
  const made = span(isSaid ? ["tick", nth % 2 ? "" : "second", nth % 4 ? "" : "fourth"].join(" ").trim() : "tick", isSaid ? text : "");
  made.style.setProperty("--share", String(share));
  return made;
}
