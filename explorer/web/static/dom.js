// @ts-check
// Elements of the page, in HTML and SVG, built of text: what comes from a prompt is never read as markup. How the
// keyboard and scrolling go about in them, in which colours they are, light or dark, and what the page says besides.
import { END_OF_TEXT_TOKENS, THEMES } from "./shared_constants.js";
import { _, ngettext } from "./translations.js";

// Elements, built of text: what comes from a prompt is never read as markup.

/**
 * An element with its own properties, `dataset` among them, and contents.
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

/** @param {string} text @param {() => void} act @param {Record<string, any>} [properties] */
export function button(text, act, properties) {
  const made = make("button", { type: "button", ...properties }, text);
  made.addEventListener("click", act);
  return made;
}

/**
 * The first element in a box that a selector names.
 * @param {ParentNode} box
 * @param {string} selector
 * @returns {HTMLElement}
 */
export const find = (box, selector) => box.querySelector(selector);

/** All of them. @param {ParentNode} box @param {string} selector @returns {HTMLElement[]} */
export const findAll = (box, selector) => Array.from(box.querySelectorAll(selector));

/** Writes a text where another stands: what is as before costs the browser nothing. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Counts how often an element has been drawn, as data-draws. */
export function countDraw(element) {
  element.dataset.draws = String(+(element.dataset.draws || 0) + 1);
}

/**
 * Calls `listener` at every event of a target, until the element has left the page.
 * @param {Element} element
 * @param {EventTarget} target
 * @param {string} type
 * @param {() => void} listener
 */
export function listenFor(element, target, type, listener) {
  const wrapped = () => {
    if (element.isConnected) listener();
    else target.removeEventListener(type, wrapped);
  };
  target.addEventListener(type, wrapped);
}

// SVG whose nodes stay: only those of their attributes change that have another value.

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
  for (const [name, now] of Object.entries(attributes))
    if (node.getAttribute(name) !== String(now)) node.setAttribute(name, String(now));
}

/**
 * As many children as wanted; those that are there stay.
 * @param {Element} group
 * @param {number} count
 * @param {() => SVGElement} make
 * @returns {SVGElement[]}
 */
export function many(group, count, make) {
  while (group.children.length > count) group.lastChild.remove();
  while (group.children.length < count) group.append(make());
  return /** @type {SVGElement[]} */ (Array.from(group.children));
}

// Keys that work anywhere on the page, but where somebody writes.

/** Whether a key belongs to what has the focus: somebody writes there, or a modifier makes it the browser's. @param {KeyboardEvent} event */
export function isElsewhere({ target, altKey, ctrlKey, metaKey }) {
  const at = /** @type {Element} */ (target);
  if (altKey || ctrlKey || metaKey) return true;
  return "closest" in at && Boolean(at.closest("textarea, select, [contenteditable=true], input:not([type=checkbox], [type=radio], [type=button], [type=range])"));
}

// On a telephone, what is chosen seldom is behind a button that says what is chosen (page.css); on a wide screen it is
// there without one.

/** A button that opens what page.css says; it says nothing yet. */
export function foldButton() {
  const made = button("", () => toggleFold(made), { className: "fold", ariaExpanded: "false" });
  return made;
}

/** @param {HTMLElement} fold */
export function toggleFold(fold) {
  fold.ariaExpanded = String(fold.ariaExpanded !== "true");
}

// The keyboard among items in rows and columns: the Tab key stops at one of them, the arrow keys go on from there.

/** @typedef {{ row: number, column: number }} Place */
/** @typedef {{ rows: number, columns: number }} Size */

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/**
 * Where a key leads; null where it leads nowhere at all, as up and down do in a single row. Home and End lead to the ends
 * of a single row or column. Beyond an end is that end, or the other one where the items go `round`.
 * @param {string} key
 * @param {Place} from
 * @param {Size} size
 * @returns {Place | null}
 */
