// @ts-check
// Pictures that wait for what takes long: a button that has it worked out, how far that is, and a button that ends it. What
// several pictures wait for is one job, by its name.
import { ask } from "./asking.js";
import { call, Refused } from "./connection.js";
import { blockOf } from "./contents.js";
import { button, find, make, span } from "./dom.js";
import { _ } from "./language.js";
import { onState, state } from "./state.js";
import { visitor } from "./visitor.js";

/** @typedef {{ name: string, seconds: number }} Job */
/** @typedef {"begin_job" | "begin_opening" | "begin_check"} Begins of a function that begins a job */
/** @typedef {{ state: string, done: number, of: number, seconds: number, error: string }} Progress */
/** @typedef {{ progress: Progress }} Attempt at a job: one that was left is not the one that is begun after it */

const SOONEST = 200, LATEST = 2000; // milliseconds between two looks at how far it is

/** Name of a job -> how the pictures that wait for it show how far it is. @type {Map<string, Set<(progress: Progress | null) => void>>} */
const shown = new Map();
/** Name of a job that is being worked out -> how far it is. @type {Map<string, Attempt>} */
const running = new Map();
/** That Python knows of all that was left: it would take what is begun again before for left, too. @type {Promise<unknown>} */
let leaving = Promise.resolve();

/**
 * Shows in a picture's widget what it waits for. Gives the function to call with that, or with null where it waits for
 * nothing.
 * @param {HTMLElement} element
 * @returns {(job: Job | null) => void}
 */
export function jobsIn(element) {
  const box = find(element, ".job"), { id } = blockOf(element);
  /** @type {Job | null} */
  let job = null;
  let view = "";

  /** @param {Progress | null} progress */
  function show(progress) {
    if (progress?.state === "done") return; // the picture comes
    if (progress && isGoingOn(progress)) return showProgress(progress);
    const press = button(_("work it out (about {time})", { time: duration(job.seconds) }), () => begin(job, ["begin_job", [state, id, visitor]], () => ask("view")));
    box.replaceChildren(press, span("error", progress?.error ?? ""));
  }
  function showProgress({ state: stands, done, of, seconds }) {
    const bar = find(box, "progress") ?? make("progress", { ariaLabel: _("worked out") }), words = find(box, ".left") ?? span("left");
    Object.assign(bar, of ? { max: of, value: done } : {});
    words.textContent = stands === "waiting" && !done ? _("waiting for its turn: about {time}", { time: duration(seconds) })
      : _("{done} of {of}, about {time} left", { done, of, time: duration(seconds) });
    if (!bar.isConnected) box.replaceChildren(bar, words, button(_("Cancel"), () => leave(job.name)));
  }

  onState(element, () => { if (job && view !== state.view) drop(); }); // nobody looks any more
  function drop() {
    const pictures = shown.get(job.name);
    pictures?.delete(show);
    if (!pictures?.size) shown.delete(job.name), leave(job.name);
  }

  return (next) => {
    if (job && job.name !== next?.name) drop();
    job = next;
    view = state.view;
    box.hidden = !job;
    if (!job) return box.replaceChildren();
    if (!shown.has(job.name)) shown.set(job.name, new Set());
    shown.get(job.name).add(show);
    show(running.get(job.name)?.progress ?? null);
  };
}

/** @param {string} name @param {Progress | null} progress null where nobody works it out */
function tell(name, progress) {
  for (const show of shown.get(name) ?? []) show(progress);
}

/**
 * Has a job begun, and tells how far it is until it ends.
 * @param {string} name
 * @param {[Begins, any[]]} first what asks for it
 * @param {(progress: Progress | null) => void} show
 * @param {() => void} then is called once it is done
 */
export function followJob(name, first, show, then) {
  shown.set(name, (shown.get(name) ?? new Set()).add(show));
  return begin({ name, seconds: 0 }, first, then);
}

// Until it is worked out, fails, or is no longer wanted.
/** @param {Job} job @param {[Begins, any[]]} first @param {() => void} then */
async function begin({ name, seconds }, first, then) {
  if (running.has(name)) return;
  /** @type {Attempt} */
  const attempt = { progress: { state: "waiting", done: 0, of: 0, seconds, error: "" } };
  const isWanted = () => running.get(name) === attempt;
  running.set(name, attempt);
  tell(name, attempt.progress);
  await leaving;
  if (isWanted()) attempt.progress = await answered(...first);
  while (isWanted() && isGoingOn(attempt.progress)) {
    tell(name, attempt.progress);
    await pause(attempt.progress.seconds);
    if (isWanted()) attempt.progress = await answered("job_progress", [visitor, name]);
  }
  if (!isWanted()) return;
  running.delete(name);
  tell(name, attempt.progress);
  if (attempt.progress.state === "done") then();
}

/** @param {Progress} progress */
export const isGoingOn = (progress) => progress.state === "waiting" || progress.state === "working";

/** @param {Begins | "job_progress"} name @param {any[]} given @returns {Promise<Progress>} */
async function answered(name, given) {
  try { return await call(name, given); }
  catch (error) { return { state: "failed", done: 0, of: 0, seconds: 0, error: error instanceof Refused ? error.message : "" }; }
}

/** Nobody waits for a job any more. @param {string} name */
export function leave(name) {
  if (!running.delete(name)) return;
  tell(name, null);
  const told = call("leave_job", [visitor, name]).catch(() => {}); // it ends by itself when nobody asks for it
  leaving = Promise.all([leaving, told]);
}

/** The time until the next look: a tenth of what is left. @param {number} seconds */
const pause = (seconds) => new Promise((resolve) => { setTimeout(resolve, Math.min(Math.max(seconds * 100, SOONEST), LATEST)); });

/** A time in words. @param {number} seconds */
export function duration(seconds) {
  if (seconds >= 90) return _("{minutes} min", { minutes: Math.round(seconds / 60) });
  return _("{seconds} s", { seconds: Math.max(1, Math.round(seconds)) });
}
