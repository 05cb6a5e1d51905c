// @ts-check
import { make, span } from "../../static/dom.js";
import { _ } from "../../static/language.js";

/** @type {import("./question.js").Ask} */
export function askBlanks({ rows }, judged, reply) {
  const given = judged?.reply?.split("_") ?? [];
  let blank = 0;
  const boxes = [];
  const table = make("table", { className: "working" }, ...rows.map(({ says, value }) => {
    const line = make("tr", {}, make("th", { scope: "row" }, says));
    if (value !== null) {
      line.append(make("td", {}, value));
      return line;
    }
    const i = blank++;
    if (judged) {
      const isRight = judged.truth.are_right?.[i];
      const yours = given[i] === undefined ? [] : [span(isRight ? "says-yours right" : "says-yours wrong", `${isRight ? "✓" : "✗"} ${given[i].replace("-", "−")}`), " "];
      line.append(make("td", {}, ...yours, span("says-right", judged.truth.truth[i])));
    } else {
      const box = make("input", { inputMode: "decimal", autocomplete: "off", size: 8, ariaLabel: says });
      boxes.push(box);
      line.append(make("td", {}, box));
    }
    return line;
  }));
  if (!boxes.length) return [make("div", { className: "scrolls" }, table)];
  const form = make("form", {}, make("div", { className: "scrolls" }, table), make("button", { type: "submit", className: "reply" }, _("Reply")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const empty = boxes.find((box) => !box.value.trim() || Number.isNaN(numberOf(box.value)));
    if (empty) return empty.focus();
    reply(boxes.map((box) => String(numberOf(box.value))).join("_"));
  });
  return [form];
}

/** @param {string} text */
const numberOf = (text) => Number(text.trim().replace("−", "-").replace(",", "."));
