// @ts-check
// The search dialog, which finds and opens everything with a name on the page; and the list of keyboard shortcuts.
import { changeModel, chooseCheckpoint, interventions, goToTop, select, toggleIntervention } from "../../static/page_actions.js";
import { callServer } from "../../static/server_connection.js";
import { currentFigure, scrollToFigure } from "../../static/widget_contents.js";
import { button, find, findAll, make, setText, span, toggleTheme, tokenNodes } from "../../static/dom.js";
import { goToStep, lessonPositions } from "../../static/history.js";
import { _, lookUpMessage, N_ } from "../../static/text.js";
import { modelName, depthOfView, state } from "../../static/page_state.js";

/**
 * A search result.
 * @typedef {object} Item
 * @property {string} kind
 * @property {string} name as listed
 * @property {string[]} words normalized search terms; the first is its name
 * @property {() => void} go
 * @property {string} [detail]
 * @property {boolean} [isToken] whether the name is a token's text
 */
/** @typedef {{ item: Item, score: number }} ScoredItem */
/** @typedef {{ layers: number, heads: number, neurons: number, checkpoints: string[], lessons: any[], views: Record<string, { aliases: string[], figures: [string, string, string[]][], choices: [string, string, string, [any, string][]][] }> }} Index */

const MAX_RESULTS = 8, MAX_RESULTS_PER_KIND = 4, MAX_TOKENS = 3;
const VIEW_BONUS = 6, ALIAS_COST = 5; // a view, a figure or its option ranks above a term of the same name
const TITLE_BONUS = 10; // a figure whose title has the words ranks above a term that has them

// Searchable items: parts of the page, and the index that Python sends.

/** @param {string} kind @param {string} name @param {string[]} aliases @param {() => void} go @param {string} [detail] @returns {Item} */
const makeItem = (kind, name, aliases, go, detail = "") => ({ kind, name, words: [name, ...aliases].map(normalize).filter(Boolean), go, detail });

/** Open the view that draws a part of the model, with it selected. @param {Record<string, any>} selection with the view */
function goToPart(selection) {
  goToTop();
  select(selection);
}

/** Select a layer; open the attention view if the open one has no layers to choose. @param {number} layer */
function goToLayer(layer) {
  const hasLayers = find(document, '#view .tabitem:not([hidden]) .choosers [data-field="layer"]');
  goToPart({ layer, ...(!hasLayers && { view: "attention" }) });
}

/** Open a view and scroll to a figure. @param {string} view @param {string} figure its element id @param {Record<string, any>} [change] of the selection */
async function goToFigure(view, figure, change = {}) {
  goToTop();
  select({ view, ...change });
  await window.explorer.settled();
  if (document.getElementById(figure)?.clientWidth) scrollToFigure(figure);
}

/** Make a token the target or its contrast, and list it among the next tokens. @param {number} id @param {"target" | "rival"} field */
async function goToToken(id, field) {
  const rank = await callServer("rank_of_token", [state, id]).catch(() => null);
  if (rank) select({ [field]: rank, find: String(id), ...(depthOfView(state.view) === "story" && { view: "prediction" }) });
}

/** @param {string} checkpoint */
const goToCheckpoint = (checkpoint) => (modelName(checkpoint) === modelName(state.checkpoint) ? chooseCheckpoint(checkpoint) : changeModel(checkpoint));

/** Open the glossary at an entry. @param {string} name */
function goToTerm(name) {
  const entry = findAll(document, "#glossary dt").find(({ nextElementSibling: meaning }) => /** @type {HTMLElement} */ (meaning).dataset.entry === name);
  find(document, "#glossary details").toggleAttribute("open", true);
  entry.tabIndex = -1;
  entry.focus();
  entry.scrollIntoView({ block: "center" });
}

/** Return the item of a figure, found by its title and by the technical term in its brackets. @param {string} id @param {string} name @param {string[]} aliases @param {string} view @param {string} title of the view */
function figureItem(id, name, aliases, view, title) {
  const figureEntry = makeItem(_("figure"), name, aliases, () => void goToFigure(view, id), title), [, term] = /[(（](.+?)[)）]/.exec(name) ?? [];
  return term ? { ...figureEntry, words: [normalize(term), ...figureEntry.words] } : figureEntry;
}

