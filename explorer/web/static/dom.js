// @ts-check
// Helpers for elements in HTML and SVG, built of text, since a prompt must never be parsed as markup. Also keyboard focus,
// scrolling, colours and themes, dropdowns, the text of tokens, and notices.
import { END_OF_TEXT_TOKENS, THEMES } from "./shared_constants.js";
import { _, ngettext } from "./text.js";

/**
 * Create an element with properties, including `dataset`, and children.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} [properties]
 * @param {...(string | Node)} contents
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, { dataset, ...properties } = {}, ...contents) {
  const element = Object.assign(document.createElement(tag), properties);
  Object.assign(element.dataset, dataset);
  element.append(...contents);
  return element;
}

/** @param {string} className @param {...(string | Node)} contents */
export const span = (className, ...contents) => make("span", { className }, ...contents);

/** @param {string} text @param {() => void} onClick @param {Record<string, any>} [properties] */
export function button(text, onClick, properties) {
  const element = make("button", { type: "button", ...properties }, text);
  element.addEventListener("click", onClick);
  return element;
}

/**
 * Return the first element in a box that matches a selector.
 * @param {ParentNode} box
 * @param {string} selector
 * @returns {HTMLElement}
 */
export const find = (box, selector) => box.querySelector(selector);

/** Return all matching elements. @param {ParentNode} box @param {string} selector @returns {HTMLElement[]} */
export const findAll = (box, selector) => Array.from(box.querySelectorAll(selector));

/** Set an element's text if it differs, since the browser would lay out an unchanged text again. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Count the draws of an element in data-draws. */
export function countDraw(element) {
  element.dataset.draws = String(+(element.dataset.draws || 0) + 1);
}

// SVG nodes are reused: only attributes that changed are set.

const SVG = "http://www.w3.org/2000/svg";

/** @param {string} tag @param {string} [className] @param {...(string | Node)} children @returns {SVGElement} */
export function makeSvg(tag, className, ...children) {
  const node = document.createElementNS(SVG, tag);
  if (className) node.setAttribute("class", className);
  node.append(...children);
  return node;
}

/** @param {Element} node @param {Record<string, any>} attributes */
export function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes))
    if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
}

/**
 * Add or remove children until a group has `count`. Existing ones stay.
 * @param {Element} group
 * @param {number} count
 * @param {() => SVGElement} make
 * @returns {SVGElement[]}
 */
export function resizeChildren(group, count, make) {
  while (group.children.length > count) group.lastChild.remove();
  while (group.children.length < count) group.append(make());
  return /** @type {SVGElement[]} */ (Array.from(group.children));
}

// Keyboard shortcuts, which work everywhere except in text fields.

/** Return whether a key belongs to the focused text field, or to the browser because of a modifier. @param {KeyboardEvent} event */
export function isKeyForFocus({ target, altKey, ctrlKey, metaKey }) {
  const element = /** @type {Element} */ (target);
  if (altKey || ctrlKey || metaKey) return true;
  return "closest" in element && Boolean(element.closest("textarea, select, [contenteditable=true], input:not([type=checkbox], [type=radio], [type=button], [type=range])"));
}

// Rarely used controls are behind a button on a phone. On a wide screen they are visible without it (page.css).

/** Create a fold button without a text. page.css says what it opens. */
export function makeFoldButton() {
  const fold = button("", () => toggleFold(fold), { className: "fold", ariaExpanded: "false" });
  return fold;
}

/** @param {HTMLElement} fold */
export function toggleFold(fold) {
  fold.ariaExpanded = String(fold.ariaExpanded !== "true");
}

// Roving focus among items in rows and columns: the Tab key stops at one item, the arrow keys move on from there.

/** @typedef {{ row: number, column: number }} Cell */
/** @typedef {{ rows: number, columns: number }} Size */

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * Return the cell that a key leads to, or null if it leads nowhere, as up and down in a single row. Home and End lead to the
 * ends of a single row or column. Beyond an end is that end, or the other one if `round`.
 * @param {string} key
 * @param {Cell} from
 * @param {Size} size
 * @returns {Cell | null}
 */
export function indexAfterKey(key, { row, column }, { rows, columns }, round = false) {
  const isRow = rows === 1 && columns > 1, isColumn = columns === 1 && rows > 1;
  const last = { Home: 0, End: Math.max(rows, columns) - 1 }[key];
  if (last !== undefined) return isRow ? { row, column: last } : isColumn ? { row: last, column } : null;
  const [down, right] = STEPS[key] ?? [0, 0];
  const clampOrWrap = (index, count) => (round ? (index + count) % count : Math.max(0, Math.min(count - 1, index)));
  if (down && rows > 1) return { row: clampOrWrap(row + down, rows), column };
  if (right && columns > 1) return { row, column: clampOrWrap(column + right, columns) };
  return null;
}

