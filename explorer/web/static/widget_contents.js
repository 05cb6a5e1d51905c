// @ts-check
// Contents of the widgets: receives them from Python, queues their drawing, marks stale figures, and shows what stands
// beside a figure: a job's progress, its verification, the derivation of a clicked number.
import { requestUpdate, requestDerivation } from "./page_actions.js";
import { callServer, RefusedError, clientId } from "./server_connection.js";
import { button, countDraw, find, findAll, setHidden, make, setText, span } from "./dom.js";
import { _ } from "./text.js";
import { onState, setState, state } from "./page_state.js";

// A request marks the figures that it updates as stale until a response redraws them. The mark is delayed, since dimming
// all figures takes a fifth of a click's time and most responses are faster than that.

const STALE_DELAY_MS = 300;

/** Number of the latest request. */
export let requestCount = 0;
/** @type {Set<HTMLElement>} */
const staleBlocks = new Set();
let lastQuery = null; // query position of the latest request
const UNDRAWN_BLOCKS = "#view > :not([hidden]) .panels > .block:not([data-drawn])"; // never drawn so far; CSS hides the blocks below them, which would shift otherwise

/**
 * Return the selectors of the blocks that a request updates. Each begins with an id, so that the browser does not search
 * the other tabs.
 * @param {string} scope of the request, one of ABOUT
 * @param {string} view the open tab
 */
export function staleSelectors(scope, view) {
  const figures = `#${view}-tab .panels > [id^="${view}-"]`;
  const rest = [`#${view}-formula`, "#why-token", "#stand-ins"], all = [figures, ...rest, "#advice"];
  const updated = { tune: [], token: [...all, `#${view}-what-ifs`], pick: [`${figures}:not(.once)`, ...rest], view: [figures, ...rest], show: all }[scope];
  return ["#next-token", ...updated];
}

/** Count a request. Return a function that marks the blocks that it updates as stale. @returns {() => void} */
export function staleMarker(scope, view) {
  const number = ++requestCount, previousQuery = lastQuery;
  lastQuery = state.query;
  return () => markBlocksStale(number, scope, view, previousQuery);
}

// A stale figure states its query position where another is selected by now: during generation it stays stale for long.
function markBlocksStale(number, scope, view, previousQuery) {
  for (const block of staleSelectors(scope, view).flatMap((selector) => findAll(document, selector))) {
    block.dataset.asked = String(number);
    const isInTab = block.id.startsWith(`${view}-`); // blocks outside the tabs name their token themselves
    if (isInTab && !block.dataset.oldSince && previousQuery !== null && previousQuery !== state.query) block.dataset.asOf = _("as of position {position}", { position: previousQuery });
    block.dataset.oldSince ??= String(number);
    staleBlocks.add(block);
  }
  setTimeout(() => {
    for (const block of staleBlocks)
      if (+block.dataset.oldSince <= number) block.classList.add("stale");
  }, STALE_DELAY_MS);
}

/** Return whether a visible figure of the open tab, or the next token, is stale or not drawn yet. */
export const hasStaleFigures = () => [...staleBlocks, ...findAll(document, UNDRAWN_BLOCKS)].some((block) => block.checkVisibility());

/** Resolve two frames after all requested contents are drawn. @param {() => boolean} isAsking */
export async function whenAllDrawn(isAsking) {
  for (let calm = 0; calm < 2;) {
    await nextFrame();
    calm = isAsking() || isDrawing || hasStaleFigures() || automaticJobs.size ? 0 : calm + 1;
  }
}

/** Remove the stale mark of a block that shows a response. @param {HTMLElement | null} block @param {number} number of the request */
export function markFresh(block, number) {
  if (!(+block?.dataset.asked <= number)) return;
  staleBlocks.delete(block);
  delete block.dataset.oldSince;
  delete block.dataset.asOf;
  block.classList.remove("stale");
}

// Contents from Python by element id. They are stored, so that a widget that starts later gets the latest one.

const contents = {}, receivers = {};

/**
 * Store a content and show it in its widget. An error in one widget does not affect the others.
 * @param {string} id
 * @param {any} content
 * @param {number} [number] of the request that it belongs to
 */
