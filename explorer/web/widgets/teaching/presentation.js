// @ts-check
// Presentation mode: figures, lesson steps or saved slides one at a time on the whole screen, with speaker notes in a
// second window; and the menu of saved slides.
import { interventions, makeMove, select } from "../../static/page_actions.js";
import { currentFigure, unfoldFigure } from "../../static/widget_contents.js";
import { button, makeDropdown, find, findAll, isKeyForFocus, make, setText, span } from "../../static/dom.js";
import { saveJsonFile, shownLessonStep, MAX_LINK_LENGTH } from "../../static/history.js";
import { closeTerm } from "../../static/glossary_terms.js";
import { _, ngettext } from "../../static/text.js";
import { onEveryState, onState, state } from "../../static/page_state.js";
import { changeRoom, isTeacher, onRoom, room } from "../../static/room_client.js";
import { isAwaitingReplies, replyCountText, replyLines, showOwnQuestionLarge } from "./class_session.js";
import { openSlideSheet } from "./worksheet.js";
import { appendSlides, slideQuery, storeSlides, storedSlides, lessonDeck, slidesLink, stageCommand, LIMITS, figuresDeck, makeSlide, storyDeck, viewTitle, slidesDeck, slidesFromHash, validSlides, moveItem } from "./presentation_pages.js";

/** @typedef {import("./presentation_pages.js").Slide} Slide */

/**
 * Slides to present; without any, the lesson or the figures of the open view.
 * @typedef {{ slides?: import("./presentation_pages.js").Slide[], at?: number }} PresentationRequest
 */

/** Start a presentation; the stage below sets it. @type {(request?: PresentationRequest) => void} */
export let present = () => {};

/** Take the valid slides of a link or a file; the menu of slides below sets it. @type {(value: any) => void} */
export let receiveSlides = () => {};

// Sizes on the stage.

const MIN_LETTER_PX = 20; // font size of the smallest letters in a figure and in a lesson's text
const PAGE_LETTER_PX = { figure: 10, words: 15 }; // font sizes on the normal page; lessons_and_presenting.css enlarges a lesson's smaller ones to this
const HEADING_SIZES = [28, 24, 20, 28]; // pixels; the last is for a heading of two lines
const BAR_HEIGHT = 60, PROMPT_HEIGHT = 64, MARGIN = 24, TEXT_WIDTH_SHARES = [0.42, 0.5, 0.58]; // share of the width for a lesson's text: the first in which it fits
const MAP_WIDTH = 985, MAP_LEFT = 40, MAX_CROWDED_WIDTH = 1300, MAX_TIGHT_WIDTH = 700; // pixels: the map as drawn; width of the figure below which its labels do not all fit, or hardly any does
const STACKED_LAYOUT = { width: 1100, share: 0.3 }; // on screens up to this width a short text stands above its figure, in at most this share of the height
const BESIDE_BARS = "choosing-temperature", FIGURE_SHARES = [0.6, 0.5], BESIDE_WIDTHS = { wide: 1201, narrow: 901 }; // figure with the next token and the sliders at its right; its share of a wide screen and of a narrow one; least pixels of each, as in next_token.css
const NATURAL_SIZE = { width: 800, height: 440, words: 280, phone: 320 }; // pixels, before enlarging

/** @typedef {{ left: number, top: number, width: number, height: number, scale: number }} StageArea */

/**
 * Return the position and size of the figure, and the scale by which it is enlarged.
 * @param {{ width: number, height: number }} screen
 * @param {number} headHeight
 * @param {boolean} hasWords whether a lesson's text stands at the left
 * @param {number} [share] index of that text's share of the width
 * @returns {StageArea}
 */
export function figureArea(screen, headHeight, hasWords, share = 0) {
  const left = (hasWords ? Math.round(screen.width * TEXT_WIDTH_SHARES[share]) : 0) + MARGIN;
  const width = screen.width - left - MARGIN, height = screen.height - headHeight - BAR_HEIGHT;
  const minScale = Math.min(MIN_LETTER_PX / PAGE_LETTER_PX.figure, screen.width / NATURAL_SIZE.phone); // a phone is held close
  const scale = Math.max(minScale, Math.min(width / NATURAL_SIZE.width, height / NATURAL_SIZE.height));
  return { left, top: headHeight, width, height, scale };
}

