// @ts-check
// The page on the whole screen, for a class: one figure or one step of a lesson after another, with notes in a second
// window; and the list of saved slides.
import { makeMove, select } from "../../static/page_actions.js";
import { currentFigure, unfoldFigure } from "../../static/widget_contents.js";
import { button, dropDown, find, findAll, isKeyForFocus, make, setText, span } from "../../static/dom.js";
import { download, shownLessonStep, MOST_LINK } from "../../static/history.js";
import { closeTerm } from "../../static/glossary_terms.js";
import { _, ngettext } from "../../static/translations.js";
import { onEveryState, onState, state } from "../../static/page_state.js";
import { onRoom } from "../../static/room_client.js";
import { awaitsReplies, repliedNow, replyLines } from "./class_session.js";
import { openSlideSheet } from "./worksheet.js";
import { added, slideQuery, storeSlides, storedSlides, lessonDeck, linkOf, stageCommand, MOST, onSlidesReceived, figuresDeck, makeSlide, nameOfView, slidesDeck, slidesInLink, reordered } from "./presentation_pages.js";

/** @typedef {import("./presentation_pages.js").Slide} Slide */

// That the page is presented, and what is to be: widgets ask, the stage (widgets/stage) does.

const told = new EventTarget();

/**
 * Something to go through on the stage: slides, or nothing for what the page has to show.
 * @typedef {{ slides?: import("./presentation_pages.js").Slide[], at?: number }} Wanted
 */

/** Has the stage begin. @param {Wanted} [wanted] */
export const present = (wanted = {}) => void told.dispatchEvent(new CustomEvent("present", { detail: wanted }));

/** Calls `begin` whenever the page is to be presented. @param {(wanted: Wanted) => void} begin */
const onPresent = (begin) => told.addEventListener("present", (event) => begin(/** @type {CustomEvent} */ (event).detail));

// How large things are on the stage.

const LEAST_TYPE = 20; // pixels that the smallest letters of a figure have, and those of a lesson's words
const SMALLEST = { figure: 10, words: 15 }; // as they are on the page; a lesson's smaller ones are made so (page.css)
const HEADING_SIZES = [28, 24, 20, 28]; // pixels; the last is that of two lines
const BAR = 60, MARGIN = 24, SHARES = [0.42, 0.58]; // of the width: a lesson's words have the first, and the second where they are many
const MAP_WIDTH = 985, MAP_LEFT = 40, CROWDED = 1300, TIGHT = 700; // pixels of the map of a model as it is drawn; of the figure's room below which its words have none
const STACKED = { width: 1100, share: 0.3 }; // pixels of a screen on which few words stand above their figure; of its height that they may take
const NATURAL = { width: 800, height: 440, words: 400, phone: 320 }; // of a page that is not enlarged

/** @typedef {{ left: number, top: number, width: number, height: number, scale: number }} Room */

/**
 * The room of the figure, and by how much it is enlarged.
 * @param {{ width: number, height: number }} screen
 * @param {number} head the height of what stands above
 * @param {boolean} hasWords whether a lesson's words stand at the left
 * @param {boolean} [areMany] whether they need more than their usual room
 * @returns {Room}
 */
export function figureRoom(screen, head, hasWords, areMany = false) {
  const left = (hasWords ? Math.round(screen.width * SHARES[+areMany]) : 0) + MARGIN;
  const width = screen.width - left - MARGIN, height = screen.height - head - BAR;
  const least = Math.min(LEAST_TYPE / SMALLEST.figure, screen.width / NATURAL.phone); // a telephone is held close
  const scale = Math.max(least, Math.min(width / NATURAL.width, height / NATURAL.height));
  return { left, top: head, width, height, scale };
}

/**
 * How large a map's letters are drawn, which grows and shrinks with its room, and whether not all of them fit then, or hardly any.
 * @param {Room} room
 */
const lettersOfMap = ({ width }) => ({ type: (LEAST_TYPE * MAP_WIDTH) / (width - MAP_LEFT), isCrowded: width < CROWDED, isTight: width < TIGHT });

