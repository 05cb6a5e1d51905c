// @ts-check
// The page from the beginning: its views and widgets start here, and what Gradio's own events call, whose scripts
// (page.py) are in no module.
import { runAction, enableRequests, isBusy, isWriting, makeMove, select, runExample, setGenerating, stopWriting } from "./page_actions.js";
import { onServerReturn, watchServer } from "./server_connection.js";
import { whenAllDrawn, onContent, reportFailure, trackCurrentFigure } from "./widget_contents.js";
import { placeBanner, placeNotices, scrollSidewaysTo, closeMenu, find, findAll, updateToolbarsOnTab, watchTheme, isKeyForFocus, make, makeToolbar, labelSidewaysScroll, readStorage, writeStorage, addRovingFocus, setTabStop, markSidewaysScroll, toggleTheme, clearNotices } from "./dom.js";
import { copyLink, copyPython, saveFigureInSight, saveNumbersInSight, followBrowserHistory, storeLessonPositions, ROOM_STORAGE_KEY, lastAction, openStateFile, ROOM, undo, watchReloads } from "./history.js";
import { _, language, lookUpMessage, N_ } from "./translations.js";
import { addBaseElement, fetchPlotly, isPlotlyLoading } from "./plotly_figures.js";
import { OF_B, SELECTABLE, STORY_TABS, VIEW } from "./shared_constants.js";
import { bus, applyDepth, onEveryState, onState, ready, setState, initialView, state } from "./page_state.js";

export { beginWriting, controlValues, runPrompt, changeSettings } from "./page_actions.js";
export { state } from "./page_state.js";

// The one place for a view: what an answer brings of one stays, hidden while another is open. And the tabs, by pointer and
// keyboard.

/** @type {Map<string, HTMLElement>} */
const sections = new Map();

/** What is started, or about to be. @type {WeakMap<HTMLElement, Promise<void>>} */
const starts = new WeakMap();

/** Starts the widgets in a part of the page, but for what is loaded once it is used. @param {ParentNode} root */
const mount = (root) => Promise.all(findAll(root, "[data-widget]:not([data-mounted], [data-lazy])").map(startWidget));

/** Starts those of a module. @param {string} module its folder and name */
const need = (module) => Promise.all(findAll(document, `[data-module="${module}"]:not([data-mounted])`).map(startWidget));

/** @param {HTMLElement} block */
function startWidget(block) {
  if (!starts.has(block)) starts.set(block, startBy(block));
  return starts.get(block);
}

/** By the function of its name in the module of its folder. @param {HTMLElement} block */
async function startBy(block) {
  const { widget, module } = block.dataset, name = widget.replace(/_(.)/g, (_all, letter) => letter.toUpperCase());
  try { (await import(`../widgets/${module}.js`))[name](find(block, ".html-container")); } catch (error) {
    if (error instanceof TypeError && /module/.test(error.message)) dispatchEvent(new CustomEvent("explorer:missing", { detail: `${module}.js` }));
    reportFailure(error);
  }
  block.dataset.mounted = "";
}

const LAZY = "[data-lazy]:not([data-mounted])";

/** Loads the rest once it is used: a click, or the key that it is known by, is given to it again when it is there. */
function loadLater() {
  const at = (target) => /** @type {HTMLElement | null} */ (target.closest?.(LAZY));
  const load = ({ target }) => { if (at(target)) need(at(target).dataset.module); };
  for (const type of ["pointerdown", "focusin"]) document.addEventListener(type, load);
  document.addEventListener("click", async ({ target }) => {
    const block = at(target);
    if (!block) return;
    await need(block.dataset.module);
    /** @type {HTMLElement} */ (target).click();
  });
  document.addEventListener("keydown", async (event) => {
    const block = !isKeyForFocus(event) && findAll(document, LAZY).find(({ dataset }) => dataset.lazy === event.key.toLowerCase());
    if (!block) return;
    await need(block.dataset.module);
    event.target.dispatchEvent(new KeyboardEvent(event.type, event));
  });
  onEveryState(({ lesson }) => { if (lesson) need("teaching/lesson"); });
}

/** Opens the search, or the list of keys, by a key that nobody else has. @param {KeyboardEvent} event */
async function openByKey(event) {
  const isSearch = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k";
  if (!isSearch && (isKeyForFocus(event) || !["/", "?"].includes(event.key))) return;
  if (find(document, "body.presenting, #sheet, #walk .walk:not([hidden]), #keys[open]")) return;
  event.preventDefault();
  const stopTyping = collectTyping();
  await need("header/search");
  const { openKeys, openSearch } = await import("../widgets/header/search.js");
  const typed = stopTyping();
  if (event.key === "?") openKeys();
  else openSearch(typed);
}

