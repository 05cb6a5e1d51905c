// @ts-check
// The way to Python: what the page asks it, and what the page does and says while nobody answers.
import { showBanner } from "./dom.js";
import { _ } from "./translations.js";

// Who asks: a name made up when the page was opened.

export const visitor = Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");

// The way to Python: what the page asks it, and what the page does while nobody answers. What Gradio sends by itself goes
// another way; where that breaks off, Gradio loads the page anew as soon as somebody answers again.

const EVERY = 2000, PATIENCE = 10_000; // milliseconds between two looks for the server; until one is taken at all

/** Python's sentence in place of an answer. */
export class Refused extends Error {}
/** Nobody's answer; the page catches up later. */
class Lost extends Error {}

/** Whether nobody answers. */
export let isServerLost = false;

const returned = new EventTarget();
let inFlight = new AbortController();

/** Calls `listener` once the server is back. @param {() => void} listener */
export const onServerReturn = (listener) => returned.addEventListener("return", listener);

/**
 * Python's answer to one question.
 * @param {"next_token_scores" | "define" | "direction_of_lists" | "listed_lessons" | "search_index" | "find_tokens" | "rank_of_token" | "walk" | "lesson_sheet" | "begin_job" | "job_progress" | "leave_job" | "model_needs" | "begin_opening" | "begin_check" | "python_script"} name of a function of browser_api/endpoints.py
 * @param {any[]} given
 * @param {AbortSignal} [signal] says that the answer is no longer wanted
 * @returns {Promise<any>}
 * @throws {Refused | Lost | DOMException} the last, an AbortError, where `signal` says so
 */
export const call = (name, given, signal) => asked(name, given, signal, (response) => response.json());

/**
 * Python's lines of an answer, as they come.
 * @param {any} question
 * @param {AbortSignal} signal
 */
export async function* answerLines(question, signal) {
  const response = await asked("answer", question, signal, async (came) => came);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) yield JSON.parse(line);
    }
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") throw signal.reason ?? error;
    lose();
    throw new Lost();
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** @template Answer @param {string} name @param {any} given @param {AbortSignal | undefined} signal @param {(response: Response) => Promise<Answer>} read @returns {Promise<Answer>} */
async function asked(name, given, signal = new AbortController().signal, read) {
  const impatience = setTimeout(look, PATIENCE), here = inFlight.signal;
  try {
    const response = await fetch(`explorer/${name}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Visitor": visitor },
      body: JSON.stringify(given),
      signal: AbortSignal.any([signal, here]),
    });
    if (response.ok) return await read(response);
    throw new Refused((await response.json()).detail); // a proxy's page says that Python is gone
  } catch (error) {
    if (error instanceof Refused || signal.aborted) throw error;
    lose();
    throw new Lost();
  } finally {
    clearTimeout(impatience);
  }
}

/** What Gradio says of the page, which it leaves as a global. */
const gradio = () => /** @type {any} */ (window).gradio_config;

/** Looks for the server whenever something says that it may be gone. */
export function watchServer() {
  window.addEventListener("offline", look); // it may be on this very machine, and there
  window.addEventListener("online", look);
}

// Whether the server is there; and if it is another than the page came from, the page comes anew, with its address.
export async function look() {
  const wasLost = isServerLost, id = await appId(); // what answered before it was lost may be gone
  if (!id) lose();
  else if (isServerLost && id !== gradio().app_id) location.reload();
  else if (wasLost && isServerLost) regain();
}
async function appId() {
  try { return (await (await fetch("gradio_api/app_id", { cache: "no-store", signal: AbortSignal.timeout(5000) })).json()).app_id; }
  catch { return null; }
}
function lose() {
  if (isServerLost) return;
  isServerLost = true;
  inFlight.abort();
  inFlight = new AbortController();
  document.body.classList.add("disconnected");
  showBanner(_("The server does not answer. The page updates itself once it does."));
  const looking = setInterval(() => (isServerLost ? look() : clearInterval(looking)), EVERY);
}
function regain() {
  isServerLost = false;
  document.body.classList.remove("disconnected");
  showBanner("");
  returned.dispatchEvent(new Event("return"));
}
