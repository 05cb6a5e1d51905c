// @ts-check
import { button, make, span } from "../../static/dom.js";
import { _ } from "../../static/language.js";

const STEPS = 200; // of the slider

/** @type {import("./question.js").Ask} */
export function askNumber({ lowest, highest }, judged, reply) {
  if (judged) return [track(judged)];
  const input = make("input", { type: "range", min: String(lowest), max: String(highest), step: String((highest - lowest) / STEPS), ariaLabel: _("your reply") });
  input.value = String((lowest + highest) / 2);
  const told = make("output", {}, short(+input.value, highest - lowest));
  input.addEventListener("input", () => { told.textContent = short(+input.value, highest - lowest); });
  const ends = make("div", { className: "ends", ariaHidden: "true" }, span("", String(lowest)), span("", String(highest)));
  const line = make("div", { className: "line" }, told, button(_("Reply"), () => reply(told.textContent.replace("−", "-")), { className: "reply" }));
  return [make("div", { className: "slider" }, input, ends), line];
}

/** A number with as many places as a slider of some length tells apart. @param {number} value @param {number} length */
export function short(value, length) {
  const places = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(length))));
  return value.toFixed(places).replace("-", "−");
}

/** Reply and truth on one track. @param {import("./question.js").Judged} judged */
function track({ truth: { truth, written, yours, within, lowest, highest }, reply }) {
  const given = reply === null ? null : +reply, low = Math.min(lowest, given ?? lowest), high = Math.max(highest, given ?? highest);
  const place = (value) => `${(100 * (value - low)) / (high - low)}%`;
  const near = make("i", { className: "near" }), line = make("div", { className: "track" }, near);
  near.style.left = place(Math.max(low, truth - within));
  near.style.right = `calc(100% - ${place(Math.min(high, truth + within))})`;
  const pin = (value, className, words) => {
    const made = make("span", { className: "pin" }, make("span", { className: "flag" }, words));
    made.classList.add(className);
    made.style.left = place(value);
    if ((value - low) / (high - low) > 0.5) made.classList.add("to-left");
    line.append(made);
  };
  pin(truth, "of-run", `✓ ${_("the run")} ${written}`);
  if (given !== null) pin(given, "of-visitor", `${_("your reply")} ${yours}`);
  return line;
}
