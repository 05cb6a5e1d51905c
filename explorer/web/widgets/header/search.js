// @ts-check
// The search: whatever has a name on this page is found by typing it, and gone to. And the list of keys.
import { changeModel, chooseCheckpoint, interventions, goToTop, select, toggleIntervention } from "../../static/page_actions.js";
import { call } from "../../static/server_connection.js";
import { currentFigure, scrollToFigure } from "../../static/widget_contents.js";
import { button, find, findAll, make, setText, span, toggleTheme, tokenNodes } from "../../static/dom.js";
import { goToStep, lessonPositions } from "../../static/history.js";
import { _, lookUpMessage, N_ } from "../../static/translations.js";
import { modelName, depthOfView, state } from "../../static/page_state.js";

/**
 * Something to go to.
 * @typedef {object} Item
 * @property {string} kind
 * @property {string} name as it is listed
 * @property {string[]} words by which it is found, normalized; the first is its name
 * @property {() => void} go
 * @property {string} [detail]
 * @property {boolean} [isToken] whether the name is a token's text
 */
/** @typedef {{ item: Item, score: number }} Found */
/** @typedef {{ layers: number, heads: number, neurons: number, vocabulary: string[] | null, checkpoints: string[], lessons: any[], views: Record<string, { aliases: string[], figures: [string, string][], choices: [string, string, string, [any, string][]][] }> }} Index */

const MAX_SHOWN = 8, MAX_OF_A_KIND = 4, MAX_TOKENS = 3;
const VIEW_BONUS = 6, ALIAS_COST = 5; // a view, a figure or what one can show goes before a term of the same name

// What can be found: the page's own parts as they are in it, and what Python lists.

/** @param {string} kind @param {string} name @param {string[]} aliases @param {() => void} go @param {string} [detail] @returns {Item} */
const item = (kind, name, aliases, go, detail = "") => ({ kind, name, words: [name, ...aliases].map(normalize).filter(Boolean), go, detail });

/** Opens a view; one of the numbers, where the present one does not let these fields be chosen. @param {Record<string, any>} change @param {string} view */
function pickIn(change, view) {
  goToTop();
  const isHere = Object.keys(change).every((field) => find(document, `#view .tabitem:not([hidden]) .choosers [data-field="${field}"]`));
  select(isHere ? change : { ...change, view });
}

/** @param {string} view @param {string} figure its element id @param {Record<string, any>} [change] what it is to show */
async function goToFigure(view, figure, change = {}) {
  goToTop();
  select({ view, ...change });
  await window.explorer.settled();
  if (document.getElementById(figure)?.clientWidth) scrollToFigure(figure);
}

/** Makes a token the explained one, and lists it among the next tokens. @param {number} id */
async function goToToken(id) {
  const target = await call("rank_of_token", [state, id]).catch(() => null);
  if (target) select({ target, find: String(id), ...(depthOfView(state.view) === "story" && { view: "prediction" }) });
}

/** @param {string} checkpoint */
const goToCheckpoint = (checkpoint) => (modelName(checkpoint) === modelName(state.checkpoint) ? chooseCheckpoint(checkpoint) : changeModel(checkpoint));

/** Opens the glossary at an entry. @param {string} form */
function goToTerm(form) {
  const [entry] = findAll(document, "#glossary dt").filter(({ textContent }) => textContent.split(", ").includes(form));
  find(document, "#glossary details").toggleAttribute("open", true);
  entry.tabIndex = -1;
  entry.focus();
  entry.scrollIntoView({ block: "center" });
}

/** A figure, found by its title or by the field's name for it, in brackets there. @param {string} id @param {string} name @param {string} view @param {string} title of the view */
function figureItem(id, name, view, title) {
  const made = item(_("figure"), name, [], () => void goToFigure(view, id), title), [, term] = /[(（](.+?)[)）]/.exec(name) ?? [];
  return term ? { ...made, words: [normalize(term), ...made.words] } : made;
}