/** @param {Index | null} index */
function viewItems(index) {
  const listedViews = new Set(); // a view can have a second tab in the story
  return findAll(document, "#navigation [data-view]").flatMap((tab) => {
    const { aliases = [], figures = [], choices = [] } = index?.views[tab.dataset.view] ?? {}, title = tab.textContent.replace(/^\d+ · /, "");
    const isListed = listedViews.has(tab.dataset.view);
    listedViews.add(tab.dataset.view);
    return [
      makeItem(_("view"), title, [tab.dataset.view, ...aliases], () => { goToTop(); select({ view: tab.dataset.view }); }, tab.closest("#steps") ? _("Story") : ""),
      ...(isListed ? [] : figures).map(([id, name, aliases]) => figureItem(id, name, aliases, tab.dataset.view, title)),
      ...(isListed ? [] : choices).flatMap(([id, field, kind, options]) =>
        options.map(([value, name]) => makeItem(kind, field === "ablation" ? _("Each head ablated {how}", { how: name }) : name, [name, kind], () => void goToFigure(tab.dataset.view, id, { [field]: value }), title))),
    ];
  });
}

// Selector of a button -> other names of its action.
const BUTTONS = {
  '#mode [data-mode="story"]': [N_("beginner")],
  '#mode [data-mode="numbers"]': [N_("values")],
  '#mode [data-mode="formula"]': [N_("formulas"), N_("equations")],
  '#mode [data-mode="code"]': [N_("source code")],
  "#step": [N_("next token")],
  "#generate": [N_("write"), N_("continue")],
  "#stop": [],
  "#undo": [],
  "#regenerate": [],
  "#compare": [],
  "#share": [N_("share"), N_("URL")],
  "#save-png": [N_("export PNG"), N_("download"), N_("picture")],
  "#save-svg": [N_("export SVG"), N_("download"), N_("picture")],
  "#save-numbers": [N_("CSV"), N_("save numbers"), N_("export numbers"), N_("download"), N_("table")],
  "#copy-python": [N_("script"), N_("notebook"), N_("numpy"), N_("array"), N_("data")],
  "#present .begin": [N_("slide show"), N_("full screen"), N_("projector")],
  "#present .save": [N_("slide"), N_("slides"), N_("bookmark"), N_("place"), N_("saved view")],
  "#lessons .open": [N_("course"), N_("exercises")],
  "#lessons .to-glossary": [N_("terms")],
  "#room .open": [N_("classroom"), N_("ask the class"), N_("question"), N_("pose a question")],
  "#open-file": [N_("load")],
};
const DETAILS = { "#room .open": N_("Lessons ask them; your own is a Markdown file.") };

function actionItems() {
  const action = (name, aliases, go) => makeItem(_("action"), name, aliases, go);
  const buttons = Object.entries(BUTTONS).flatMap(([selector, aliases]) => {
    const pageButton = /** @type {HTMLButtonElement} */ (find(document, selector));
    return pageButton && !pageButton.disabled ? [{ ...action((find(pageButton, ".title") ?? pageButton).textContent.trim(), aliases.map(lookUpMessage), () => pageButton.click()), detail: lookUpMessage(DETAILS[selector] ?? "") }] : [];
  });
  const isDark = document.body.classList.contains("dark"), list = /** @type {HTMLSelectElement} */ (find(document, "#language select"));
  const english = new Intl.DisplayNames("en", { type: "language" });
  const languages = [...list.options].filter(({ selected }) => !selected).map((option) => action(option.text, [_("language"), english.of(option.value)], () => {
    list.value = option.value;
    list.dispatchEvent(new Event("change"));
  }));
  return [
    ...buttons,
    isDark ? action(_("Light theme"), [_("light"), _("theme")], toggleTheme) : action(_("Dark theme"), [_("dark"), _("theme")], toggleTheme),
    action(_("Print this view"), [_("handout")], () => void printView()),
    ablationItem(state.layer, state.head),
    action(_("Keys"), [_("keyboard shortcuts"), _("help")], openKeys),
    ...languages,
  ];
}

