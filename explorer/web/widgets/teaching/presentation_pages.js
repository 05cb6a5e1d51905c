// @ts-check
// Pages of a presentation: a lesson's steps, the figures of the open tab, or saved slides. A slide is a URL query of the
// page with a caption and notes. Slides live in the browser's storage, in a link's fragment or in a file; the server
// never gets them.
import { makeMove, select } from "../../static/page_actions.js";
import { currentFigure, visibleFigures, restoreFolds } from "../../static/widget_contents.js";
import { find, findAll, make, readStoredObject, writeStorage } from "../../static/dom.js";
import { urlOfState, goToStep, shownLessonStep, MAX_LINK_LENGTH, onLessonStep, showAnswer } from "../../static/history.js";
import { _ } from "../../static/text.js";
import { encodeBase64, decodeBase64 } from "../../static/plotly_figures.js";
import { state } from "../../static/page_state.js";
import { isAnswerHeld as isHeldByTeacher } from "../../static/room_client.js";
import { renderBlocks } from "./lesson.js";

/** @typedef {import("../../static/page_state.js").State} State */

/**
 * @typedef {object} Slide
 * @property {string} words the URL query
 * @property {string} figure element id of the enlarged figure; "" for the first of its tab
 * @property {string} caption
 * @property {string} notes for the presenter
 */

export const LIMITS = { slides: 60, caption: 200, notes: 2000, words: MAX_LINK_LENGTH, text: 400_000 };
const STORAGE_KEY = "explorer:places";
const EXCLUDED_FIELDS = ["lang", "turn", "version", "lesson", "step", "reply", "move", "own"]; // also those of a lesson: slides never open one
const FRAGMENT = "places=", FIGURE = /^[a-z_]{1,40}-[a-z_]{1,40}$|^$|^strip$/;

/** Return a slide of the current page; null if its URL query is too long. @param {State} state @param {string} figure @param {string} caption @returns {Slide | null} */
export function makeSlide(state, figure, caption) {
  const fields = Object.fromEntries(Object.entries(state).filter(([name]) => !EXCLUDED_FIELDS.includes(name)));
  const query = urlOfState(fields, "http://here/").search.slice(1);
  return query.length > LIMITS.words ? null : readSlide({ words: query, figure, caption });
}

/** Return the titles of the open tab and of its figure. */
export function viewTitle() {
  const tab = find(document, `button[data-view="${state.view}"]`)?.textContent, figure = currentFigure();
  const title = figure && find(document, `#${figure} h2`)?.textContent;
  return (title && tab && title.toLowerCase().endsWith(tab.toLowerCase()) ? [title] : [tab, title]).filter(Boolean).join(": "); // no “Whole model: The whole model”
}

/** Validate a value as a slide; null if it is none. @param {any} value @returns {Slide | null} */
function readSlide(value) {
  if (typeof value?.words !== "string" || value.words.length > LIMITS.words || !value.words) return null;
  const truncate = (value, maxLength) => (typeof value === "string" ? value.slice(0, maxLength) : "");
  const id = value.figure ?? value.picture, figure = FIGURE.test(id) ? id : ""; // older slides have "picture"
  return { words: value.words, figure, caption: truncate(value.caption, LIMITS.caption), notes: truncate(value.notes, LIMITS.notes) };
}

/** Return the valid slides of untrusted data, leaving out the others. @param {any} value @returns {Slide[]} */
export const validSlides = (value) => (Array.isArray(value) ? value.slice(0, LIMITS.slides).map(readSlide).filter((slide) => slide !== null) : []);

/** Return the slides in the browser's storage. @returns {Slide[]} */
export const storedSlides = () => validSlides(readStoredObject(STORAGE_KEY));

/** Replace the slides in the browser's storage; return false if it is not available. @param {Slide[]} slides */
export const storeSlides = (slides) => writeStorage(STORAGE_KEY, slides);

/** Return a slide's URL query as an object. @param {Slide} slide @returns {Record<string, string>} */
export const slideQuery = ({ words }) => Object.fromEntries(new URLSearchParams(words));