/**
 * The room of a lesson's words, and by how much they may be enlarged, the most first: what has no room is less, down to
 * letters of 20 pixels.
 * @param {{ width: number, height: number }} screen
 * @param {number} head
 * @param {boolean} isAlone
 * @param {boolean} [areMany]
 * @returns {Room & { scales: number[] }}
 */
export function textRoom(screen, head, isAlone, areMany = false) {
  const width = Math.round(isAlone ? screen.width - 2 * MARGIN : screen.width * SHARES[+areMany]), height = screen.height - head - BAR;
  const least = LEAST_TYPE / SMALLEST.words, most = Math.max(least, Math.min(2.4, width / NATURAL.words));
  const scales = [most, (2 * most + least) / 3, (most + 2 * least) / 3, least];
  return { left: isAlone ? MARGIN : 0, top: head, width, height, scale: most, scales };
}

// What is on the stage: the figure in its place, and how large it and a lesson's words are.

const PRESENTED = "presented";
let waiting = 0; // until a figure is there
/** @type {MutationObserver | null} */
let redrawn = null; // of the figure that is shown

/** Takes a figure to the screen, whose tab may be about to open. @param {string} id "" for none @param {() => void} [drawn] is called whenever it is drawn @param {number} [frames] to wait */
function place(id, drawn = () => {}, frames = 600) {
  cancelAnimationFrame(waiting);
  const figure = id && document.getElementById(id);
  for (const former of findAll(document, `.${PRESENTED}`)) if (former !== figure) former.classList.remove(PRESENTED);
  if (!id) return;
  unfoldFigure(id);
  if (figure?.classList.contains("folded") || (!figure?.clientWidth && !figure?.querySelector("[data-draws]"))) {
    if (frames) waiting = requestAnimationFrame(() => place(id, drawn, frames - 1));
    return;
  }
  figure.classList.add(PRESENTED);
  redrawn?.disconnect();
  redrawn = new MutationObserver(([{ target }]) => {
    shortenCells(/** @type {HTMLElement} */ (target));
    drawn();
  });
  redrawn.observe(figure, { subtree: true, attributeFilter: ["data-draws"] });
  window.dispatchEvent(new Event("resize"));
}

/** Gives numbers in a heatmap's cells as few digits, and words as few letters, as the cells have room for. @param {HTMLElement} plot */
function shortenCells(plot) {
  const labels = /** @type {SVGTextElement[]} */ (Array.from(plot.querySelectorAll(".heatmap-label text")));
  const middles = labels.map((label) => label.getBoundingClientRect()).map(({ left, width }) => Math.round(left + width / 2));
  const columns = [...new Set(middles)].sort((a, b) => a - b), gaps = columns.slice(1).map((x, i) => x - columns[i]);
  const room = Math.min(...gaps.filter((gap) => gap > LEAST_TYPE)) - 2; // less lies between the middles of a column's numbers
  for (const label of labels) {
    const value = Number(label.textContent.replaceAll("−", "-"));
    for (let digits = 3; digits >= 0 && Number.isFinite(value) && label.getBoundingClientRect().width > room; digits--)
      label.textContent = value.toFixed(digits).replace("-", "−");
    const word = label.textContent;
    for (let length = word.length - 1; length > 0 && !Number.isFinite(value) && label.getBoundingClientRect().width > room; length--) label.textContent = `${word.slice(0, length)}…`;
  }
}

/**
 * Says where all stands, and how large it is (page.css).
 * @param {HTMLElement} head
 * @param {Shown} shown
 * @param {boolean} [areMany] whether the words need more than their usual room
 */