export function indexAfterKey(key, { row, column }, { rows, columns }, round = false) {
  const isRow = rows === 1 && columns > 1, isColumn = columns === 1 && rows > 1;
  const end = { Home: 0, End: Math.max(rows, columns) - 1 }[key];
  if (end !== undefined) return isRow ? { row, column: end } : isColumn ? { row: end, column } : null;
  const [down, right] = STEPS[key] ?? [0, 0];
  const within = (at, count) => (round ? (at + count) % count : Math.max(0, Math.min(count - 1, at)));
  if (down && rows > 1) return { row: within(row + down, rows), column };
  if (right && columns > 1) return { row, column: within(column + right, columns) };
  return null;
}

/**
 * Lets the arrow keys, Home and End go about in a box. With Alt, Ctrl or Meta they are the browser's own.
 * @param {HTMLElement} box
 * @param {object} items
 * @param {(event: KeyboardEvent) => Place | null} items.at where the keyboard is; null where it is at no item
 * @param {() => Size} items.size
 * @param {(to: Place, from: Place) => void} items.go
 * @param {boolean} [items.round] whether the first item comes after the last
 */
export function rove(box, { at, size, go, round }) {
  box.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const from = at(event), to = from && indexAfterKey(event.key, from, size(), round);
    if (!to) return;
    event.preventDefault();
    if (to.row !== from.row || to.column !== from.column) go(to, from);
  });
}

/**
 * Makes one of the items the only stop of the Tab key.
 * @param {Iterable<HTMLElement>} items
 * @param {HTMLElement | null} stop
 */
export function setTabStop(items, stop) {
  for (const item of items) item.tabIndex = item === stop ? 0 : -1;
}

// The keyboard among boxes anywhere on a plane: an arrow key goes to what is next in its direction.

/** Left, upper, right and lower edge. @typedef {number[]} Box */

/** The step of an arrow key, to the right and down. @type {Record<string, [number, number]>} */
export const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** @param {Box} box @returns {[number, number]} */
export const centre = ([left, upper, right, lower]) => [(left + right) / 2, (upper + lower) / 2];

/**
 * Which box is next to one of them in a direction, by their centres: what lies aside counts double. Itself if none is.
 * @param {Box[]} boxes
 * @param {number} from
 * @param {[number, number]} direction
 */
export function nearestInDirection(boxes, from, [right, down]) {
  const [x, y] = centre(boxes[from]);
  let nearest = from, least = Infinity;
  boxes.forEach((box, i) => {
    const [dx, dy] = centre(box).map((at, axis) => at - [x, y][axis]);
    const ahead = dx * right + dy * down, far = ahead + 2 * Math.abs(dx * down + dy * right);
    if (ahead > 0.5 && far < least) [nearest, least] = [i, far];
  });
  return nearest;
}

/** Each makes one item of a toolbar the stop. @type {(() => void)[]} */
const toolbars = [];
const IN_POPUP = ":not(.list *, [role=dialog] *, details > :not(summary) *, .what-ifs *)";
const TOOLS = ["button:not([role=tab], .chip)", "summary", "select", "input:is([type=checkbox], [type=radio])"].map((tool) => tool + IN_POPUP).join();

/**
 * Makes what can be pressed or chosen in a box one stop of the Tab key, in which the left and right keys go on. Boxes to
 * write in keep these keys, and a stop of their own; so does what opens.
 * @param {HTMLElement} box
 * @param {string} [name] of a box that is nothing else yet
 */
export function makeToolbar(box, name) {
  if (name) Object.assign(box, { role: "toolbar", ariaLabel: name });
  const tools = () => findAll(box, TOOLS).filter((tool) => tool.offsetWidth && !/** @type {any} */ (tool).disabled);
  /** @type {HTMLElement | null} */
  let last = null;
  box.addEventListener("focusin", ({ target }) => { last = /** @type {HTMLElement} */ (target); });
  rove(box, {
    at: ({ target }) => {
      const column = tools().indexOf(/** @type {HTMLElement} */ (target));
      return column < 0 ? null : { row: 0, column };
    },
    size: () => ({ rows: 1, columns: tools().length }),
    go: ({ column }) => tools()[column].focus(),
  });
  toolbars.push(() => {
    const all = tools();
    setTabStop(all, all.includes(last) ? last : all[0] ?? null);
  });
}

