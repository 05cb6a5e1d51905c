// @ts-check
// Keeps the files of the page without a server in the browser, so that it opens at once the next time, and without a
// network. What the server has by then is fetched after that, for the visit that follows.

const worker = /** @type {any} */ (self), NAME = "transformerlm-explorer";

/** The page itself is one file, whatever its address asks for. @param {Request} request */
const keyOf = ({ url, mode }) => (mode === "navigate" ? url.split(/[?#]/)[0] : url);

/** @param {Request} request */
async function answer(request) {
  const cache = await caches.open(NAME), kept = await cache.match(keyOf(request));
  if (kept) return kept;
  const response = await fetch(request);
  if (response.status === 200) cache.put(keyOf(request), response.clone()).catch(() => {}); // the browser may have no room
  return response;
}

/** Keeps files that were fetched before this worker was there, and renews those kept before. @param {string[]} urls */
async function keep(urls) {
  const cache = await caches.open(NAME), before = await cache.keys();
  await Promise.all(urls.filter((url) => url.startsWith(worker.origin)).map(async (url) => {
    if (!(await cache.match(url))) await cache.put(url, await fetch(url, { cache: "force-cache" }));
  }));
  await renew(cache, before.map(({ url }) => url));
}

/** @param {Response} response */
const versionOf = ({ headers }) => headers.get("etag") ?? headers.get("last-modified");

/** Replaces what the server has another version of: all or, if it does not answer, nothing. @param {Cache} cache @param {string[]} urls */
async function renew(cache, urls) {
  const answers = await Promise.all(urls.map(async (url) => {
    const head = await fetch(url, { method: "HEAD", cache: "no-store" }), kept = await cache.match(url);
    const isKept = Boolean(kept && versionOf(kept) && versionOf(kept) === versionOf(head));
    const response = isKept || head.status !== 200 ? head : await fetch(url, { cache: "no-cache" });
    if (response.status >= 500) throw new Error(`${response.status} ${url}`);
    return { url, response, isKept };
  }));
  await Promise.all(answers.filter(({ isKept }) => !isKept).map(async ({ url, response }) => {
    if (response.status === 200) await cache.put(url, response);
    else await cache.delete(url); // it is gone
  }));
}

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener("message", (event) => event.waitUntil(keep(event.data)));
worker.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(worker.origin)) event.respondWith(answer(event.request));
});