function layOut(head, shown, areMany = false) {
  const { page, figure } = shown, screen = { width: innerWidth, height: innerHeight }, height = head.offsetHeight;
  const above = page && figure ? heightAbove(screen, height) : 0; // of few words on a narrow screen: the figure has its whole width
  const room = figureRoom(screen, height + above, Boolean(page) && !above, areMany);
  const words = above ? { ...textRoom(screen, height, true), left: 0, width: screen.width, height: above, scales: [LEAST_TYPE / SMALLEST.words] } : textRoom(screen, height, !figure, areMany);
  for (const [name, value] of Object.entries(room)) document.body.style.setProperty(`--stage-${name}`, name === "scale" ? String(value) : `${value}px`);
  for (const name of ["left", "top", "width", "height"]) document.body.style.setProperty(`--words-${name}`, `${words[name]}px`);
  const letters = lettersOfMap(room);
  document.body.style.setProperty("--stage-map-type", `${letters.type}px`);
  document.body.classList.toggle("crowded", letters.isCrowded);
  document.body.classList.toggle("tight", letters.isTight);
  if (page && !fit(words.scales) && figure && !above && !areMany) layOut(head, shown, true);
}

/** The height that a lesson's words need above their figure; 0 where they have too many for it, or a wide screen has room beside it. @param {{ width: number, height: number }} screen @param {number} head */
function heightAbove(screen, head) {
  if (screen.width > STACKED.width) return 0;
  const { style } = document.body, told = find(document, "#lesson .lesson .told"), scale = LEAST_TYPE / SMALLEST.words;
  style.setProperty("--words-scale", String(scale));
  style.setProperty("--words-width", `${screen.width}px`);
  style.setProperty("--words-height", "0px");
  const height = Math.ceil(told.scrollHeight * scale);
  return height <= STACKED.share * (screen.height - head - BAR) ? height : 0;
}

/** Writes a heading in the largest letters in which it is one line, or else in two. @param {HTMLElement} heading */
function fitHeading(heading) {
  for (const size of HEADING_SIZES) {
    heading.style.fontSize = `${size}px`;
    if (heading.offsetHeight < 2 * size) return;
  }
}

// The largest words that have room; says whether any have.
function fit(scales) {
  const column = find(document, "#lesson .lesson"), told = find(column, ".told");
  for (const scale of scales) {
    document.body.style.setProperty("--words-scale", String(scale));
    if (told.scrollHeight <= told.clientHeight + 1) return true;
  }
  return false;
}

// The presenter's own window: notes, and what comes next.

/** @typedef {{ heading: string, at: string, notes: (Node | string)[], next: (Node | string)[] }} Notes */

/** A window for notes. @param {(event: KeyboardEvent) => void} onKey what a key in it does */
function notesWindow(onKey) {
  /** @type {Window | null} */
  let opened = null;
  window.addEventListener("pagehide", () => opened?.close());

  return {
    /** Opens it, or brings it to the front; false where the browser does not let it. */
    open() {
      const isNew = !opened || opened.closed;
      opened = window.open("", "explorer-notes", "popup,width=720,height=640");
      if (!opened) return false;
      opened.focus();
      if (!isNew) return true;
      const there = opened.document;
      there.title = _("Notes");
      there.documentElement.lang = document.documentElement.lang;
      there.addEventListener("keydown", onKey);
      return true;
    },

    /** @param {Notes} notes */
    show({ heading, at, notes, next }) {
      if (!opened || opened.closed) return;
      const { body } = opened.document, { backgroundColor, color, fontFamily } = getComputedStyle(find(document, "gradio-app"));
      Object.assign(body.style, { backgroundColor, color, fontFamily, margin: "24px", lineHeight: "1.5", fontSize: "20px", whiteSpace: "pre-line" });
      const title = make("h1", {}, heading), following = make("h2", {}, _("Next")), place = make("p", { className: "at" }, at);
      for (const [line, size] of /** @type {[HTMLElement, string][]} */ ([[title, "24px"], [following, "16px"], [place, "16px"]])) line.style.fontSize = size;
      const after = make("section", { className: "next" }, following, ...next);
      after.style.borderTop = "solid";
      body.replaceChildren(place, title, make("section", { className: "notes" }, ...notes), after);
    },

    close() { opened?.close(); },
  };
}

/**
 * What is gone through.
 * @typedef {object} Deck
 * @property {(by: number) => void} go on or back; by −∞ to the first, by ∞ to the last
 * @property {() => Shown} shown what is to be seen now
 * @property {() => void} [leave]
 */