/** @param {Index | null} index */
function viewItems(index) {
  const withFigures = new Set(); // a view can have a tab in the story, too
  return findAll(document, "#navigation [data-view]").flatMap((tab) => {
    const { aliases = [], figures = [], choices = [] } = index?.views[tab.dataset.view] ?? {}, title = tab.textContent.replace(/^\d+ · /, "");
    const isListed = withFigures.has(tab.dataset.view);
    withFigures.add(tab.dataset.view);
    return [
      item(_("view"), title, [tab.dataset.view, ...aliases], () => { goToTop(); select({ view: tab.dataset.view }); }, tab.closest("#steps") ? _("Story") : ""),
      ...(isListed ? [] : figures).map(([id, name]) => figureItem(id, name, tab.dataset.view, title)),
      ...(isListed ? [] : choices).flatMap(([id, field, kind, options]) =>
        options.map(([value, name]) => item(kind, name, [kind], () => void goToFigure(tab.dataset.view, id, { [field]: value }), title))),
    ];
  });
}

// Buttons of the page -> what people call what they do.
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
  "#room .open": [N_("classroom")],
  "#open-file": [N_("load")],
};

function actionItems() {
  const action = (name, aliases, go) => item(_("action"), name, aliases, go);
  const buttons = Object.entries(BUTTONS).flatMap(([selector, aliases]) => {
    const pressed = /** @type {HTMLButtonElement} */ (find(document, selector));
    return pressed && !pressed.disabled ? [action((find(pressed, ".title") ?? pressed).textContent.trim(), aliases.map(lookUpMessage), () => pressed.click())] : [];
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
    switchOffItem(state.layer, state.head),
    action(_("Keys"), [_("keyboard shortcuts"), _("help")], openKeys),
    ...languages,
  ];
}

/** Switches a head off, or on again. @param {number} layer @param {number} head */
function switchOffItem(layer, head) {
  const edit = `blocks.${layer}.attn.z.${head}*zero`, name = interventions().includes(edit) ? _("Switch head {layer}.{head} on again", { layer, head }) : _("Switch off head {layer}.{head}", { layer, head });
  return item(_("action"), name, [_("ablate"), _("ablate head"), _("switch head off"), _("turn off head")], () => toggleIntervention(edit, { of: "edits", adds: true }));
}

/** Opens what is seen as a sheet to print. */
async function printView() {
  const [{ openSlideSheet }, { makeSlide, viewTitle: nameOfView }] = await Promise.all([import("../teaching/worksheet.js"), import("../teaching/presentation_pages.js")]);
  const slide = makeSlide(state, currentFigure(), nameOfView());
  if (slide) openSlideSheet([slide]);
}

function termItems() {
  const [forms, meanings] = JSON.parse(find(document, "#glossary dl").dataset.known), byName = new Map();
  for (const [form, name] of Object.entries(forms)) byName.set(name, [...(byName.get(name) ?? []), form]);
  return [...byName].map(([name, all]) => item(_("term"), all[0], all.slice(1), () => goToTerm(all[0]), meanings[name]));
}

const positionItems = () => findAll(document, "#strip .chip").map((chip, position) => ({
  ...item(_("position"), chip.textContent, [], () => select({ query: position }), _("position {position}", { position })), isToken: true,
}));

/** @param {Index | null} index @returns {Item[]} */
function listItems(index) {
  const checkpoints = (index?.checkpoints ?? []).filter((name) => name !== state.checkpoint).map((name) => {
    const step = /\/step-0*(\d+)$/.exec(name);
    const aliases = [`${_("checkpoint")} ${name}`, ...(step ? [_("step {step}", { step: step[1] })] : [])];
    return item(_("checkpoint"), name, aliases, () => goToCheckpoint(name));
  });
  const lessons = (index?.lessons ?? []).map(({ name, title, audience, steps }) =>
    item(_("lesson"), title, [name], () => goToStep(name, Math.min(lessonPositions()[name]?.step ?? 1, steps)), audience));
  return [...viewItems(index), ...actionItems(), ...checkpoints, ...lessons, ...positionItems(), ...termItems()];
}

const SWITCH_OFF = /^\s*(?:ablate|switch off|turn off)\b|\boff\s*$/i;

/** What numbers in a query name. @param {string} query @param {Index} index @returns {Item[]} */
function numberedItems(query, { layers, heads, neurons, vocabulary }) {
  const words = { layer: [_("layer")], head: [_("head")], neuron: [_("neuron")], position: [_("position")] };
  const chips = findAll(document, "#strip .chip");
  const hook = readHook(query);
  if (hook && hook.layer < layers) return [item(_("layer"), _("Layer {layer}", { layer: hook.layer }), [], () => select(hook), query.trim())];
  const named = query.replace(SWITCH_OFF, ""), isSwitch = named !== query; // "ablate 4.4"
  return readNumbers(named, words).flatMap(({ kind, layer = state.layer, index }) => {
    if (kind === "token") return vocabulary && index < vocabulary.length ? [tokenItem(index, vocabulary[index])] : [];
    if (kind === "position") return index < chips.length ? [positionItems()[index]] : [];
    if (isSwitch) return kind === "head" && layer < layers && index < heads ? [switchOffItem(layer, index)] : [];
    if (layer >= layers || (kind === "head" && index >= heads) || (kind === "neuron" && index >= neurons)) return [];
    if (kind === "layer") return [item(_("layer"), _("Layer {layer}", { layer }), [], () => pickIn({ layer }, "attention"))];
    if (kind === "head") return [item(_("head"), _("Head {layer}.{head}", { layer, head: index }), [], () => pickIn({ layer, head: index }, "attention"))];
    return [item(_("neuron"), _("Neuron {neuron} of layer {layer}", { neuron: index, layer }), [], () => pickIn({ layer, neuron: index }, "feed_forward"))];
  });
}

/** @param {number} id @param {string} text @returns {Item} */
const tokenItem = (id, text) => ({ kind: _("token"), name: text, words: [], go: () => void goToToken(id), detail: _("token {id}", { id }), isToken: true });

/**
 * The best of all for what is typed, the best first.
 * @param {string} typed
 * @param {Item[]} items
 * @param {Found[]} others found otherwise
 */
function best(typed, items, others) {
  const query = typed.startsWith("·") ? "" : normalize(typed), counts = new Map(); // a space in sight is of a token
  const fit = ({ words, kind }) => Math.max(...words.map((word, i) => {
    const fits = kind === _("action") && `${word} `.startsWith(`${query} `) ? EXACT - +(word !== query) : score(word, query); // who types an action's first word wants it
    return fits && fits - ALIAS_COST * Math.min(i, 1) + VIEW_BONUS * +(kind === _("view") || ([_("figure"), _("head score")].includes(kind) && fits === EXACT));
  }));
  const scored = query ? items.map((one) => ({ item: one, score: fit(one) })) : [];
  const found = [...others, ...scored].filter(({ score }) => score > 0).sort((a, b) => b.score - a.score);
  return found.filter(({ item: { kind }, score }) => {
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    return counts.get(kind) <= MAX_OF_A_KIND || score >= EXACT;
  }).slice(0, MAX_SHOWN).map(({ item }) => item);
}

// Python's list is asked for once a model; of a large vocabulary Python finds the tokens.

/** @type {{ model: string, index: Promise<Index> } | null} */
let asked = null;
/** A vocabulary in lower case. @type {WeakMap<Index, string[]>} */
const lowered = new WeakMap();

function fetchIndex() {
  const model = modelName(state.checkpoint);
  if (asked?.model !== model) {
    const index = call("search_index", [state]);
    asked = { model, index };
    index.catch(() => { asked = null; });
  }
  return asked.index;
}

/** @param {string} typed @param {Index} index @returns {Found[]} */
function findInVocabulary(typed, index) {
  if (!index.vocabulary) return [];
  if (!lowered.has(index)) lowered.set(index, index.vocabulary.map((token) => token.toLowerCase()));
  const text = typed.replaceAll("·", " "), isTyped = ({ id }) => +(index.vocabulary[id] === text); // in its very case
  const ranked = rankTokens(lowered.get(index), typed, 4 * MAX_TOKENS).sort((a, b) => isTyped(b) - isTyped(a));
  return ranked.slice(0, MAX_TOKENS).map(({ id, score }, i) => ({ item: tokenItem(id, index.vocabulary[id]), score: score - i / 100 }));
}

// The box to type in, and what is found.

/** What Enter does with an item, by its kind; with any other one it chooses it. @returns {Record<string, string>} */
const effects = () => ({
  [_("view")]: _("opens this view"), [_("figure")]: _("goes to this figure"), [_("head score")]: _("shows this head score"),
  [_("action")]: _("does this"), [_("checkpoint")]: _("opens this model"), [_("lesson")]: _("opens this lesson"),
  [_("token")]: _("explains this token’s logit"), [_("position")]: _("chooses this token of the prompt"), [_("term")]: _("opens the glossary at this term"),
});

/** @type {ReturnType<typeof makeSearch> | null} */
let search = null;

/** Opens the search; where it is open, selects what was typed. @param {string} [typed] meanwhile */
export function openSearch(typed = "") {
  search ??= makeSearch();
  search.open(typed);
}

function makeSearch() {
  const input = make("input", { type: "text", role: "combobox", autocomplete: "off", spellcheck: false, maxLength: 80, placeholder: _("view, lesson, term, head 4.4, neuron n3.287, token, action …"), ariaLabel: _("Search or jump"), ariaAutoComplete: "list", ariaExpanded: "true" });
  const list = make("ul", { id: "search-results", role: "listbox", ariaLabel: _("found") }), told = make("p", { className: "told", role: "status" });
  const dialog = make("dialog", { id: "search-dialog", className: "palette", ariaLabel: _("Search or jump") }, input, told, list);
  /** @type {Item[]} */
  let items = [], shown = [];
  /** @type {Index | null} */
  let index = null;
  let active = 0, unwanted = new AbortController();
  input.setAttribute("aria-controls", list.id);
  document.body.append(dialog);

  /** @param {Found[]} [fromPython] tokens of a vocabulary that is not here */
  function show(fromPython = []) {
    const typed = input.value, query = normalize(typed);
    const numbered = index ? numberedItems(typed, index).map((item, i) => ({ item, score: 2 * EXACT - i })) : [];
    shown = query || typed ? best(typed, items, [...numbered, ...(index ? findInVocabulary(typed, index) : []), ...fromPython]) : items.filter(({ kind }) => kind === _("view")).slice(0, MAX_SHOWN);
    list.replaceChildren(...shown.map(row));
    setText(told, !query || shown.length ? "" : _("Nothing here is called “{typed}”. Try L2H3, L3N287, 4.3 or a word.", { typed }));
    activate(0);
  }

  /** @param {Item} item @param {number} i */
  function row({ kind, name, detail, isToken }, i) {
    const title = span(isToken ? "name token" : "name", ...(isToken ? tokenNodes(name) : [name]));
    const effect = effects()[kind] ?? _("chooses this"); // outside of the other `_`, within which no message is extracted
    const made = make("li", { id: `search-result-${i}`, role: "option" }, title, span("detail", detail ?? ""), span("effect", _("Enter {effect}", { effect })), span("kind", kind));
    made.addEventListener("pointermove", () => { if (active !== i) activate(i); });
    made.addEventListener("click", () => choose(i));
    return made;
  }

  /** @param {number} i */
  function activate(i) {
    active = i;
    for (const [j, option] of [...list.children].entries()) option.ariaSelected = String(j === i);
    list.children[i]?.scrollIntoView({ block: "nearest" });
    if (shown[i]) input.setAttribute("aria-activedescendant", `search-result-${i}`);
    else input.removeAttribute("aria-activedescendant");
  }

  /** @param {number} i */
  function choose(i) {
    if (!shown[i]) return;
    dialog.close(); // before, as what is chosen may take the focus
    shown[i].go();
  }

  async function findOnServer() {
    unwanted.abort();
    unwanted = new AbortController();
    if (!index || index.vocabulary || !input.value.trim()) return;
    const matches = await call("find_tokens", [state, input.value], unwanted.signal).catch(() => []);
    const found = matches.slice(0, MAX_TOKENS).map(([id, text], i) => ({ item: tokenItem(id, text), score: (normalize(text) === normalize(input.value) ? WHOLE_TOKEN : PART_OF_TOKEN) - i / 10 }));
    if (found.length) show(found);
  }

  input.addEventListener("input", () => { show(); findOnServer(); });
  dialog.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && shown.length) activate((active + by + shown.length) % shown.length);
    else if (event.key === "Enter" && !event.isComposing) choose(active);
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("click", ({ target }) => { if (target === dialog) dialog.close(); }); // beside it

  return {
    /** @param {string} typed */
    open(typed) {
      if (dialog.open && !typed) return input.select();
      items = listItems(index);
      input.value = typed;
      show();
      if (!dialog.open) dialog.showModal();
      fetchIndex().then((now) => {
        index = now;
        items = listItems(index);
        if (dialog.open) { show(); findOnServer(); }
      }, () => {});
    },
  };
}

