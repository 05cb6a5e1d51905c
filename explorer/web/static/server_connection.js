// @ts-check
// Connection to Python: requests, streamed responses, and what the page does while the server is lost.
import { showBanner } from "./dom.js";
import { _ } from "./text.js";

// Random id of this page.

export const clientId = Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");

// Gradio's own requests do not pass through this module. When they break off, Gradio reloads the page once the server
// answers again.

const CHECK_INTERVAL_MS = 2000, PATIENCE_MS = 10_000; // between two checks while it is lost; of a request before the first check

/** Python refused a request; the message says why. */
export class RefusedError extends Error {}
/** The server did not answer; the page catches up later. */
class ConnectionLostError extends Error {}

/** True while the server does not answer. */
export let isServerLost = false;

const connectionEvents = new EventTarget();
let inFlight = new AbortController();

/** Call `listener` once the server is back. @param {() => void} listener */
export const onServerReturn = (listener) => connectionEvents.addEventListener("return", listener);

/**
 * Call a function of the server and return its result.
 * @param {"next_token_scores" | "define" | "direction_of_lists" | "listed_lessons" | "search_index" | "find_tokens" | "rank_of_token" | "walk" | "lesson_sheet" | "begin_job" | "job_progress" | "leave_job" | "model_needs" | "begin_opening" | "begin_check" | "python_script"} name of a function of browser_api/endpoints.py
 * @param {any[]} args
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 * @throws {RefusedError | ConnectionLostError | DOMException} an AbortError if `signal` aborts
 */
export const callServer = (name, args, signal) => postRequest(name, args, signal, (response) => response.json());

/**
 * Yield the lines of a response as they arrive.
 * @param {any} request
 * @param {AbortSignal} signal
 */
export async function* responseLines(request, signal) {
  const response = await postRequest("answer", request, signal, async (result) => result);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let partialLine = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (partialLine + value).split("\n");
      partialLine = lines.pop();
      for (const line of lines) yield JSON.parse(line);
    }
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") throw signal.reason ?? error;
    markLost();
    throw new ConnectionLostError();
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** @template Answer @param {string} name @param {any} body @param {AbortSignal | undefined} signal @param {(response: Response) => Promise<Answer>} readBody @returns {Promise<Answer>} */
async function postRequest(name, body, signal = new AbortController().signal, readBody) {
  const patienceTimer = setTimeout(checkConnection, PATIENCE_MS), lossSignal = inFlight.signal;
  try {
    const response = await fetch(`explorer/${name}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Visitor": clientId },
      body: JSON.stringify(body),
      signal: AbortSignal.any([signal, lossSignal]),
    });
    if (response.ok) return await readBody(response);
    throw new RefusedError((await response.json()).detail); // throws for a proxy's HTML page, which means that Python is gone
  } catch (error) {
    if (error instanceof RefusedError || signal.aborted) throw error;
    markLost();
    throw new ConnectionLostError();
  } finally {
    clearTimeout(patienceTimer);
  }
}

/** Return Gradio's config of the page, a global variable. */
const gradio = () => /** @type {any} */ (window).gradio_config;

/** Check the connection when the browser goes offline or online. */
export function watchServer() {
  window.addEventListener("offline", checkConnection); // a server on this machine is still there
  window.addEventListener("online", checkConnection);
}

// Check whether the server answers. If it is another process than the one that sent the page, reload with the same URL.
export async function checkConnection() {
  const wasLost = isServerLost, id = await appId(); // a response from before the loss proves nothing
  if (!id) markLost();
  else if (isServerLost && id !== gradio().app_id) location.reload();
  else if (wasLost && isServerLost) markReturned();
}
async function appId() {
  try { return (await (await fetch("gradio_api/app_id", { cache: "no-store", signal: AbortSignal.timeout(5000) })).json()).app_id; }
  catch { return null; }
}
function markLost() {
  if (isServerLost) return;
  isServerLost = true;
  inFlight.abort();
  inFlight = new AbortController();
  document.body.classList.add("disconnected");
  showBanner(_("The server does not answer. The page updates itself once it does."));
  const checkTimer = setInterval(() => (isServerLost ? checkConnection() : clearInterval(checkTimer)), CHECK_INTERVAL_MS);
}
function markReturned() {
  isServerLost = false;
  document.body.classList.remove("disconnected");
  showBanner("");
  connectionEvents.dispatchEvent(new Event("return"));
}