/**
 * Let the arrow keys, Home and End move the focus in a box. With Alt, Ctrl or Meta they are the browser's own.
 * @param {HTMLElement} box
 * @param {object} items
 * @param {(event: KeyboardEvent) => Cell | null} items.at focused cell; null if no item has the focus
 * @param {() => Size} items.size
 * @param {(to: Cell, from: Cell) => void} items.go
 * @param {boolean} [items.round] whether the first item follows the last
 */
export function addRovingFocus(box, { at, size, go, round }) {
  box.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const current = at(event), next = current && indexAfterKey(event.key, current, size(), round);
    if (!next) return;
    event.preventDefault();
    if (next.row !== current.row || next.column !== current.column) go(next, current);
  });
}

/**
 * Make one of the items the only tab stop.
 * @param {Iterable<HTMLElement>} items
 * @param {HTMLElement | null} tabStop
 */
export function setTabStop(items, tabStop) {
  for (const item of items) item.tabIndex = item === tabStop ? 0 : -1;
}

// Arrow keys among boxes anywhere on a plane.

/** Left, upper, right and lower edge. @typedef {number[]} Box */

/** Direction of each arrow key, to the right and down. @type {Record<string, [number, number]>} */
export const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** @param {Box} box @returns {[number, number]} */
export const centre = ([left, upper, right, lower]) => [(left + right) / 2, (upper + lower) / 2];

/**
 * Return the index of the nearest box in a direction, by the centres; sideways distance counts double. Return `from` if
 * there is none.
 * @param {Box[]} boxes
 * @param {number} from
 * @param {[number, number]} direction
 */
export function nearestInDirection(boxes, from, [right, down]) {
  const [x, y] = centre(boxes[from]);
  let nearestIndex = from, minDistance = Infinity;
  boxes.forEach((box, i) => {
    const [dx, dy] = centre(box).map((coordinate, axis) => coordinate - [x, y][axis]);
    const ahead = dx * right + dy * down, distance = ahead + 2 * Math.abs(dx * down + dy * right);
    if (ahead > 0.5 && distance < minDistance) [nearestIndex, minDistance] = [i, distance];
  });
  return nearestIndex;
}

/** Functions that update the tab stop of each toolbar. @type {(() => void)[]} */
const toolbars = [];
const IN_POPUP = ":not(.list *, [role=dialog] *, details > :not(summary) *, .what-ifs *)";
const TOOLS = ["button:not([role=tab], .chip)", "summary", "select", "input:is([type=checkbox], [type=radio])"].map((tool) => tool + IN_POPUP).join();

/**
 * Make the buttons and choices in a box one tab stop, in which the left and right keys move. Text fields and popups keep
 * these keys and tab stops of their own.
 * @param {HTMLElement} box
 * @param {string} [name] label for a box without a role
 */
export function makeToolbar(box, name) {
  if (name) Object.assign(box, { role: "toolbar", ariaLabel: name });
  const tools = () => findAll(box, TOOLS).filter((tool) => tool.offsetWidth && !/** @type {any} */ (tool).disabled);
  /** @type {HTMLElement | null} */
  let lastFocused = null;
  box.addEventListener("focusin", ({ target }) => { lastFocused = /** @type {HTMLElement} */ (target); });
  addRovingFocus(box, {
    at: ({ target }) => {
      const column = tools().indexOf(/** @type {HTMLElement} */ (target));
      return column < 0 ? null : { row: 0, column };
    },
    size: () => ({ rows: 1, columns: tools().length }),
    go: ({ column }) => tools()[column].focus(),
  });
  toolbars.push(() => {
    const enabledTools = tools();
    setTabStop(enabledTools, enabledTools.includes(lastFocused) ? lastFocused : enabledTools[0] ?? null);
  });
}

/** Update the tab stops of all toolbars before the Tab key moves the focus. */
export function updateToolbarsOnTab() {
  document.addEventListener("keydown", ({ key }) => { if (key === "Tab") for (const update of toolbars) update(); }, { capture: true });
}

// Boxes that scroll sideways.

/** Give the style sheet its labels for boxes that scroll. @param {string} sideways @param {string} down */
export function labelScrolls(sideways, down) {
  document.documentElement.style.setProperty("--scrolls", JSON.stringify(sideways));
  document.documentElement.style.setProperty("--scrolls-down", JSON.stringify(down));
}

