// @ts-check
import { make, span } from "../../static/dom.js";
import { _ } from "../../static/language.js";

const MOST = 1e12; // that a reply may be (questions/judged.py)

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
  const refusal = make("p", { className: "wrong", role: "alert" });
  const form = make("form", {}, make("div", { className: "scrolls" }, table), refusal, make("button", { type: "submit", className: "reply" }, _("Reply")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const wrong = boxes.find((box) => numberOf(box.value) === null), written = wrong?.value.trim();
    refusal.textContent = !wrong ? "" : written ? _("“{reply}” is no number: write one, such as 0.25.", { reply: written }) : _("A blank is empty: write a number into each.");
    if (wrong) return wrong.focus();
    reply(boxes.map((box) => String(numberOf(box.value))).join("_"));
  });
  return [form];
}

/** The number in a reply; null where it is none. @param {string} text */
function numberOf(text) {
  const written = text.trim().replace("−", "-").replace(",", ".");
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(written) && Math.abs(+written) < MOST ? +written : null;
}
