// @ts-check
// Entry point of the page: starts its views and widgets, and exports what Gradio's events call (page.py), whose scripts
// belong to no module.
import { ablatedHead, changeSettings, runAction, enableRequests, isBusy, isWriting, makeMove, select, runExample, runPrompt, setGenerating, stopWriting, syncControls } from "./page_actions.js";
import { onServerReturn, watchServer } from "./server_connection.js";
import { whenAllDrawn, onContent, reportFailure, trackCurrentFigure } from "./widget_contents.js";
import { addBanner, addNotices, scrollSidewaysTo, closeMenu, find, findAll, updateToolbarsOnTab, watchTheme, isKeyForFocus, make, makeToolbar, labelScrolls, readStorage, writeStorage, addRovingFocus, setTabStop, markSidewaysScroll, toggleTheme, clearNotices } from "./dom.js";
import { copyLink, copyPython, nameFigureInSight, saveFigureInSight, saveNumbersInSight, followBrowserHistory, storeLessonPositions, ROOM_STORAGE_KEY, restorableEdits, undoableAction, undoableTokens, openStateFile, ROOM, undo, watchReloads } from "./history.js";
import { _, language, lookUpMessage, ngettext, N_ } from "./text.js";
import { addBaseElement, fetchPlotly, isPlotlyLoading } from "./plotly_figures.js";
import { SELECTABLE, STORY_TABS } from "./shared_constants.js";
import { gradioEvents, applyDepth, onEveryState, onState, gradioReady, setState, initialView, state } from "./page_state.js";

export { beginWriting, controlValues, runPrompt, changeSettings } from "./page_actions.js";
export { state } from "./page_state.js";

// Views. Each has one section, which stays, hidden, while another view is open.

/** @type {Map<string, HTMLElement>} */
const sections = new Map();

/** Widgets that were started. @type {WeakMap<HTMLElement, Promise<void>>} */
const startPromises = new WeakMap();

/** Start the widgets in a part of the page, except lazy ones. @param {ParentNode} root */
const startWidgets = (root) => Promise.all(findAll(root, "[data-widget]:not([data-mounted], [data-lazy])").map(startWidget));

/** Start a module's widgets. @param {string} module its folder and name */
const startModule = (module) => Promise.all(findAll(document, `[data-module="${module}"]:not([data-mounted])`).map(startWidget));

/** @param {HTMLElement} block */
function startWidget(block) {
  if (!startPromises.has(block)) startPromises.set(block, callWidgetFunction(block));
  return startPromises.get(block);
}

/** Call the widget's function in its module. @param {HTMLElement} block */
async function callWidgetFunction(block) {
  const { widget, module } = block.dataset, name = widget.replace(/_(.)/g, (_all, letter) => letter.toUpperCase());
  try { (await import(`../widgets/${module}.js`))[name](find(block, ".html-container")); } catch (error) {
    if (error instanceof TypeError && /module/.test(error.message)) dispatchEvent(new CustomEvent("explorer:missing", { detail: `${module}.js` }));
    reportFailure(error);
  }
  block.dataset.mounted = "";
}

const LAZY = "[data-lazy]:not([data-mounted])";

/** Start lazy widgets on first use, and repeat the click or the key that caused it. */
function loadLazyWidgets() {
  const lazyBlock = (target) => /** @type {HTMLElement | null} */ (target.closest?.(LAZY));
  const load = ({ target }) => { if (lazyBlock(target)) startModule(lazyBlock(target).dataset.module); };
  for (const type of ["pointerdown", "focusin"]) document.addEventListener(type, load);
  document.addEventListener("click", async ({ target }) => {
    const block = lazyBlock(target);
    if (!block) return;
    await startModule(block.dataset.module);
    /** @type {HTMLElement} */ (target).click();
  });
  document.addEventListener("keydown", async (event) => {
    const block = !isKeyForFocus(event) && findAll(document, LAZY).find(({ dataset }) => dataset.lazy === event.key.toLowerCase());
    if (!block) return;
    await startModule(block.dataset.module);
    event.target.dispatchEvent(new KeyboardEvent(event.type, event));
  });
  onEveryState(({ lesson }) => { if (lesson) startModule("teaching/lesson"); });
}

/** Open the search or the list of keyboard shortcuts. @param {KeyboardEvent} event */
async function openByKey(event) {
  const isSearch = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k";
  if (!isSearch && (isKeyForFocus(event) || !["/", "?"].includes(event.key))) return;
  if (find(document, "body.presenting, #sheet, #walk .walk:not([hidden]), #keys[open]")) return;
  event.preventDefault();
  const stopTyping = collectTyping();
  await startModule("header/search");
  const { openKeys, openSearch } = await import("../widgets/header/search.js");
  const typed = stopTyping();
  if (event.key === "?") openKeys();
  else openSearch(typed);
}