/** Has the toolbars know, before the focus moves, what can be pressed in them by then. */
export function followTabKey() {
  document.addEventListener("keydown", ({ key }) => { if (key === "Tab") for (const follow of toolbars) follow(); }, { capture: true });
}

// What is larger than its place, and scrolls there.

/** Has the style sheet know what to say of them. @param {string} words */
export const labelSidewaysScroll = (words) => document.documentElement.style.setProperty("--scrolls", JSON.stringify(words));

/**
 * Tells the style sheet, as data-more, on which sides of a box that scrolls sideways there is more to see.
 * @param {HTMLElement} box
 * @param {Element} content
 */
export function markSidewaysScroll(box, content) {
  const tell = () => {
    const left = box.scrollLeft > 1, right = box.scrollLeft + box.clientWidth < box.scrollWidth - 1;
    const more = [left && "left", right && "right"].filter(Boolean).join(" ");
    if (box.dataset.more === more) return;
    box.dataset.more = more;
    box.closest("[data-widget] > .html-container")?.classList.toggle("scrolls", Boolean(more));
  };
  box.addEventListener("scroll", tell, { passive: true });
  const resized = new ResizeObserver(tell);
  resized.observe(box);
  resized.observe(content);
}

/** Hides what a widget shows, and the block around it: its place goes to its neighbours. @param {HTMLElement} element @param {boolean} isHidden */
export function hide(element, isHidden) {
  element.hidden = isHidden;
  element.closest("[data-widget]")?.classList.toggle("hidden", isHidden);
}

const FADES = 32; // pixels at the ends of a box that scrolls sideways (page.css)

/** Scrolls a box sideways until what lies at some place of the window is in sight. @param {Element} box @param {{ left: number, right: number }} at */
export function scrollSidewaysTo(box, at) {
  const around = box.getBoundingClientRect();
  box.scrollLeft += Math.max(0, at.right + FADES - around.right) || Math.min(0, at.left - FADES - around.left);
}

/**
 * Lets the keyboard come to a box without buttons as long as there is more in it than is seen, and scroll it.
 * @template {HTMLElement} Box
 * @param {Box} box
 * @returns {Box}
 */