/** Takes what is typed until the returned function is called, which returns it: the box that it is for is on its way. */
function collectTyping() {
  const stopping = new AbortController();
  let typed = "";
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key.length === 1 || event.key === "Backspace")) return;
    typed = event.key === "Backspace" ? typed.slice(0, -1) : typed + event.key;
    event.preventDefault();
    event.stopPropagation();
  }, { capture: true, signal: stopping.signal });
  return () => { stopping.abort(); return typed; };
}

/** Undoes by Ctrl Z, but for what is being typed: that is the browser's to undo. @param {KeyboardEvent} event */
function undoByKey(event) {
  if (event.key.toLowerCase() !== "z" || event.shiftKey || event.altKey || !(event.ctrlKey || event.metaKey)) return;
  const { target } = event, box = /** @type {Element} */ (target).closest("textarea, input:not([type=checkbox], [type=radio], [type=range])");
  const isTyped = box && (!box.closest("#prompt") || document.body.classList.contains("unrun"));
  if (isTyped || find(document, "body.presenting, #sheet") || /** @type {HTMLButtonElement} */ (find(document, "#undo")).disabled) return;
  event.preventDefault();
  undo();
}

/** A view's elements from its markup, which Python makes of its own words alone. @param {string} markup */
const parseMarkup = (markup) => document.createRange().createContextualFragment(markup);

/** Shows views where they have their place. */
function placeViews() {
  const place = find(document, `#${VIEW}`);
  onContent(place, ({ name, markup }) => {
    let section = sections.get(name);
    if (!section) {
      section = /** @type {HTMLElement} */ (parseMarkup(markup).firstElementChild);
      sections.set(name, section);
      place.append(section);
      mount(section);
      makeToolbar(find(section, ".view-tools"), _("tools of the view"));
      onState(section, () => placeSecondFigures(section, markup));
    }
    placeSecondFigures(section, markup);
    for (const [other, element] of sections) element.hidden = other !== name;
    find(section, ".view-tools").after(find(document, "#changes")); // below what changes the model: no tool moves
  });
  for (const bar of findAll(document, "[role=tablist]")) followTabs(bar);
  for (const menu of findAll(document, ".view-menu")) followMenu(/** @type {HTMLDetailsElement} */ (menu));
  for (const menu of findAll(document, "details.menu")) closeMenu(/** @type {HTMLDetailsElement} */ (menu));
}

/** Puts a place for B's figure beside each, once both are to be seen. @param {HTMLElement} section @param {string} markup of the view */
function placeSecondFigures(section, markup) {
  if (state.shown !== "both" || !state["b.checkpoint"] || find(section, ".of-b")) return;
  const copies = parseMarkup(markup);
  for (const block of findAll(section, ".panels > .block")) {
    const copy = find(copies, `#${block.id}`);
    copy.id += OF_B;
    copy.classList.add("of-b");
    block.after(copy);
  }
  mount(section);
}

