// @ts-check
// The next token: its distribution stage by stage with the random number, presets of the settings, and why it is this
// one.
import { drawTuned, makeMove, pick, syncControls, tune } from "../../static/asking.js";
import { onContent } from "../../static/contents.js";
import { countDraw, find, findAll, listenFor, make, rove, say, span, stopAt, tellSideways } from "../../static/dom.js";
import { linkTo } from "../../static/history.js";
import { _, inPieces, percent, tokenNodes } from "../../static/language.js";
import { SETTINGS as QUICK, tunedTable, watchSliders } from "../../static/sampling.js";
import { onState, state } from "../../static/state.js";

// The line of all probability, a stretch a token, with a mark at the random number.

const LETTER = 7, AROUND = 6; // pixels that a label takes

/**
 * Gives the function to call with what there is to draw.
 * @param {HTMLElement} line
 * @returns {(value: any) => void}
 */
function probabilityLine(line) {
  const stretches = find(line, ".stretches"), luck = find(line, ".luck");
  let value = null, width = 0;

  function draw() {
    while (stretches.children.length > value.stretches.length) stretches.lastChild.remove();
    while (stretches.children.length < value.stretches.length) stretches.append(span("stretch"));
    value.stretches.forEach(({ id, token, start, end, note }, i) => {
      const stretch = /** @type {HTMLElement} */ (stretches.children[i]), room = (end - start) * width;
      stretch.style.left = `${100 * start}%`;
      stretch.style.width = `${100 * (end - start)}%`;
      stretch.dataset.note = note;
      stretch.classList.toggle("drawn", id === value.drawn);
      stretch.replaceChildren(...(room > token.length * LETTER + AROUND ? tokenNodes(token) : []));
    });
    luck.style.left = `${100 * value.u}%`;
  }

  new ResizeObserver(([{ contentRect }]) => {
    width = contentRect.width;
    if (value) draw();
  }).observe(line);
  return (content) => {
    value = content;
    draw();
  };
}

// A row of the table: a token and its numbers, stage by stage.

const DECADES = 6; // of the logarithmic bars

/** A cell that the keyboard can come to. @param {"td" | "th"} kind @param {string} className */
const cell = (kind, className) => make(kind, { className, tabIndex: -1 });