/**
 * Return the font size of a map's labels, which scale with the map, and whether not all labels fit (crowded) or hardly any (tight).
 * @param {StageArea} area
 */
const mapLetters = ({ width }) => ({ type: (MIN_LETTER_PX * MAP_WIDTH) / (width - MAP_LEFT), isCrowded: width < MAX_CROWDED_WIDTH, isTight: width < MAX_TIGHT_WIDTH });

/**
 * Return the position and size of a lesson's text, and the scales to try, largest first, down to letters of 20 pixels.
 * @param {{ width: number, height: number }} screen
 * @param {number} headHeight
 * @param {boolean} isAlone
 * @param {number} [share]
 * @returns {StageArea & { scales: number[] }}
 */
export function lessonTextArea(screen, headHeight, isAlone, share = 0) {
  const width = Math.round(isAlone ? screen.width - 2 * MARGIN : screen.width * TEXT_WIDTH_SHARES[share]), height = screen.height - headHeight - BAR_HEIGHT;
  const minScale = MIN_LETTER_PX / PAGE_LETTER_PX.words, maxScale = Math.max(minScale, Math.min(3, width / NATURAL_SIZE.words));
  const scales = [maxScale, (2 * maxScale + minScale) / 3, (maxScale + 2 * minScale) / 3, minScale];
  return { left: isAlone ? MARGIN : 0, top: headHeight, width, height, scale: maxScale, scales };
}

// Placing the figure and a lesson's text on the stage.

const PRESENTED = "presented";
let pendingFrame = 0; // animation frame that waits for a figure
/** @type {MutationObserver | null} */
let figureObserver = null;

/** Enlarge a figure, waiting for it as its tab may still be opening. @param {string} id "" for none @param {() => void} [onDraw] called on each redraw @param {number} [framesLeft] */
function enlargeFigure(id, onDraw = () => {}, framesLeft = 600) {
  cancelAnimationFrame(pendingFrame);
  const figure = id && document.getElementById(id);
  for (const former of findAll(document, `.${PRESENTED}`)) if (former !== figure) former.classList.remove(PRESENTED);
  if (!id) return;
  unfoldFigure(id);
  if (figure?.classList.contains("folded") || (!figure?.clientWidth && !figure?.querySelector("[data-draws]"))) {
    if (framesLeft) pendingFrame = requestAnimationFrame(() => enlargeFigure(id, onDraw, framesLeft - 1));
    return;
  }
  figure.classList.add(PRESENTED);
  figureObserver?.disconnect();
  figureObserver = new MutationObserver(([{ target }]) => {
    shortenCells(/** @type {HTMLElement} */ (target));
    onDraw();
  });
  figureObserver.observe(figure, { subtree: true, attributeFilter: ["data-draws"] });
  window.dispatchEvent(new Event("resize"));
}

const SMALLEST_IN_TWO_DECIMALS = 0.005;

/** Shorten numbers and words in a heatmap's cells until they fit. @param {HTMLElement} plot */
function shortenCells(plot) {
  const labels = /** @type {SVGTextElement[]} */ (Array.from(plot.querySelectorAll(".heatmap-label text")));
  const scale = plot.getBoundingClientRect().width / plot.offsetWidth;
  const roomOf = (label) => scale * Number(label.dataset.room) - 2, valueOf = (label) => Number(label.textContent.replaceAll("−", "-")), isTooWide = (label) => label.getBoundingClientRect().width > roomOf(label);
  const narrowRows = new Set(labels.filter((label) => Number.isFinite(valueOf(label)) && isTooWide(label)).map((label) => label.getAttribute("y")));
  for (const label of labels) {
    const maxLabelWidth = roomOf(label), value = valueOf(label);
    if (value && Math.abs(value) < SMALLEST_IN_TWO_DECIMALS && narrowRows.has(label.getAttribute("y"))) label.textContent = "≈0"; // as of its neighbours, not 1e−4 beside 0.00
    for (let digits = 3; digits >= 0 && Number.isFinite(valueOf(label)) && isTooWide(label); digits--)
      label.textContent = value.toFixed(digits).replace("-", "−");
    const word = label.textContent;
    for (let length = word.length - 1; length > 0 && !Number.isFinite(value) && label.getBoundingClientRect().width > maxLabelWidth; length--) label.textContent = `${word.slice(0, length)}…`;
  }
}

