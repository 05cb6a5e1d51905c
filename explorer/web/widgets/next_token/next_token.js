// @ts-check
// The next token: its distribution stage by stage with the random number, presets of the settings, and why it is this
// one.
import { setLocalPreview, makeMove, interventions, select, ablatedHead, makeAblationNote, syncControls, toggleIntervention, changeSettings } from "../../static/page_actions.js";
import { call } from "../../static/server_connection.js";
import { onContent } from "../../static/widget_contents.js";
import { button, countDraw, find, findAll, listenFor, make, addRovingFocus, setText, span, setTabStop, markSidewaysScroll, formatPercent, tokenNodes } from "../../static/dom.js";
import { makeLink } from "../../static/history.js";
import { _, messagePieces } from "../../static/translations.js";
import { decodeBase64 } from "../../static/plotly_figures.js";
import { onState, state } from "../../static/page_state.js";

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
  }, _("take"));
  const token = cell("th", "token");
  token.scope = "row";
  token.append(make("div", { className: "name" }, ...["rank", "text", "tag"].map((part) => span(part))), take);
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
 * @param {number} scale how many times as long bars are drawn
 */
function fillRow(element, row, tokens, isApart, isLog, isOwn, scale) {
  const [token, ...cells] = element.cells, [name, take] = /** @type {any} */ (token.children), [rank, text, tag] = name.children;
  const isActual = row.id === tokens.actual, isDrawn = isOwn && row.id === tokens.drawn, isGuess = row.token.trim() !== "" && row.token.trim().toLowerCase() === state.guess?.trim().toLowerCase();
  if (element.dataset.token !== String(row.id) || text.textContent !== row.token) text.replaceChildren(...tokenNodes(row.token));
  element.dataset.token = row.id;
  element.classList.toggle("apart", isApart);
  element.classList.toggle("cut", row.cut);
  element.classList.toggle("actual", isActual);
  element.classList.toggle("found", row.found);
  setText(rank, (isApart ? "…" : "") + row.rank.toLocaleString("en"));
  setText(tag, isActual ? _("written") : isGuess ? _("your guess") : isDrawn ? _("will be drawn") : "");
  element.classList.toggle("tagged", Boolean(tag.textContent));
  setText(take, tag.textContent || _("take")); // one label, whether the pointer is there or not
  token.title = [
    isActual ? _("the token that the text has here") : "",
    isDrawn ? (tokens.actual === null ? _("Step takes this one") : _("the random number u falls on it")) : "",
  ].filter(Boolean).join("; ");
  take.title = token.title || _("Take this token instead; the text then continues from it.");
  take.hidden = isActual || !isOwn;
  element.classList.toggle("less", row.probability < 0);
  take.ariaLabel = _("take {about}", row);
  token.dataset.note = take.hidden ? row.about : _("{about}. “take”, or Enter, puts it here instead.", row);
  row.cells.forEach((words, i) => {
    setText(cells[i].querySelector(".number") || cells[i], words);
    cells[i].dataset.note = row.notes[i];
  });
  /** @type {HTMLElement} */ (find(element, ".number")).dataset.percent = formatPercent(row.cut ? 0 : row.probability);
  const [bar, alone] = /** @type {any} */ (find(element, ".bars").children);
  bar.style.width = `${100 * scale * length(row.probability, isLog)}%`;
  alone.style.left = `${100 * scale * length(row.plain, isLog)}%`;
}

/** The part of a whole bar that stands for a probability. */
const length = (probability, isLog) => (isLog ? Math.max(0, 1 + Math.log10(Math.abs(probability)) / DECADES) : Math.abs(probability));

const SCALES = [1, 2, 5, 10, 20, 50, 100], MIN_LONGEST = 0.4; // the longest bar's part of the column