export async function setContent(id, content, number) {
  contents[id] = content;
  if (!receivers[id] || await showContent(id)) markFresh(document.getElementById(id), number);
  if (id === "next-token") for (const block of staleBlocks) // opened words about another token would stand beside its bars
    if (["why-token", "stand-ins"].includes(block.id) && contents[block.id]?.length && +block.dataset.oldSince <= number) block.classList.add("stale");
}

async function showContent(id) {
  try { await receivers[id](contents[id]); } catch (error) {
    reportFailure(error);
    return false;
  } finally { markDrawn(document.getElementById(id)); }
  return true;
}

function markDrawn(block) {
  block?.toggleAttribute("data-drawn", true);
  if (!findAll(document, UNDRAWN_BLOCKS).some((undrawn) => undrawn.checkVisibility())) find(document, "#view > :not([hidden])")?.toggleAttribute("data-drawn", true);
}

/** Mark panels as drawn that got no content in a complete response, for example while a lesson covers them. */
export function finishResponse() {
  for (const block of findAll(document, UNDRAWN_BLOCKS)) if (!(block.id in contents)) markDrawn(block);
}

/**
 * Call `show` with each content of a widget, beginning with the latest one.
 * @param {Element} element
 * @param {(content: any) => any} show resolves once the content is drawn
 * @param {string} [idSuffix] end of the id, for a widget with several contents
 */
export function onContent(element, show, idSuffix = "") {
  const id = (widgetBlock(element) ?? element).id + idSuffix;
  receivers[id] = show;
  if (id in contents) showContent(id);
}

/** Return the block around a widget's element. @param {Element} element @returns {HTMLElement} */
export const widgetBlock = (element) => element.closest("[data-widget]");

/**
 * Log an error and show a message.
 * @param {unknown} error
 * @param {string} [message]
 */
export function reportFailure(error, message = _("A part of the page could not be drawn. Reload the page to try again: its address holds all you chose.")) {
  console.error(error);
  setContent("problem", message);
}

// Figures are drawn from the top of the page to the bottom. A frame draws as many visible figures as its budget allows, or
// one that is out of sight, so that the first figure appears before the last is drawn.

/** @type {{ element: Element, draw: () => any, resolve: () => void }[]} */
const queue = [];
const FRAME_BUDGET_MS = 30;
let isDrawing = false;

/**
 * Queue the drawing of an element.
 * @param {Element} element
 * @param {() => any} draw
 * @returns {Promise<void>} resolves once it is drawn or has failed
 */
export function queueDraw(element, draw) {
  return new Promise((resolve) => {
    queue.push({ element, draw, resolve });
    if (!isDrawing) drawAll();
  });
}

async function drawAll() {
  isDrawing = true;
  await null; // let all callers of this task join the queue
  let frameStart = performance.now();
  while (queue.length) {
    const { draw, resolve } = queue.sort((a, b) => (comesBefore(a.element, b.element) ? -1 : 1)).shift();
    try { await draw(); } catch (error) { reportFailure(error); }
    resolve();
    if (performance.now() - frameStart < FRAME_BUDGET_MS && queue.some(({ element }) => isInViewport(element))) continue;
    await nextFrame();
    frameStart = performance.now();
  }
  isDrawing = false;
}

function isInViewport(element) {
  const { top, bottom, height } = element.getBoundingClientRect();
  return height > 0 && top < innerHeight && bottom > 0;
}

const comesBefore = (a, b) => a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING;

// The timeout is for hidden pages, which have no animation frames.
const nextFrame = () => new Promise((resolve) => { requestAnimationFrame(resolve); setTimeout(resolve, 100); });

// Scrolling to a figure.

const HEADER_PX = 120; // height of the sticky header
const SCROLL_EVENTS = ["wheel", "touchmove", "keydown", "pointerdown"]; // events of a user's own scrolling

/** Scroll to a figure once it is drawn, even if its tab is still opening. @param {string} id of its element @param {() => boolean} [isWanted] whether to go on waiting */
export function scrollToFigure(id, isWanted = () => true) {
  if (!isWanted()) return;
  unfoldFigure(id);
  const figure = find(document, `#${id} [data-draws]`);
  if (!figure?.clientWidth) return requestAnimationFrame(() => scrollToFigure(id, isWanted));
  scrollIntoNearestView(find(document, `#${id}`));
  const userScroll = new AbortController(), { signal } = userScroll;
  for (const event of SCROLL_EVENTS) window.addEventListener(event, () => userScroll.abort(), { signal, passive: true });
  const scrollAgain = () => {
    if (!signal.aborted) scrollIntoNearestView(find(document, `#${id}`));
    userScroll.abort();
  };
  requestAnimationFrame(() => whenFresh(scrollAgain)); // a request marks figures as stale after it is sent
}