/** A row without a token yet. @param {{ name: string }[]} columns */
function newRow(columns) {
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
 * @param {boolean} isOwn whether a token of it can be taken: not of the second run, nor of a difference
 */
function fillRow(element, row, tokens, isApart, isLog, isOwn) {
  const [token, ...cells] = element.cells, [rank, text, tag, take] = /** @type {any} */ (token.children);
  const isActual = row.id === tokens.actual, isDrawn = isOwn && row.id === tokens.drawn;
  if (element.dataset.token !== String(row.id) || text.textContent !== row.token) text.replaceChildren(...tokenNodes(row.token));
  element.dataset.token = row.id;
  element.classList.toggle("apart", isApart);
  element.classList.toggle("cut", row.cut);
  element.classList.toggle("actual", isActual);
  element.classList.toggle("found", row.found);
  say(rank, (isApart ? "…" : "") + row.rank.toLocaleString("en"));
  say(tag, [isActual ? _("text") : "", isDrawn ? _("Step") : ""].filter(Boolean).join(" "));
  tag.title = [
    isActual ? _("the token that the text has here") : "",
    isDrawn ? _("the token that Step writes: the random number u falls on it") : "",
  ].filter(Boolean).join("; ");
  take.hidden = isActual || !isOwn;
  element.classList.toggle("less", row.probability < 0);
  take.ariaLabel = _("take {about}", row);
  token.dataset.note = take.hidden ? row.about : _("{about}. “take”, or Enter, puts it here instead.", row);
  row.cells.forEach((words, i) => {
    say(cells[i].querySelector(".number") || cells[i], words);
    cells[i].dataset.note = row.notes[i];
  });
  /** @type {HTMLElement} */ (find(element, ".number")).dataset.percent = percent(row.cut ? 0 : row.probability);
  const [bar, alone] = /** @type {any} */ (find(element, ".bars").children);
  bar.style.width = `${100 * length(row.probability, isLog)}%`;
  alone.style.left = `${100 * length(row.plain, isLog)}%`;
}

/** The part of a whole bar that stands for a probability. */
const length = (probability, isLog) => (isLog ? Math.max(0, 1 + Math.log10(Math.abs(probability)) / DECADES) : Math.abs(probability));

const SETTINGS = ["temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed", "max_new_tokens", "stop_strings"];

const OF_RUN = { a: " · A", b: " · B", difference: " · A − B" }; // of two runs, which the table is about

/** @param {HTMLElement} element */
export function distribution(element) {
  const box = find(element, ".distribution"), table = box.querySelector("table"), head = table.tHead, [body] = table.tBodies;
  const [search, log] = box.querySelectorAll("input"), note = find(box, ".note"), falls = find(box, ".falls");
  const drawLine = probabilityLine(find(box, ".line"));
  const more = find(document, "#next-token-more"), isNewChange = settingChanges(element);
  more.append(find(box, ".tools"), find(box, ".line"), find(box, ".falls")); // below the settings, which stay in sight
  let value = null, built = "", place = "", before = null; // what was drawn before the last change of the settings

  let told = null; // what Python said last
  function show(content) {
    told = content;
    // Of settings that somebody has moved on from since, it is not shown.
    draw(QUICK.some((name) => content.settings[name] !== state[name]) ? tunedTable(content) ?? content : content);
  }

  function draw(content) {
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
    find(box, ".table").classList.toggle("two-runs", columns.some(({ name }) => name === "other"));
    head.replaceChildren(make("tr", {}, cell("th", "token"), ...columns.map(({ name }) => cell("th", name))));
    body.replaceChildren();
  }

  function fill() {
    const [first, ...titles] = head.rows[0].cells;
    say(first, _("token"));
    say(find(document, "#answer .of-run"), OF_RUN[value.run] ?? "");
    find(box, ".table").dataset.run = value.run;
    first.dataset.note = value.run === "difference" ? _("Tokens by the size of the difference: the largest first.") : _("Tokens by rank: the likeliest first.");
    value.columns.forEach(({ title, about }, i) => { say(titles[i], title); titles[i].dataset.note = about; });
    while (body.rows.length > value.rows.length) body.lastChild.remove();
    while (body.rows.length < value.rows.length) body.append(newRow(value.columns));
    value.rows.forEach((row, i) => {
      const isApart = row.rank > (value.rows[i - 1]?.rank ?? 0) + 1;
      fillRow(body.rows[i], row, value, isApart, log.checked, !value.run || value.run === "a");
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
  watchSliders();
  drawTuned((change) => {
    const tuned = told && Object.keys(change).every((name) => QUICK.includes(name)) && tunedTable(told);
    if (tuned) draw(tuned);
    return Boolean(tuned);
  });
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

// A setting, with its value.
const WORDS = {
  temperature: (value) => _("temperature {value}", { value }),
  top_k: (value) => _("top k {value}", { value }),
  top_p: (value) => _("top p {value}", { value }),
  min_p: (value) => _("min p {value}", { value }),
  repetition_penalty: (value) => _("repetition penalty {value}", { value }),
};

/** @param {HTMLElement} element */
export function presets(element) {
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
      syncControls();
    });
  }
  follow();
  onState(element, follow);
}

/** @param {HTMLElement} element */
export function explanation(element) {
  const button = find(element, ".asked"), told = find(element, ".clauses"), { field } = button.dataset;
  const isOpen = () => state[field] === "open";

  function show(clauses) {
    told.replaceChildren(...clauses.flatMap((clause) => [linkTo(clause.words, clause.look, clause.picture), " "]));
    countDraw(told);
  }

  function open() {
    button.ariaExpanded = String(isOpen());
    told.hidden = !isOpen();
  }

  button.addEventListener("click", () => pick({ [field]: isOpen() ? "closed" : "open" }));
  onState(element, open);
  onContent(element, show);
  open();
}
