// @ts-check
// The address of the page holds all that is chosen. Tabs and runs are steps that the browser's Back goes through; clicks
// and sliders replace the step they are made at.
import { _ } from "./language.js";
import { modeOf } from "./mode.js";
import { MOST_LINK, saveFile } from "./saved.js";
import { modelOf } from "./series.js";

/** @typedef {import("./state.js").State} State */

export const ROOM = "room"; // names in the address the class that this page is in
const SOON_MS = 250;
const left = new Map(); // run of the history -> the state it was left in
let run = 0, timer = null;
/** @type {State | null} */
let seen = null;

/** A model's name -> its continuations of a text; it outlives a reload. @type {Record<string, State>} */
export const own = {};

const OF_RUNS = ["checkpoint", "prompt", "b.checkpoint", "b.prompt", "b.edits", "lesson", "step"]; // what makes another step of the history
// Steps of one training replace one another, as a slider goes through them.
const ofRun = (state, name) => (name.endsWith("checkpoint") ? modelOf(state[name]) : String(state[name] ?? ""));
const isOtherRun = (a, b) => OF_RUNS.some((name) => ofRun(a, name) !== ofRun(b, name));

/** An address with all of a state in it. @param {State} state @param {string} address */
export function addressOf(state, address) {
  const url = new URL(address);
  for (const [name, value] of Object.entries(state)) {
    if (name === "lang") continue; // only where somebody chose it, who wrote it there
    const text = Array.isArray(value) ? value.join(".") : name === "step" && !state.lesson ? "" : String(value);
    if (text) url.searchParams.set(name, text);
    else url.searchParams.delete(name);
  }
  if (state.view) url.searchParams.set("depth", modeOf(state.view));
  for (const text of ["text", "b.text"]) url.searchParams.delete(text); // the ids say the same, exactly
  url.searchParams.delete("turn");
  return url;
}

/** An address as it is passed on: who opens it is in no class. @param {URL} url */
export function withoutRoom(url) {
  url.searchParams.delete(ROOM);
  return url;
}

/** Takes up what the browser kept over a reload. @param {(there: State, isSameRun: boolean) => void} goTo where it leads */
export function startHistory(goTo) {
  // Gradio's panel "Use via API" writes a `view` of its own into the address and forgets the state of the step; it does
  // not read it again.
  window.navigation?.addEventListener("currententrychange", () => history.state === null && writeAddress());
  Object.assign(own, history.state?.own);
  run = history.state?.run ?? 0;
  // Going back to a run finds it as it was left, with all that was written since; among its own steps only tabs change.
  window.addEventListener("popstate", ({ state: step }) => {
    if (!step?.state || !seen) return;
    left.set(run, seen);
    const isSameRun = step.run === run;
    [run, seen] = [step.run, { ...(left.get(step.run) ?? step.state), view: step.state.view }];
    writeAddress();
    goTo(seen, isSameRun);
  });
}

/** Has the address say what is seen, now. */
export function writeAddress() {
  clearTimeout(timer);
  timer = null;
  if (seen) history.replaceState(...step());
}

/** The query of the address as it is, or will be soon. */
export const latestQuery = () => (timer && seen ? addressOf(seen, location.href) : location).search;

/** @returns {[State, string, URL]} */
const step = () => [{ run, own, state: seen }, "", addressOf(seen, location.href)];

/** The state is another now. @param {State} state */
export function followInHistory(state) {
  const before = seen;
  if (!before || (before.view === state.view && !isOtherRun(before, state))) {
    timer ??= setTimeout(writeAddress, SOON_MS); // also while tokens come without a pause
    seen = state;
    return;
  }
  if (timer) writeAddress(); // each takes the browser some milliseconds
  if (isOtherRun(before, state)) {
    left.set(run, before);
    run = Date.now();
  }
  seen = state;
  history.pushState(...step());
}

/** Copies the address, or shows it to be copied: browsers lend the clipboard to https and localhost alone. What is too
 * long for a link is saved as a file. */
export async function copyLink() {
  writeAddress();
  const link = withoutRoom(new URL(location.href));
  link.searchParams.delete("lang"); // who opens it reads their own
  if (link.href.length > MOST_LINK) return saveFile(seen, link.href.length);
  try { await navigator.clipboard.writeText(link.href); }
  catch { prompt(_("Copy this link:"), link.href); }
}