/**
 * Scroll as little as shows an element whole, and no further than keeps what was pressed in sight.
 * @param {HTMLElement} element
 * @param {number} [pressedY] pixels from the top of the viewport
 */
export function scrollIntoNearestView(element, pressedY = Infinity) {
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  const maxDistance = Math.max(0, pressedY - HEADER_PX), distance = element.getBoundingClientRect().bottom + parseFloat(getComputedStyle(element).scrollMarginBottom) - innerHeight;
  if (distance > maxDistance) scrollBy({ top: maxDistance, behavior });
  else element.scrollIntoView({ block: "nearest", behavior });
}

// Wait for the figures above it, which may push it out of the viewport.
/** @param {() => void} act */
function whenFresh(act) {
  if (hasStaleFigures()) requestAnimationFrame(() => whenFresh(act)); else act();
}

// The current figure: the one most in sight, or one in sight that was clicked or focused.

const FIGURE_SELECTOR = "#view .panels > .block, #next-token", IN_SIGHT_SHARE = 0.8; // of a clicked figure's area
let lastFigure = "", lastView = "", lastPressedY = Infinity;

/** Return the figures of the open tab, folded ones included. */
export const visibleFigures = () => findAll(document, "#view .panels > .block").filter((figure) => figure.checkVisibility() && figure.querySelector("[data-draws], .unfold"));

/** Return the area of an element within the viewport. @param {Element} element */
function areaInSight(element) {
  const { left, right, top, bottom } = element.getBoundingClientRect();
  return Math.max(0, Math.min(right, innerWidth) - Math.max(left, 0)) * Math.max(0, Math.min(bottom, innerHeight) - Math.max(top, 0));
}

/** Return the element id of the figure most in sight; of the last clicked one if nearly all of it is. */
export function currentFigure() {
  const visible = visibleFigures(), clicked = document.getElementById(lastFigure), areas = visible.map(areaInSight);
  const isHere = clicked && (visible.includes(clicked) || (lastFigure === "next-token" && lastView === state.view));
  if (isHere && areaInSight(clicked) > IN_SIGHT_SHARE * clicked.offsetWidth * clicked.offsetHeight) return lastFigure;
  return visible[areas.indexOf(Math.max(...areas))]?.id ?? "";
}

/** Record the figure that is clicked or focused. */
export function trackCurrentFigure() {
  for (const kind of ["pointerdown", "focusin"])
    document.addEventListener(kind, (event) => {
      const figure = /** @type {Element} */ (event.target).closest?.(FIGURE_SELECTOR);
      if (event instanceof PointerEvent) lastPressedY = event.clientY;
      if (figure) [lastFigure, lastView] = [figure.id, state.view];
    });
}

// Jobs: long computations that figures wait for. A figure shows a button that starts its job, the progress, and a button
// that cancels it. Figures that wait for one job share it by its name.

/** @typedef {{ name: string, seconds: number }} Job */
/** Name of the endpoint that starts a job. @typedef {"begin_job" | "begin_opening" | "begin_check"} JobEndpoint */
/** @typedef {{ state: string, done: number, of: number, seconds: number, error: string }} Progress */
/** One run of a job; a job that is restarted gets a new one. @typedef {{ progress: Progress }} Attempt */

const MIN_POLL_MS = 200, MAX_POLL_MS = 2000; // interval between two polls of the progress
const MAX_AUTOMATIC_S = 20; // shorter jobs start without a button

/** Job name -> functions that show its progress in the figures that wait for it. @type {Map<string, Set<(progress: Progress | null) => void>>} */
const progressListeners = new Map();
/** Job name -> its running attempt. @type {Map<string, Attempt>} */
const runningJobs = new Map();
/** Names of running jobs that started without a button. @type {Set<string>} */
const automaticJobs = new Set();
/** Names of cancelled and failed jobs: only a button restarts them. @type {Set<string>} */
const endedJobs = new Set();
/** Pending cancellations. A job must not restart before them, or Python would cancel the new one. @type {Promise<unknown>} */
let cancellations = Promise.resolve();