/**
 * Set data-more, by which the style sheet marks the sides of a box where more can be scrolled into view.
 * @param {HTMLElement} box
 * @param {Element} content
 */
export function markSidewaysScroll(box, content) {
  const updateMarks = () => {
    const left = box.scrollLeft > 1, right = box.scrollLeft + box.clientWidth < box.scrollWidth - 1;
    const more = [left && "left", right && "right"].filter(Boolean).join(" ");
    if (box.dataset.more === more) return;
    box.dataset.more = more;
    box.closest("[data-widget] > .html-container")?.classList.toggle("scrolls", Boolean(more));
  };
  box.addEventListener("scroll", updateMarks, { passive: true });
  const observer = new ResizeObserver(updateMarks);
  observer.observe(box);
  observer.observe(content);
}

/** Hide a widget's element and the block around it, so that its neighbours take its room. @param {HTMLElement} element @param {boolean} isHidden */
export function setHidden(element, isHidden) {
  element.hidden = isHidden;
  element.closest("[data-widget]")?.classList.toggle("hidden", isHidden);
}

const FADE_PX = 32; // width of the fade at both ends of a box that scrolls sideways (page.css)

/** Scroll a box sideways until a target in viewport coordinates is visible. @param {Element} box @param {{ left: number, right: number }} target */
export function scrollSidewaysTo(box, target) {
  const boxRect = box.getBoundingClientRect();
  box.scrollLeft += Math.max(0, target.right + FADE_PX - boxRect.right) || Math.min(0, target.left - FADE_PX - boxRect.left);
}

/**
 * Make a box without buttons focusable while its content overflows, so that the keyboard can scroll it.
 * @template {HTMLElement} Box
 * @param {Box} box
 * @returns {Box}
 */
export function makeFocusableWhileScrolling(box) {
  const updateTabIndex = () => {
    if (box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  };
  new ResizeObserver(updateTabIndex).observe(box);
  new MutationObserver(() => requestAnimationFrame(updateTabIndex)).observe(box, { childList: true, characterData: true, subtree: true });
  return box;
}

// Colours as channels: red, green and blue, 0 to 255.

/** @typedef {number[]} Channels */

/** Parse "#rrggbb". @param {string} hex @returns {Channels} */
export const parseHexColour = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

/**
 * Interpolate a colour scale.
 * @param {[number, Channels][]} stops positions, from 0 to 1, and their colours
 * @param {number} share position on the scale, 0 to 1
 * @returns {Channels}
 */
export function colourAt(stops, share) {
  const position = Math.max(0, Math.min(1, share)), i = Math.max(1, stops.findIndex(([tabStop]) => tabStop >= position));
  const [[from, firstFocus], [to, last]] = [stops[i - 1], stops[i]];
  return firstFocus.map((channel, j) => channel + ((last[j] - channel) * (position - from)) / (to - from));
}

/** Interpolate a scale of 256 colours. @param {string[]} hexes @returns {Channels[]} */
export function interpolatePalette(hexes) {
  const stops = hexes.map((hex, i) => /** @type {[number, Channels]} */ ([i / (hexes.length - 1), parseHexColour(hex)]));
  return Array.from({ length: 256 }, (_nothing, i) => colourAt(stops, i / 255));
}

/** Compute the relative luminance (WCAG 2.2), 0 to 1. @param {Channels} colour */
function luminance(colour) {
  const [r, g, b] = colour.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Return black or white, by the higher contrast with a background. The contrast is at least 4.58. @param {Channels} colour */
export const readableTextColour = (colour) => ((luminance(colour) + 0.05) ** 2 > 1.05 * 0.05 ? "black" : "white");

// Browser storage. Some frames have none: nothing is read then, and what is written is lost on reload.

/** @typedef {"localStorage" | "sessionStorage"} StorageArea */

/** Return a stored text, or null. @param {string} name @param {StorageArea} [area] @returns {string | null} */
export function readStorage(name, area = "localStorage") {
  try { return globalThis[area].getItem(name); } catch { return null; }
}

/** Return a stored object, or null. @param {string} name @param {StorageArea} [area] */
export function readStoredObject(name, area) {
  try { return JSON.parse(readStorage(name, area)); } catch { return null; }
}

/** Store a text or, as JSON, an object; null removes it. Return whether there is storage. @param {string} name @param {string | object | null} value @param {StorageArea} [area] */
export function writeStorage(name, value, area = "localStorage") {
  try {
    if (value === null) globalThis[area].removeItem(name);
    else globalThis[area].setItem(name, typeof value === "string" ? value : JSON.stringify(value));
    return true;
  } catch { return false; }
}

// Light and dark theme. `?__theme=` in the URL, which Gradio reads, takes precedence over the stored choice, and that over
// the system's theme.

const STORAGE_KEY = "explorer:theme";
const themeEvents = new EventTarget();

/** Return the current theme's colours and Plotly template (style.py). */
export const currentTheme = () => THEMES[document.body.classList.contains("dark") ? "dark" : "light"];

/** Return what a function reads of the page's colours on paper, which is light. @template T @param {() => T} read @returns {T} */
export function readOnPaper(read) {
  const { classList } = document.body, isDark = classList.contains("dark"), style = make("style", {}, "* { transition: none !important; }");
  document.head.append(style);
  classList.remove("dark");
  try { return read(); } finally {
    if (isDark) classList.add("dark");
    style.remove();
  }
}

/** Call `listener` when the theme changes. @param {() => void} listener */
export const onThemeChange = (listener) => themeEvents.addEventListener("change", listener);

/** Switch to the other theme. */
export function toggleTheme() {
  const isDark = document.body.classList.toggle("dark"), url = new URL(location.href);
  url.searchParams.delete("__theme");
  history.replaceState(history.state, "", url);
  writeStorage(STORAGE_KEY, isDark ? "dark" : "light");
}

function applyStoredTheme() {
  const storedTheme = readStorage(STORAGE_KEY);
  if (storedTheme && !new URL(location.href).searchParams.has("__theme")) document.body.classList.toggle("dark", storedTheme === "dark");
}

/** Apply the stored theme, now and when the system's theme changes. */
export function watchTheme() {
  applyStoredTheme();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTimeout(applyStoredTheme)); // after Gradio, which follows the system's theme
  new MutationObserver(() => themeEvents.dispatchEvent(new Event("change"))).observe(document.body, { attributeFilter: ["class"] });
}

/** Close a menu on Escape and on a click outside. @param {HTMLDetailsElement} menu */
export function closeMenu(menu) {
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.stopPropagation();
    menu.open = false;
    find(menu, "summary").focus();
  });
  document.addEventListener("pointerdown", ({ target }) => { if (!menu.contains(/** @type {Node} */ (target))) menu.open = false; });
}