/**
 * @typedef {object} Shown
 * @property {string} heading
 * @property {string} at where that is, as "3 / 9"
 * @property {string} figure element id; "" for none
 * @property {string} [page] of a lesson's step, whose words stand beside the figure, or alone where there is none
 * @property {boolean} [isHeld] whether a class is still replying, so that the answer comes at the next key
 * @property {boolean} isFirst
 * @property {boolean} isLast
 * @property {string} [problem] in the place of all else
 * @property {(Node | string)[]} notes
 * @property {(Node | string)[]} next
 */

const IN_FIGURE = ".presented, .lesson"; // where arrow keys go about by themselves
const PRESENTING = "presenting";
const FIELDS = ["layer", "head"]; // that a slide names
const FOLLOW_MS = 200; // between two looks at the prompt

/** @param {HTMLElement} element */
export function stage(element) {
  const box = find(element, ".stage"), head = find(box, "header"), black = find(box, ".blackout"), pointer = find(box, ".pointer");
  const notes = notesWindow(onKey);
  /** @type {Deck | null} */
  let deck = null;
  let focused = null; // what had it before
  let isByTab = false; // whether the Tab key moved the focus last
  let following = 0; // the prompt's box, which does not say when its text is another

  function begin(wanted) {
    if (deck || !state.checkpoint) return;
    focused = document.activeElement;
    const slides = wanted.slides ?? storedSlides();
    if (shownLessonStep() && !wanted.slides) deck = lessonDeck(show, awaitsReplies);
    else if (slides.length) deck = slidesDeck(slides, wanted.at ?? 0, show);
    else deck = figuresDeck(show);
    document.body.classList.add(PRESENTING);
    box.hidden = false;
    isByTab = false;
    find(box, "h2").focus({ preventScroll: true });
    following = setInterval(() => setText(find(box, ".text"), textOf()), FOLLOW_MS);
    show();
  }

  function leave() {
    if (!deck) return;
    deck.leave?.();
    deck = null;
    clearInterval(following);
    notes.close();
    blacken(false);
    setText(find(box, ".keys"), "");
    box.hidden = pointer.hidden = true;
    document.body.classList.remove(PRESENTING);
    place("");
    delete document.body.dataset.page;
    window.dispatchEvent(new Event("resize")); // figures have their own room again
    if (focused?.isConnected) focused.focus({ preventScroll: true });
  }

  function show() {
    if (!deck) return;
    closeTerm(); // its words are not on this page
    const shown = deck.shown();
    setText(find(box, "h2"), shown.heading);
    setText(find(box, ".text"), textOf());
    const chosen = chosenIn(shown.figure);
    setText(find(box, ".chosen"), chosen);
    for (const step of findAll(box, ".head-step")) step.hidden = Boolean(shown.page) || !chosen || !listOf("head");
    setText(find(box, ".problem"), shown.problem ?? "");
    setText(find(box, ".at"), shown.at);
    disable(".back", shown.isFirst);
    disable(".next", shown.isLast);
    document.body.dataset.page = shown.page ?? "";
    place(shown.problem ? "" : shown.figure, retitle);
    tellReplies();
  }

  // A button that ends leaves the keyboard to the slides.
  function disable(name, is) {
    const end = /** @type {HTMLButtonElement} */ (find(box, `nav ${name}`));
    if (is && document.activeElement === end) find(box, "h2").focus({ preventScroll: true });
    end.disabled = is;
  }

  // A folded figure has its own title once it is drawn.
  function retitle() {
    if (!deck) return;
    setText(find(box, "h2"), deck.shown().heading);
    lay();
  }

  // How many of the class have replied, in the bar and, with what, in the notes.
  function tellReplies() {
    if (!deck) return;
    const shown = deck.shown();
    const replied = shown.page === "question" || shown.page === "answer" ? repliedNow() : "";
    setText(find(box, ".replied"), [replied, replied && shown.isHeld ? _("→ again: the answer") : ""].join(" ").trim());
    lay();
    notes.show({ ...shown, notes: [...shown.notes, ...replyLines()] });
  }

  // The layer and the head that a figure may be of.
  function chosenIn(id) {
    const figure = document.getElementById(id), tab = figure?.closest(".tabitem");
    if (!tab || figure.matches(".once:not([data-widget=head_grid]), [data-widget=model_map]")) return "";
    const lists = FIELDS.map((field) => find(tab, `label:has(> [data-field=${field}])`)).filter(Boolean);
    return lists.length ? _("chosen: {fields}", { fields: lists.map((label) => `${label.firstChild.textContent} ${/** @type {HTMLSelectElement} */ (label.lastElementChild).value}`).join(", ") }) : "";
  }

  /** The list of the open tab in which a field is chosen. @param {string} field @returns {HTMLSelectElement | null} */
  const listOf = (field) => document.querySelector(`#view .tabitem:not([hidden]) select[data-field=${field}]`);

  // The head after or before, through all layers.
  function stepHead(by) {
    const layers = listOf("layer")?.length ?? 1, heads = listOf("head")?.length, at = state.layer * heads + state.head + by;
    if (!find(box, ".head-step").hidden && at >= 0 && at < layers * heads) select({ layer: Math.floor(at / heads), head: at % heads });
  }

  // The prompt that the figure is of; of two runs those that it shows.
  function textOf() {
    const text = /** @type {HTMLTextAreaElement} */ (find(document, "#prompt textarea"))?.value.replaceAll("\n", " ↵ ") ?? "", b = find(document, "#runs .about")?.textContent;
    return b ? { a: `A: ${text}`, b }[state.shown ?? "a"] ?? `A: ${text}\n${b}` : text;
  }

  function lay() {
    if (!deck) return;
    fitHeading(find(head, "h2"));
    layOut(head, deck.shown());
  }

  function blacken(is = black.hidden) {
    if (!deck) return;
    black.hidden = !is;
    if (is) black.focus();
    else if (document.activeElement === black || document.activeElement === document.body) find(box, "h2").focus({ preventScroll: true });
  }

  // How to go on, where the arrow keys do not.
  function tellKeys() {
    if (deck) setText(find(box, ".keys"), isInFigure(/** @type {HTMLElement} */ (document.activeElement)) ? _("Page ↓: next slide") : "");
  }

  function openNotes() {
    if (!notes.open()) return void setText(find(box, ".problem"), _("The browser did not open a second window: allow pop-ups of this page, and press N again."));
    tellReplies();
  }

  /** Whether arrow keys go about in a figure: whoever went there by the Tab key has them; a click on it leaves them to the slides. @param {HTMLElement} target */
  const isInFigure = (target) => isByTab && Boolean(target.closest?.(IN_FIGURE));

  // The ring around the pointer was about the slide that is left.
  function go(by) {
    pointer.hidden = true;
    deck.go(by);
  }

  const ACTS = { next: () => go(1), back: () => go(-1), first: () => go(-Infinity), last: () => go(Infinity), "head-back": () => stepHead(-1), "head-next": () => stepHead(1), black: () => blacken(), leave, notes: openNotes };

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (isKeyForFocus(event)) {
      if (deck && event.key === "Escape") leave();
      return;
    }
    if (!deck) {
      const isCovered = find(document, "#sheet, #walk .walk:not([hidden])");
      if (event.key.toLowerCase() === "p" && !event.repeat && !isCovered) event.preventDefault(), present();
      return;
    }
    if (event.key === "Tab") isByTab = true;
    const meaning = stageCommand(event.key), target = /** @type {HTMLElement} */ (event.target);
    const isOnControl = "matches" in target && target.matches("button, a, input, summary") && target !== black;
    if (!meaning || (isOnControl && event.key === " ")) return;
    if (event.key.startsWith("Arrow") && isInFigure(target)) return;
    event.preventDefault();
    event.stopPropagation();
    if (!black.hidden) return blacken(false);
    ACTS[meaning]();
  }

  for (const name of ["next", "back", "head-back", "head-next", "black", "leave", "notes"]) find(box, `nav .${name}`).addEventListener("click", () => ACTS[name]());
  black.addEventListener("click", () => blacken(false));
  document.addEventListener("keydown", onKey, { capture: true });
  document.addEventListener("pointerdown", () => { isByTab = false; tellKeys(); }, { capture: true });
  document.addEventListener("focusin", tellKeys);
  document.addEventListener("pointermove", ({ clientX, clientY, pointerType }) => {
    pointer.hidden = !deck || pointerType !== "mouse";
    if (deck) pointer.style.transform = `translate(${clientX}px, ${clientY}px)`;
  });
  window.addEventListener("resize", () => lay());
  onEveryState(() => {
    if (!deck) return;
    setText(find(box, ".text"), textOf());
    setText(find(box, ".chosen"), chosenIn(deck.shown().figure));
  });
  onRoom(tellReplies);
  onPresent(begin);
}