/** Append slides up to the limit, and count those left out. @param {Slide[]} current @param {Slide[]} received @returns {[Slide[], number]} */
export function appendSlides(current, received) {
  const all = [...current, ...received];
  return [all.slice(0, LIMITS.slides), Math.max(0, all.length - LIMITS.slides)];
}

/** Return the list with one item moved. @template Item @param {Item[]} items @param {number} from @param {number} to */
export function moveItem(items, from, to) {
  const others = items.filter((item, i) => i !== from);
  return [...others.slice(0, to), items[from], ...others.slice(to)];
}

/** Return a link to the page with slides in its fragment, which browsers do not send to the server. @param {Slide[]} slides @param {string} pageUrl */
export async function slidesLink(slides, pageUrl) {
  const url = new URL(pageUrl);
  url.search = "";
  const compressed = await new Response(new Blob([JSON.stringify(slides)]).stream().pipeThrough(new CompressionStream("deflate-raw"))).arrayBuffer();
  url.hash = FRAGMENT + encodeBase64(new Uint8Array(compressed)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return url.href;
}

/** Return the slides in a URL's fragment; null if it has none. Decompression stops at the limit, against compression bombs. @param {string} hash */
export async function slidesFromHash(hash) {
  const fragment = hash.replace(/^#/, "");
  if (!fragment.startsWith(FRAGMENT)) return null;
  try {
    const bytes = decodeBase64(fragment.slice(FRAGMENT.length).replaceAll("-", "+").replaceAll("_", "/"));
    return validSlides(JSON.parse(await decompress(bytes)));
  } catch { return []; }
}

async function decompress(bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let { value, done } = await reader.read(); !done; { value, done } = await reader.read()) {
    text += value;
    if (text.length > LIMITS.text) throw new RangeError("too-long");
  }
  return text;
}

// Pages of a lesson's step.

/** @typedef {"before" | "question" | "answer" | "after"} StepPage the page of the question also has the text before it */

/**
 * Return the pages of a lesson's step, each short enough for a screen: its text with its question, the answer, the text after.
 * @param {Record<string, any>} step as Python sends it
 * @returns {StepPage[]}
 */
export function stepPages({ before, question, after, task, missing, problem }) {
  if (missing || problem) return ["question"];
  if (task) return task.is_done ? ["before", "after"] : ["before"];
  const needsReply = question && !question.is_example;
  const pages = /** @type {StepPage[]} */ ([question ? "question" : before?.length && "before", needsReply && "answer", after?.length && "after"].filter(Boolean));
  return pages.length ? pages : ["before"];
}

/**
 * Return the page to show after Python sent a step again: the answer once there is a reply.
 * @param {StepPage} page
 * @param {Record<string, any>} before @param {Record<string, any>} after
 * @returns {StepPage}
 */
export function pageAfterAnswer(page, before, after) {
  if (!before.judged && after.judged) return "answer";
  if (!before.task?.is_done && after.task?.is_done) return "after";
  if (before.judged && !after.judged) return "question";
  return page;
}

/** Return the figure to show for a step's target: for a text to write what it changes, for generation settings the next token, for other controls none. @param {Record<string, any>} step */
export function figureOfStep({ target, task, view }) {
  if (writesPrompt({ target, task })) return view === "tokens" ? "strip" : "next-token";
  return target === "generation" ? "next-token" : CONTROL_IDS.test(target) ? "" : target;
}

/** Return whether a step's task is to write a text: its box then stands above the figure. @param {Record<string, any>} step */
const writesPrompt = ({ target, task }) => target === "prompt" && Boolean(task);

const CONTROL_IDS = /^(series|.*-(what-ifs|choosers))$/;

/** Return whether a step's target is visible, and not covered as it would reveal the answer. @param {Record<string, any>} step */
export const isTargetVisible = ({ target, hides, missing }) => Boolean(target) && !missing && !hides?.ids.includes(target);

/**
 * Return the stage's command of a key; null if it has none.
 * @param {string} key
 * @returns {"next" | "back" | "first" | "last" | "head-back" | "head-next" | "black" | "leave" | "notes" | null}
 */
export const stageCommand = (key) => KEY_COMMANDS[key] ?? KEY_COMMANDS[key.toLowerCase()] ?? null;

/** @type {Record<string, "next" | "back" | "first" | "last" | "head-back" | "head-next" | "black" | "leave" | "notes">} */
const KEY_COMMANDS = {
  ArrowRight: "next", ArrowDown: "next", PageDown: "next", " ": "next", // presentation remotes send PageDown or a space
  ArrowLeft: "back", ArrowUp: "back", PageUp: "back", Home: "first", End: "last", "[": "head-back", "]": "head-next",
  b: "black", ".": "black", n: "notes", p: "leave", Escape: "leave",
};

/**
 * Make the deck of a lesson's steps, each in its pages.
 * @param {() => void} onChange called when the page changes
 * @param {() => boolean} [awaitsReplies] whether a class is still replying: the answer then needs a second key press
 * @returns {import("./presentation.js").Deck}
 */
export function lessonDeck(onChange, awaitsReplies = () => false) {
  let current = shownLessonStep(), page = stepPages(current)[0], direction = 0; // −1 if the previous step will open at its last page
  let isAnswerHeld = false; // whether the answer was requested before all have replied
  const shownSteps = new Set([current.step]); // others open with their question, though the teacher tried it before
  const abortController = new AbortController();

  onLessonStep((newStep) => {
    const isNewStep = newStep.name !== current.name || newStep.step !== current.step, pages = stepPages(newStep);
    page = isNewStep ? pages[direction < 0 ? pages.length - 1 : 0] : pageAfterAnswer(page, current, newStep);
    if (!pages.includes(page)) page = pages[0];
    if (isNewStep) direction = 0;
    current = newStep;
    shownSteps.add(current.step);
    onChange();
  }, abortController.signal);

  // Pages of one step are numbered 3a, 3b.
  function pageLetter() {
    const pages = stepPages(current);
    return pages.length > 1 ? "abcd"[pages.indexOf(page)] : "";
  }

  return {
    go(offset) {
      const pages = stepPages(current), nextIndex = pages.indexOf(page) + offset;
      const wasHeld = isAnswerHeld;
      isAnswerHeld = pages[nextIndex] === "answer" && !current.judged && !wasHeld && awaitsReplies();
      if (isAnswerHeld) return onChange();
      if (pages[nextIndex] === "answer" && !current.judged) return isHeldByTeacher() ? onChange() : showAnswer();
      if (nextIndex >= 0 && nextIndex < pages.length) {
        page = pages[nextIndex];
        return onChange();
      }
      const isJump = !Number.isFinite(offset), targetStep = isJump ? (offset < 0 ? 1 : current.steps) : current.step + offset;
      if (isJump && targetStep === current.step) {
        page = pages[0];
        return onChange();
      }
      if (targetStep < 1 || targetStep > current.steps) return;
      direction = isJump ? 0 : offset;
      if (shownSteps.has(targetStep) || offset === -1) goToStep(state.lesson, targetStep);
      else makeMove({ kind: "lesson", lesson: state.lesson, step: targetStep, reply: "" });
    },
    currentPage() {
      const { heading, title, step, steps, before, next, question } = current;
      const pages = stepPages(current);
      return {
        isFirst: step === 1 && page === pages[0], isLast: step === steps && page === pages[pages.length - 1],
        isHeld: isAnswerHeld, heading: heading ?? "", at: `${step}${pageLetter()} / ${steps}`, page, figure: isTargetVisible(current) ? figureOfStep(current) : "", hasPrompt: writesPrompt(current),
        notes: [...renderBlocks(before ?? []), ...(question ? [make("p", {}, make("strong", {}, question.words))] : [])],
        next: next ? [make("p", {}, make("strong", {}, next.heading)), ...renderBlocks(next.before)] : [make("p", {}, _("“{title}” ends here.", { title }))],
      };
    },
    leave: () => abortController.abort(),
  };
}

/** Make the deck of the story's steps, each with its figure. @param {() => void} onChange @returns {import("./presentation.js").Deck} */
export function storyDeck(onChange) {
  const steps = findAll(document, "#steps [data-view]"), last = steps.length - 1;
  const shownIndex = () => Math.max(0, steps.findIndex(({ dataset }) => dataset.view === state.view));
  const figureOf = (i) => find(document, `#view .panels > .block[id^="${steps[i].dataset.view}-"]`);
  const stepTitle = (i) => figureOf(i)?.querySelector("h2")?.textContent || (steps[i].textContent ?? "");

  let frame = 0;
  function showStep() {
    onChange();
    if (!figureOf(shownIndex())) frame = requestAnimationFrame(showStep); // a step that opens for the first time
  }

  return {
    go(offset) {
      select({ view: steps[Math.max(0, Math.min(last, shownIndex() + offset))].dataset.view });
      cancelAnimationFrame(frame);
      showStep();
    },
    currentPage() {
      const index = shownIndex();
      return {
        heading: stepTitle(index), at: `${index + 1} / ${steps.length}`, figure: figureOf(index)?.id ?? "", isFirst: index === 0, isLast: index === last,
        notes: [], next: [make("p", {}, index < last ? stepTitle(index + 1) : _("This was the last figure."))],
      };
    },
    leave: () => cancelAnimationFrame(frame),
  };
}

/** Make the deck of the open tab's figures, starting with the one most in sight; the next token is added if it is that. @param {() => void} onChange @returns {import("./presentation.js").Deck} */
export function figuresDeck(onChange) {
  const first = currentFigure(), ids = visibleFigures().map(({ id }) => id), { unfolded = "" } = state;
  const deck = ids.includes(first) || !first ? ids : [...ids, first];
  const figureTitle = (id) => document.getElementById(id)?.querySelector("h2")?.textContent ?? "";
  let index = Math.max(0, deck.indexOf(first));

  return {
    go(offset) {
      index = Math.max(0, Math.min(deck.length - 1, index + offset));
      onChange();
    },
    currentPage: () => ({
      heading: figureTitle(deck[index]) || find(document, "[role=tab][aria-selected=true]")?.textContent || "", at: `${index + 1} / ${deck.length}`, figure: deck[index] ?? "", isFirst: index === 0, isLast: index >= deck.length - 1,
      problem: deck.length ? "" : _("This tab shows no figure now."),
      notes: [], next: [make("p", {}, index + 1 < deck.length ? figureTitle(deck[index + 1]) : _("This was the last figure."))],
    }),
    leave: () => restoreFolds(unfolded),
  };
}

/**
 * Make the deck of saved slides.
 * @param {Slide[]} slides
 * @param {number} index of the first to show
 * @param {() => void} onChange
 * @returns {import("./presentation.js").Deck}
 */
export function slidesDeck(slides, index, onChange) {
  let isOpen = false, problem = "";

  async function openSlide() {
    const openedIndex = index, words = slideQuery(slides[index]), whenMade = makeMove({ kind: "place", words });
    isOpen = false;
    problem = "";
    onChange();
    const isMade = await whenMade;
    if (index !== openedIndex) return; // it was skipped
    isOpen = isMade;
    problem = isMade ? "" : _("This slide cannot be shown here: it asks for {checkpoint}.", { checkpoint: words.checkpoint || "?" });
    onChange();
  }
  openSlide();

  const slideCaption = (slide, i) => slide.caption || _("Slide {number}", { number: i + 1 });
  return {
    go(offset) {
      const nextIndex = Math.max(0, Math.min(slides.length - 1, index + offset));
      if (nextIndex === index) return;
      index = nextIndex;
      openSlide();
    },
    currentPage: () => ({
      heading: slideCaption(slides[index], index), at: `${index + 1} / ${slides.length}`, figure: isOpen ? slides[index].figure || firstFigure() : "", problem, isFirst: index === 0, isLast: index === slides.length - 1,
      notes: [make("p", {}, slides[index].notes)],
      next: [make("p", {}, index + 1 < slides.length ? slideCaption(slides[index + 1], index + 1) : _("This was the last slide."))],
    }),
  };
}

/** Return the element id of the open tab's first figure. */
const firstFigure = () => document.querySelector(`.panels > .block[id^="${state.view}-"]:not(:has(> .html-container > [hidden]))`)?.id ?? "";
