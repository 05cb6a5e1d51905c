// @ts-check
// Keeps the files of the page without a server in the browser, so that it opens without a network the next time. With one,
// what the server has comes first, and replaces what was kept.

const worker = /** @type {any} */ (self), NAME = "transformerlm-explorer";

/** The page itself is one file, whatever its address asks for. @param {Request} request */
const keyOf = ({ url, mode }) => (mode === "navigate" ? url.split(/[?#]/)[0] : url);

/** @param {Request} request */
async function answer(request) {
  const cache = await caches.open(NAME);
  try {
    const response = await fetch(request);
    if (response.status === 200) cache.put(keyOf(request), response.clone()).catch(() => {}); // the browser may have no room
    return response;
  } catch (error) {
    const kept = await cache.match(keyOf(request));
    if (kept) return kept;
    throw error;
  }
}

/** Keeps files that were fetched before this worker was there. @param {string[]} urls */
async function keep(urls) {
  const cache = await caches.open(NAME);
  await Promise.all(urls.filter((url) => url.startsWith(worker.origin)).map(async (url) => {
    if (!(await cache.match(url))) await cache.put(url, await fetch(url, { cache: "force-cache" }));
  }));
}

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener("message", (event) => event.waitUntil(keep(event.data)));
worker.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(worker.origin)) event.respondWith(answer(event.request));
});