/**
 * Let a button open a list. The button, Escape, the header's other buttons and, unless it `stays`, a click outside close it.
 * @param {HTMLElement} opener the button
 * @param {HTMLElement} list placed below it, within the window
 * @param {object} options
 * @param {() => any} options.fill fills the list, which stays closed if this resolves to false
 * @param {() => HTMLElement | null} options.first returns the element to focus
 * @param {(button: DOMRect) => number} [options.left] preferred left edge
 * @param {() => boolean} [options.stays]
 * @param {boolean} [options.opens] whether the button opens it; false if it opens another list
 */
export function makeDropdown(opener, list, { fill, first: firstFocus, left = (button) => button.left, stays = () => false, opens: isOpenedByButton = true }) {
  async function show() {
    if ((await fill()) === false) return;
    list.hidden = false;
    list.scrollTop = 0;
    place();
    opener.ariaExpanded = "true";
    firstFocus()?.focus({ preventScroll: true });
  }
  function place() {
    const button = opener.getBoundingClientRect(), top = Math.max(8, button.bottom + 4);
    Object.assign(list.style, { top: `${top}px`, maxHeight: `calc(100dvh - ${top + 8}px)` });
    list.style.left = `${Math.max(8, Math.min(left(button), document.documentElement.clientWidth - list.offsetWidth - 8))}px`;
  }
  function hide() {
    if (list.contains(document.activeElement)) opener.focus({ preventScroll: true });
    list.hidden = true;
    opener.ariaExpanded = "false";
  }
  if (isOpenedByButton) opener.addEventListener("click", () => (list.hidden ? show() : hide()));
  window.addEventListener("resize", () => { if (!list.hidden) place(); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || list.hidden || document.body.classList.contains("presenting")) return; // Escape ends the presentation
    event.stopPropagation();
    hide();
  }, { capture: true });
  document.addEventListener("pointerdown", ({ target }) => {
    if (list.hidden || !(target instanceof Element) || list.contains(target) || (isOpenedByButton && opener.contains(target))) return;
    if (!stays() || target.closest("#header :is(button, summary)")) hide();
  });
  return { show, hide };
}