// The keys that the page knows.

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
let keys = null;

/** Lists the keys. */
export function openKeys() {
  if (!keys) {
    const rows = KEYS.flatMap(([names, meaning]) => [make("dt", {}, ...names.map((name) => make("kbd", {}, name))), make("dd", {}, lookUpMessage(meaning))]);
    keys = make("dialog", { id: "keys", className: "palette", ariaLabel: _("Keys") }, make("h2", {}, _("Keys")), make("dl", {}, ...rows), button(_("Close"), () => keys.close()));
    keys.addEventListener("click", ({ target }) => { if (target === keys) keys.close(); });
    document.body.append(keys);
  }
  if (!keys.open) keys.showModal();
}

/** @param {HTMLElement} element */
export function searchButton(element) {
  find(element, ".open").addEventListener("click", () => openSearch());
}

// How well a text that somebody types fits a name, and which element of the model it names by numbers.

/** A name in which case, accents, and what stands between words make no difference. @param {string} text */
export const normalize = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().replace(/[\s·_/-]+/g, " ").trim();

export const EXACT = 100;
export const WHOLE_TOKEN = 90, PART_OF_TOKEN = 25; // what has a name goes before a token of the same text
const BEGINNING_OF_TOKEN = 45;
const PREFIX = 80, WORDS = 60, PART = 40, FUZZY = 20;