/**
 * Return a function that shows the job which a figure waits for, or removes it for null.
 * @param {HTMLElement} element
 * @returns {(job: Job | null) => void}
 */
function makeJobStatus(element) {
  const box = find(element, ".job"), { id } = widgetBlock(element);
  /** @type {Job | null} */
  let job = null;
  let view = "";

  /** @param {Progress | null} progress */
  function show(progress) {
    if (progress?.state === "done") return; // the figure replaces it
    element.classList.toggle("coming", Boolean(progress && isJobRunning(progress)));
    if (progress && isJobRunning(progress)) return showProgress(progress);
    const startButton = button(_("work it out (about {time})", { time: formatDuration(job.seconds) }), start);
    box.replaceChildren(startButton, span("error", progress?.error ?? ""));
  }
  const start = () => startJob(job, ["begin_job", [state, id, clientId]], () => requestUpdate("view"));
  function showProgress({ state: status, done, of, seconds }) {
    const bar = find(box, "progress") ?? make("progress", { ariaLabel: _("worked out") }), words = find(box, ".left") ?? span("left");
    Object.assign(bar, of ? { max: of, value: done } : {});
    words.textContent = status === "waiting" && !done ? _("waiting for its turn: about {time}", { time: formatDuration(seconds) })
      : _("{done} of {of}, about {time} left", { done, of, time: formatDuration(seconds) });
    if (!bar.isConnected) box.replaceChildren(bar, words, button(_("Cancel"), () => { endedJobs.add(job.name); cancelJob(job.name); }));
  }

  onState(() => { if (job && view !== state.view) stopWaiting(); }); // the view is closed
  function stopWaiting() {
    const listeners = progressListeners.get(job.name);
    listeners?.delete(show);
    if (!listeners?.size) progressListeners.delete(job.name), cancelJob(job.name);
  }

  return (next) => {
    if (job && job.name !== next?.name) stopWaiting();
    job = next;
    view = state.view;
    box.hidden = !job;
    if (!job) {
      element.classList.remove("coming");
      return box.replaceChildren();
    }
    if (!progressListeners.has(job.name)) progressListeners.set(job.name, new Set());
    progressListeners.get(job.name).add(show);
    if (job.seconds > 0 && job.seconds < MAX_AUTOMATIC_S && !endedJobs.has(job.name)) {
      automaticJobs.add(job.name);
      start();
    }
    else show(runningJobs.get(job.name)?.progress ?? null);
  };
}

/** @param {string} name @param {Progress | null} progress null if the job does not run */
function notifyListeners(name, progress) {
  for (const show of progressListeners.get(name) ?? []) show(progress);
}

/**
 * Start a job and report its progress until it ends.
 * @param {string} name
 * @param {[JobEndpoint, any[]]} startCall endpoint and arguments
 * @param {(progress: Progress | null) => void} show
 * @param {() => void} onDone
 */
export function followJob(name, startCall, show, onDone) {
  progressListeners.set(name, (progressListeners.get(name) ?? new Set()).add(show));
  return startJob({ name, seconds: 0 }, startCall, onDone);
}

// Poll the job until it is done, fails, or is cancelled.
/** @param {Job} job @param {[JobEndpoint, any[]]} startCall @param {() => void} onDone */
async function startJob({ name, seconds }, startCall, onDone) {
  if (runningJobs.has(name)) return;
  /** @type {Attempt} */
  const attempt = { progress: { state: "waiting", done: 0, of: 0, seconds, error: "" } };
  const isWanted = () => runningJobs.get(name) === attempt;
  runningJobs.set(name, attempt);
  notifyListeners(name, attempt.progress);
  await cancellations;
  if (isWanted()) attempt.progress = await fetchProgress(...startCall);
  while (isWanted() && isJobRunning(attempt.progress)) {
    notifyListeners(name, attempt.progress);
    await waitBeforePoll(attempt.progress.seconds);
    if (isWanted()) attempt.progress = await fetchProgress("job_progress", [clientId, name]);
  }
  if (!isWanted()) return;
  runningJobs.delete(name);
  automaticJobs.delete(name);
  notifyListeners(name, attempt.progress);
  if (attempt.progress.state === "done") onDone(); else endedJobs.add(name);
}