/** Return the item that ablates a head, or restores it. @param {number} layer @param {number} head */
function ablationItem(layer, head) {
  const edit = `blocks.${layer}.attn.z.${head}*zero`, name = interventions().includes(edit) ? _("Switch layer {layer} head {head} on again", { layer, head }) : _("Switch layer {layer} head {head} off", { layer, head });
  return makeItem(_("action"), name, [_("ablate"), _("ablate head"), _("switch head off"), _("turn off head")], () => toggleIntervention(edit, { of: "edits", adds: true }));
}

/** Open the current view as a sheet to print. */
async function printView() {
  const [{ openSlideSheet }, { makeSlide, viewTitle }] = await Promise.all([import("../teaching/worksheet.js"), import("../teaching/presentation_pages.js")]);
  const slide = makeSlide(state, currentFigure(), viewTitle());
  if (slide) openSlideSheet([slide]);
}

function termItems() {
  const [forms, meanings] = JSON.parse(find(document, "#glossary dl").dataset.known), byName = new Map();
  for (const [form, name] of Object.entries(forms)) byName.set(name, [...(byName.get(name) ?? []), form]);
  return [...byName].map(([name, termForms]) => makeItem(_("term"), termForms[0], termForms.slice(1), () => goToTerm(name), meanings[name]));
}

const positionItems = () => findAll(document, "#strip .chip").map((chip, position) => ({
  ...makeItem(_("position"), chip.textContent, [], () => select({ query: position }), _("position {position}", { position })), isToken: true,
}));

/** @param {Index | null} index @returns {Item[]} */
function listItems(index) {
  const checkpoints = (index?.checkpoints ?? []).filter((name) => name !== state.checkpoint).map((name) => {
    const step = /\/step-0*(\d+)$/.exec(name);
    const aliases = [`${_("checkpoint")} ${name}`, ...(step ? [_("step {step}", { step: step[1] })] : [])];
    return makeItem(_("checkpoint"), name, aliases, () => goToCheckpoint(name));
  });
  const lessons = (index?.lessons ?? []).map(({ name, title, audience, steps }) =>
    makeItem(_("lesson"), title, [name], () => goToStep(name, Math.min(lessonPositions()[name]?.step ?? 1, steps)), audience));
  return [...viewItems(index), ...actionItems(), ...checkpoints, ...lessons, ...positionItems(), ...termItems()];
}

const ABLATION_PATTERN = /^\s*(?:ablate|switch off|turn off)\b|\boff\s*$/i;

/** Return the items that a query names by numbers. @param {string} query @param {Index} index @returns {Item[]} */
function numberedItems(query, { layers, heads, neurons }) {
  const words = { layer: [_("layer")], head: [_("head")], neuron: [_("neuron")], position: [_("position")] };
  const chips = findAll(document, "#strip .chip");
  const hook = readHook(query);
  if (hook && hook.layer < layers) return [makeItem(_("layer"), _("Layer {layer}", { layer: hook.layer }), [], () => select(hook), query.trim())];
  const target = query.replace(ABLATION_PATTERN, ""), isAblation = target !== query; // "ablate 4.4"
  return readNumbers(target, words).flatMap(({ kind, layer = state.layer, index }) => {
    if (kind === "position") return index < chips.length ? [positionItems()[index]] : [];
    if (isAblation) return kind === "head" && layer < layers && index < heads ? [ablationItem(layer, index)] : [];
    if (layer >= layers || (kind === "head" && index >= heads) || (kind === "neuron" && index >= neurons)) return [];
    if (kind === "layer") return [makeItem(_("layer"), _("Layer {layer}", { layer }), [], () => goToLayer(layer))];
    if (kind === "head") return [makeItem(_("head"), _("Layer {layer} head {head}", { layer, head: index }), [], () => goToPart({ view: "attention", layer, head: index }))];
    return [makeItem(_("neuron"), _("Layer {layer} neuron {neuron}", { neuron: index, layer }), [], () => goToPart({ view: "feed_forward", layer, neuron: index }))];
  });
}

