// @ts-check
import { button, make, span } from "../../static/dom.js";
import { _ } from "../../static/language.js";

/** @type {import("./question.js").Ask} */
export function askChoice({ options }, judged, reply) {
  if (!judged) return [make("div", { className: "options" }, ...options.map((says, i) => optionButton(says, () => reply(String(i + 1)))))];
  const { right, shown } = judged.truth, most = Math.max(...shown.map((value) => Math.abs(value?.[0] ?? 0)));
  return [make("ol", { className: "options" }, ...options.map((says, i) => {
    const isRight = right.includes(i + 1), isYours = judged.reply === String(i + 1);
    const row = marked(make("li", { className: "option" }, span("says", says)), isRight, isYours);
    if (shown[i]) row.append(bar(Math.abs(shown[i][0]) / (most || 1)), span("number", shown[i][1]));
    row.append(...marks(isRight, isYours));
    return row;
  }))];
}

/** @param {string} says @param {() => void} act */
export function optionButton(says, act) {
  const made = button("", act, { className: "option" });
  made.append(span("says", says));
  return made;
}

/** A bar as long as a share. @param {number} share */
export function bar(share) {
  const filled = make("i", { className: "filled" });
  filled.style.width = `${100 * Math.max(0, Math.min(1, share))}%`;
  return make("span", { className: "bar", ariaHidden: "true" }, filled);
}

/**
 * The same element, as what is right, or what was replied.
 * @template {HTMLElement} Made
 * @param {Made} made @param {boolean} isRight @param {boolean} isYours @returns {Made}
 */
export function marked(made, isRight, isYours) {
  made.classList.toggle("is-right", isRight);
  made.classList.toggle("is-yours", isYours);
  return made;
}

/** @param {boolean} isRight @param {boolean} isYours */
export const marks = (isRight, isYours) => [
  ...(isRight ? [span("says-right", `✓ ${_("the run")}`)] : []),
  ...(isYours ? [span("says-yours", _("your reply"))] : []),
];