/** @param {Progress} progress */
export const isJobRunning = (progress) => progress.state === "waiting" || progress.state === "working";

/** @param {JobEndpoint | "job_progress"} name @param {any[]} args @returns {Promise<Progress>} */
async function fetchProgress(name, args) {
  try { return await callServer(name, args); }
  catch (error) { return { state: "failed", done: 0, of: 0, seconds: 0, error: error instanceof RefusedError ? error.message : "" }; }
}

/** Cancel a job that no figure waits for. @param {string} name */
export function cancelJob(name) {
  if (!runningJobs.delete(name)) return;
  automaticJobs.delete(name);
  notifyListeners(name, null);
  const cancellation = callServer("leave_job", [clientId, name]).catch(() => {}); // on failure it ends by itself, as nobody polls it
  cancellations = Promise.all([cancellations, cancellation]);
}

/** Wait for a tenth of the remaining time. @param {number} seconds that remain */
const waitBeforePoll = (seconds) => new Promise((resolve) => { setTimeout(resolve, Math.min(Math.max(seconds * 100, MIN_POLL_MS), MAX_POLL_MS)); });

/** Format a time in words. @param {number} seconds */
export function formatDuration(seconds) {
  if (seconds >= 90) return _("{minutes} min", { minutes: Math.round(seconds / 60) });
  return _("{seconds} s", { seconds: Math.max(1, Math.round(seconds)) });
}

// Below a figure: the verification of its numbers, and the derivation of the clicked one.

const UNRELATED_FIELDS = ["unfolded", "find", "guess", "why", "stand_ins"]; // fields of the state that no derivation depends on

/** Button beside a derivation, which stays open when it is pressed. @typedef {{ label: () => string, act: () => void }} PointAction */

/**
 * Show verification and derivation in a figure's widget. Return a function that shows the derivation of a clicked point
 * (derivation.py) and a button for it. Call it before the click changes the state. The derivation stays until the
 * values that it depends on change, or the user closes it.
 * @param {Element} element
 * @returns {(point: Record<string, any>, action?: PointAction | null) => Promise<void>}
 */
export function showEvidence(element) {
  const mark = find(element, ".evidence-mark"), words = find(element, ".inspection"), { id } = widgetBlock(element);
  const firstLine = button("", () => {
    words.scrollIntoView({ block: "nearest" });
    find(words, ".close").focus({ preventScroll: true });
  }, { className: "first-line" });
  let derivedState = null;
  onContent(element, (verification) => {
    mark.dataset.state = verification?.state ?? "";
    setText(mark, verification?.words ?? ""); // an unchanged text keeps its marked glossary terms
    mark.title = [verification?.words, verification?.details].filter(Boolean).join(" · ");
  }, "-mark");
  const heading = find(element, "h2");
  if (heading) onContent(element, (title) => setText(find(heading, ".unfold") ?? heading, title), "-heading");
  const isCurrent = () => derivedState && Object.keys({ ...derivedState, ...state }).every((name) => UNRELATED_FIELDS.includes(name) || derivedState[name] === state[name]);
  /** @param {boolean} isOpen */
  const setOpen = (isOpen) => { words.hidden = firstLine.hidden = !isOpen; };
  onState(() => { if (!isCurrent()) setOpen(false); });
  new IntersectionObserver(([{ isIntersecting }]) => { firstLine.classList.toggle("needless", isIntersecting); }).observe(words); // itself in sight
  /** @param {PointAction} action */
  function makeActionButton({ label, act }) {
    const control = button(label(), () => {
      act();
      derivedState = state;
      setOpen(true);
      control.textContent = label();
    });
    return control;
  }
  return async (point, action = null) => {
    queueMicrotask(() => { derivedState = state; });
    const text = await requestDerivation(id, point);
    if (!isCurrent()) return;
    const close = button("×", () => setOpen(false), { className: "close", ariaLabel: _("Close") });
    words.dataset.of = id;
    placeBelowRow(words, firstLine, element);
    setText(firstLine, text.split("\n")[0]);
    words.replaceChildren(...(text ? [close, text] : []), ...(text && action ? ["\n", makeActionButton(action)] : []));
    setOpen(Boolean(text));
    if (text && !widgetBlock(element).classList.contains("presented")) scrollIntoNearestView(words, lastPressedY);
  };
}

