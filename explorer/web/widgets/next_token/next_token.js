// @ts-check
// The next token: its distribution after each stage of sampling, the random number, presets of the settings, and an
// explanation of the prediction.
import { setLocalPreview, makeMove, interventions, select, ablatedHead, makeAblationNote, showRuns, applyPreset, toggleIntervention, changeSettings } from "../../static/page_actions.js";
import { callServer } from "../../static/server_connection.js";
import { onContent, scrollIntoNearestView } from "../../static/widget_contents.js";
import { button, countDraw, find, findAll, make, addRovingFocus, setHidden, setText, span, setTabStop, markSidewaysScroll, tokenNodes } from "../../static/dom.js";
import { makeLink } from "../../static/history.js";
import { _, splitMessage, formatShortPercent, summarisePrediction, wordTable } from "../../static/text.js";
import { decodeBase64 } from "../../static/plotly_figures.js";
import { onState, state } from "../../static/page_state.js";

// The probability line: a segment for each token, with a mark at the random number.

const LETTER_WIDTH = 7, LABEL_PADDING = 6; // pixels

/**
 * Return a function that draws the line.
 * @param {HTMLElement} line
 * @returns {(value: any) => void}
 */
function probabilityLine(line) {
  const stretches = find(line, ".stretches"), randomMark = find(line, ".luck");
  let value = null, width = 0;

  function draw() {
    while (stretches.children.length > value.stretches.length) stretches.lastChild.remove();
    while (stretches.children.length < value.stretches.length) stretches.append(span("stretch"));
    value.stretches.forEach(({ token_id, token, start, end, note }, i) => {
      const stretch = /** @type {HTMLElement} */ (stretches.children[i]), room = (end - start) * width;
      stretch.style.left = `${100 * start}%`;
      stretch.style.width = `${100 * (end - start)}%`;
      stretch.dataset.note = note;
      stretch.classList.toggle("drawn", token_id === value.drawn);
      stretch.replaceChildren(...(room > token.length * LETTER_WIDTH + LABEL_PADDING ? tokenNodes(token) : []));
    });
    randomMark.style.left = `${100 * value.u}%`;
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

// Rows of the table: a token and its numbers after each stage.

const DECADES = 6; // range of the logarithmic bars

/** Make a cell that can take the focus. @param {"td" | "th"} kind @param {string} className */
const focusableCell = (kind, className) => make(kind, { className, tabIndex: -1 });

/** Make a row without a token. @param {{ name: string }[]} columns */
function emptyRow(columns) {
  const takeButton = make("button", {
    type: "button",
    tabIndex: -1, // Enter on the row does the same
    className: "take",
  }, _("pick this"));
  const token = focusableCell("th", "token");
  token.scope = "row";
  token.append(make("div", { className: "name" }, ...["rank", "text", "tag"].map((part) => span(part))), takeButton);
  const row = make("tr", {}, token, ...columns.map(({ name }) => focusableCell("td", name)));
  const bars = make("div", { className: "bars" }, make("b"), make("i"));
  find(row, ".probability").append(bars, span("number"));
  return row;
}

/**
 * Show a token in a row.
 * @param {HTMLTableRowElement} element
 * @param {any} row of `wordTable`
 * @param {{ run?: string, actual: number | null, drawn: number }} tokens the content, with the token in the text and the one that the random number selects
 * @param {boolean} hasGapBefore whether ranks are omitted before it
 * @param {boolean} isLog whether bars are logarithmic
 * @param {boolean} canTake whether tokens can be taken: not those of the second run or of a difference
 * @param {number} scale factor of the bars' length
 */
function updateRow(element, row, tokens, hasGapBefore, isLog, canTake, scale) {
  const [token, ...numberCells] = element.cells, [name, takeButton] = /** @type {any} */ (token.children), [rank, text, tag] = name.children;
  const isActual = row.token_id === tokens.actual, isDrawn = canTake && row.token_id === tokens.drawn, lengthOfBar = scale * barLength(row.probability, isLog);
  if (element.dataset.token !== String(row.token_id) || text.textContent !== row.token) text.replaceChildren(...tokenNodes(row.token));
  element.dataset.token = row.token_id;
  element.classList.toggle("apart", hasGapBefore);
  element.classList.toggle("cut", Boolean(row.cut_by));
  element.classList.toggle("actual", isActual);
  element.classList.toggle("found", row.found);
  setText(rank, (hasGapBefore ? "…" : "") + row.rank.toLocaleString("en"));
  const isOfStep = !isActual && !row.guessed && isStepTold() && isDrawn && tokens.actual === null; // Step writes at the end, not here
  setText(tag, isActual ? _("written") : row.guessed ? _("your guess") : !isOfStep ? "" : element.closest(".changed, .two-runs") ? _("Step") : _("Step picks")); // less room beside more numbers
  tag.classList.toggle("of-step", isOfStep);
  element.classList.toggle("tagged", Boolean(tag.textContent));
  token.title = [
    isActual ? _("The token that the text has here.") : "",
    isDrawn ? (tokens.actual === null ? _("Step would write this token: the seed’s random number falls on it.") : _("The random number u falls on it.")) : "",
  ].filter(Boolean).join(" ");
  takeButton.title = token.title || _("Pick this token instead; the text then continues from it.");
  takeButton.hidden = isActual || !canTake;
  element.classList.toggle("less", row.probability < 0);
  takeButton.ariaLabel = _("pick {about}", row);
  token.dataset.note = takeButton.hidden ? row.about : _("{about}. “pick this”, or Enter, puts it here instead.", row);
  row.cells.forEach((text, i) => {
    setText(numberCells[i].querySelector(".number") || numberCells[i], text);
    numberCells[i].dataset.note = row.notes[i];
    numberCells[i].title = tokens.run ? row.notes[i] : ""; // a narrow table has no room for the logits of both runs
  });
  /** @type {HTMLElement} */ (find(element, ".number")).dataset.percent = formatShortPercent(row.cut_by ? 0 : row.probability);
  const [bar, unchangedBar] = /** @type {any} */ (find(element, ".bars").children);
  bar.style.width = `${100 * lengthOfBar}%`;
  element.classList.toggle("long", lengthOfBar > LONG_BAR);
  unchangedBar.style.left = `${100 * scale * barLength(row.plain, isLog)}%`;
}

/** Return whether to tell what Step would write: in the story's other steps it seems to contradict the likeliest token. */
const isStepTold = () => state.depth !== "story" || state.view === "choosing" || state.generated.length > 0;

const LONG_BAR = 0.5; // of the track: a tag at its end would cover the bar, and stands within it
const MIN_DIGITS = 7; // of the column of numbers beside the bars
const MAX_LIKELIEST = 3; // above the sliders of a narrow screen, where the table is out of sight

/** Copy a row's token, bar and probability. @param {HTMLTableRowElement} row */
const copyRow = (row) => make("li", {}, find(row, ".text").cloneNode(true), find(row, ".bars").cloneNode(true), span("percent", find(row, ".number").dataset.percent));

/** Return the length of a probability's bar, from 0 to 1. */
const barLength = (probability, isLog) => (isLog ? Math.max(0, 1 + Math.log10(Math.abs(probability)) / DECADES) : Math.abs(probability));

const MAX_OWN_DIFFERENCE = 1e-6; // between a probability after the settings and the model's own
const SCALES = [1, 2, 5, 10, 20, 50, 100], MIN_LONGEST_SHARE = 0.4; // of the column, for the longest bar

/** Return the factor by which bars are lengthened so that the longest is visible; the step about temperature compares lengths. @param {{ probability: number, plain: number }[]} rows */
function barScale(rows) {
  if (state.view === "choosing") return 1;
  const longest = Math.max(...rows.map(({ probability, plain }) => Math.max(Math.abs(probability), plain)));
  return longest ? SCALES.find((scale) => scale * longest >= MIN_LONGEST_SHARE) ?? SCALES.at(-1) : 1;
}

/** Return a function that returns the factor for rows' bars. While a slider is held they never become longer again, so that their lengths compare. @param {HTMLElement} element @param {() => void} releaseHandler */
function steadyBarScale(element, releaseHandler) {
  let isHeld = false, lastScale = Infinity;
  document.addEventListener("pointerdown", ({ target }) => { isHeld = target instanceof Element && Boolean(target.closest(SLIDERS)); });
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => {
    if (!isHeld) return;
    isHeld = false;
    releaseHandler();
  });
  return (rows) => (lastScale = Math.min(barScale(rows), isHeld ? lastScale : Infinity));
}

export const SETTINGS = ["temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed", "max_new_tokens", "stop_strings"];

const RUN_SUFFIXES = { a: "· A", b: "· B", difference: "· A − B" }; // title suffix while two runs are compared

/** The table of the next token's distribution. @param {HTMLElement} element */
export function distribution(element) {
  const box = find(element, ".distribution"), table = box.querySelector("table"), head = table.tHead, [body] = table.tBodies;
  const [search, log] = box.querySelectorAll("input"), note = find(box, ".note"), explanationLine = find(box, ".falls");
  const drawLine = probabilityLine(find(box, ".line"));
  const more = find(document, "#next-token-more"), likeliest = find(document, "#likeliest ol"), isNewChange = trackSettingChanges(element);
  more.append(find(box, ".tools"), find(box, ".line"), find(box, ".falls")); // below the settings, which stay visible
  const scaleOf = steadyBarScale(element, () => { if (shownContent) fillTable(); });
  let shownContent = null, builtColumns = "", drawnPlace = "", rowBeforeChange = null; // row of the selected token before the last change of the settings

  let serverContent = null;
  function show(content) {
    serverContent = content;
    // A response to outdated settings is replaced by a preview of the current ones.
    draw(SLIDER_SETTINGS.some((name) => content.settings[name] !== state[name]) ? previewTable(content) ?? content : content);
  }

  function draw(content) {
    const newPlace = placeKey(content);
    if (newPlace !== drawnPlace) rowBeforeChange = null;
    [shownContent, drawnPlace] = [wordTable(content), newPlace];
    const names = shownContent.columns.map((column) => column.name).join();
    if (names !== builtColumns) buildHeader(shownContent.columns);
    builtColumns = names;
    fillTable();
    drawLine(shownContent);
    explanationLine.replaceChildren(shownContent.words);
    if (rowBeforeChange && rowBeforeChange.token_id !== shownContent.drawn) {
      const token = span("was", ...tokenNodes(rowBeforeChange.token));
      explanationLine.append(" ", ...splitMessage(_("Before the change it was {token}."), { token }));
    }
    countDraw(box);
  }

  /** Name the run beside the title, with a button for the other of two. @param {"" | "a" | "b" | "difference"} run */
  function showRun(run) {
    const place = find(document, "#answer .of-run");
    if (place.dataset.run === run) return;
    place.dataset.run = run;
    const other = { a: "b", b: "a" }[run];
    const switchButton = other && button(_("show {run}", { run: other.toUpperCase() }), () => showRuns(other), { className: "plain" });
    place.replaceChildren(...(run ? [`${RUN_SUFFIXES[run]} `] : []), ...(switchButton ? [switchButton] : []));
  }

  // Rows and cells are rebuilt only if the columns change, so that the focus stays.
  function buildHeader(columns) {
    for (const [mark, column] of [["two-runs", "other"], ["by-stage", "cumulative"], ["changed", "before"]])
      find(box, ".table").classList.toggle(mark, columns.some(({ name }) => name === column));
    head.replaceChildren(make("tr", {}, focusableCell("th", "token"), ...columns.map(({ name }) => focusableCell("th", name))));
    body.replaceChildren();
  }

  function fillTable() {
    const [first, ...titles] = head.rows[0].cells;
    setText(first, _("token"));
    const heading = find(document, "#answer header h2"), token = shownContent.after;
    heading.title = _("Next token after {token}", { token });
    setText(heading, shownContent.run ? _("After {token}", { token }) : heading.title); // short beside the runs' button
    showRun(shownContent.run);
    find(box, ".table").dataset.run = shownContent.run;
    const isOwn = shownContent.rows.every(({ probability, plain }) => Math.abs(probability - plain) < MAX_OWN_DIFFERENCE);
    find(document, "#answer").classList.toggle("own", isOwn); // the settings change nothing: the marks of the model's own would only repeat the bars
    first.dataset.note = shownContent.run === "difference" ? _("Tokens by the size of the difference: the largest first.") : _("Tokens by rank: the likeliest first.");
    shownContent.columns.forEach(({ title, about }, i) => { setText(titles[i], title); titles[i].dataset.note = about; });
    while (body.rows.length > shownContent.rows.length) body.lastChild.remove();
    while (body.rows.length < shownContent.rows.length) body.append(emptyRow(shownContent.columns));
    const scale = log.checked ? 1 : scaleOf(shownContent.rows);
    const scaleNote = find(document, "#answer .scale");
    setText(scaleNote, scale > 1 ? _("full bar: {percent}", { percent: `${100 / scale}%` }) : "");
    shownContent.rows.forEach((row, i) => {
      const hasGapBefore = row.rank > (shownContent.rows[i - 1]?.rank ?? 0) + 1;
      updateRow(body.rows[i], row, shownContent, hasGapBefore, log.checked, !shownContent.run || shownContent.run === "a", scale);
    });
    table.style.setProperty("--digits", `${Math.max(MIN_DIGITS, ...findAll(body, ".number").map(({ textContent }) => textContent.length))}ch`);
    likeliest.replaceChildren(...(shownContent.run === "difference" ? [] : [...body.rows].slice(0, MAX_LIKELIEST)).map(copyRow));
    if (!cells().some(({ tabIndex }) => tabIndex === 0)) body.rows[0].cells[0].tabIndex = 0;
    search.classList.toggle("none", Boolean(shownContent.find) && !shownContent.found);
    showNote(hoveredNode ?? document.activeElement);
  }

  const cells = () => /** @type {HTMLTableCellElement[]} */ (findAll(table, "td, th"));

  let hoveredNode = null; // element under the pointer, unless the focus moved since

  // Show how the number in a cell or segment is computed.
  function showNote(target) {
    const noteElement = target?.closest?.("[data-note]");
    const hint = _("Point at a number, or move to it with the arrow keys, to see how it comes about.");
    setText(note, noteElement && (box.contains(noteElement) || more.contains(noteElement)) ? noteElement.dataset.note : hint);
  }

  for (const part of [box, more]) {
    part.addEventListener("mouseover", ({ target }) => showNote(hoveredNode = target));
    part.addEventListener("mouseleave", () => { hoveredNode = null; showNote(document.activeElement); });
  }
  box.addEventListener("focusin", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    hoveredNode = null;
    showNote(target);
    if (target.matches("td, th")) setTabStop(cells(), target);
  });

  const cellOfEvent = (event) => event.target.closest("td, th");
  addRovingFocus(table, {
    at(event) {
      const focusedCell = cellOfEvent(event);
      return focusedCell && { row: focusedCell.parentElement.rowIndex, column: focusedCell.cellIndex };
    },
    size: () => ({ rows: table.rows.length, columns: head.rows[0].cells.length }),
    go: ({ row, column }) => table.rows[row].cells[column].focus(),
  });
  table.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    takeToken(cellOfEvent(event).parentElement);
  });
  table.addEventListener("click", (event) => {
    const target = /** @type {HTMLElement} */ (event.target), row = target.closest("tbody tr");
    if (row && (state.depth === "story" || target.matches(".take"))) takeToken(row);
  });

  // Replace the token after the selected one.
  function takeToken(row) {
    const button = find(row, ".take");
    if (button && !button.hidden) makeMove({ kind: "take", token: +row.dataset.token });
  }

  search.addEventListener("input", () => changeSettings({ find: search.value }));
  log.addEventListener("change", fillTable);
  const updateSearch = () => { if (search.value !== (state.find || "")) search.value = state.find || ""; };
  updateSearch();
  onState(() => {
    updateSearch();
    if (isNewChange()) rowBeforeChange = shownContent?.rows.find(({ token_id }) => token_id === shownContent.drawn) ?? null;
  });
  onContent(element, show);
  watchSliders();
  setLocalPreview((change) => {
    const preview = serverContent && Object.keys(change).every((name) => SLIDER_SETTINGS.includes(name)) && previewTable(serverContent);
    if (preview) draw(preview);
    return Boolean(preview);
  });
  markSidewaysScroll(find(box, ".table"), table);
}

