// @ts-check
import { tune } from "../../static/choosing.js";
import { onContent } from "../../static/contents.js";
import { countDraw, find, findAll, listenFor, make, say, span } from "../../static/dom.js";
import { _, inPieces } from "../../static/language.js";
import { makeMove } from "../../static/moves.js";
import { rove, stopAt } from "../../static/roving.js";
import { tellSideways } from "../../static/sideways.js";
import { onState, state } from "../../static/state.js";
import { tokenNodes } from "../../static/token_text.js";
import { probabilityLine } from "./line.js";
import { cell, fillRow, newRow } from "./row.js";

const SETTINGS = ["temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed", "max_new_tokens", "stop_strings"];

/** @param {HTMLElement} element */
export default function distribution(element) {
  const box = find(element, ".distribution"), table = box.querySelector("table"), head = table.tHead, [body] = table.tBodies;
  const [search, log] = box.querySelectorAll("input"), note = find(box, ".note"), falls = find(box, ".falls");
  const drawLine = probabilityLine(find(box, ".line"));
  const more = find(document, "#next-token-more"), isNewChange = settingChanges(element);
  more.append(find(box, ".tools"), find(box, ".line"), find(box, ".falls")); // below the settings, which stay in sight
  let value = null, built = "", place = "", before = null; // what was drawn before the last change of the settings

  function show(content) {
    const now = placeOf(content);
    if (now !== place) before = null;
    [value, place] = [content, now];
    const names = content.columns.map((column) => column.name).join();
    if (names !== built) build(content.columns);
    built = names;
    fill();
    drawLine(value);
    falls.replaceChildren(value.words);
    if (before && before.id !== value.drawn) {
      const token = span("was", ...tokenNodes(before.token));
      falls.append(" ", ...inPieces(_("Before the change it was {token}."), { token }));
    }
    countDraw(box);
  }

  // Rows and cells stay while the stages do, and with them the keyboard's focus.
  function build(columns) {
    head.replaceChildren(make("tr", {}, cell("th", "token"), ...columns.map(({ name }) => cell("th", name))));
    body.replaceChildren();
  }

  function fill() {
    const [first, ...titles] = head.rows[0].cells;
    say(first, _("token"));
    first.dataset.note = _("Tokens by rank: the likeliest first.");
    value.columns.forEach(({ title, about }, i) => { say(titles[i], title); titles[i].dataset.note = about; });
    while (body.rows.length > value.rows.length) body.lastChild.remove();
    while (body.rows.length < value.rows.length) body.append(newRow(value.columns));
    value.rows.forEach((row, i) => {
      const isApart = row.rank > (value.rows[i - 1]?.rank ?? 0) + 1;
      fillRow(body.rows[i], row, value, isApart, log.checked);
    });
    if (!cells().some(({ tabIndex }) => tabIndex === 0)) body.rows[0].cells[0].tabIndex = 0;
    search.classList.toggle("none", Boolean(value.find) && !value.found);
    tell(document.activeElement);
  }

  const cells = () => /** @type {HTMLTableCellElement[]} */ (findAll(table, "td, th"));

  // How the number in the cell, or the stretch, comes about.
  function tell(target) {
    const told = target?.closest?.("[data-note]");
    const hint = _("Point at a number, or move to it with the arrow keys, to see how it comes about.");
    say(note, told && (box.contains(told) || more.contains(told)) ? told.dataset.note : hint);
  }

  for (const part of [box, more]) {
    part.addEventListener("mouseover", ({ target }) => tell(target));
    part.addEventListener("mouseleave", () => tell(document.activeElement));
  }
  box.addEventListener("focusin", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    tell(target);
    if (target.matches("td, th")) stopAt(cells(), target);
  });

  const cellOf = (event) => event.target.closest("td, th");
  rove(table, {
    at(event) {
      const at = cellOf(event);
      return at && { row: at.parentElement.rowIndex, column: at.cellIndex };
    },
    size: () => ({ rows: table.rows.length, columns: head.rows[0].cells.length }),
    go: ({ row, column }) => table.rows[row].cells[column].focus(),
  });
  table.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    take(cellOf(event).parentElement);
  });
  table.addEventListener("click", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.matches(".take")) take(target.closest("tr"));
  });

  // Another token than the text has after the selected one.
  function take(row) {
    const button = find(row, ".take");
    if (button && !button.hidden) makeMove({ kind: "take", token: +row.dataset.token });
  }

  search.addEventListener("input", () => tune({ find: search.value }));
  log.addEventListener("change", fill);
  const follow = () => { if (search.value !== (state.find || "")) search.value = state.find || ""; };
  follow();
  onState(element, () => {
    follow();
    if (isNewChange()) before = value?.rows.find(({ id }) => id === value.drawn) ?? null;
  });
  onContent(element, show);
  tellSideways(find(box, ".table"), table);
}

// Where in which text the random number is drawn: there, settings alone can make it fall on another token.
function placeOf({ u }) {
  const { checkpoint, prompt, generated, edits, query } = state;
  return [checkpoint, prompt, generated, edits, query, u].join(" ");
}

// Gives the function that says whether the settings have changed since it was last asked; a slider's drag is one change.
function settingChanges(element) {
  const settings = () => SETTINGS.map((name) => state[name]).join();
  let last = settings(), isPressed = false, isCounted = false;
  const press = (isDown) => () => { isPressed = isDown; isCounted = false; };
  listenFor(element, document, "pointerdown", press(true));
  for (const end of ["pointerup", "pointercancel"]) listenFor(element, document, end, press(false));
  return () => {
    const isOther = settings() !== last, isNew = isOther && !isCounted;
    last = settings();
    isCounted ||= isOther && isPressed;
    return isNew;
  };
}