/** How many times as long the bars of a table are, so that the longest is seen. @param {{ probability: number, plain: number }[]} rows */
function barScale(rows) {
  const longest = Math.max(...rows.map(({ probability, plain }) => Math.max(Math.abs(probability), plain)));
  return longest ? SCALES.find((scale) => scale * longest >= MIN_LONGEST) ?? SCALES.at(-1) : 1;
}

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
    draw(SETTINGS.some((name) => content.settings[name] !== state[name]) ? tunedTable(content) ?? content : content);
  }

  function draw(content) {
    const now = savedPlace(content);
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
      falls.append(" ", ...messagePieces(_("Before the change it was {token}."), { token }));
    }
    countDraw(box);
  }

  // Rows and cells stay while the stages do, and with them the keyboard's focus.
  function build(columns) {
    for (const [mark, column] of [["two-runs", "other"], ["by-stage", "cumulative"], ["changed", "before"]])
      find(box, ".table").classList.toggle(mark, columns.some(({ name }) => name === column));
    head.replaceChildren(make("tr", {}, cell("th", "token"), ...columns.map(({ name }) => cell("th", name))));
    body.replaceChildren();
  }

  function fill() {
    const [first, ...titles] = head.rows[0].cells;
    setText(first, _("token"));
    setText(find(document, "#answer .of-run"), OF_RUN[value.run] ?? "");
    find(box, ".table").dataset.run = value.run;
    first.dataset.note = value.run === "difference" ? _("Tokens by the size of the difference: the largest first.") : _("Tokens by rank: the likeliest first.");
    value.columns.forEach(({ title, about }, i) => { setText(titles[i], title); titles[i].dataset.note = about; });
    while (body.rows.length > value.rows.length) body.lastChild.remove();
    while (body.rows.length < value.rows.length) body.append(newRow(value.columns));
    const scale = log.checked ? 1 : barScale(value.rows);
    const told = find(document, "#answer .scale");
    setText(told, scale > 1 ? `× ${scale}` : "");
    told.title = _("Bars are drawn {scale} times as long.", { scale });
    value.rows.forEach((row, i) => {
      const isApart = row.rank > (value.rows[i - 1]?.rank ?? 0) + 1;
      fillRow(body.rows[i], row, value, isApart, log.checked, !value.run || value.run === "a", scale);
    });
    if (!cells().some(({ tabIndex }) => tabIndex === 0)) body.rows[0].cells[0].tabIndex = 0;
    search.classList.toggle("none", Boolean(value.find) && !value.found);
    tell(pointed ?? document.activeElement);
  }

  const cells = () => /** @type {HTMLTableCellElement[]} */ (findAll(table, "td, th"));

  let pointed = null; // what the pointer rests on, unless the keyboard has moved on since

  // How the number in the cell, or the stretch, comes about.
  function tell(target) {
    const told = target?.closest?.("[data-note]");
    const hint = _("Point at a number, or move to it with the arrow keys, to see how it comes about.");
    setText(note, told && (box.contains(told) || more.contains(told)) ? told.dataset.note : hint);
  }

  for (const part of [box, more]) {
    part.addEventListener("mouseover", ({ target }) => tell(pointed = target));
    part.addEventListener("mouseleave", () => { pointed = null; tell(document.activeElement); });
  }
  box.addEventListener("focusin", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    pointed = null;
    tell(target);
    if (target.matches("td, th")) setTabStop(cells(), target);
  });

  const cellOf = (event) => event.target.closest("td, th");
  addRovingFocus(table, {
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

  search.addEventListener("input", () => changeSettings({ find: search.value }));
  log.addEventListener("change", fill);
  const follow = () => { if (search.value !== (state.find || "")) search.value = state.find || ""; };
  follow();
  onState(element, () => {
    follow();
    if (isNewChange()) before = value?.rows.find(({ id }) => id === value.drawn) ?? null;
  });
  onContent(element, show);
  watchSliders();
  setLocalPreview((change) => {
    const tuned = told && Object.keys(change).every((name) => SLIDER_SETTINGS.includes(name)) && tunedTable(told);
    if (tuned) draw(tuned);
    return Boolean(tuned);
  });
  markSidewaysScroll(find(box, ".table"), table);
}

// Where in which text the random number is drawn: there, settings alone can make it fall on another token.
function savedPlace({ u }) {
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
      changeSettings(settings);
      syncControls();
    });
  }
  follow();
  onState(element, follow);
}

const MAX_CLAUSES = 3; // at first