/** The sentences on the distribution, below the table. @param {HTMLElement} element */
export function nextTokenSummary(element) {
  setHidden(element, true);
  onContent(element, (content) => {
    setText(find(element, ".prose"), summarisePrediction(content));
    setHidden(element, false);
  });
}

// Return a key of all that determines the next token except the sampling settings.
function placeKey({ u }) {
  const { checkpoint, prompt, generated, edits, query } = state;
  return [checkpoint, prompt, generated, edits, query, u].join(" ");
}

// Return a function that returns whether the settings changed since its last call; a slider's drag counts once.
function trackSettingChanges(element) {
  const settings = () => SETTINGS.map((name) => state[name]).join();
  let lastSettings = settings(), isPressed = false, isCounted = false;
  const pressHandler = (isDown) => () => { isPressed = isDown; isCounted = false; };
  document.addEventListener("pointerdown", pressHandler(true));
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, pressHandler(false));
  return () => {
    const hasChanged = settings() !== lastSettings, isNew = hasChanged && !isCounted;
    lastSettings = settings();
    isCounted ||= hasChanged && isPressed;
    return isNew;
  };
}

// Setting -> its label with the value.
const SETTING_LABELS = {
  temperature: (value) => _("temperature {value}", { value }),
  top_k: (value) => _("top k {value}", { value }),
  top_p: (value) => _("top p {value}", { value }),
  min_p: (value) => _("min p {value}", { value }),
  repetition_penalty: (value) => _("repetition penalty {value}", { value }),
};