/** @param {HTMLElement} element */
export function presentMenu(element) {
  const list = find(element, ".list"), rows = find(list, ".slides"), notice = find(list, ".told");
  const offer = find(list, ".brought");
  let slides = storedSlides(), moved = 0; // the place of the one that was moved last

  const { show, hide } = dropDown(find(element, ".open"), list, {
    fill() {
      setText(notice, slides.length ? "" : _("None yet: save what you see, go on to the next view, and present them in their order."));
      draw();
    },
    first: () => find(list, slides.length ? ".begin" : ".save"),
    left: ({ right }) => right - list.offsetWidth,
  });

  function draw() {
    rows.replaceChildren(...slides.map(row));
    tellWhat();
    for (const name of [".print", ".link", ".file"]) /** @type {HTMLButtonElement} */ (find(list, name)).disabled = !slides.length;
    /** @type {HTMLButtonElement} */ (find(list, ".save")).disabled = slides.length >= MOST.slides;
    setText(find(list, ".view"), nameOfView());
  }

  // What P presents; the figures of the view can be presented beside slides, too.
  function tellWhat() {
    find(list, ".begin-view").hidden = Boolean(state.lesson) || !slides.length;
    if (state.lesson) return setText(find(list, ".what"), _("the steps of this lesson"));
    setText(find(list, ".what"), slides.length ? ngettext("{count} slide", "{count} slides", slides.length) : _("the figures of this view"));
  }

  /** @param {Slide[]} changed @param {string} [done] what is told of it */
  function change(changed, done = "") {
    slides = changed;
    setText(notice, storeSlides(slides) ? done : _("This browser saves nothing. Copy the slides as a link or a file before you leave."));
    draw();
  }

  function row(slide, i) {
    const number = i + 1, last = slides.length - 1;
    const caption = make("input", { type: "text", className: "caption", value: slide.caption, maxLength: MOST.caption, ariaLabel: _("name of slide {number}", { number }), placeholder: _("Slide {number}", { number }) });
    const notes = make("textarea", { className: "notes", value: slide.notes, maxLength: MOST.notes, rows: 1, ariaLabel: _("notes on slide {number}", { number }), placeholder: _("notes that only you see") });
    caption.addEventListener("change", () => edit(i, { caption: caption.value }));
    notes.addEventListener("change", () => edit(i, { notes: notes.value }));
    const act = (text, name, does, disabled = false) => button(text, does, { ariaLabel: name, title: name, disabled });
    return make("li", { className: "slide" }, span("number", String(number)), caption,
      act("▶", _("present from slide {number}", { number }), () => { hide(); present({ slides, at: i }); }),
      act("↗", _("open slide {number} on the page", { number }), () => { hide(); makeMove({ kind: "place", words: slideQuery(slide) }); }),
      act("↑", _("move slide {number} up", { number }), (event) => move(event, i, -1), i === 0),
      act("↓", _("move slide {number} down", { number }), (event) => move(event, i, 1), i === last),
      act("✕", _("delete slide {number}", { number }), () => { change(slides.filter((other) => other !== slide)); find(list, ".save").focus(); }),
      notes);
  }

  // Without drawing anew, as somebody may be on the way to the next box.
  function edit(i, words) {
    slides[i] = { ...slides[i], ...words };
    storeSlides(slides);
  }

  // The keyboard stays on the button of the same slide; a second quick click, where another slide is by then, moves the same one.
  /** @param {MouseEvent} event @param {number} i @param {number} by */
  function move({ detail: clicks }, i, by) {
    const from = clicks > 1 ? moved : i, to = from + by;
    if (to < 0 || to >= slides.length) return;
    change(reordered(slides, from, to), _("Now slide {number}.", { number: to + 1 }));
    moved = to;
    const buttons = findButtons(to), nth = by < 0 ? 2 : 3;
    (buttons[nth].disabled ? buttons[5 - nth] : buttons[nth]).focus();
  }
  const findButtons = (i) => Array.from(rows.children[i].querySelectorAll("button"));

  async function save() {
    if (list.hidden) await show(); // who found it by the search sees what is saved
    const slide = makeSlide(state, currentFigure(), nameOfView());
    if (!slide) return setText(notice, _("This is too long to save: shorten the text or the tree of continuations."));
    change([...slides, slide], _("Saved as slide {number}.", { number: slides.length + 1 }));
    const caption = /** @type {HTMLInputElement} */ (rows.lastElementChild.querySelector(".caption"));
    caption.focus();
    caption.setSelectionRange(0, caption.value.length, "backward"); // its beginning is in sight
  }

  async function copy() {
    const link = await linkOf(slides, location.href);
    if (link.length > MOST_LINK) {
      download({ places: slides });
      return setText(notice, _("These slides are too long for a link ({count} characters): they were saved as a file. “Open a saved file”, at the end of the page, brings them back.", { count: link.length }));
    }
    try { await navigator.clipboard.writeText(link); } catch { return void prompt(_("Copy this link:"), link); }
    setText(notice, _("The link is copied: who opens it finds these slides here."));
  }

  /** @param {Slide[]} brought */
  function add(brought) {
    const [all, left] = added(slides, brought);
    change(all);
    if (left) setText(notice, ngettext("{count} slide was left out: at most {most} are kept.", "{count} slides were left out: at most {most} are kept.", left, { most: MOST.slides }));
  }

  // From a link or a file: nobody's own slides are lost to it.
  /** @param {Slide[]} brought */
  function take(brought) {
    if (!brought.length) setText(notice, _("This link or file holds no slide that can be read."));
    else if (!slides.length) change(brought);
    else {
      const done = () => { offer.hidden = true; };
      offer.replaceChildren(
        make("p", {}, ngettext("{count} slide was brought along.", "{count} slides were brought along.", brought.length)),
        span("line",
          button(_("Add to mine"), () => { done(); add(brought); }),
          button(_("Replace mine"), () => { done(); change(brought); }),
          button(_("Present without keeping"), () => { done(); hide(); present({ slides: brought }); }),
          button(_("Leave"), done)));
      offer.hidden = false;
    }
    const words = notice.textContent;
    show().then(() => { if (words) setText(notice, words); });
  }

  find(list, ".begin").addEventListener("click", () => { hide(); present(); });
  find(list, ".begin-view").addEventListener("click", () => { hide(); present({ slides: [] }); });
  find(list, ".print").addEventListener("click", () => { hide(); openSlideSheet(slides); });
  find(list, ".save").addEventListener("click", save);
  find(list, ".link").addEventListener("click", copy);
  find(list, ".file").addEventListener("click", () => download({ places: slides }));
  window.addEventListener("storage", () => { slides = storedSlides(); if (!list.hidden) draw(); }); // another tab changed them
  onState(element, tellWhat);
  onSlidesReceived(take);
  slidesInLink(location.hash).then((brought) => {
    if (!brought) return;
    history.replaceState(history.state, "", location.pathname + location.search); // a reload brings them no second time
    take(brought);
  });
}