// Text of tokens. Invisible characters get a mark from CSS, so that the element's text stays exactly the token's.

/** Return whether a token is a part of a multi-byte character, which Python writes as \xNN. @param {string} token */
export const isPartOfCharacter = (token) => /^(\\x[0-9a-f]{2})+$/.test(token);

const NO_TEXT = "∅"; // as Python writes it
const INVISIBLE = /[\s\p{Cc}\p{Cf}]/u;

/**
 * Split a token into visible texts and single invisible characters with their marks.
 * @param {string} token
 * @returns {{ text: string, mark?: string }[]}
 */
export function splitToken(token) {
  if (!token) return [{ text: "", mark: NO_TEXT }];
  const parts = [];
  for (const character of token) {
    if (INVISIBLE.test(character)) parts.push({ text: character, mark: markForCharacter(character) });
    else if (parts.length && !parts.at(-1).mark) parts.at(-1).text += character;
    else parts.push({ text: character });
  }
  return parts;
}

function markForCharacter(character) {
  if (character === " ") return "·";
  if (character === "\n") return "↵";
  if (character === "\t") return "→";
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** Return a token's text with its marks, for a medium without CSS's. @param {string} token */
export const visibleText = (token) => splitToken(token).map(({ text, mark }) => mark ?? text).join("");

/** Render a token's text as nodes. @param {string} token @returns {(string | Node)[]} */
export function tokenNodes(token) {
  if (END_OF_TEXT_TOKENS.includes(token)) return [make("span", { className: "sign", title: token, dataset: { sign: _("■ end of text") } }, span("heard", token))];
  const meanings = { "·": _("a space, made visible"), "↵": _("a line break, made visible"), [NO_TEXT]: _("a token without a text") };
  return splitToken(token).map(({ text, mark }) =>
    (mark ? make("span", { className: "mark", title: meanings[mark] ?? "", dataset: { mark } }, text) : text));
}

const END_OF_TEXT_PATTERN = new RegExp(`(${END_OF_TEXT_TOKENS.map((token) => token.replace(/[|[\]/]/g, "\\$&")).join("|")})`);

/** Render a text of many tokens as nodes. @param {string} text @returns {(string | Node)[]} */
export const textNodes = (text) => text.split(END_OF_TEXT_PATTERN).filter(Boolean).flatMap((piece) => (END_OF_TEXT_TOKENS.includes(piece) ? tokenNodes(piece) : [piece]));

// Banner at the top of the page, for a lost connection or interrupted generation.

/** @type {HTMLElement} */
let banner;

/** Add the empty banner to the page. */
export function addBanner() {
  banner = make("div", { id: "connection", role: "status" });
  document.body.prepend(banner);
}

/** @param {string} words */
export function showBanner(words) { banner.textContent = words; }

// Notices, which disappear by themselves, and the length of the server's queue.

const NOTICE_DURATION_MS = 12_000;
/** @type {HTMLElement} */
let noticeList;
/** @type {HTMLElement} */
let queueStatus;

/** Add the list of notices to the page. */
export function addNotices() {
  noticeList = make("div", { id: "notices", role: "status" });
  document.body.append(noticeList);
}

/** Show a notice in place of the previous one of its kind. @param {string} text @param {string} [kind] @param {HTMLElement[]} buttons beside it */
export function notify(text, kind = text, ...buttons) {
  for (const previous of noticeList.children) if (/** @type {HTMLElement} */ (previous).dataset.kind === kind) previous.remove();
  const notice = make("div", { className: "notice", dataset: { text, kind } }, make("span", {}, text));
  notice.append(...buttons, button("×", () => notice.remove(), { ariaLabel: _("Close") }));
  noticeList.append(notice);
  setTimeout(() => notice.remove(), NOTICE_DURATION_MS);
}

/** Remove all notices, which belong to an earlier state. */
export function clearNotices() { noticeList?.replaceChildren(); }

/** Show how many requests wait, this one included; null removes the text. @param {number | null} count */
export function showQueueLength(count) {
  if (count === null && !queueStatus) return;
  if (!queueStatus) {
    queueStatus = make("div", { id: "place", role: "status" });
    find(document, "#prompt-row").append(queueStatus);
  }
  setText(queueStatus, count === null ? "" : ngettext("Many people use this server: {count} request waits.", "Many people use this server: {count} requests wait.", count));
}

/** Save a text or other content as a file. @param {BlobPart} content @param {string} name @param {string} type */
export function download(content, name, type) {
  const href = URL.createObjectURL(new Blob([content], { type }));
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href));
}