/** Buttons that set several sampling settings at once. @param {HTMLElement} element */
export function presets(element) {
  const buttons = [...element.querySelectorAll("button")].map((button) => ({ button, settings: JSON.parse(button.dataset.settings) }));

  function update() {
    for (const { button, settings } of buttons) {
      const isActive = Object.entries(settings).every(([name, value]) => Math.abs(state[name] - value) < 1e-9);
      button.ariaPressed = String(isActive);
    }
  }

  for (const { button, settings } of buttons) {
    button.title = Object.entries(settings).map(([name, value]) => SETTING_LABELS[name](value)).join(", ");
    button.addEventListener("click", () => applyPreset(settings));
  }
  update();
  onState(update);
}

const MAX_FIRST_CLAUSES = 3; // before “more” is pressed

/** Ablate a head and select it, so that the figures of one head are about it. @param {string} ablation */
function switchOffAndSelect(ablation) {
  const { layer, head } = ablatedHead(ablation);
  toggleIntervention(ablation, { of: "edits", adds: true }, { layer: Number(layer), head: Number(head) });
}

/** A button that unfolds the reasons for the prediction. @param {HTMLElement} element */
export function explanation(element) {
  const toggle = find(element, ".asked"), clauseBox = find(element, ".clauses"), { field } = toggle.dataset;
  const isOpen = () => state[field] === "open";
  let scrollWhenShown = false; // the clauses were requested by a click

  let clauses = [], ablatedClause = null, showsAll = false; // index of the clause whose head was switched off; whether all clauses are shown

  function draw() {
    const heads = interventions().map((edit) => ({ edit, where: ablatedHead(edit) })).filter(({ where }) => where && field === "why"), hadFocus = clauseBox.contains(document.activeElement);
    const ablationNotes = heads.flatMap(({ edit, where }) => [makeAblationNote(edit, "edits", where), " "]), noteIndex = Math.min(ablatedClause ?? 0, clauses.length - 1);
    const pieces = clauses.map(({ words, look, figure, ablation }, i) => {
      const ablateButton = ablation && !heads.length ? [button(_("Switch this head off"), () => { ablatedClause = i; switchOffAndSelect(ablation); }, { className: "plain" }), " "] : [];
      return make("li", {}, figure ? makeLink(words, look, figure) : span("says", words), " ", ...ablateButton, ...(i === noteIndex ? ablationNotes : []));
    });
    const rest = pieces.slice(showsAll ? pieces.length : MAX_FIRST_CLAUSES);
    const more = rest.length ? [button(_("more"), () => { showsAll = true; draw(); }, { className: "plain" })] : [];
    clauseBox.replaceChildren(...pieces.slice(0, pieces.length - rest.length), ...more);
    drawnHeads = heads.map(({ edit }) => edit).join();
    if (hadFocus && !clauseBox.contains(document.activeElement)) clauseBox.querySelector("button")?.focus({ preventScroll: true });
  }

  let drawnHeads = "";
  function show(content) {
    clauses = content;
    draw();
    countDraw(clauseBox);
    if (scrollWhenShown && clauses.length) requestAnimationFrame(() => scrollIntoNearestView(clauseBox));
    scrollWhenShown &&= !clauses.length;
  }

  function updateOpen() {
    toggle.ariaExpanded = String(isOpen());
    clauseBox.hidden = !isOpen();
    if (clauses.length && drawnHeads !== interventions().filter(ablatedHead).join()) draw(); // at once, before the response
  }

  toggle.addEventListener("click", () => { scrollWhenShown = !isOpen(); select({ [field]: scrollWhenShown ? "open" : "closed" }); });
  onState(updateOpen);
  onContent(element, show);
  onContent(element, (question) => { setText(toggle, question); }, "-question"); // it names the token
  updateOpen();
}