/** Place a derivation below the figure's whole row, and its first line at the viewport's lower edge while the figure is there. */
function placeBelowRow(words, firstLine, element) {
  const block = widgetBlock(element), { parentElement, offsetTop } = block;
  for (const line of findAll(document, ".first-line")) line.remove(); // only the latest derivation has one
  if (block.classList.contains("presented")) return element.append(words);
  const siblings = /** @type {HTMLElement[]} */ (Array.from(parentElement?.children ?? []));
  siblings.findLast((sibling) => sibling === block || (sibling.classList.contains("block") && sibling.offsetWidth && sibling.offsetTop === offsetTop))?.after(words);
  block.append(firstLine);
}

// Lower figures of a view are folded, and drawn once their title is pressed.

/** Let a figure's title fold it. Return a function that sets whether it is folded. @param {HTMLElement} element */
function makeFoldable(element) {
  const block = widgetBlock(element), title = find(element, "h2");
  /** @type {HTMLButtonElement | null} */
  let foldButton = null;
  return (isFolded) => {
    block.classList.toggle("folded", isFolded);
    const unfoldedIds = state.unfolded?.split("~") ?? [];
    if (!foldButton && (isFolded || unfoldedIds.includes(block.id))) {
      foldButton = button(title.textContent ?? "", () => toggleFigure(block.id), { className: "unfold" });
      title.replaceChildren(foldButton);
    } else if (foldButton && !isFolded && !unfoldedIds.includes(block.id) && !unfoldedIds.includes("all")) { // it is in the first row now
      title.replaceChildren(foldButton.textContent ?? "");
      foldButton = null;
    }
    if (foldButton) foldButton.ariaExpanded = String(!isFolded);
    block.classList.toggle("unfolded", Boolean(foldButton) && !isFolded);
  };
}

/** Fold or unfold a figure. @param {string} id of its element */
function toggleFigure(id) {
  const previousIds = state.unfolded ? state.unfolded.split("~") : [];
  const unfoldedIds = previousIds[0] === "all" ? findAll(document, "#view .unfold[aria-expanded=true]").map((unfoldButton) => widgetBlock(unfoldButton).id) : previousIds;
  const wasUnfolded = unfoldedIds.includes(id);
  setState({ unfolded: (wasUnfolded ? unfoldedIds.filter((unfoldedId) => unfoldedId !== id) : [...unfoldedIds, id]).join("~") });
  requestUpdate("view");
  if (!wasUnfolded) requestAnimationFrame(() => whenFresh(() => scrollIntoNearestView(find(document, `#${id}`)))); // it opens over the whole width, below the other titles
}

/** Unfold a figure that is folded and not requested yet. @param {string} id of its element */
export function unfoldFigure(id) {
  const unfoldedIds = state.unfolded?.split("~") ?? [];
  if (!unfoldedIds.includes("all") && !unfoldedIds.includes(id) && find(document, `#${id}`)?.classList.contains("folded")) toggleFigure(id);
}

/** Restore the folds of an earlier state. @param {string} unfolded field of that state */
export function restoreFolds(unfolded) {
  if ((state.unfolded ?? "") === unfolded) return;
  setState({ unfolded });
  requestUpdate("view");
}

// Content of a figure's widget: a figure, or a message that says why there is none.

/**
 * Call `show` with each figure of a widget. Messages are shown here.
 * @param {HTMLElement} element
 * @param {HTMLElement} drawing hidden while a message stands in its place
 * @param {(figure: any) => any} show resolves once the figure is drawn
 */
export function onFigureContent(element, drawing, show) {
  const message = find(element, ".instead"), showJob = makeJobStatus(element), setFolded = makeFoldable(element);
  function showWidget() {
    setHidden(element, false);
    element.closest(".tabitem")?.classList.remove("without-figures");
  }
  onContent(element, (content) => {
    const instead = content?.instead ?? "", isFolded = Boolean(content?.folded);
    setFolded(isFolded);
    if (isFolded) {
      showJob(null);
      for (const part of [drawing, message]) part.hidden = true;
      return showWidget();
    }
    showJob(content?.job ?? null);
    message.hidden = !instead;
    drawing.hidden = Boolean(instead);
    setText(message, instead);
    if (!instead) return show(content);
    showWidget();
    countDraw(drawing);
  });
}
