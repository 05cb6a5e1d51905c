// @ts-check
import { make, span } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { tokenNodes } from "../../static/token_text.js";
import { bar, marked, marks, optionButton } from "./ask_choice.js";

const LONGEST = 40; // characters of a reply (questions/token_question.py)

/** @type {import("./question.js").Ask} */
export function askToken({ options }, judged, reply) {
  if (judged) {
    const { bars, right, yours } = judged.truth, most = Math.max(...bars.map(({ share }) => share));
    return [make("ol", { className: "options" }, ...bars.map(({ token, share, number }, i) => {
      const row = marked(make("li", { className: "option" }, span("token", ...tokenNodes(token))), i === right, i === yours);
      row.append(bar(share / most), span("number", number), ...marks(i === right, i === yours));
      return row;
    }))];
  }
  if (options.length) return [make("div", { className: "options" }, ...options.map((word) => optionButton(word, () => reply(word))))];
  const box = make("input", { maxLength: LONGEST, autocomplete: "off", spellcheck: false, ariaLabel: _("your reply") });
  const refusal = make("p", { className: "wrong", role: "alert" });
  const form = make("form", { className: "line" }, box, make("button", { type: "submit", className: "reply" }, _("Reply")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const word = box.value.trim();
    refusal.textContent = word ? "" : _("Write a word first.");
    if (!word) return box.focus();
    reply(word);
  });
  return [form, refusal];
}
