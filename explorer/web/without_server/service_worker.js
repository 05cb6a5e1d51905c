// @ts-check
// Service worker of the page without a server. It caches the page's files, so that the next visit opens at once and without a
// network. Newer versions are fetched afterwards, for the visit after that.

const worker = /** @type {any} */ (self), NAME = "transformerlm-explorer";

/** Return the cache key. The page is one file, whatever its query. @param {Request} request */
const cacheKey = ({ url, mode }) => (mode === "navigate" ? url.split(/[?#]/)[0] : url);

/** @param {Request} request */
async function respond(request) {
  const cache = await caches.open(NAME), cached = await cache.match(cacheKey(request));
  if (cached) return cached;
  const response = await fetch(request);
  if (response.status === 200) cache.put(cacheKey(request), response.clone()).catch(() => {}); // the browser's storage may be full
  return response;
}

/** Cache files that were fetched before this worker started, and update those cached before. @param {string[]} urls */
async function storeFiles(urls) {
  const cache = await caches.open(NAME), storedRequests = await cache.keys();
  await Promise.all(urls.filter((url) => url.startsWith(worker.origin)).map(async (url) => {
    if (!(await cache.match(url))) await cache.put(url, await fetch(url, { cache: "force-cache" }));
  }));
  await updateFiles(cache, storedRequests.map(({ url }) => url));
}

/** @param {Response} response */
const fileVersion = ({ headers }) => headers.get("etag") ?? headers.get("last-modified");

/** Replace files of which the server has other versions: all of them, or none if it does not answer. @param {Cache} cache @param {string[]} urls */
async function updateFiles(cache, urls) {
  const updates = await Promise.all(urls.map(async (url) => {
    const head = await fetch(url, { method: "HEAD", cache: "no-store" }), cached = await cache.match(url);
    const isCurrent = Boolean(cached && fileVersion(cached) && fileVersion(cached) === fileVersion(head));
    const response = isCurrent || head.status !== 200 ? head : await fetch(url, { cache: "no-cache" });
    if (response.status >= 500) throw new Error(`${response.status} ${url}`);
    return { url, response, isKept: isCurrent };
  }));
  await Promise.all(updates.filter(({ isKept }) => !isKept).map(async ({ url, response }) => {
    if (response.status === 200) await cache.put(url, response);
    else await cache.delete(url); // deleted on the server
  }));
}

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener("message", (event) => event.waitUntil(storeFiles(event.data)));
worker.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(worker.origin)) event.respondWith(respond(event.request));
});
