// @ts-check
// What a presentation goes through: a lesson's steps, the figures of the open tab, or saved slides. These are states of the
// page, as the words of its address, each with a caption and notes. The browser keeps them, and a link's fragment or a
// file passes them on; no server does.
import { makeMove, onMove } from "../../static/page_actions.js";
import { currentFigure, visibleFigures, restoreFolds } from "../../static/widget_contents.js";
import { find, make } from "../../static/dom.js";
import { urlOfState, goToStep, shownLessonStep, MOST_LINK, onLessonStep, showAnswer } from "../../static/history.js";
import { _ } from "../../static/translations.js";
import { encodeBase64, decodeBase64 } from "../../static/plotly_figures.js";
import { CHOOSERS, NEXT_TOKEN, SERIES, WHAT_IFS } from "../../static/shared_constants.js";
import { state } from "../../static/page_state.js";
import { prose } from "./lesson.js";

/** @typedef {import("../../static/page_state.js").State} State */

/**
 * @typedef {object} Slide
 * @property {string} words the words of the address
 * @property {string} figure element id of the figure that fills the screen; "" for the first of its tab
 * @property {string} caption
 * @property {string} notes for whoever presents
 */

export const MOST = { slides: 60, caption: 200, notes: 2000, words: MOST_LINK, text: 400_000 };
const KEPT = "explorer:places"; // in the browser's storage
const NOT_KEPT = ["lang", "turn", "version", "lesson", "step", "reply", "move", "own"]; // a slide is no step of a lesson
const FRAGMENT = "places=", FIGURE = /^[a-z_]{1,40}-[a-z_]{1,40}$|^$|^strip$/;

/** A slide of what is seen; null where its address is longer than a slide may have. @param {State} state @param {string} figure @param {string} caption @returns {Slide | null} */
export function makeSlide(state, figure, caption) {
  const kept = Object.fromEntries(Object.entries(state).filter(([name]) => !NOT_KEPT.includes(name)));
  const words = urlOfState(kept, "http://here/").search.slice(1);
  return words.length > MOST.words ? null : readSlide({ words, figure, caption });
}

/** The open tab, and its figure with what is chosen in it. */
export function nameOfView() {
  const tab = find(document, `button[data-view="${state.view}"]`)?.textContent, figure = currentFigure();
  const title = figure && find(document, `#${figure} h2`)?.textContent;
  return (title && tab && title.toLowerCase().endsWith(tab.toLowerCase()) ? [title] : [tab, title]).filter(Boolean).join(": "); // “The whole model” of the tab “Whole model”
}

/** What of anything is a slide; null where it is none. @param {any} any @returns {Slide | null} */
function readSlide(any) {
  if (typeof any?.words !== "string" || any.words.length > MOST.words || !any.words) return null;
  const text = (value, most) => (typeof value === "string" ? value.slice(0, most) : "");
  const id = any.figure ?? any.picture, figure = FIGURE.test(id) ? id : ""; // slides saved before have "picture"
  return { words: any.words, figure, caption: text(any.caption, MOST.caption), notes: text(any.notes, MOST.notes) };
}

/** The slides in what anybody may have written: those that are none are left out. @param {any} any @returns {Slide[]} */
export const validSlides = (any) => (Array.isArray(any) ? any.slice(0, MOST.slides).map(readSlide).filter((slide) => slide !== null) : []);

/** All that the browser keeps. @returns {Slide[]} */
export function storedSlides() {
  try { return validSlides(JSON.parse(localStorage.getItem(KEPT))); } catch { return []; } // not every frame has a storage
}

/** Has the browser keep slides instead of all before; false where it does not. @param {Slide[]} slides */
export function storeSlides(slides) {
  try { localStorage.setItem(KEPT, JSON.stringify(slides)); } catch { return false; }
  return true;
}

const brought = new EventTarget();

/** Brings slides along, from a file or a link. @param {any} any */
export const bring = (any) => void brought.dispatchEvent(new CustomEvent("brought", { detail: validSlides(any) }));

/** Calls `take` with slides that are brought along. @param {(slides: Slide[]) => void} take */
export const onSlidesReceived = (take) => brought.addEventListener("brought", (event) => take(/** @type {CustomEvent<Slide[]>} */ (event).detail));

/** What a slide asks, by name. @param {Slide} slide @returns {Record<string, string>} */
export const slideQuery = ({ words }) => Object.fromEntries(new URLSearchParams(words));

/** As many as may be kept, and how many are not. @param {Slide[]} mine @param {Slide[]} brought @returns {[Slide[], number]} */
export function added(mine, brought) {
  const all = [...mine, ...brought];
  return [all.slice(0, MOST.slides), Math.max(0, all.length - MOST.slides)];
}

/** The list with one of its items somewhere else. @template Item @param {Item[]} items @param {number} from @param {number} to */
export function reordered(items, from, to) {
  const others = items.filter((item, i) => i !== from);
  return [...others.slice(0, to), items[from], ...others.slice(to)];
}