/** @param {number} id @param {string} text @param {"target" | "rival"} [field] of the selection that it is for @returns {Item} */
const tokenItem = (id, text, field = "target") => ({ kind: field === "rival" ? _("against") : _("token"), name: text, words: [], go: () => void goToToken(id, field), detail: _("token {id}", { id }), isToken: true });

/** Return the part of a query that is a token, and what the token is for: "against she" asks for a contrast. @param {string} typed @returns {{ text: string, field: "target" | "rival" }} */
function tokenQuery(typed) {
  const prefix = `${_("against")} `.toLowerCase();
  return typed.toLowerCase().startsWith(prefix) ? { text: typed.slice(prefix.length), field: "rival" } : { text: typed, field: "target" };
}

/**
 * Return the best matches of a query, best first.
 * @param {string} typed
 * @param {Item[]} items
 * @param {ScoredItem[]} otherMatches already scored
 */
function bestMatches(typed, items, otherMatches) {
  const query = typed.startsWith("·") ? "" : normalize(typed), counts = new Map(); // a leading · stands for the space of a token
  const scoreItem = ({ words, kind, detail = "" }) => Math.max(hasAllWords([...words, normalize(detail)].join(" "), query) ? ALL_WORDS : 0, ...words.map((word, i) => {
    const itemScore = kind === _("figure") && word.startsWith(`${query}:`) ? EXACT - word.length / 1000 : kind === _("action") && `${word} `.startsWith(`${query} `) ? EXACT - +(word !== query) : Math.min(matchScore(word, query), i && kind === _("term") ? WORDS : EXACT); // the first word of an action is enough
    return itemScore && itemScore - ALIAS_COST * Math.min(i, 1) + VIEW_BONUS * +(kind === _("view") || ([_("figure"), _("head score")].includes(kind) && itemScore === EXACT))
      + TITLE_BONUS * +(kind === _("figure") && itemScore > PART);
  }));
  const scoredItems = query ? items.map((item) => ({ item, score: scoreItem(item) })) : [];
  const matches = [...otherMatches, ...scoredItems].filter(({ score }) => score > 0).sort((a, b) => b.score - a.score);
  return matches.filter(({ item: { kind }, score }) => {
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    return counts.get(kind) <= MAX_RESULTS_PER_KIND || score >= EXACT;
  }).slice(0, MAX_RESULTS).map(({ item }) => item);
}

// The index is requested once per model. The vocabulary stays on the server, which searches it.

/** @type {{ model: string, index: Promise<Index> } | null} */
let indexRequest = null;

function fetchIndex() {
  const model = modelName(state.checkpoint);
  if (indexRequest?.model !== model) {
    const index = callServer("search_index", [state]);
    indexRequest = { model, index };
    index.catch(() => { indexRequest = null; });
  }
  return indexRequest.index;
}

// The search dialog.

/** Return the effect of Enter by kind of item; the others are chosen. @returns {Record<string, string>} */
const enterEffects = () => ({
  [_("view")]: _("opens this view"), [_("figure")]: _("goes to this figure"), [_("head score")]: _("shows this head score"),
  [_("action")]: _("does this"), [_("checkpoint")]: _("opens this model"), [_("lesson")]: _("opens this lesson"),
  [_("token")]: _("explains this token’s logit"), [_("against")]: _("explains the logit less this token’s"), [_("position")]: _("chooses this token of the prompt"), [_("term")]: _("opens the glossary at this term"),
});

/** @type {ReturnType<typeof makeSearch> | null} */
let search = null;

/** Open the search, or select its text if it is open. @param {string} [typed] while the script was loading */
export function openSearch(typed = "") {
  search ??= makeSearch();
  search.open(typed);
}