/**
 * How well a query fits a name: the whole, its beginning, beginnings of its words, a part, or its letters in their
 * order; 0 where it does not. Of names that fit alike the shortest is best. Both are normalized.
 * @param {string} name
 * @param {string} query
 */
export function score(name, query) {
  if (name === query) return EXACT;
  const rest = Math.min(9, (name.length - query.length) / 10);
  if (name.startsWith(query)) return PREFIX - rest;
  const padded = ` ${name}`;
  if (query.split(" ").every((word) => padded.includes(` ${word}`))) return WORDS - rest;
  if (query.length > 1 && name.includes(query)) return PART - rest;
  return query.length > 3 && isAbbreviated(name, query) ? FUZZY - rest : 0;
}

/** Whether a query's letters are in a name in their order, from the beginning of a word on, with few others between. */
function isAbbreviated(name, query) {
  const letters = query.replaceAll(" ", "");
  for (let start = 0; start >= 0; start = name.indexOf(" ", start + 1)) {
    let at = name.startsWith(" ", start) ? start + 1 : start;
    const first = at;
    if (name[at] !== letters[0]) continue;
    let count = 0;
    for (; at < name.length && count < letters.length; at++) if (name[at] === letters[count]) count++;
    if (count === letters.length && at - first <= 2 * letters.length) return true;
  }
  return false;
}