/**
 * Set the positions and sizes that lessons_and_presenting.css reads as custom properties.
 * @param {HTMLElement} head
 * @param {DeckPage} deckPage
 * @param {number} [share] index of the text's share of the width
 */
function layOut(head, deckPage, share = 0) {
  const { page: lessonPage, figure, hasPrompt = false } = deckPage, screen = { width: innerWidth, height: innerHeight }, headHeight = head.offsetHeight;
  const heightAboveFigure = lessonPage && figure ? textHeightAbove(screen, headHeight) : 0; // a short text on a narrow screen leaves the figure the whole width
  const isBesideBars = figure === BESIDE_BARS && !lessonPage && screen.width >= BESIDE_WIDTHS.narrow;
  document.body.classList.toggle("beside-bars", isBesideBars);
  document.body.classList.toggle("with-prompt", hasPrompt);
  const area = figureArea({ ...screen, width: screen.width * (isBesideBars ? FIGURE_SHARES[Number(screen.width < BESIDE_WIDTHS.wide)] : 1) }, headHeight + heightAboveFigure + (hasPrompt ? PROMPT_HEIGHT : 0), Boolean(lessonPage) && !heightAboveFigure, share);
  const textBox = heightAboveFigure ? { ...lessonTextArea(screen, headHeight, true), left: 0, width: screen.width, height: heightAboveFigure, scales: [MIN_LETTER_PX / PAGE_LETTER_PX.words] } : lessonTextArea(screen, headHeight, !figure, share);
  for (const [name, value] of Object.entries(area)) document.body.style.setProperty(`--stage-${name}`, name === "scale" ? String(value) : `${value}px`);
  for (const name of ["left", "top", "width", "height"]) document.body.style.setProperty(`--words-${name}`, `${textBox[name]}px`);
  const letters = mapLetters(area);
  document.body.style.setProperty("--stage-map-type", `${letters.type}px`);
  document.body.classList.toggle("crowded", letters.isCrowded);
  document.body.classList.toggle("tight", letters.isTight);
  if (lessonPage && !fitText(textBox.scales) && figure && !heightAboveFigure && share + 1 < TEXT_WIDTH_SHARES.length) layOut(head, deckPage, share + 1);
}

/** Return the height of a lesson's text above its figure; 0 if it is too long, or the screen is wide enough for it beside the figure. @param {{ width: number, height: number }} screen @param {number} headHeight */
function textHeightAbove(screen, headHeight) {
  if (screen.width > STACKED_LAYOUT.width) return 0;
  const { style } = document.body, text = find(document, "#lesson .lesson .told"), scale = MIN_LETTER_PX / PAGE_LETTER_PX.words;
  style.setProperty("--words-scale", String(scale));
  style.setProperty("--words-width", `${screen.width}px`);
  style.setProperty("--words-height", "0px");
  const height = Math.ceil(text.scrollHeight * scale);
  return height <= STACKED_LAYOUT.share * (screen.height - headHeight - BAR_HEIGHT) ? height : 0;
}

/** Set a heading in the largest letters that fit one line, or else two lines. @param {HTMLElement} heading */
function fitHeading(heading) {
  for (const size of HEADING_SIZES) {
    heading.style.fontSize = `${size}px`;
    if (heading.offsetHeight < 2 * size) return;
  }
}

// Set the largest scale at which the text fits; return whether any does.
function fitText(scales) {
  const column = find(document, "#lesson .lesson"), text = find(column, ".told");
  for (const scale of scales) {
    document.body.style.setProperty("--words-scale", String(scale));
    if (text.scrollHeight <= text.clientHeight + 1 && text.scrollWidth <= text.clientWidth) return true;
  }
  return false;
}

// The presenter's own window: notes, and the next page.

/** @typedef {{ heading: string, at: string, notes: (Node | string)[], next: (Node | string)[] }} Notes */