function makeSearch() {
  const input = make("input", { type: "text", role: "combobox", autocomplete: "off", spellcheck: false, maxLength: 80, placeholder: _("view, lesson, term, head 4.4, neuron n3.287, token, action …"), ariaLabel: _("Search or jump"), ariaAutoComplete: "list", ariaExpanded: "true" });
  const list = make("ul", { id: "search-results", role: "listbox", ariaLabel: _("found") }), status = make("p", { className: "told", role: "status" });
  const dialog = make("dialog", { id: "search-dialog", className: "palette", ariaLabel: _("Search or jump") }, input, status, list);
  dialog.append(button(`? ${_("Keys")}`, () => { dialog.close(); openKeys(); }));
  /** @type {Item[]} */
  let items = [], results = [];
  /** @type {Index | null} */
  let index = null;
  let active = 0, abortController = new AbortController();
  input.setAttribute("aria-controls", list.id);
  document.body.append(dialog);

  /** @param {ScoredItem[]} [fromPython] tokens; undefined until they are found */
  function show(fromPython) {
    const typed = input.value, query = normalize(typed);
    const numberedMatches = index ? numberedItems(typed, index).map((item, i) => ({ item, score: 2 * EXACT - i })) : [];
    results = query || typed ? bestMatches(typed, items, [...numberedMatches, ...(fromPython ?? [])]) : items.filter(({ kind }) => kind === _("view")).slice(0, MAX_RESULTS);
    list.replaceChildren(...results.map(row));
    setText(status, !query || results.length || !fromPython ? "" : _("Nothing here is called “{typed}”. Try L2H3, L3N287, 4.3 or a word.", { typed }));
    activate(0);
  }

  /** @param {Item} item @param {number} i */
  function row({ kind, name, detail, isToken }, i) {
    const title = span(isToken ? "name token" : "name", ...(isToken ? tokenNodes(name) : [name]));
    const effect = enterEffects()[kind] ?? _("chooses this"); // outside of the other `_`, as messages inside its arguments are not extracted
    const option = make("li", { id: `search-result-${i}`, role: "option" }, title, span("detail", detail ?? ""), span("effect", _("Enter {effect}", { effect })), span("kind", kind));
    option.addEventListener("pointermove", () => { if (active !== i) activate(i); });
    option.addEventListener("click", () => choose(i));
    return option;
  }

  /** @param {number} i */
  function activate(i) {
    active = i;
    for (const [j, option] of [...list.children].entries()) option.ariaSelected = String(j === i);
    list.children[i]?.scrollIntoView({ block: "nearest" });
    if (results[i]) input.setAttribute("aria-activedescendant", `search-result-${i}`);
    else input.removeAttribute("aria-activedescendant");
  }

  /** @param {number} i */
  function choose(i) {
    if (!results[i]) return;
    dialog.close(); // first, as the result may take the focus
    results[i].go();
  }

  async function findOnServer() {
    abortController.abort();
    const { signal } = abortController = new AbortController(), { text: wanted, field } = tokenQuery(input.value);
    if (!index) return;
    const matches = wanted.trim() ? await callServer("find_tokens", [state, wanted], signal).catch(() => []) : [];
    if (signal.aborted) return;
    const tokenMatches = matches.slice(0, MAX_TOKENS).map(([id, text], i) => ({ item: tokenItem(id, text, field), score: (normalize(text) === normalize(wanted) ? WHOLE_TOKEN : PART_OF_TOKEN) - i / 10 }));
    show(tokenMatches);
  }

  input.addEventListener("input", () => { show(); findOnServer(); });
  dialog.addEventListener("keydown", (event) => {
    const offset = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (offset && results.length) activate((active + offset + results.length) % results.length);
    else if (event.key === "Enter" && !event.isComposing && event.target === input) choose(active);
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("click", ({ target }) => { if (target === dialog) dialog.close(); }); // a click on the backdrop

  return {
    /** @param {string} typed */
    open(typed) {
      if (dialog.open && !typed) return input.select();
      items = listItems(index);
      input.value = typed;
      show();
      if (!dialog.open) dialog.showModal();
      fetchIndex().then((newIndex) => {
        index = newIndex;
        items = listItems(index);
        if (dialog.open) { show(); findOnServer(); }
      }, () => {});
    },
  };
}

// The list of keyboard shortcuts.

/** @type {[string[], string][]} */
const KEYS = [
  [["Ctrl K", "/"], N_("search, or jump to anything")],
  [["?"], N_("this list")],
  [["Ctrl Z"], N_("take back what was done last: a token, a change of the model, or the prompt")],
  [["T", "Shift T"], N_("the next term that is explained, and the one before")],
  [["←", "→", "↑", "↓"], N_("among buttons of a bar, tabs, tokens, heads, cells of a figure, rows of a table, parts of the map")],
  [["Home", "End"], N_("first and last of a row")],
  [["Enter"], N_("choose; in a figure, how the number comes about")],
  [["+"], N_("add a head, or take it out of those selected together")],
  [["Del"], N_("remove a continuation from the tree")],
  [["P"], N_("present: one figure, or one step of a lesson, on the whole screen")],
  [["Space", "→", "←"], N_("while presenting, and step by step: on and back")],
  [["N", "B"], N_("while presenting: notes, and a black screen")],
  [["C"], N_("replies of the class, for whoever teaches it")],
  [["Esc"], N_("close, or leave")],
];

/** @type {HTMLDialogElement | null} */
let keysDialog = null;

/** Open the list of keyboard shortcuts. */
export function openKeys() {
  if (!keysDialog) {
    const rows = KEYS.flatMap(([names, meaning]) => [make("dt", {}, ...names.map((name) => make("kbd", {}, name))), make("dd", {}, lookUpMessage(meaning))]);
    keysDialog = make("dialog", { id: "keys", className: "palette", ariaLabel: _("Keys") }, make("h2", {}, _("Keys")), make("dl", {}, ...rows), button(_("Close"), () => keysDialog.close()));
    keysDialog.addEventListener("click", ({ target }) => { if (target === keysDialog) keysDialog.close(); });
    document.body.append(keysDialog);
  }
  if (!keysDialog.open) keysDialog.showModal();
}

/** The button that opens the search. @param {HTMLElement} element */
export function searchButton(element) {
  find(element, ".open").addEventListener("click", () => openSearch());
}

// Matching a query with names, and parsing the numbers in it.

/** Normalize case, accents and word separators. @param {string} text */
export const normalize = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().replace(/[\s·_/-]+/g, " ").trim();

export const EXACT = 100;
const WHOLE_TOKEN = 90, PART_OF_TOKEN = 25; // named items rank above a token of the same text
const PREFIX = 80, WORDS = 60, PART = 40, ALL_WORDS = 30, FUZZY = 20; // ALL_WORDS: of a query, somewhere in an entry's names

/**
 * Return how well a query matches a name: the whole, its prefix, prefixes of its words, a part, or its letters in their
 * order; 0 for no match. Among equal matches shorter names score higher. Both are normalized.
 * @param {string} name
 * @param {string} query
 */
export function matchScore(name, query) {
  if (name === query) return EXACT;
  const lengthPenalty = Math.min(9, (name.length - query.length) / 10);
  if (name.startsWith(query)) return PREFIX - lengthPenalty;
  if (hasAllWords(name, query)) return WORDS - lengthPenalty;
  if (query.length > 1 && name.includes(query)) return PART - lengthPenalty;
  return query.length > 3 && isAbbreviated(name, query) ? FUZZY - lengthPenalty : 0;
}

/** Return whether each word of a query begins a word of a text. Both are normalized. @param {string} text @param {string} query */
export const hasAllWords = (text, query) => query.split(" ").every((word) => ` ${text}`.includes(` ${word}`));

/** Return whether a query's letters are in a name in order, from the beginning of a word on, with few others between. */
function isAbbreviated(name, query) {
  const letters = query.replaceAll(" ", "");
  for (let start = 0; start >= 0; start = name.indexOf(" ", start + 1)) {
    let i = name.startsWith(" ", start) ? start + 1 : start;
    const first = i;
    if (name[i] !== letters[0]) continue;
    let count = 0;
    for (; i < name.length && count < letters.length; i++) if (name[i] === letters[count]) count++;
    if (count === letters.length && i - first <= 2 * letters.length) return true;
  }
  return false;
}

// Parsing names of layers, heads, neurons and positions.

/** @typedef {{ kind: "layer" | "head" | "neuron" | "position", layer?: number, index?: number }} ModelPart */

/**
 * Return the parts of the model that a query names: "4.4", "L4.4", "L4H4" and "head 4 4" are a head, "n3.287" and "ffn 3 287" a
 * neuron, "L4" a layer; a number alone may be a layer or a position. A head or neuron without a layer is
 * one of the selected layer.
 * @param {string} query
 * @param {Record<"layer" | "head" | "neuron" | "position", string[]>} [words] translated words for each
 * @returns {ModelPart[]}
 */
export function readNumbers(query, words = { layer: [], head: [], neuron: [], position: [] }) {
  const alternatives = (/** @type {"layer" | "head" | "neuron" | "position"} */ kind, ...english) => `(?:${[...english, ...words[kind]].map(escapeRegExp).join("|")})`;
  const layer = alternatives("layer", "layer", "block", "l"), head = alternatives("head", "head", "h", "attention");
  const neuron = alternatives("neuron", "feed-forward", "neuron", "ffn", "mlp", "n"), position = alternatives("position", "position", "pos", "#");
  const match = (pattern) => new RegExp(`^${pattern}$`, "iu").exec(query.trim().replace(/\s+/g, " "))?.slice(1).map(Number);
  const number = "(\\d{1,6})", gap = "(?:\\s?[.,:/]\\s?| )";
  const pair = (kind) => `(?:(?:${kind}|${layer}) ?)?${number}${gap}${number}`;
  const layerAndIndex = (kind) => `${layer} ?${number}[ ,.]?\\s?${kind} ?${number}`;
  /** @type {ModelPart[]} */
  const parts = [];
  const indexInLayer = (kind) => match(`${kind} ?${number}(?: (?:of|in) | ?,? ?)${layer} ?${number}`)?.reverse(); // "head 4 of layer 3", "head 4 layer 3"
  const neurons = match(`${neuron} ?${number}${gap}${number}`) ?? match(layerAndIndex(neuron)) ?? indexInLayer(neuron);
  if (neurons) return [{ kind: "neuron", layer: neurons[0], index: neurons[1] }];
  const heads = match(pair(head)) ?? match(layerAndIndex(head)) ?? indexInLayer(head);
  if (heads) return [{ kind: "head", layer: heads[0], index: heads[1] }];
  for (const [kind, words] of /** @type {["layer" | "head" | "neuron" | "position", string][]} */ ([["layer", layer], ["head", head], ["neuron", neuron], ["position", position]])) {
    const numbers = match(`${words} ?${number}`);
    if (numbers) parts.push(kind === "layer" ? { kind, layer: numbers[0] } : { kind, index: numbers[0] });
  }
  const single = match(number);
  if (single) parts.push({ kind: "layer", layer: single[0] }, { kind: "position", index: single[0] });
  return parts;
}

// Beginning of a TransformerLens hook name -> the view that shows its value.
const HOOK_VIEWS = [["attn.hook_rot", "positions"], ["attn.", "attention"], ["mlp.", "feed_forward"], ["hook_mlp_", "feed_forward"], ["hook_", "residual"], ["ln", "residual"]];

/** Parse a hook name such as "blocks.4.attn.hook_pattern" as layer and view; null for any other text. @param {string} query */
export function readHook(query) {
  const [, layer, rest] = /^blocks\.(\d{1,6})\.((?:(?:attn|mlp|ln\d)\.)?hook_\w+)$/.exec(query.trim()) ?? [];
  return rest ? { layer: +layer, view: HOOK_VIEWS.find(([begin]) => rest.startsWith(begin))[1] } : null;
}

const escapeRegExp = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