/** @param {HTMLElement} element */
export function explanation(element) {
  const asked = find(element, ".asked"), told = find(element, ".clauses"), { field } = asked.dataset;
  const isOpen = () => state[field] === "open";
  let isAwaited = false; // what was asked for is to be seen

  let clauses = [], pressed = null, isWhole = false; // after which clause a head was switched off, and whether all are shown

  function write() {
    const heads = interventions().map((edit) => ({ edit, where: ablatedHead(edit) })).filter(({ where }) => where && field === "why"), hadFocus = told.contains(document.activeElement);
    const off = heads.flatMap(({ edit, where }) => [makeAblationNote(edit, "edits", where), " "]), last = Math.min(pressed ?? 0, clauses.length - 1);
    const pieces = clauses.map(({ words, look, figure, ablation }, i) => {
      const offer = ablation && !heads.length ? [button(_("Switch this head off"), () => { pressed = i; toggleIntervention(ablation, { of: "edits", adds: true }); }, { className: "plain" }), " "] : [];
      return [figure ? makeLink(words, look, figure) : span("says", words), " ", ...offer, ...(i === last ? off : [])];
    });
    const rest = pieces.slice(isWhole ? pieces.length : MAX_CLAUSES);
    const more = rest.length ? [button(_("more"), () => { isWhole = true; write(); }, { className: "plain" })] : [];
    told.replaceChildren(...pieces.slice(0, pieces.length - rest.length).flat(), ...more);
    written = heads.map(({ edit }) => edit).join();
    if (hadFocus && !told.contains(document.activeElement)) told.querySelector("button")?.focus({ preventScroll: true });
  }

  let written = "";
  function show(content) {
    clauses = content;
    write();
    countDraw(told);
    if (isAwaited && clauses.length) requestAnimationFrame(() => told.scrollIntoView({ block: "nearest" }));
    isAwaited &&= !clauses.length;
  }

  function open() {
    asked.ariaExpanded = String(isOpen());
    told.hidden = !isOpen();
    if (clauses.length && written !== interventions().filter(ablatedHead).join()) write(); // at once, where it was pressed
  }

  asked.addEventListener("click", () => { isAwaited = !isOpen(); select({ [field]: isAwaited ? "open" : "closed" }); });
  onState(element, open);
  onContent(element, show);
  open();
}

// What temperature, top-k, top-p and min-p make of the next token's scores, as model/generation/sampling.py does: the table
// follows a slider without asking Python.

/** @typedef {{ temperature: number, top_k: number, top_p: number, min_p: number }} Settings */

/** The settings that need nothing but the scores. */
const SLIDER_SETTINGS = ["temperature", "top_k", "top_p", "min_p"];
const SLIDERS = SLIDER_SETTINGS.map((name) => `#${name}`).join();

/**
 * The distribution that the settings make. As every limit keeps the likeliest, each keeps the first so many.
 * @param {ArrayLike<number>} scores of all tokens, the largest first
 * @param {Settings} settings with a temperature above 0
 * @returns {{ probabilities: Float64Array, kept: { top_k: number, top_p: number, min_p: number } }} of the tokens that can be
 *   drawn; and how many are left after each limit
 */