/** A link to the page that brings slides along: a fragment, which no server is sent. @param {Slide[]} slides @param {string} address */
export async function linkOf(slides, address) {
  const url = new URL(address);
  url.search = "";
  const packed = await new Response(new Blob([JSON.stringify(slides)]).stream().pipeThrough(new CompressionStream("deflate-raw"))).arrayBuffer();
  url.hash = FRAGMENT + encodeBase64(new Uint8Array(packed)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return url.href;
}

/** The slides that a link's fragment brings; null where it has none. However much it unpacks to, no more is read than a list may have. @param {string} hash */
export async function slidesInLink(hash) {
  const packed = hash.replace(/^#/, "");
  if (!packed.startsWith(FRAGMENT)) return null;
  try {
    const bytes = decodeBase64(packed.slice(FRAGMENT.length).replaceAll("-", "+").replaceAll("_", "/"));
    return validSlides(JSON.parse(await unpacked(bytes)));
  } catch { return []; }
}

async function unpacked(bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let { value, done } = await reader.read(); !done; { value, done } = await reader.read()) {
    text += value;
    if (text.length > MOST.text) throw new RangeError("too-long");
  }
  return text;
}

// What there is to go through on the stage, page by page.

/** Where a page of a step is, of what there is of it. @typedef {"before" | "question" | "answer" | "after"} PageOfStep */

/**
 * The pages of a lesson's step, each short enough for a screen: its words, its question, the truth, and what follows.
 * @param {Record<string, any>} told the step, as Python tells it
 * @returns {PageOfStep[]}
 */
export function stepPages({ before, question, after, task, missing, problem }) {
  if (missing || problem) return ["question"];
  if (task) return task.is_done ? ["before", "after"] : ["before"];
  const isAsked = question && !question.is_example;
  const pages = /** @type {PageOfStep[]} */ ([before?.length && "before", question && "question", isAsked && "answer", after?.length && "after"].filter(Boolean));
  return pages.length ? pages : ["before"];
}

/**
 * The page that a step is at once Python has told it anew: the truth where there is a reply now.
 * @param {PageOfStep} page
 * @param {Record<string, any>} before @param {Record<string, any>} now
 * @returns {PageOfStep}
 */
export function pageAfterAnswer(page, before, now) {
  if (!before.judged && now.judged) return "answer";
  if (!before.task?.is_done && now.task?.is_done) return "after";
  if (before.judged && !now.judged && page !== "before") return "question";
  return page;
}

/** What is shown of what a step points out: of settings, what they make; nothing of controls that change what is elsewhere. @param {string} target */
export const figureOfTarget = (target) => (target === "generation" ? NEXT_TOKEN : CONTROLS.test(target) ? "" : target);

const CONTROLS = new RegExp(`^(${SERIES}|.*-(${WHAT_IFS}|${CHOOSERS}))$`);

/** Whether the figure that a step points out may be seen: it is not what would tell the answer. @param {Record<string, any>} told */
export const isTargetVisible = ({ target, hides, missing }) => Boolean(target) && !missing && !hides?.ids.includes(target);

/**
 * Where a key leads on the stage; null where it is none of the stage's.
 * @param {string} key
 * @returns {"next" | "back" | "first" | "last" | "head-back" | "head-next" | "black" | "leave" | "notes" | null}
 */
export const stageCommand = (key) => KEYS[key] ?? KEYS[key.toLowerCase()] ?? null;

/** @type {Record<string, "next" | "back" | "first" | "last" | "head-back" | "head-next" | "black" | "leave" | "notes">} */
const KEYS = {
  ArrowRight: "next", ArrowDown: "next", PageDown: "next", " ": "next", // the last two are those of a presenter's remote
  ArrowLeft: "back", ArrowUp: "back", PageUp: "back", Home: "first", End: "last", "[": "head-back", "]": "head-next",
  b: "black", ".": "black", n: "notes", p: "leave", Escape: "leave",
};

// The steps of the lesson, each page by page.

/**
 * @param {() => void} changed is called when another page is to be seen
 * @param {() => boolean} [awaitsReplies] whether a class is still replying: the answer then comes at the second key alone
 * @returns {import("./presentation.js").Deck}
 */
export function lessonDeck(changed, awaitsReplies = () => false) {
  let told = shownLessonStep(), page = stepPages(told)[0], coming = 0; // −1 where the last page of the step before is to come
  let isHeld = false; // whether the answer was asked for before all have replied
  const leaving = new AbortController();

  onLessonStep((now) => {
    const isOther = now.name !== told.name || now.step !== told.step, pages = stepPages(now);
    page = isOther ? pages[coming < 0 ? pages.length - 1 : 0] : pageAfterAnswer(page, told, now);
    if (!pages.includes(page)) page = pages[0];
    if (isOther) coming = 0;
    told = now;
    changed();
  }, leaving.signal);

  // A step of several pages counts them: 3a, 3b.
  function letterOfPage() {
    const pages = stepPages(told);
    return pages.length > 1 ? "abcd"[pages.indexOf(page)] : "";
  }

  return {
    go(by) {
      const pages = stepPages(told), next = pages.indexOf(page) + by;
      const wasHeld = isHeld;
      isHeld = pages[next] === "answer" && !told.judged && !wasHeld && awaitsReplies();
      if (isHeld) return changed();
      if (pages[next] === "answer" && !told.judged) return showAnswer();
      if (next >= 0 && next < pages.length) {
        page = pages[next];
        return changed();
      }
      const isFar = !Number.isFinite(by), step = isFar ? (by < 0 ? 1 : told.steps) : told.step + by;
      if (isFar && step === told.step) {
        page = pages[0];
        return changed();
      }
      if (step < 1 || step > told.steps) return;
      coming = isFar ? 0 : by;
      goToStep(state.lesson, step);
    },
    shown() {
      const { heading, title, step, steps, before, next, question } = told;
      const pages = stepPages(told);
      return {
        isFirst: step === 1 && page === pages[0], isLast: step === steps && page === pages[pages.length - 1],
        isHeld, heading: heading ?? "", at: `${step}${letterOfPage()} / ${steps}`, page, figure: isTargetVisible(told) ? figureOfTarget(told.target) : "",
        notes: [...prose(before ?? []), ...(question ? [make("p", {}, make("strong", {}, question.words))] : [])],
        next: next ? [make("p", {}, make("strong", {}, next.heading)), ...prose(next.before)] : [make("p", {}, _("“{title}” ends here.", { title }))],
      };
    },
    leave: () => leaving.abort(),
  };
}

// The figures of the open tab, beginning with the one that was looked at last; the next token follows if that is it.

/** @param {() => void} changed @returns {import("./presentation.js").Deck} */
export function figuresDeck(changed) {
  const first = currentFigure(), ids = visibleFigures().map(({ id }) => id), { unfolded = "" } = state;
  const deck = ids.includes(first) || !first ? ids : [...ids, first];
  const nameOf = (id) => document.getElementById(id)?.querySelector("h2")?.textContent ?? "";
  let at = Math.max(0, deck.indexOf(first));

  return {
    go(by) {
      at = Math.max(0, Math.min(deck.length - 1, at + by));
      changed();
    },
    shown: () => ({
      heading: nameOf(deck[at]) || find(document, "[role=tab][aria-selected=true]")?.textContent || "", at: `${at + 1} / ${deck.length}`, figure: deck[at] ?? "", isFirst: at === 0, isLast: at >= deck.length - 1,
      problem: deck.length ? "" : _("This tab shows no figure now."),
      notes: [], next: [make("p", {}, at + 1 < deck.length ? nameOf(deck[at + 1]) : _("This was the last figure."))],
    }),
    leave: () => restoreFolds(unfolded),
  };
}

// Saved slides, one after another.

/**
 * @param {Slide[]} slides
 * @param {number} at the first
 * @param {() => void} changed
 * @returns {import("./presentation.js").Deck}
 */
export function slidesDeck(slides, at, changed) {
  const leaving = new AbortController();
  let isThere = false, problem = "";

  onMove((move, isMade) => {
    if (move.kind !== "place" || JSON.stringify(move.words) !== JSON.stringify(slideQuery(slides[at]))) return; // of one that was passed by
    isThere = isMade;
    const { checkpoint } = slideQuery(slides[at]);
    problem = isMade ? "" : _("This slide cannot be shown here: it asks for {checkpoint}.", { checkpoint: checkpoint || "?" });
    changed();
  }, leaving.signal);

  function goThere() {
    isThere = false;
    problem = "";
    makeMove({ kind: "place", words: slideQuery(slides[at]) });
    changed();
  }
  goThere();

  const captionOf = (slide, i) => slide.caption || _("Slide {number}", { number: i + 1 });
  return {
    go(by) {
      const next = Math.max(0, Math.min(slides.length - 1, at + by));
      if (next === at) return;
      at = next;
      goThere();
    },
    shown: () => ({
      heading: captionOf(slides[at], at), at: `${at + 1} / ${slides.length}`, figure: isThere ? slides[at].figure || firstFigure() : "", problem, isFirst: at === 0, isLast: at === slides.length - 1,
      notes: [make("p", {}, slides[at].notes)],
      next: [make("p", {}, at + 1 < slides.length ? captionOf(slides[at + 1], at + 1) : _("This was the last slide."))],
    }),
    leave: () => leaving.abort(),
  };
}

/** The first figure of the open tab. */
const firstFigure = () => document.querySelector(`.panels > .block[id^="${state.view}-"]:not(:has(> .html-container > [hidden]))`)?.id ?? "";