/**
 * The places of a vocabulary's best tokens for a text, with their scores. A space or · before it makes a difference
 * only among equals.
 * @param {string[]} vocabulary in lower case
 * @param {string} typed
 * @param {number} count
 * @returns {{ id: number, score: number }[]}
 */
export function rankTokens(vocabulary, typed, count) {
  const text = typed.replaceAll("·", " ").replaceAll("↵", "\n").toLowerCase(), word = text.trim() || text;
  if (!text) return [];
  const found = [];
  for (let id = 0; id < vocabulary.length; id++) {
    const token = vocabulary[id], at = token.indexOf(word);
    if (at < 0) continue;
    const rest = Math.min(9, (token.length - word.length) / 10);
    const isWhole = token.trim() === word || token === word, begins = at === 0 || (at === 1 && token[0] === " ");
    if (!isWhole && word.length < 2) continue;
    found.push({ id, score: token === text ? WHOLE_TOKEN + 1 : isWhole ? WHOLE_TOKEN : (begins ? BEGINNING_OF_TOKEN : PART_OF_TOKEN) - rest });
  }
  return found.sort((a, b) => b.score - a.score || a.id - b.id).slice(0, count);
}

// Numbers that name a layer, a head, a neuron or a position.

/** @typedef {{ kind: "layer" | "head" | "neuron" | "position" | "token", layer?: number, index?: number }} Place */