export function focusableWhileScrolling(box) {
  const follow = () => {
    if (box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  };
  new ResizeObserver(follow).observe(box);
  new MutationObserver(() => requestAnimationFrame(follow)).observe(box, { childList: true, characterData: true, subtree: true });
  return box;
}

// Colours as channels: red, green and blue from 0 to 255.

/** @typedef {number[]} Channels */

/** Channels of "#rrggbb". @param {string} hex @returns {Channels} */
export const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

/**
 * The colour at a share of the way along a scale, 0 to 1.
 * @param {[number, Channels][]} stops places, the first 0 and the last 1, and their colours
 * @param {number} share
 * @returns {Channels}
 */
export function along(stops, share) {
  const at = Math.max(0, Math.min(1, share)), i = Math.max(1, stops.findIndex(([stop]) => stop >= at));
  const [[from, first], [to, last]] = [stops[i - 1], stops[i]];
  return first.map((channel, j) => channel + ((last[j] - channel) * (at - from)) / (to - from));
}

/** A scale of 256 colours. @param {string[]} hexes @returns {Channels[]} */
export function palette(hexes) {
  const stops = hexes.map((hex, i) => /** @type {[number, Channels]} */ ([i / (hexes.length - 1), channels(hex)]));
  return Array.from({ length: 256 }, (_nothing, i) => along(stops, i / 255));
}

/** Relative luminance (WCAG 2.2), 0 to 1. @param {Channels} colour */
function luminance(colour) {
  const [r, g, b] = colour.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Of black and white the one that is read better on a colour; its contrast is 4.58 or more. @param {Channels} colour */
export const readableInkOn = (colour) => ((luminance(colour) + 0.05) ** 2 > 1.05 * 0.05 ? "black" : "white");

// Light or dark: what the visitor chose last, which outlives a reload. `?__theme=` in the address goes first, which Gradio
// reads, and without either it is the system's.

const CHOSEN = "explorer:theme"; // its place in the browser's storage
const changed = new EventTarget();

/** Colours and Plotly's template of the theme that the page has (style.py). */
export const theme = () => THEMES[document.body.classList.contains("dark") ? "dark" : "light"];

/** Calls `listener` when the page takes the other theme, until the widget's element has left the page. */
export const onTheme = (element, listener) => listenFor(element, changed, "change", listener);

/** Chooses the other theme. */
export function toggleTheme() {
  const isDark = document.body.classList.toggle("dark"), url = new URL(location.href);
  url.searchParams.delete("__theme");
  history.replaceState(history.state, "", url);
  remember(CHOSEN, isDark ? "dark" : "light");
}

/** What the browser keeps of this name; null for nothing. @param {string} name */
export function recall(name) {
  try { return localStorage.getItem(name); } catch { return null; } // not every frame has a storage
}

/** Has the browser keep it for the next visit. @param {string} name @param {string} value */
export function remember(name, value) {
  try { localStorage.setItem(name, value); } catch { /* for this visit, then */ }
}

function applyChosen() {
  const chosen = recall(CHOSEN);
  if (chosen && !new URL(location.href).searchParams.has("__theme")) document.body.classList.toggle("dark", chosen === "dark");
}

/** Has the page take the theme that was chosen, now and when the system's changes. */
export function followTheme() {
  applyChosen();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTimeout(applyChosen)); // Gradio follows it first
  new MutationObserver(() => changed.dispatchEvent(new Event("change"))).observe(document.body, { attributeFilter: ["class"] });
}

/** A list below a button closes by Escape and by a click elsewhere. @param {HTMLDetailsElement} menu */
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
 * A list that a button opens. It closes by the button, by Escape, by the header's other buttons and, unless it `stays`,
 * by a click elsewhere.
 * @param {HTMLElement} open the button
 * @param {HTMLElement} list placed below it, within the window
 * @param {object} options
 * @param {() => any} options.fill makes what the list shows; where it resolves to false, the list stays closed
 * @param {() => HTMLElement | null} options.first what gets the focus
 * @param {(button: DOMRect) => number} [options.left] where the list begins, if there is room
 * @param {() => boolean} [options.stays]
 * @param {boolean} [options.opens] whether the button opens it: one of another list may
 */
export function dropDown(open, list, { fill, first, left = (button) => button.left, stays = () => false, opens = true }) {
  async function show() {
    if ((await fill()) === false) return;
    const button = open.getBoundingClientRect(), top = Math.max(8, button.bottom + 4);
    list.hidden = false;
    Object.assign(list.style, { top: `${top}px`, maxHeight: `calc(100dvh - ${top + 8}px)` });
    list.style.left = `${Math.max(8, Math.min(left(button), document.documentElement.clientWidth - list.offsetWidth - 8))}px`;
    open.ariaExpanded = "true";
    first()?.focus({ preventScroll: true });
  }
  function hide() {
    if (list.contains(document.activeElement)) open.focus({ preventScroll: true });
    list.hidden = true;
    open.ariaExpanded = "false";
  }
  if (opens) open.addEventListener("click", () => (list.hidden ? show() : hide()));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || list.hidden || document.body.classList.contains("presenting")) return; // there it ends the presentation
    event.stopPropagation();
    hide();
  }, { capture: true });
  document.addEventListener("pointerdown", ({ target }) => {
    if (list.hidden || !(target instanceof Element) || list.contains(target) || (opens && open.contains(target))) return;
    if (!stays() || target.closest("#header :is(button, summary)")) hide();
  });
  return { show, hide };
}

// A token's text on the page. What cannot be seen gets a mark that is drawn by CSS, so that the element's text stays
// exactly the token's.

/** Whether a token is some bytes of a character that takes several tokens, as Python writes them. @param {string} token */
export const isPartOfCharacter = (token) => /^(\\x[0-9a-f]{2})+$/.test(token);

const NO_TEXT = "∅"; // as Python writes it
const INVISIBLE = /[\s\p{Cc}\p{Cf}]/u;