export function sampledDistribution(scores, { temperature, top_k, top_p, min_p }) {
  const kept = { top_k: Math.min(top_k || scores.length, scores.length), top_p: 0, min_p: 0 };
  const weights = Float64Array.from({ length: kept.top_k }, (_none, i) => Math.exp((scores[i] - scores[0]) / temperature));
  kept.top_p = top_p < 1 ? reaching(weights, top_p * sum(weights)) : kept.top_k;
  kept.min_p = kept.top_p;
  while (min_p && weights[kept.min_p - 1] < min_p) kept.min_p--;
  const left = weights.subarray(0, kept.min_p), total = sum(left);
  return { probabilities: left.map((weight) => weight / total), kept };
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

/** How many of the first values reach a sum; at least one. */
function reaching(values, total) {
  let reached = 0, count = 0;
  while (count < values.length && (count === 0 || reached < total)) reached += values[count++];
  return count;
}

const MINUS = "−";

/** Three significant digits, as Python's `format_number`. @param {number} value */
export function formatNumber(value) {
  if (value === 0) return "0";
  const power = +value.toExponential(2).split("e")[1];
  const text = power >= -3 && power < 4 ? value.toFixed(Math.max(0, 2 - power)) : value.toExponential(2).replace(/e([+-])(\d)$/, "e$10$2");
  return text.replaceAll("-", MINUS);
}

/** As Python's `format_logit`. @param {number} value */
export const formatLogit = (value) => (+value.toFixed(2) + 0).toFixed(2).replace("-", MINUS);

// The scores are fetched once somebody is about to move a slider.

/** @type {{ place: string, values: Float32Array | Float64Array } | null} */
let scores = null;
let asked = "";

/** What the scores depend on. */
const place = () => [state.checkpoint, state.prompt, state.generated, state.edits, state.query, state.repetition_penalty].join(" ");

/** The scores of the present state; null where there are none. */
const presentScores = () => (scores?.place === place() ? scores.values : null);

/** Has the scores there when a slider is moved. */
export function watchSliders() {
  for (const kind of ["pointerover", "pointerdown", "focusin"])
    document.addEventListener(kind, ({ target }) => { if (/** @type {Element} */ (target).closest?.(SLIDERS)) fetchScores(); }, { passive: true });
  document.addEventListener("keydown", () => { if (document.activeElement?.closest(SLIDERS)) fetchScores(); });
  document.addEventListener("input", ({ target }) => { // Gradio tells of it two frames later
    const range = /** @type {HTMLInputElement} */ (target), slider = range.type === "range" && range.closest(SLIDERS);
    if (slider && (slider.id !== "top_k" || state.top_k)) changeSettings({ [slider.id]: range.valueAsNumber });
  });
}

async function fetchScores() {
  const now = place();
  if (asked === now || !state.checkpoint) return;
  asked = now;
  try {
    const { scores: packed, size } = await call("next_token_scores", [state]), { buffer } = decodeBase64(packed);
    scores = { place: now, values: buffer.byteLength === 4 * size ? new Float32Array(buffer) : new Float64Array(buffer) };
  } catch { asked = ""; } // Python is asked at every move, then
}

/**
 * A table's content (`NextTokenTable.pack`) by the present settings; null where that takes Python.
 * @param {any} content
 */
export function tunedTable(content) {
  const values = presentScores(), names = content.columns.map(({ name }) => name);
  const stages = ["scaled", ...["top_k", "top_p", "min_p"].filter((name) => (name === "top_p" ? state.top_p < 1 : state[name]))];
  const shown = names.filter((name) => ["argmax", "scaled", "top_k", "top_p", "min_p"].includes(name));
  if (!values || !state.temperature || !["", "a"].includes(content.run) || stages.join() !== shown.join()) return null;
  const { probabilities, kept } = sampledDistribution(values, /** @type {any} */ (state));
  const cumulative = probabilities.map(((total) => (value) => (total += value))(0));
  const rows = content.rows.map((row) => {
    const i = row.rank - 1, cutBy = ["top_k", "top_p", "min_p"].find((name) => i >= kept[name]);
    const limits = ["top_k", "top_p", "min_p"];
    const cell = (name, before) => {
      if (name === "scaled") return formatLogit(values[i] / state.temperature);
      if (name === "probability") return cutBy ? "0" : formatNumber(probabilities[i]);
      if (name === "cumulative") return cutBy ? "" : formatNumber(cumulative[i]);
      if (!limits.includes(name)) return before;
      if (cutBy && limits.indexOf(cutBy) < limits.indexOf(name)) return "";
      return cutBy === name ? content.cut : "✓";
    };
    const cells = names.map((name, column) => cell(name, row.cells[column]));
    const notes = row.notes.map((note, column) => (cells[column] === row.cells[column] ? note : ""));
    return { ...row, cells, notes, cut: Boolean(cutBy), probability: probabilities[i] ?? 0 };
  });
  const columns = content.columns.map((column) => ({ ...column, title: column.title.replace(/[\d.,]+$/, shown.includes(column.name) ? titleNumber(column.name) : "$&") }));
  // The random number may fall on another token, which is marked if it is seen; what is said of it is Python's.
  const hit = cumulative.findIndex((end) => end > content.u), drawn = rows.find(({ rank }) => rank === hit + 1)?.id ?? null;
  const stretches = rows.filter(({ probability }) => probability).map(({ id, token, rank, probability }) => {
    const end = cumulative[rank - 1];
    return { id, token, start: end - probability, end, note: "" };
  });
  return { ...content, rows, columns, stretches, drawn, words: drawn === content.drawn ? content.words : "" };
}

const titleNumber = (name) => (name === "top_k" ? state.top_k.toLocaleString("en") : String(state[name === "scaled" ? "temperature" : name]));
