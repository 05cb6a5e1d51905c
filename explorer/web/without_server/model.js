// @ts-check
// The page's end of the worker that runs the models.

/** What went wrong, in a sentence. */
export class ToldError extends Error {}

// The worker's script is beside the page, whose files the service worker keeps: it answers for what lies below it alone.
const worker = new Worker(new URL("worker.js", document.baseURI), { type: "module" });
/** @type {Map<number, { resolve: (answer: any) => void, reject: (error: Error) => void, tell: (part: any) => void }>} */
const waiting = new Map();
let lastId = 0;

worker.addEventListener("message", ({ data: { id, answer, error, part } }) => {
  const { resolve, reject, tell } = waiting.get(id);
  if (part) return tell(part);
  waiting.delete(id);
  if (error) reject(error.isTold ? new ToldError(error.message) : new Error(error.message)); else resolve(answer);
});
worker.addEventListener("error", ({ message }) => {
  for (const { reject } of waiting.values()) reject(new ToldError(`The model cannot run in this browser (${message || "its scripts did not load"}): a newer browser can, or Python: pip install, then python app.py.`));
  waiting.clear();
});

/** Asks the worker for one of its functions (worker.js).
 * @param {string} name @param {any} given @param {{ tell?: (part: any) => void, signal?: AbortSignal }} [options] tell: of what comes before the answer
 * @returns {Promise<any>} */
export function ask(name, given, { tell = () => {}, signal } = {}) {
  const id = ++lastId;
  signal?.addEventListener("abort", () => worker.postMessage({ id, cancel: true }));
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject, tell });
    worker.postMessage({ id, name, given });
  });
}