/**
 * A token's text in pieces, in their order: each is visible as it is, or one character with the mark that stands for it.
 * @param {string} token
 * @returns {{ text: string, mark?: string }[]}
 */
export function pieces(token) {
  if (!token) return [{ text: "", mark: NO_TEXT }];
  const found = [];
  for (const character of token) {
    if (INVISIBLE.test(character)) found.push({ text: character, mark: markOf(character) });
    else if (found.length && !found.at(-1).mark) found.at(-1).text += character;
    else found.push({ text: character });
  }
  return found;
}

function markOf(character) {
  if (character === " ") return "·";
  if (character === "\n") return "↵";
  if (character === "\t") return "→";
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** A token's text as nodes of the page. @param {string} token @returns {(string | Node)[]} */
export function tokenNodes(token) {
  if (END_OF_TEXT_TOKENS.includes(token)) return [make("span", { className: "sign", title: token, dataset: { sign: _("■ end of text") } }, span("heard", token))];
  const meanings = { "·": _("a space, made visible"), "↵": _("a line break, made visible"), [NO_TEXT]: _("a token without a text") };
  return pieces(token).map(({ text, mark }) =>
    (mark ? make("span", { className: "mark", title: meanings[mark] ?? "", dataset: { mark } }, text) : text));
}

const ENDS = new RegExp(`(${END_OF_TEXT_TOKENS.map((token) => token.replace(/[|[\]/]/g, "\\$&")).join("|")})`);

/** A text of many tokens as nodes of the page. @param {string} text @returns {(string | Node)[]} */
export const textNodes = (text) => text.split(ENDS).filter(Boolean).flatMap((piece) => (END_OF_TEXT_TOKENS.includes(piece) ? tokenNodes(piece) : [piece]));

/** A probability in percent, as Python's `format_percent` but short; "–" for none. @param {number | null} share */
export function percent(share) {
  if (share === null) return "–";
  if (share >= 0.995 && share < 1) return ">99%";
  if (share >= 0.1 || !share) return `${Math.round(100 * share)}%`;
  return share < 0.0001 ? "<0.01%" : `${(100 * share).toPrecision(2)}%`;
}

// What is said above all else: that nobody answers, or that writing broke off.

/** @type {HTMLElement} */
let banner;

/** Puts the banner, which says nothing yet, at the top of the page. */
export function placeBanner() {
  banner = make("div", { id: "connection", role: "status" });
  document.body.prepend(banner);
}

/** @param {string} words */
export function announce(words) { banner.textContent = words; }

// What Python tells a person besides what was asked for: sentences that go by themselves, and how many wait.

const STAYS_MS = 12_000;
/** @type {HTMLElement} */
let list;
/** @type {HTMLElement} */
let place;

/** Puts both into the page: the notices at its end, how many wait below the prompt. */
export function placeNotices() {
  list = make("div", { id: "notices", role: "status" });
  document.body.append(list);
}

/** Of each kind the last one stays. @param {string} text @param {string} [kind] */
export function notify(text, kind = text) {
  for (const other of list.children) if (/** @type {HTMLElement} */ (other).dataset.kind === kind) other.remove();
  const notice = make("div", { className: "notice", dataset: { text, kind } }, make("span", {}, text));
  notice.append(button("×", () => notice.remove(), { ariaLabel: _("Close") }));
  list.append(notice);
  setTimeout(() => notice.remove(), STAYS_MS);
}

/** Takes all notices away: they are of what was seen before. */
export function clearNotices() { list?.replaceChildren(); }

/** How many requests wait, this one among them; null once it does not. @param {number | null} count */
export function showNumWaiting(count) {
  if (count === null && !place) return;
  if (!place) {
    place = make("div", { id: "place", role: "status" });
    find(document, "#prompt-row").append(place);
  }
  say(place, count === null ? "" : ngettext("Many people use this server: {count} request waits.", "Many people use this server: {count} requests wait.", count));
}

/** Has the browser save a text as a file. @param {string} text @param {string} name @param {string} type */
export function saveText(text, name, type) {
  const href = URL.createObjectURL(new Blob([text], { type }));
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href));
}