/** Collect keystrokes until the returned function is called, which returns them. Used while a text box is loading. */
function collectTyping() {
  const listening = new AbortController();
  let typed = "";
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key.length === 1 || event.key === "Backspace")) return;
    typed = event.key === "Backspace" ? typed.slice(0, -1) : typed + event.key;
    event.preventDefault();
    event.stopPropagation();
  }, { capture: true, signal: listening.signal });
  return () => { listening.abort(); return typed; };
}

/** Undo on Ctrl Z, except in a text that is being typed, where the browser undoes. @param {KeyboardEvent} event */
function undoByKey(event) {
  if (event.key.toLowerCase() !== "z" || event.shiftKey || event.altKey || !(event.ctrlKey || event.metaKey)) return;
  const { target } = event, box = /** @type {Element} */ (target).closest("textarea, input:not([type=checkbox], [type=radio], [type=range])");
  const isTyped = box && (!box.closest("#prompt") || document.body.classList.contains("unrun"));
  if (isTyped || find(document, "body.presenting, #sheet") || /** @type {HTMLButtonElement} */ (find(document, "#undo")).disabled) return;
  event.preventDefault();
  undo();
}

/** Parse a view's markup, which contains only Python's own text. @param {string} markup */
const parseMarkup = (markup) => document.createRange().createContextualFragment(markup);

/** Connect the views, the tabs and the menus. */
function placeViews() {
  const viewBox = find(document, "#view");
  onContent(viewBox, ({ name, markup }) => {
    let section = sections.get(name);
    if (!section) {
      section = /** @type {HTMLElement} */ (parseMarkup(markup).firstElementChild);
      sections.set(name, section);
      viewBox.append(section);
      startWidgets(section);
      makeToolbar(find(section, ".view-tools"), _("tools of the view"));
      onState(() => placeSecondFigures(section, markup));
    }
    placeSecondFigures(section, markup);
    for (const [otherName, element] of sections) element.hidden = otherName !== name;
    find(section, ".view-tools").after(find(document, "#changes")); // below the controls, so that none moves
  });
  for (const bar of findAll(document, "[role=tablist]")) connectTabs(bar);
  for (const menu of findAll(document, ".view-menu")) connectMenu(/** @type {HTMLDetailsElement} */ (menu));
  for (const menu of findAll(document, "details.menu")) closeMenu(/** @type {HTMLDetailsElement} */ (menu));
}

/** Add a figure of run B beside each of A's once both are to be visible. @param {HTMLElement} section @param {string} markup of the view */
function placeSecondFigures(section, markup) {
  if (state.shown !== "both" || !state["b.checkpoint"] || find(section, ".of-b")) return;
  const copies = parseMarkup(markup);
  for (const block of findAll(section, ".panels > .block")) {
    const copy = find(copies, `#${block.id}`);
    copy.id += "-b";
    for (const walk of copy.querySelectorAll("[data-widget=walkthrough_button]")) walk.remove(); // walkthroughs are of A
    copy.classList.add("of-b");
    block.after(copy);
  }
  startWidgets(section);
}

