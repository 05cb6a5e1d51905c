// @ts-check
// A page whose scripts or styles did not all come, as a server ended meanwhile, stays without what they do: it comes anew,
// with its address. One behind a proxy that cuts its path off, which the server was not told of, says what to tell it.
// This script stands in the page itself, as whatever is fetched may be what is missing.
{
  const PAUSES = [0, 500, 1000, 2000], EVERY = 2000, FORGET = 60_000; // milliseconds before each of the times that it comes anew; between two looks for the server; until times are counted from none again
  const TIMES = "explorer:incomplete"; // their place in the tab's storage
  const STYLE = "padding: 8px 16px; background: #FDE68A; color: #422006; font: 14px/1.4 system-ui, sans-serif; text-align: center;"; // as the style sheet may be what is missing
  const messages = {}; // of each language, which Python fills in (assets.py)
  /** @param {string} message */
  const _ = (message) => catalogue()[message] ?? message;
  let isIncomplete = false;

  window.addEventListener("error", ({ target }) => {
    const address = target instanceof HTMLScriptElement ? target.src
      : target instanceof HTMLLinkElement && /stylesheet|modulepreload/.test(target.rel) ? target.href : "";
    if (address && new URL(address).origin === location.origin) comeAnew(address);
  }, { capture: true }); // such events rise no further
  // What a script imports tells of itself: ours (assets.py), and Gradio's.
  window.addEventListener("explorer:missing", (/** @type {CustomEvent} */ { detail }) => comeAnew(detail));
  window.addEventListener("vite:preloadError", (/** @type {any} */ { payload }) => comeAnew(payload.message));

  /** @param {string} missing its address, or what ends with it */
  async function comeAnew(missing) {
    if (isIncomplete) return;
    isIncomplete = true;
    const cut = await cutOff(missing);
    if (cut) return say(_("This page is served under {served}, but its files are asked for under {root}. Start it with {variable}.").replace(/{(\w+)}/g, (_all, name) => cut[name]));
    const { count, at } = JSON.parse(sessionStorage.getItem(TIMES) ?? '{"count":0,"at":0}');
    const times = Date.now() - at < FORGET ? count : 0;
    if (times === PAUSES.length) {
      const name = missing.split("/").at(-1);
      return say(_("The file {name} is missing. Reload the page, or ask the person who runs the server.").replace("{name}", () => name));
    }
    say(_("Parts of this page are missing. It reloads once the server answers."));
    await after(PAUSES[times]);
    while (!(await isThere())) await after(EVERY);
    sessionStorage.setItem(TIMES, JSON.stringify({ count: times + 1, at: Date.now() }));
    location.reload();
  }

  /**
   * Where the page is served, where Gradio asks for what is missing instead, and what would have it ask here.
   * @param {string} missing
   * @returns {Promise<Record<string, string> | null>} null where that is no other place, or nobody answers here
   */
  async function cutOff(missing) {
    while (!document.body) await after(10); // as the page's head says where Gradio asks
    const config = /** @type {any} */ (window).gradio_config, [address] = missing.match(/https?:\/\/\S+/) ?? [];
    if (!config?.root || !address) return null;
    const folder = (path) => path.replace(/\/*$/, "/"), served = folder(location.pathname);
    const root = folder(new URL(config.root, location.href).pathname);
    if (root === served || new URL(address).pathname.startsWith(served) || !(await isThere())) return null;
    return { served, root, variable: `GRADIO_ROOT_PATH=${served.slice(0, -1)}` };
  }

  /** The page's language, which it chooses as translations.js does. @returns {Record<string, string>} its messages */
  function catalogue() {
    const first = (tag) => tag.toLowerCase().split("-")[0], [, kept] = /(?:^|; )lang=([^;]*)/.exec(document.cookie) ?? [];
    for (const tag of [new URLSearchParams(location.search).get("lang"), kept, ...navigator.languages].filter(Boolean)) {
      const found = Object.keys(messages).find((name) => first(name) === first(tag));
      if (found) return messages[found];
    }
    return {};
  }

  const after = (pause) => new Promise((resolve) => setTimeout(resolve, pause));
  async function isThere() {
    try { return (await fetch("gradio_api/app_id", { cache: "no-store", signal: AbortSignal.timeout(5000) })).ok; }
    catch { return false; }
  }

  /** @param {string} words */
  async function say(words) {
    while (!document.body) await after(10);
    const line = document.createElement("div");
    line.id = "incomplete";
    line.role = "alert";
    line.style.cssText = STYLE;
    line.textContent = words;
    document.body.prepend(line);
  }
}