/**
 * What a query names by numbers: "4.4", "L4H4" and "head 4 4" are a head, "n3.287" and "ffn 3 287" a neuron, "L4" a
 * layer; a number alone may be a layer, a position or a token's id. Without its layer a head or neuron is of the
 * chosen one.
 * @param {string} query
 * @param {Record<"layer" | "head" | "neuron" | "position", string[]>} [words] more words for each
 * @returns {Place[]}
 */
export function readNumbers(query, words = { layer: [], head: [], neuron: [], position: [] }) {
  const any = (/** @type {"layer" | "head" | "neuron" | "position"} */ kind, ...english) => `(?:${[...english, ...words[kind]].map(escapeRegExp).join("|")})`;
  const layer = any("layer", "layer", "block", "l"), head = any("head", "head", "h", "attention");
  const neuron = any("neuron", "feed-forward", "neuron", "ffn", "mlp", "n"), position = any("position", "position", "pos", "#");
  const match = (pattern) => new RegExp(`^${pattern}$`, "iu").exec(query.trim().replace(/\s+/g, " "))?.slice(1).map(Number);
  const number = "(\\d{1,6})", gap = "(?:\\s?[.,:/]\\s?| )";
  const two = (kind) => `(?:${kind} ?)?${number}${gap}${number}`;
  const both = (kind) => `${layer} ?${number}[ ,.]?\\s?${kind} ?${number}`;
  /** @type {Place[]} */
  const places = [];
  const inLayer = (kind) => match(`${kind} ?${number}(?: (?:of|in) | ?,? ?)${layer} ?${number}`)?.reverse(); // "head 4 of layer 3", "head 4 layer 3"
  const neurons = match(`${neuron} ?${number}${gap}${number}`) ?? match(both(neuron)) ?? inLayer(neuron);
  if (neurons) return [{ kind: "neuron", layer: neurons[0], index: neurons[1] }];
  const heads = match(two(head)) ?? match(both(head)) ?? inLayer(head);
  if (heads) return [{ kind: "head", layer: heads[0], index: heads[1] }];
  for (const [kind, words] of /** @type {["layer" | "head" | "neuron" | "position", string][]} */ ([["layer", layer], ["head", head], ["neuron", neuron], ["position", position]])) {
    const one = match(`${words} ?${number}`);
    if (one) places.push(kind === "layer" ? { kind, layer: one[0] } : { kind, index: one[0] });
  }
  const alone = match(number);
  if (alone) places.push({ kind: "layer", layer: alone[0] }, { kind: "position", index: alone[0] }, { kind: "token", index: alone[0] });
  return places;
}

// TransformerLens' names of what a block computes -> the view that shows it.
const HOOK_VIEWS = [["attn.hook_rot", "positions"], ["attn.", "attention"], ["mlp.", "feed_forward"], ["hook_mlp_", "feed_forward"], ["hook_", "residual"], ["ln", "residual"]];

/** What a name such as "blocks.4.attn.hook_pattern" is about; null for any other text. @param {string} query */
export function readHook(query) {
  const [, layer, rest] = /^blocks\.(\d{1,6})\.((?:(?:attn|mlp|ln\d)\.)?hook_\w+)$/.exec(query.trim()) ?? [];
  return rest ? { layer: +layer, view: HOOK_VIEWS.find(([begin]) => rest.startsWith(begin))[1] } : null;
}

const escapeRegExp = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