/** Return functions that open, update and close the notes window. @param {(event: KeyboardEvent) => void} onKey handles its keys */
function notesWindow(onKey) {
  /** @type {Window | null} */
  let popup = null;
  window.addEventListener("pagehide", () => popup?.close());

  return {
    /** Open the window, or bring it to the front; return false if the browser blocks it. */
    open() {
      const isNew = !popup || popup.closed;
      popup = window.open("", "explorer-notes", "popup,width=720,height=640");
      if (!popup) return false;
      popup.focus();
      if (!isNew) return true;
      const notesDocument = popup.document;
      notesDocument.title = _("Notes");
      notesDocument.documentElement.lang = document.documentElement.lang;
      notesDocument.addEventListener("keydown", onKey);
      return true;
    },

    /** @param {Notes} notes */
    show({ heading, at, notes, next }) {
      if (!popup || popup.closed) return;
      const { body } = popup.document, { backgroundColor, color, fontFamily } = getComputedStyle(find(document, "gradio-app"));
      Object.assign(body.style, { backgroundColor, color, fontFamily, margin: "24px", lineHeight: "1.5", fontSize: "20px", whiteSpace: "pre-line" });
      const title = make("h1", {}, heading), nextHeading = make("h2", {}, _("Next")), position = make("p", { className: "at" }, at);
      for (const [line, size] of /** @type {[HTMLElement, string][]} */ ([[title, "24px"], [nextHeading, "16px"], [position, "16px"]])) line.style.fontSize = size;
      const nextSection = make("section", { className: "next" }, nextHeading, ...next);
      nextSection.style.borderTop = "solid";
      body.replaceChildren(position, title, make("section", { className: "notes" }, ...notes), nextSection);
    },

    close() { popup?.close(); },
  };
}

/**
 * A sequence of pages to present.
 * @typedef {object} Deck
 * @property {(offset: number) => void} go moves by a number of pages; −∞ leads to the first, ∞ to the last
 * @property {() => DeckPage} currentPage
 * @property {() => void} [leave]
 */
/**
 * @typedef {object} DeckPage
 * @property {string} heading
 * @property {string} at position, as "3 / 9"
 * @property {string} figure element id; "" for none
 * @property {boolean} [hasPrompt] whether the prompt stands above the figure, to be changed
 * @property {string} [page] page of a lesson's step, whose text stands beside the figure, or alone without one
 * @property {boolean} [isHeld] whether the answer waits for a second key press, as a class is still replying
 * @property {boolean} isFirst
 * @property {boolean} isLast
 * @property {string} [problem] sentence shown instead of the figure
 * @property {(Node | string)[]} notes
 * @property {(Node | string)[]} next
 */

const IN_FIGURE = ".presented, .lesson, #generation"; // elements that handle arrow keys themselves
const PRESENTING = "presenting";
const FIELDS = ["layer", "head"]; // fields of the selection that a slide names
const FOLLOW_MS = 200; // interval of reading the prompt

/** Tell the class which figure is presented. @param {string} presented element id; "" for none */
function leadClassTo(presented) {
  if (isTeacher() && (room.presented ?? "") !== presented) changeRoom({ presented });
}

