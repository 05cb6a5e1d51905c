// @ts-check
// A row of the table: a token and its numbers, stage by stage.
import { find, make, say, span } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { tokenNodes } from "../../static/token_text.js";

const DECADES = 6; // of the logarithmic bars

/** A cell that the keyboard can come to. @param {"td" | "th"} kind @param {string} className */
export const cell = (kind, className) => make(kind, { className, tabIndex: -1 });

/** A row without a token yet. @param {{ name: string }[]} columns */
export function newRow(columns) {
  const take = make("button", {
    type: "button",
    tabIndex: -1, // Enter on the row does the same
    className: "take",
    title: _("Take this token instead: the text then goes on from here with it."),
  }, _("take"));
  const token = cell("th", "token");
  token.scope = "row";
  token.append(...["rank", "text", "tag"].map((name) => span(name)), take);
  const row = make("tr", {}, token, ...columns.map(({ name }) => cell("td", name)));
  const bars = make("div", { className: "bars" }, make("b"), make("i"));
  find(row, ".probability").append(bars, span("number"));
  return row;
}

/**
 * Has a row show a token.
 * @param {HTMLTableRowElement} element
 * @param {any} row of `Distribution.pack`
 * @param {{ actual: number | null, drawn: number }} tokens which token the text has, and which the random number draws
 * @param {boolean} isApart whether ranks are left out before it
 * @param {boolean} isLog whether bars are by powers of ten
 */
export function fillRow(element, row, tokens, isApart, isLog) {
  const [token, ...cells] = element.cells, [rank, text, tag, take] = /** @type {any} */ (token.children);
  const isActual = row.id === tokens.actual, isDrawn = row.id === tokens.drawn;
  if (element.dataset.token !== String(row.id) || text.textContent !== row.token) text.replaceChildren(...tokenNodes(row.token));
  element.dataset.token = row.id;
  element.classList.toggle("apart", isApart);
  element.classList.toggle("cut", row.cut);
  element.classList.toggle("actual", isActual);
  element.classList.toggle("found", row.found);
  say(rank, (isApart ? "…" : "") + row.rank.toLocaleString("en"));
  say(tag, [isActual ? _("text") : "", isDrawn ? "u" : ""].filter(Boolean).join(" "));
  tag.title = [
    isActual ? _("the token that the text has here") : "",
    isDrawn ? _("the token that the random number u falls on") : "",
  ].filter(Boolean).join("; ");
  take.hidden = isActual;
  take.ariaLabel = _("take {about}", row);
  token.dataset.note = isActual ? row.about : _("{about}. “take”, or Enter, puts it here instead.", row);
  row.cells.forEach((words, i) => {
    say(cells[i].querySelector(".number") || cells[i], words);
    cells[i].dataset.note = row.notes[i];
  });
  const [bar, alone] = /** @type {any} */ (find(element, ".bars").children);
  bar.style.width = `${100 * length(row.probability, isLog)}%`;
  alone.style.left = `${100 * length(row.plain, isLog)}%`;
}

/** The part of a whole bar that stands for a probability. */
const length = (probability, isLog) => (isLog ? Math.max(0, 1 + Math.log10(probability) / DECADES) : probability);