// Temperature, top-k, top-p and min-p as in model/generation/sampling.py, so that the table follows a slider without a
// request.

/** @typedef {{ temperature: number, top_k: number, top_p: number, min_p: number }} Settings */

/** Settings whose effect needs only the scores. */
const SLIDER_SETTINGS = ["temperature", "top_k", "top_p", "min_p"];
const SLIDERS = SLIDER_SETTINGS.map((name) => `#${name}`).join();

/**
 * Return the distribution by the settings. Every limit keeps the most probable tokens, so a count describes it.
 * @param {ArrayLike<number>} scores of all tokens, the largest first
 * @param {Settings} settings with a temperature above 0
 * @returns {{ probabilities: Float64Array, weights: Float64Array, counts: { top_k: number, top_p: number, min_p: number } }} of the remaining
 *   tokens; relative to the largest, of those within top-k; and the number left after each limit
 */
export function sampledDistribution(scores, { temperature, top_k, top_p, min_p }) {
  const counts = { top_k: Math.min(top_k || scores.length, scores.length), top_p: 0, min_p: 0 };
  const weights = Float64Array.from({ length: counts.top_k }, (_none, i) => Math.exp((scores[i] - scores[0]) / temperature));
  counts.top_p = top_p < 1 ? countReaching(weights, top_p * sum(weights)) : counts.top_k;
  counts.min_p = counts.top_p;
  while (min_p && weights[counts.min_p - 1] < min_p) counts.min_p--;
  const remaining = weights.subarray(0, counts.min_p), total = sum(remaining);
  return { probabilities: remaining.map((weight) => weight / total), weights, counts };
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

/** Return how many of the first values reach a sum; at least one. */
function countReaching(values, total) {
  let partialSum = 0, count = 0;
  while (count < values.length && (count === 0 || partialSum < total)) partialSum += values[count++];
  return count;
}

// The scores are fetched when the user is about to move a slider.

/** @type {{ key: string, values: Float32Array | Float64Array } | null} */
let scores = null;
let requestedKey = "";

/** Return a key of all that determines the scores. */
const scoresKey = () => [state.checkpoint, state.prompt, state.generated, state.edits, state.query, state.repetition_penalty].join(" ");

/** Return the scores of the current state; null if they were not fetched. */
const currentScores = () => (scores?.key === scoresKey() ? scores.values : null);

/** Fetch the scores before a slider is moved, and apply its value at once. */
export function watchSliders() {
  for (const kind of ["pointerover", "pointerdown", "focusin"])
    document.addEventListener(kind, ({ target }) => { if (/** @type {Element} */ (target).closest?.(SLIDERS)) fetchScores(); }, { passive: true });
  document.addEventListener("keydown", () => { if (document.activeElement?.closest(SLIDERS)) fetchScores(); });
  document.addEventListener("input", ({ target }) => { // Gradio reports it two frames later
    const range = /** @type {HTMLInputElement} */ (target), slider = range.type === "range" && range.closest(SLIDERS);
    if (slider) changeSettings({ [slider.id]: range.valueAsNumber });
  });
}

async function fetchScores() {
  const key = scoresKey();
  if (requestedKey === key || !state.checkpoint) return;
  requestedKey = key;
  try {
    const { scores: encoded, size } = await callServer("next_token_scores", [state]), { buffer } = decodeBase64(encoded);
    scores = { key, values: buffer.byteLength === 4 * size ? new Float32Array(buffer) : new Float64Array(buffer) };
  } catch { requestedKey = ""; } // each move then waits for Python
}

/**
 * Return a table's content (`NextTokenTable.pack`) by the current settings; null if only Python can compute it.
 * @param {any} content
 */
export function previewTable(content) {
  const scores = currentScores(), { temperature, top_k, top_p, min_p } = state, settings = { ...content.settings, temperature, top_k, top_p, min_p };
  if (!scores || !temperature || !["", "a"].includes(content.run) || settings.repetition_penalty !== state.repetition_penalty) return null;
  const { probabilities, weights, counts } = sampledDistribution(scores, settings), cumulative = runningSums(probabilities), sumsOfWeights = runningSums(weights);
  const rows = content.rows.map((row) => {
    const i = row.rank - 1, ahead = (sumsOfWeights[Math.min(i, counts.top_k) - 1] ?? 0) / sumsOfWeights.at(-1);
    return {
      ...row, ahead, scaled: scores[i] / temperature, weight: Math.exp((scores[i] - scores[0]) / temperature),
      cut_by: ["top_k", "top_p", "min_p"].find((name) => i >= counts[name]) ?? null, probability: probabilities[i] ?? 0, cumulative: cumulative[i] ?? 1,
    };
  });
  const drawnIndex = cumulative.findIndex((end) => end > content.u), drawn = rows.find(({ rank }) => rank === drawnIndex + 1)?.token_id ?? null; // marked if its row is shown
  const stretches = rows.filter(({ probability }) => probability).map(({ token_id, token, probability, cumulative: end }) => ({ token_id, token, start: Math.max(0, end - probability), end }));
  return { ...content, settings, rows, stretches, drawn, largest: scores[0] / temperature, total: 1 / probabilities[0] };
}

const runningSums = (values) => values.map(((total) => (value) => (total += value))(0));
