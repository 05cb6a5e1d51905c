// @ts-check
// The way to Python: what the page asks it, and what the page does while nobody answers. What Gradio sends by itself goes
// another way; where that breaks off, Gradio loads the page anew as soon as somebody answers again.
import { announce } from "./banner.js";
import { _ } from "./language.js";
import { inTime, watchStream } from "./queue_stream.js";
import { named } from "./visitor.js";

const EVERY = 2000, PATIENCE = 10_000; // milliseconds between two looks for the server; until one is taken at all

/** Python's sentence in place of an answer. */
export class Refused extends Error {}
/** Nobody's answer; the page catches up later. */
export class Lost extends Error {}

/** Whether nobody answers. */
export let isLost = false;

const returned = new EventTarget(), hearers = [];
const unwatched = fetch; // before `watchServer`
let inFlight = new AbortController();

/** Calls `listener` once the server is back. @param {() => void} listener */
export const onReturn = (listener) => returned.addEventListener("return", listener);

/**
 * Calls `hear` whenever a visitor asks for something: with a promise of the answer, or where Gradio brings that, with one
 * that is never kept.
 * @param {(answered: Promise<void>) => void} hear
 */
export const onAsked = (hear) => void hearers.push(hear);

/**
 * Python's answer.
 * @param {"answer" | "inspect" | "define" | "direction_of_lists" | "listed_lessons" | "walk" | "lesson_sheet" | "begin_job" | "job_progress" | "leave_job" | "model_needs" | "begin_opening" | "begin_check" | "people_before"} name of a function of answers/endpoints.py
 * @param {any[]} given
 * @param {AbortSignal} [signal] says that the answer is no longer wanted
 * @returns {Promise<any>}
 * @throws {Refused | Lost | DOMException} the last, an AbortError, where `signal` says so
 */
export async function call(name, given, signal = new AbortController().signal) {
  /** @type {() => void} */
  let tellAnswered;
  const answered = /** @type {Promise<void>} */ (new Promise((resolve) => { tellAnswered = resolve; }));
  if (name !== "people_before") for (const hear of hearers) hear(answered);
  const impatience = setTimeout(look, PATIENCE), here = inFlight.signal;
  try {
    const response = await fetch("gradio_api/component_server/", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ data: given, fn_name: name, component_id: stateId(), session_hash: "page" }),
      signal: AbortSignal.any([signal, here]),
    });
    const answer = await response.json(); // a proxy's page says that Python is gone
    if (response.ok) return answer;
    throw new Refused(answer.detail);
  } catch (error) {
    if (error instanceof Refused || signal.aborted) throw error;
    lose();
    throw new Lost();
  } finally {
    clearTimeout(impatience);
    tellAnswered();
  }
}

/** What Gradio says of the page, which it leaves as a global. */
const gradio = () => /** @type {any} */ (window).gradio_config;
const stateId = () => gradio().components.find(({ props }) => props.elem_id === "state").id;

/** Looks for the server whenever something says that it may be gone. */
export function watchServer() {
  // Gradio's own requests are made by the window's `fetch` alone: one that fails is as good a reason as one of ours.
  window.fetch = (where, options) => {
    const answer = unwatched(where, options?.method === "POST" ? named(options) : options);
    answer.catch((error) => { if (error.name !== "AbortError") look(); });
    if (where instanceof Request && where.url.includes("/queue/data")) return watchStream(where.signal, answer);
    if (!String(where).includes("/queue/join")) return answer;
    for (const hear of hearers) hear(/** @type {Promise<void>} */ (new Promise(() => {})));
    return inTime(answer);
  };
  window.addEventListener("offline", look); // it may be on this very machine, and there
  window.addEventListener("online", look);
}

// Whether the server is there; and if it is another than the page came from, the page comes anew, with its address.
async function look() {
  const id = await appId();
  if (!id) lose();
  else if (isLost && id !== gradio().app_id) location.reload();
  else if (isLost) regain();
}
async function appId() {
  try { return (await (await unwatched("gradio_api/app_id", { cache: "no-store", signal: AbortSignal.timeout(5000) })).json()).app_id; }
  catch { return null; }
}
function lose() {
  if (isLost) return;
  isLost = true;
  inFlight.abort();
  inFlight = new AbortController();
  document.body.classList.add("disconnected");
  announce(_("The server does not answer: the page catches up by itself once it is back."));
  const looking = setInterval(() => (isLost ? look() : clearInterval(looking)), EVERY);
}
function regain() {
  isLost = false;
  document.body.classList.remove("disconnected");
  announce("");
  returned.dispatchEvent(new Event("return"));
}