/** The full-screen stage of a presentation. @param {HTMLElement} element */
export function stage(element) {
  const box = find(element, ".stage"), head = find(box, "header"), blackout = find(box, ".blackout"), pointer = find(box, ".pointer");
  const notes = notesWindow(onKey);
  /** @type {Deck | null} */
  let deck = null;
  let previousFocus = null, focusMovedByTab = false;
  let textTimer = 0; // polls the prompt's box, as a script's change of its text fires no event

  present = (request = {}) => {
    if (deck || !state.checkpoint) return;
    closeLists();
    previousFocus = document.activeElement;
    const slides = request.slides ?? storedSlides();
    if (shownLessonStep() && !request.slides) deck = lessonDeck(show, isAwaitingReplies);
    else if (slides.length) deck = slidesDeck(slides, request.at ?? 0, show);
    else deck = isStory() ? storyDeck(show) : figuresDeck(show);
    document.body.classList.add(PRESENTING);
    box.hidden = false;
    focusMovedByTab = false;
    find(box, "h2").focus({ preventScroll: true });
    textTimer = setInterval(showSubtitle, FOLLOW_MS);
    show();
    showOwnQuestionLarge();
  };

  /** Close the open lists and menus, which would cover the figure. */
  function closeLists() {
    for (const opener of findAll(document, "#header .open[aria-expanded=true]")) opener.click();
    for (const menu of findAll(document, "details.menu[open]")) /** @type {HTMLDetailsElement} */ (menu).open = false;
  }

  function leavePresentation() {
    if (!deck) return;
    deck.leave?.();
    deck = null;
    clearInterval(textTimer);
    notes.close();
    toggleBlackout(false);
    setText(find(box, ".keys"), "");
    box.hidden = pointer.hidden = true;
    document.body.classList.remove(PRESENTING, "beside-bars", "with-prompt");
    leadClassTo("");
    enlargeFigure("");
    delete document.body.dataset.page;
    window.dispatchEvent(new Event("resize")); // figures return to their normal size
    if (previousFocus?.isConnected) previousFocus.focus({ preventScroll: true });
  }

  function show() {
    if (!deck) return;
    closeTerm(); // the explained term belongs to the previous page
    const page = deck.currentPage();
    setText(find(box, "h2"), page.heading);
    showSubtitle();
    const selection = selectionSentence(page.figure);
    for (const step of findAll(box, ".head-step")) step.hidden = Boolean(page.page) || !selection || !selectionList("head");
    setText(find(box, ".problem"), page.problem ?? "");
    setText(find(box, ".at"), page.at);
    setDisabled(".back", page.isFirst);
    setDisabled(".next", page.isLast);
    document.body.dataset.page = page.page ?? "";
    enlargeFigure(page.problem ? "" : page.figure, updateHeading);
    leadClassTo(page.page || page.problem ? "" : page.figure); // a lesson's step leads its students itself
    showReplies();
    showKeyHint();
  }

  // A disabled button would lose the focus, so the heading takes it.
  function setDisabled(selector, isDisabled) {
    const navButton = /** @type {HTMLButtonElement} */ (find(box, `nav ${selector}`));
    if (isDisabled && document.activeElement === navButton) find(box, "h2").focus({ preventScroll: true });
    navButton.disabled = isDisabled;
  }

  // A folded figure gets its title only when it is drawn.
  function updateHeading() {
    if (!deck) return;
    setText(find(box, "h2"), deck.currentPage().heading);
    updateLayout();
  }

  // Show the number of replies in the bar, and their counts in the notes.
  function showReplies() {
    if (!deck) return;
    const page = deck.currentPage();
    const repliesSentence = page.page === "question" || page.page === "answer" ? replyCountText() : "";
    setText(find(box, ".replied"), [repliesSentence, repliesSentence && page.isHeld ? _("Press → again for the answer.") : ""].join(" ").trim());
    updateLayout();
    notes.show({ ...page, notes: [...page.notes, ...replyLines()] });
  }

  // Return the figure's layer and head as a sentence; "" if it has none.
  function selectionSentence(id) {
    const figure = document.getElementById(id), tab = figure?.closest(".tabitem");
    if (!tab || figure.matches(".once:not([data-widget=head_grid]), [data-widget=model_map]")) return "";
    const lists = FIELDS.map((field) => find(tab, `label:has(> [data-field=${field}])`)).filter(Boolean);
    return lists.length ? _("chosen: {fields}", { fields: lists.map((label) => `${label.firstChild.textContent} ${/** @type {HTMLSelectElement} */ (label.lastElementChild).value}`).join(", ") }) : "";
  }

  // Return the interventions of the runs shown in words, which arrive with the view's list of them.
  function interventionWords() {
    const named = new Map(findAll(document, ".changes [data-edit]").map(({ dataset }) => [dataset.edit, dataset.words])), words = (run) => interventions(run).map((edit) => named.get(edit) ?? "").filter(Boolean).join("; ");
    const [a, b] = [words("edits"), words("b.edits")];
    return isStory() || !state["b.checkpoint"] ? a : [a && `A: ${a}`, b && `B: ${b}`].filter(Boolean).join(" · ");
  }

  // The prompt, the selection and the interventions below the title.
  function showSubtitle() {
    const chosen = find(box, ".chosen"), words = [selectionSentence(deck.currentPage().figure), interventionWords()].filter(Boolean).join(" · ");
    setText(find(box, ".text"), promptText());
    if (chosen.textContent === words) return;
    setText(chosen, words);
    updateLayout(); // another line takes height from the figure
  }

  /** Return the select element of a field in the open tab. @param {string} field @returns {HTMLSelectElement | null} */
  const selectionList = (field) => document.querySelector(`#view .tabitem:not([hidden]) select[data-field=${field}]`);

  // Select the next or previous head, continuing in the neighbouring layer.
  function stepHead(offset) {
    const layers = selectionList("layer")?.length ?? 1, heads = selectionList("head")?.length, headIndex = state.layer * heads + state.head + offset;
    if (!find(box, ".head-step").hidden && headIndex >= 0 && headIndex < layers * heads) select({ layer: Math.floor(headIndex / heads), head: headIndex % heads });
  }

  // Return the text of the figure, with its generated tokens; when comparing, those of the runs shown.
  function promptText() {
    const written = /** @type {HTMLTextAreaElement} */ (find(document, "#prompt textarea"))?.value ?? "", text = (written + (find(document, "#story .generated")?.textContent ?? "")).replaceAll("\n", " ↵ "), b = state["b.checkpoint"] && find(document, "#runs .about")?.textContent;
    return b && !isStory() ? { a: `A: ${text}`, b }[state.shown ?? "a"] ?? `A: ${text}\n${b}` : text;
  }

  const isStory = () => document.body.dataset.depth === "story"; // which draws one run

  function updateLayout() {
    if (!deck) return;
    fitHeading(find(head, "h2"));
    layOut(head, deck.currentPage());
  }

  function toggleBlackout(isBlack = blackout.hidden) {
    if (!deck) return;
    blackout.hidden = !isBlack;
    if (isBlack) blackout.focus();
    else if (document.activeElement === blackout || document.activeElement === document.body) find(box, "h2").focus({ preventScroll: true });
  }

  // Name the key for the next slide while the arrow keys move within a figure, and say where a button is that the text names.
  function showKeyHint() {
    if (!deck) return;
    const isInside = isInFigure(/** @type {HTMLElement} */ (document.activeElement));
    setText(find(box, ".keys"), isInside ? _("Page ↓: next slide") : namesButton() ? _("The button is on the page: press Esc.") : "");
  }

  /** Return whether a lesson's text names a button, which no slide has. */
  function namesButton() {
    const names = findAll(document, "#lesson .told em").filter((name) => name.checkVisibility({ visibilityProperty: true })).map((name) => name.textContent);
    return names.length > 0 && findAll(document, ":is(#view, #generation) :is(button, summary)").some((control) => names.includes(control.textContent.replace(/^▶ /, "").trim()));
  }

  function openNotes() {
    if (!notes.open()) return void setText(find(box, ".problem"), _("The browser did not open a second window: allow pop-ups of this page, and press N again."));
    showReplies();
  }

  /** Return whether arrow keys move within a figure: only if the Tab key moved the focus there, not a click. @param {HTMLElement} target */
  const isInFigure = (target) => focusMovedByTab && Boolean(target.closest?.(IN_FIGURE));

  // Hide the ring around the pointer, as it pointed at the previous slide.
  function go(offset) {
    pointer.hidden = true;
    deck.go(offset);
  }

  const COMMANDS = { next: () => go(1), back: () => go(-1), first: () => go(-Infinity), last: () => go(Infinity), "head-back": () => stepHead(-1), "head-next": () => stepHead(1), black: () => toggleBlackout(), leave: leavePresentation, notes: openNotes };

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (find(document, "dialog[open]")) return;
    if (isKeyForFocus(event)) {
      if (deck && event.key === "Escape") leavePresentation();
      return;
    }
    if (!deck) {
      const hasDialog = find(document, "#sheet, #walk .walk:not([hidden])");
      if (event.key.toLowerCase() === "p" && !event.repeat && !hasDialog) event.preventDefault(), present();
      return;
    }
    if (event.key === "Tab") focusMovedByTab = true;
    const command = stageCommand(event.key), target = /** @type {HTMLElement} */ (event.target);
    const isOnControl = "matches" in target && target.matches("button, a, input, summary") && target !== blackout;
    if (!command || (isOnControl && event.key === " ")) return;
    if (event.key.startsWith("Arrow") && isInFigure(target)) return;
    event.preventDefault();
    event.stopPropagation();
    if (!blackout.hidden) return toggleBlackout(false);
    COMMANDS[command]();
  }

  for (const name of ["next", "back", "head-back", "head-next", "black", "leave", "notes"]) find(box, `nav .${name}`).addEventListener("click", () => COMMANDS[name]());
  blackout.addEventListener("click", () => toggleBlackout(false));
  document.addEventListener("keydown", onKey, { capture: true });
  document.addEventListener("pointerdown", () => { focusMovedByTab = false; showKeyHint(); }, { capture: true });
  document.addEventListener("focusin", showKeyHint);
  document.addEventListener("pointermove", ({ clientX, clientY, pointerType, target }) => {
    pointer.hidden = !deck || pointerType !== "mouse" || find(box, "nav").contains(/** @type {Node} */ (target)); // whose labels it would cover
    if (deck) pointer.style.transform = `translate(${clientX}px, ${clientY}px)`;
  });
  window.addEventListener("resize", () => updateLayout());
  onEveryState(() => { if (deck) showSubtitle(); });
  onRoom(showReplies);
}