/** Connect a menu of views, whose button names the open one. @param {HTMLDetailsElement} menu */
function connectMenu(menu) {
  const items = findAll(menu, "[data-view]"), summary = find(menu, "summary"), open = find(menu, ".open-view");
  menu.addEventListener("click", ({ target }) => {
    const item = /** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest("[data-view]"));
    if (!item) return;
    menu.open = false;
    summary.focus();
    if (item.dataset.view !== state.view) select({ view: item.dataset.view });
  });
  const update = () => {
    const openItem = items.find(({ dataset }) => dataset.view === state.view);
    for (const item of items) item.ariaCurrent = item === openItem ? "page" : null;
    menu.classList.toggle("is-open", Boolean(openItem));
    open.textContent = openItem ? `: ${openItem.textContent}` : "";
  };
  onState(update);
  update();
}

/** Connect a bar of tabs: one tab stop, in which the arrow keys move. @param {HTMLElement} bar */
function connectTabs(bar) {
  const tabs = findAll(bar, "[role=tab]"), selectedTab = () => tabs.find(({ dataset }) => dataset.view === state.view) ?? tabs[0];
  bar.addEventListener("click", ({ target }) => {
    const tab = /** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest("[role=tab]"));
    const view = tab?.dataset.view, hasOpenPart = view === "overview" && state.open; // its tab leads to the whole model
    if (tab && (view !== state.view || hasOpenPart)) select({ view, ...(hasOpenPart && { open: "" }) });
  });
  addRovingFocus(bar, {
    at: ({ target }) => {
      const column = tabs.indexOf(/** @type {HTMLElement} */ (target));
      return column < 0 ? null : { row: 0, column };
    },
    size: () => ({ rows: 1, columns: tabs.length }),
    go: ({ column }) => {
      tabs[column].focus();
      tabs[column].click();
    },
    round: true,
  });
  let scrolledTab = ""; // last tab that was scrolled into view, as the user may scroll the bar afterwards
  const update = () => {
    for (const tab of tabs) tab.ariaSelected = String(tab.dataset.view === state.view);
    const focusedTab = tabs.find((tab) => tab === document.activeElement);
    if (focusedTab?.ariaSelected === "false" && selectedTab().ariaSelected === "true") selectedTab().focus({ preventScroll: true }); // a jump by other means: no frame stays on the tab that was left
    setTabStop(tabs, selectedTab());
    if (scrolledTab !== state.view) queueMicrotask(() => scrollSidewaysTo(bar, selectedTab().getBoundingClientRect())); // once the bar is visible
    scrolledTab = state.view;
  };
  markSidewaysScroll(bar, tabs[0]);
  onState(update);
  update();
}

// Gradio's own texts. Those that it has only in English are translated here. The others follow the browser's language, which
// the page's head sets to the page's (page.py).

const GRADIO_MESSAGES = new Set([
  N_("Reset to default value"), N_("More tabs"), N_("Gradio footer navigation"), N_("Close"), N_("Warning"), N_("Error"),
  N_("Connection to the server was lost. Attempting reconnection..."), N_("Connection errored out."),
  N_("This application is currently busy. Please try again."),
]);
const GRADIO_LABELS = /** @type {[RegExp, (name: string) => string][]} */ ([
  [/^number input for (.+)$/s, (name) => _("number input for {name}", { name })],
  [/^range slider for (.+)$/s, (name) => _("range slider for {name}", { name })],
]);

/** Translate Gradio's texts, now and whenever it adds some. */
function translateGradio() {
  if (language === "en") return;
  translate(document.body);
  new MutationObserver((changes) => {
    for (const { target, addedNodes } of changes) {
      relabel(/** @type {HTMLElement} */ (target));
      for (const added of addedNodes) if (added instanceof HTMLElement) translate(added);
    }
  }).observe(document.body, { childList: true, subtree: true, attributeFilter: ["aria-label"] });
}

/** @param {HTMLElement} element */
function relabel(element) {
  const label = element.ariaLabel ?? "", translation = translateMessage(label);
  if (translation !== label) element.ariaLabel = translation;
}

/** @param {HTMLElement} box */
function translate(box) {
  for (const labelled of [box, ...findAll(box, "[aria-label]")]) relabel(labelled);
  for (const toast of box.querySelectorAll(".toast-title > span, .toast-title, .toast-message-text")) {
    const text = toast.firstChild;
    if (text instanceof Text) text.data = translateMessage(text.data);
  }
}

/** @param {string} english */
function translateMessage(english) {
  for (const [label, translateName] of GRADIO_LABELS) if (label.test(english)) return translateName(/** @type {string[]} */ (label.exec(english))[1]);
  return GRADIO_MESSAGES.has(english.trim()) ? lookUpMessage(english.trim()) : english;
}

/** Add a link at the top that skips to the open tab. It is visible while it has the focus. */
function addSkipLink() {
  const link = make("a", { href: "#view", className: "skip" }, _("Skip to the figures"));
  Object.assign(link.style, { position: "fixed", top: "-60px" }); // also set by the style sheet; here it avoids a layout shift before that
  link.addEventListener("click", (event) => {
    event.preventDefault();
    findAll(document, "[role=tab][aria-selected=true]").find((tab) => tab.offsetWidth)?.focus();
  });
  find(document, "body").prepend(link);
}

// Start of the page.

let initialQuery = {}; // of the page's first URL, before the state is written there
let beginsWithOwnChances = false;
const OWN_CHANCES = { temperature: "1", top_k: "0" }; // with which a story and the bare address begin: one kind of chance, until a slider is moved

/** Start the page once Gradio has built its components, whose texts may need another language. */
export async function start() {
  await gradioReady;
  const urlQuery = Object.fromEntries(new URLSearchParams(location.search));
  setState(initialView());
  beginsWithOwnChances = !isInRoom() && !["prompt", "text", "lesson", ...(state.depth === "story" ? [] : ["view"])].some((name) => name in urlQuery);
  initialQuery = { depth: state.depth, ...(beginsWithOwnChances && OWN_CHANCES), ...urlQuery };
  if (language === "en") build();
  else gradioEvents.localize(); // calls `build` afterwards
}

/** Start all widgets and open what the URL names. The page becomes visible. */
export async function build() {
  await startWidgets(document);
  loadLazyWidgets();
  placeViews();
  if (isInRoom()) startModule("teaching/class_session");
  if (isInRoom() || new URLSearchParams(location.search).get("lesson")) await startModule("teaching/lesson"); // before anything is drawn that a question covers
  if (location.hash.startsWith("#places=")) startModule("teaching/presentation");
  connectButtons();
  connectPanel();
  makeToolbar(find(document, "#header > .html-container > div"), _("the page"));
  makeToolbar(find(document, "#navigation"));
  updateToolbarsOnTab();
  document.addEventListener("keydown", openByKey);
  document.addEventListener("keydown", undoByKey);
  document.body.classList.add("built");
  enableRequests();
  const load = () => runAction({ kind: "load", query: initialQuery });
  onServerReturn(() => { if (!state.checkpoint) load(); });
  load();
}

/** Record that Python has finished or failed to generate. */
export const endGeneration = () => setGenerating(false);

/** Return whether the URL names a class's room, or this tab leads one. */
const isInRoom = () => new URLSearchParams(location.search).has(ROOM) || readStorage(ROOM_STORAGE_KEY, "sessionStorage") !== null;

/** Add slides from a file to the stored ones. @param {any[]} slides */
async function takeSlides(slides) {
  await startModule("teaching/presentation");
  (await import("../widgets/teaching/presentation.js")).receiveSlides(slides);
}

async function presentPage() {
  await startModule("teaching/presentation");
  (await import("../widgets/teaching/presentation.js")).present();
}

/** Change the theme, and close the menu, as a language does. @param {HTMLElement} themeButton */
function changeTheme(themeButton) {
  const menu = /** @type {HTMLDetailsElement} */ (themeButton.closest("details"));
  toggleTheme();
  menu.open = false;
  find(menu, "summary").focus();
}

/** Return what stands on the button after "Undo", and its title. @param {ReturnType<typeof undoableAction>} action */
function labelUndo(action) {
  const [edit] = action === "edit" ? restorableEdits() : [], head = edit && ablatedHead(edit);
  if (action === "token") return [ngettext("{count} token", "{count} tokens", undoableTokens()), _("Takes back what the last action wrote (Ctrl Z)")];
  if (head) return ["", _("Switch layer {layer} head {head} off again (Ctrl Z)", head)];
  if (edit) return ["", _("Changes the model again, as before (Ctrl Z)")];
  if (action === "edit") return [_("the change"), _("Takes back the last change of the model (Ctrl Z)")];
  return [action ? _("new text") : "", _("Brings back the prompt before this one, with its answer (Ctrl Z)")];
}

/** Reset a setting to what a story, or this page, began with; Gradio would lead back to its own defaults. @param {Event} event */
function resetToOwnChances(event) {
  const reset = /** @type {Element} */ (event.target).closest(".reset-button");
  if (!reset || !(beginsWithOwnChances || state.depth === "story")) return;
  event.stopPropagation();
  const { id } = reset.closest("#temperature, #top_k");
  changeSettings({ [id]: +OWN_CHANCES[id] });
  syncControls();
}

/** Connect the buttons, and disable those without effect. */
function connectButtons() {
  for (const example of findAll(document, "#examples button")) example.addEventListener("click", () => {
    /** @type {HTMLDetailsElement} */ (example.closest("details")).open = false;
    runExample(example.dataset.text);
  });
  const actions = { share: copyLink, "copy-python": copyPython, "save-numbers": saveNumbersInSight, "save-png": saveFigureInSight, "save-svg": saveFigureInSight, theme: changeTheme, "open-file": () => openStateFile(takeSlides), "present-lesson": presentPage };
  for (const [id, action] of Object.entries(actions)) {
    const headerButton = find(document, `#${id}`);
    headerButton.addEventListener("click", () => action(headerButton));
  }
  find(document, "#save-png").closest("details").addEventListener("toggle", nameFigureInSight);
  find(document, "#view").addEventListener("click", ({ target }) => {
    const copyButton = /** @type {Element} */ (target).closest(".copy-python");
    if (copyButton instanceof HTMLElement) copyPython(copyButton);
  });
  for (const button of findAll(document, "[data-shows]")) connectSwitch(button);
  find(document, "#sampling").addEventListener("click", resetToOwnChances, true);
  const [undo, stop, regenerate, generate] = ["undo", "stop", "regenerate", "generate"].map((id) => /** @type {HTMLButtonElement} */ (find(document, `#${id}`)));
  function update() {
    const action = undoableAction(), [unit, title] = labelUndo(action);
    undo.disabled = !action;
    undo.dataset.unit = unit;
    undo.title = title;
    regenerate.disabled = !(state.generated?.length > (state.began ?? 0));
    stop.disabled = !isWriting();
    generate.title = _("Writes up to {count} tokens", { count: String(state.max_new_tokens ?? "") });
  }
  onState(update);
  onEveryState(update); // once the history knows what can be undone
  update();
}

const SWITCH_TARGETS = { stages: "#answer", more: "#draw" }; // switch -> beginning of what it opens

/** Connect a switch that shows a part of the page, by a class of the body. The choice is stored. @param {HTMLElement} button */
function connectSwitch(button) {
  const { shows } = button.dataset, storageKey = `explorer-${shows}`;
  const show = (isOpen) => { button.ariaExpanded = String(isOpen); document.body.classList.toggle(`${shows}-open`, isOpen); };
  button.addEventListener("click", () => {
    show(button.ariaExpanded === "false");
    writeStorage(storageKey, String(button.ariaExpanded));
    if (button.ariaExpanded === "true") find(document, SWITCH_TARGETS[shows] ?? "#none")?.scrollIntoView({ block: "nearest" }); // the opened part may be out of sight
  });
  document.addEventListener("click", ({ target }) => { if (/** @type {Element} */ (target).closest(`[data-opens="${shows}"]`)) show(true); });
  show(readStorage(storageKey) === "true");
}

/** Scroll the panel beside the figures with the page until its end is visible, and back until its top is. */
function connectPanel() {
  const panel = find(document, "#generation");
  let shift = 0, lastScrollY = scrollY;
  function update() {
    const top = parseFloat(getComputedStyle(panel).top) || 0, bottomRoom = innerHeight - (top - shift) - panel.offsetHeight;
    shift = Math.min(0, Math.max(bottomRoom, shift - (scrollY - lastScrollY)));
    lastScrollY = scrollY;
    panel.style.setProperty("--panel-shift", `${shift}px`);
  }
  addEventListener("scroll", update, { passive: true });
  new ResizeObserver(update).observe(panel);
}

// API for scripts: `window.explorer`.

window.explorer = Object.freeze({
  /** Copy of the state, with fields named as in the URL. */
  get state() { return Object.freeze(structuredClone(state)); },
  /** Change fields of the selection or settings. Resolves once everything that follows is painted. @param {import("./page_state.js").State} change */
  async select(change) {
    const unknownNames = Object.keys(change).filter((name) => !SELECTABLE.includes(name));
    if (unknownNames.length) throw new TypeError(`unknown: ${unknownNames.join(", ")}; select takes ${SELECTABLE.join(", ")}`);
    await settled();
    select(change);
    gradioEvents.sync();
    return settled();
  },
  settled,
});

/** Resolve once no request is open and everything is drawn. */
function settled() { return whenAllDrawn(() => isBusy() || isWriting() || isPlotlyLoading || !state.checkpoint); }

addBaseElement();
if (initialView().view !== STORY_TABS[0]) fetchPlotly();
watchTheme(); // before anything is drawn
document.documentElement.lang = language;
translateGradio();
labelScrolls(_("scrolls sideways"), _("scrolls down"));
applyDepth();
storeLessonPositions();
trackCurrentFigure();
addBanner();
addNotices();
addSkipLink();
watchServer();
watchReloads();
followBrowserHistory();
onEveryState((now, before) => { if (before.view && now.view !== before.view) clearNotices(); });
onEveryState(({ checkpoint }) => document.body.classList.toggle("loaded", Boolean(checkpoint)));

// Step and Generate continue the text in the box, so a typed one runs first.
document.addEventListener("click", async (event) => {
  /** @type {HTMLButtonElement | null} */
  const button = /** @type {Element} */ (event.target).closest("#step, #generate");
  if (!button || !document.body.classList.contains("unrun")) return;
  event.stopPropagation();
  if (await runPrompt(/** @type {HTMLTextAreaElement} */ (find(document, "#prompt textarea")).value)) button.click();
}, { capture: true });

// Handled here: a script of Gradio's would import this module first, and another token might appear meanwhile.
document.addEventListener("click", ({ target }) => {
  const button = /** @type {Element} */ (target).closest("#stop, #undo, #step");
  if (button?.id === "stop") stopWriting();
  if (button?.id === "undo") undo();
  if (button?.id === "step") makeMove({ kind: "step" });
});
