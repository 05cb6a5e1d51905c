// @ts-check
// The page's connection to the worker that runs the models.

/** Error to show to the user. */
export class UserError extends Error {}

// The worker's script is beside the page, since a service worker only controls URLs below its own.
const worker = new Worker(new URL("worker.js", document.baseURI), { type: "module" });
/** Id of a request -> its callbacks. @type {Map<number, { resolve: (answer: any) => void, reject: (error: Error) => void, tell: (part: any) => void }>} */
const pendingRequests = new Map();
let lastId = 0;

worker.addEventListener("message", ({ data: { id, answer, error, part } }) => {
  const { resolve, reject, tell } = pendingRequests.get(id);
  if (part) return tell(part);
  pendingRequests.delete(id);
  if (error) reject(error.isUserError ? new UserError(error.message) : new Error(error.message)); else resolve(answer);
});
worker.addEventListener("error", ({ message }) => {
  for (const { reject } of pendingRequests.values()) reject(new UserError(`The model cannot run in this browser (${message || "its scripts did not load"}): a newer browser can, or Python: pip install, then python app.py.`));
  pendingRequests.clear();
});

/** Call a function of the worker (worker.js).
 * @param {string} name @param {any} args its arguments @param {{ tell?: (part: any) => void, signal?: AbortSignal }} [options] `tell` gets the parts that precede the answer
 * @returns {Promise<any>} */
export function callWorker(name, args, { tell: onPart = () => {}, signal } = {}) {
  const id = ++lastId;
  signal?.addEventListener("abort", () => worker.postMessage({ id, cancel: true }));
  return new Promise((resolve, reject) => {
    pendingRequests.set(id, { resolve, reject, tell: onPart });
    worker.postMessage({ id, name, given: args });
  });
}