/** The menu of saved slides. @param {HTMLElement} element */
export function presentMenu(element) {
  const list = find(element, ".list"), rows = find(list, ".slides"), notice = find(list, ".told");
  const receivedNotice = find(list, ".brought");
  let slides = storedSlides(), lastMoved = 0; // index of the slide that was moved last

  const { show, hide } = makeDropdown(find(document, "#lessons .open"), list, {
    opens: false, // it opens the list of lessons, whose entry opens this one
    fill() {
      setText(notice, slides.length ? "" : _("None yet: save what you see, go on to the next view, and present them in their order."));
      draw();
    },
    first: () => find(list, slides.length ? ".begin" : ".save"),
    left: ({ right }) => right - list.offsetWidth,
  });

  function draw() {
    rows.replaceChildren(...slides.map(slideRow));
    updateSource();
    for (const name of [".print", ".link", ".file"]) /** @type {HTMLButtonElement} */ (find(list, name)).disabled = !slides.length;
    /** @type {HTMLButtonElement} */ (find(list, ".save")).disabled = slides.length >= LIMITS.slides;
    setText(find(list, ".view"), viewTitle());
  }

  // Say what the key P presents. If there are slides, a second button presents the figures of the view.
  function updateSource() {
    find(list, ".begin-view").hidden = Boolean(state.lesson) || !slides.length;
    if (state.lesson) return setText(find(list, ".what"), _("the steps of this lesson"));
    const ofView = document.body.dataset.depth === "story" ? _("the steps of the story, from this one") : _("the figures of this view, from the one in sight");
    setText(find(list, ".what"), slides.length ? ngettext("{count} slide", "{count} slides", slides.length) : ofView);
  }

  /** Store slides, and show a message. @param {Slide[]} newSlides @param {string} [message] */
  function setSlides(newSlides, message = "") {
    slides = newSlides;
    setText(notice, storeSlides(slides) ? message : _("This browser saves nothing. Copy the slides as a link or a file before you leave."));
    draw();
  }

  function slideRow(slide, i) {
    const number = i + 1, last = slides.length - 1;
    const caption = make("input", { type: "text", className: "caption", value: slide.caption, maxLength: LIMITS.caption, ariaLabel: _("name of slide {number}", { number }), placeholder: _("Slide {number}", { number }) });
    const notes = make("textarea", { className: "notes", value: slide.notes, maxLength: LIMITS.notes, rows: 1, ariaLabel: _("notes on slide {number}", { number }), placeholder: _("notes that only you see") });
    caption.addEventListener("change", () => editSlide(i, { caption: caption.value }));
    notes.addEventListener("change", () => editSlide(i, { notes: notes.value }));
    const iconButton = (text, label, onClick, disabled = false) => button(text, onClick, { ariaLabel: label, title: label, disabled });
    return make("li", { className: "slide" }, span("number", String(number)), caption,
      iconButton("▶", _("present from slide {number}", { number }), () => { hide(); present({ slides, at: i }); }),
      iconButton("↗", _("open slide {number} on the page", { number }), () => { hide(); makeMove({ kind: "place", words: slideQuery(slide) }); }),
      iconButton("↑", _("move slide {number} up", { number }), (event) => move(event, i, -1), i === 0),
      iconButton("↓", _("move slide {number} down", { number }), (event) => move(event, i, 1), i === last),
      iconButton("✕", _("delete slide {number}", { number }), () => { setSlides(slides.filter((other) => other !== slide)); find(list, ".save").focus(); }),
      notes);
  }

  // Not redrawn, as the focus may be moving to the next box.
  function editSlide(i, fields) {
    slides[i] = { ...slides[i], ...fields };
    storeSlides(slides);
  }

  /** Move a slide. The focus stays on its button; a double click moves the same slide again, though another is under the pointer. @param {MouseEvent} event @param {number} i @param {number} offset */
  function move({ detail: clicks }, i, offset) {
    const from = clicks > 1 ? lastMoved : i, to = from + offset;
    if (to < 0 || to >= slides.length) return;
    setSlides(moveItem(slides, from, to), _("Now slide {number}.", { number: to + 1 }));
    lastMoved = to;
    const buttons = slideButtons(to), buttonIndex = offset < 0 ? 2 : 3;
    (buttons[buttonIndex].disabled ? buttons[5 - buttonIndex] : buttons[buttonIndex]).focus();
  }
  const slideButtons = (i) => Array.from(rows.children[i].querySelectorAll("button"));

  async function saveSlide() {
    if (list.hidden) await show(); // run from the search, the list is still closed
    const slide = makeSlide(state, currentFigure(), viewTitle());
    if (!slide) return setText(notice, _("This is too long to save: shorten the text or the tree of continuations."));
    setSlides([...slides, slide], _("Saved as slide {number}.", { number: slides.length + 1 }));
    const caption = /** @type {HTMLInputElement} */ (rows.lastElementChild.querySelector(".caption"));
    caption.focus();
    caption.setSelectionRange(0, caption.value.length, "backward"); // "backward" keeps its beginning in view
  }

  async function copyLink() {
    const link = await slidesLink(slides, location.href);
    if (link.length > MAX_LINK_LENGTH) {
      saveJsonFile({ places: slides });
      return setText(notice, _("These slides are too long for a link ({count} characters): they were saved as a file. “Open a saved file”, at the end of the page, brings them back.", { count: link.length }));
    }
    try { await navigator.clipboard.writeText(link); } catch { return void prompt(_("Copy this link:"), link); }
    setText(notice, _("The link is copied: who opens it finds these slides here."));
  }

  /** @param {Slide[]} received */
  function addSlides(received) {
    const [all, leftOut] = appendSlides(slides, received);
    setSlides(all);
    if (leftOut) setText(notice, ngettext("{count} slide was left out: at most {most} are kept.", "{count} slides were left out: at most {most} are kept.", leftOut, { most: LIMITS.slides }));
  }

  receiveSlides = (value) => { // asks before replacing the user's own
    const received = validSlides(value);
    if (!received.length) setText(notice, _("This link or file holds no slide that can be read."));
    else if (!slides.length) setSlides(received);
    else {
      const hideNotice = () => { receivedNotice.hidden = true; };
      receivedNotice.replaceChildren(
        make("p", {}, ngettext("{count} slide was brought along.", "{count} slides were brought along.", received.length)),
        span("line",
          button(_("Add to mine"), () => { hideNotice(); addSlides(received); }),
          button(_("Replace mine"), () => { hideNotice(); setSlides(received); }),
          button(_("Present without keeping"), () => { hideNotice(); hide(); present({ slides: received }); }),
          button(_("Leave"), hideNotice)));
      receivedNotice.hidden = false;
    }
    const message = notice.textContent;
    show().then(() => { if (message) setText(notice, message); });
  };

  find(element, ".open").addEventListener("click", show);
  find(list, ".begin").addEventListener("click", () => { hide(); present(); });
  find(list, ".begin-view").addEventListener("click", () => { hide(); present({ slides: [] }); });
  find(list, ".print").addEventListener("click", () => { hide(); openSlideSheet(slides); });
  find(list, ".save").addEventListener("click", saveSlide);
  find(list, ".link").addEventListener("click", copyLink);
  find(list, ".file").addEventListener("click", () => saveJsonFile({ places: slides }));
  window.addEventListener("storage", () => { slides = storedSlides(); if (!list.hidden) draw(); }); // changed in another tab
  onState(updateSource);
  slidesFromHash(location.hash).then((received) => {
    if (!received) return;
    history.replaceState(history.state, "", location.pathname + location.search); // so that a reload does not add them again
    receiveSlides(received);
  });
}