/** A button that opens a list of views, and says which of them is open. @param {HTMLDetailsElement} menu */
function followMenu(menu) {
  const items = findAll(menu, "[data-view]"), summary = find(menu, "summary"), open = find(menu, ".open-view");
  menu.addEventListener("click", ({ target }) => {
    const item = /** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest("[data-view]"));
    if (!item) return;
    menu.open = false;
    summary.focus();
    if (item.dataset.view !== state.view) select({ view: item.dataset.view });
  });
  const follow = () => {
    const chosen = items.find(({ dataset }) => dataset.view === state.view);
    for (const item of items) item.ariaCurrent = item === chosen ? "page" : null;
    menu.classList.toggle("is-open", Boolean(chosen));
    open.textContent = chosen ? `: ${chosen.textContent}` : "";
  };
  onState(menu, follow);
  follow();
}

/** One stop of the Tab key, in which the arrow keys move. @param {HTMLElement} bar */
function followTabs(bar) {
  const tabs = findAll(bar, "[role=tab]"), chosen = () => tabs.find(({ dataset }) => dataset.view === state.view) ?? tabs[0];
  bar.addEventListener("click", ({ target }) => {
    const tab = /** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest("[role=tab]"));
    if (tab && tab.dataset.view !== state.view) select({ view: tab.dataset.view });
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
  let followed = ""; // the tab that was brought into sight: the bar may have been scrolled since
  const follow = () => {
    for (const tab of tabs) tab.ariaSelected = String(tab.dataset.view === state.view);
    setTabStop(tabs, chosen());
    if (followed !== state.view) queueMicrotask(() => scrollSidewaysTo(bar, chosen().getBoundingClientRect())); // once the bar is seen
    followed = state.view;
  };
  markSidewaysScroll(bar, tabs[0]);
  onState(bar, follow);
  follow();
}

// Words that Gradio has in English alone, in the page's language. Those that it has in more follow the language that the
// browser says it speaks, which the page's head makes the page's (page.py).

const WORDS = new Set([
  N_("Reset to default value"), N_("More tabs"), N_("Gradio footer navigation"), N_("Close"), N_("Warning"), N_("Error"),
  N_("Connection to the server was lost. Attempting reconnection..."), N_("Connection errored out."),
  N_("This application is currently busy. Please try again."),
]);
const LABELS = /** @type {[RegExp, (name: string) => string][]} */ ([
  [/^number input for (.+)$/s, (name) => _("number input for {name}", { name })],
  [/^range slider for (.+)$/s, (name) => _("range slider for {name}", { name })],
]);

/** Says them so wherever Gradio puts them, now and later. */
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
  const label = element.ariaLabel ?? "", said = translated(label);
  if (said !== label) element.ariaLabel = said;
}

/** @param {HTMLElement} box */
function translate(box) {
  for (const labelled of [box, ...findAll(box, "[aria-label]")]) relabel(labelled);
  for (const toast of box.querySelectorAll(".toast-title > span, .toast-title, .toast-message-text")) {
    const text = toast.firstChild;
    if (text instanceof Text) text.data = translated(text.data);
  }
}

/** @param {string} english */
function translated(english) {
  for (const [label, say] of LABELS) if (label.test(english)) return say(/** @type {string[]} */ (label.exec(english))[1]);
  return WORDS.has(english.trim()) ? lookUpMessage(english.trim()) : english;
}

// Past all that stands above the tabs, for those who go by the Tab key.

/** Puts a link first on the page, seen once it has the focus, that leads to the open tab. */
function placeSkip() {
  const link = make("a", { href: "#view", className: "skip" }, _("Skip to the figures"));
  Object.assign(link.style, { position: "fixed", top: "-60px" }); // before the style sheet says so, too: nothing moves
  link.addEventListener("click", (event) => {
    event.preventDefault();
    findAll(document, "[role=tab][aria-selected=true]").find((tab) => tab.offsetWidth)?.focus();
  });
  find(document, "body").prepend(link);
}

// What is there from the beginning; and what Gradio's own events call, whose scripts (page.py) are in no module.

let query = {}; // of the address that the page was opened with, before the state is written there

/** Gradio has built its components: their texts are to be in the page's language. */
export async function start() {
  await ready;
  const asked = Object.fromEntries(new URLSearchParams(location.search));
  setState(initialView());
  query = { depth: state.depth, ...asked };
  if (language === "en") build();
  else bus.localize(); // which builds then
}

/** Starts all widgets, and opens what the address names; the page is seen from then on. */
export async function build() {
  await mount(document);
  loadLater();
  placeViews();
  if (isInRoom()) need("teaching/class_session");
  if (isInRoom() || new URLSearchParams(location.search).get("lesson")) await need("teaching/lesson"); // which covers what would tell
  if (location.hash.startsWith("#places=")) need("teaching/presentation");
  followButtons();
  followPanel();
  makeToolbar(find(document, "#header > .html-container > div"), _("the page"));
  makeToolbar(find(document, "#navigation"));
  updateToolbarsOnTab();
  document.addEventListener("keydown", openByKey);
  document.addEventListener("keydown", undoByKey);
  document.body.classList.add("built");
  enableRequests();
  const load = () => runAction({ kind: "load", query });
  onServerReturn(() => { if (!state.checkpoint) load(); });
  load();
}

/** Python has ended writing, or failed. */
export const wrote = () => setGenerating(false);

/** Whether the address names a class's room, or this tab leads one. */
function isInRoom() {
  try { return new URLSearchParams(location.search).has(ROOM) || sessionStorage.getItem(ROOM_STORAGE_KEY) !== null; } catch { return false; } // not every frame has a storage
}

/** Slides from a file go to the list of saved ones. @param {any[]} slides */
async function takeSlides(slides) {
  await need("teaching/presentation");
  (await import("../widgets/teaching/presentation_pages.js")).receiveSlides(slides);
}

async function presentPage() {
  await need("teaching/presentation");
  (await import("../widgets/teaching/presentation.js")).present();
}

/** Buttons, of which one that has nothing to do cannot be pressed. */
function followButtons() {
  for (const example of findAll(document, "#examples button")) example.addEventListener("click", () => {
    /** @type {HTMLDetailsElement} */ (example.closest("details")).open = false;
    runExample(example.dataset.text);
  });
  const acts = { share: copyLink, "copy-python": copyPython, "save-numbers": saveNumbersInSight, "save-png": saveFigureInSight, "save-svg": saveFigureInSight, theme: () => toggleTheme(), "open-file": () => openStateFile(takeSlides), "present-lesson": presentPage };
  for (const [id, act] of Object.entries(acts)) {
    const pressed = find(document, `#${id}`);
    pressed.addEventListener("click", () => act(pressed));
  }
  find(document, "#view").addEventListener("click", ({ target }) => {
    const pressed = /** @type {Element} */ (target).closest(".copy-python");
    if (pressed instanceof HTMLElement) copyPython(pressed);
  });
  for (const button of findAll(document, "[data-shows]")) followSwitch(button);
  const [undo, stopping, regenerate, generate] = ["undo", "stop", "regenerate", "generate"].map((id) => /** @type {HTMLButtonElement} */ (find(document, `#${id}`)));
  function follow() {
    const action = lastAction();
    undo.disabled = !action;
    undo.dataset.unit = { token: _("1 token"), edit: _("the change"), prompt: _("the prompt") }[action] ?? "";
    undo.title = { token: _("Takes back the last token (Ctrl Z)"), edit: _("Takes back the last change of the model (Ctrl Z)") }[action] ?? _("Brings back the prompt before this one, with its answer (Ctrl Z)");
    regenerate.disabled = !(state.generated?.length > (state.began ?? 0));
    stopping.disabled = !isWriting();
    generate.title = _("Writes up to {count} tokens", { count: String(state.max_new_tokens ?? "") });
  }
  onState(undo, follow);
  follow();
}

const OPENED = { stages: "#answer", more: "#draw" }; // what a switch opens -> where it begins

/** Shows and hides a part of the page, in this visit and the next: the body's class says so. @param {HTMLElement} button */
function followSwitch(button) {
  const { shows } = button.dataset, kept = `explorer-${shows}`;
  const show = (isOpen) => { button.ariaExpanded = String(isOpen); document.body.classList.toggle(`${shows}-open`, isOpen); };
  button.addEventListener("click", () => {
    show(button.ariaExpanded === "false");
    writeStorage(kept, String(button.ariaExpanded));
    if (button.ariaExpanded === "true") find(document, OPENED[shows] ?? "#none")?.scrollIntoView({ block: "nearest" }); // what opens may be out of sight
  });
  show(readStorage(kept) === "true");
}

/** Has the panel beside the figures go with the page until its end is in sight, and back until its top is. */
function followPanel() {
  const panel = find(document, "#generation");
  let shift = 0, scrolled = scrollY;
  function follow() {
    const top = parseFloat(getComputedStyle(panel).top) || 0, room = innerHeight - (top - shift) - panel.offsetHeight;
    shift = Math.min(0, Math.max(room, shift - (scrollY - scrolled)));
    scrolled = scrollY;
    panel.style.setProperty("--panel-shift", `${shift}px`);
  }
  addEventListener("scroll", follow, { passive: true });
  new ResizeObserver(follow).observe(panel);
}

// The page for scripts: `window.explorer`.

window.explorer = Object.freeze({
  /** The state, its fields named as in the address. */
  get state() { return Object.freeze(structuredClone(state)); },
  /** Changes fields of the selection or settings; resolved once all that follows is painted. @param {import("./page_state.js").State} change */
  async select(change) {
    const unknown = Object.keys(change).filter((name) => !SELECTABLE.includes(name));
    if (unknown.length) throw new TypeError(`unknown: ${unknown.join(", ")}; select takes ${SELECTABLE.join(", ")}`);
    await settled();
    select(change);
    bus.sync();
    return settled();
  },
  settled,
});

/** Resolved once no question is open and nothing is being drawn. */
function settled() { return whenAllDrawn(() => isBusy() || isWriting() || isPlotlyLoading || !state.checkpoint); }

addBaseElement();
if (initialView().view !== STORY_TABS[0]) fetchPlotly();
watchTheme(); // before anything is drawn
document.documentElement.lang = language;
translateGradio();
labelSidewaysScroll(_("scrolls sideways"));
applyDepth();
storeLessonPositions();
trackCurrentFigure();
placeBanner();
placeNotices();
placeSkip();
watchServer();
watchReloads();
followBrowserHistory();
onEveryState((now, before) => { if (before.view && now.view !== before.view) clearNotices(); });
onEveryState(({ checkpoint }) => document.body.classList.toggle("loaded", Boolean(checkpoint)));

// At once: a script of Gradio's would have to import this module first, and another token may be shown meanwhile.
document.addEventListener("click", ({ target }) => {
  const button = /** @type {Element} */ (target).closest("#stop, #undo, #step");
  if (button?.id === "stop") stopWriting();
  if (button?.id === "undo") undo();
  if (button?.id === "step") makeMove({ kind: "step" });
});
