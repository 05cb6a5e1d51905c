// @ts-check
// Reload of an incomplete page. If scripts or styles are missing, since a server ended meanwhile, the page reloads with the
// same URL. Behind a proxy that strips its path without telling the server, the page says what to configure instead.
// The script is inline, as any file may be the missing one.
{
  const PAUSES_MS = [0, 500, 1000, 2000], CHECK_INTERVAL_MS = 2000, RESET_MS = 60_000; // pause before each reload; between two checks of the server; after this time reloads count from zero again
  const STORAGE_KEY = "explorer:incomplete"; // in sessionStorage
  const STYLE = "padding: 8px 16px; background: #FDE68A; color: #422006; font: 14px/1.4 system-ui, sans-serif; text-align: center;"; // as the style sheet may be missing
  const messages = {}; // by language; Python fills them in (assets.py)
  /** @param {string} message */
  const _ = (message) => catalogue()[message] ?? message;
  let isIncomplete = false;

  window.addEventListener("error", ({ target }) => {
    const address = target instanceof HTMLScriptElement ? target.src
      : target instanceof HTMLLinkElement && /stylesheet|modulepreload/.test(target.rel) ? target.href : "";
    if (address && new URL(address).origin === location.origin) reloadLater(address);
  }, { capture: true }); // error events of elements do not bubble
  // Imports report failures by events: ours (assets.py), and Gradio's.
  window.addEventListener("explorer:missing", (/** @type {CustomEvent} */ { detail }) => reloadLater(detail));
  window.addEventListener("vite:preloadError", (/** @type {any} */ { payload }) => reloadLater(payload.message));

  /** Reload, or say what is wrong. @param {string} missing URL of the missing file, or a text that ends with it */
  async function reloadLater(missing) {
    if (isIncomplete) return;
    isIncomplete = true;
    const proxyError = await findProxyError(missing);
    if (proxyError) return showMessage(_("This page is served under {served}, but its files are asked for under {root}. Start it with {variable}.").replace(/{(\w+)}/g, (_all, name) => proxyError[name]));
    const { count, at } = JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? '{"count":0,"at":0}');
    const numReloads = Date.now() - at < RESET_MS ? count : 0;
    if (numReloads === PAUSES_MS.length) {
      const name = missing.split("/").at(-1);
      return showMessage(_("The file {name} is missing. Reload the page, or ask the person who runs the server.").replace("{name}", () => name));
    }
    showMessage(_("Parts of this page are missing. It reloads once the server answers."));
    await wait(PAUSES_MS[numReloads]);
    while (!(await isServerUp())) await wait(CHECK_INTERVAL_MS);
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify({ count: numReloads + 1, at: Date.now() }));
    location.reload();
  }

  /**
   * Return the page's path, the root at which Gradio requests files instead, and the variable that corrects it.
   * @param {string} missing
   * @returns {Promise<Record<string, string> | null>} null if both are the same, or the server is down
   */
  async function findProxyError(missing) {
    while (!document.body) await wait(10); // the head sets Gradio's config
    const config = /** @type {any} */ (window).gradio_config, [address] = missing.match(/https?:\/\/\S+/) ?? [];
    if (!config?.root || !address) return null;
    const folder = (path) => path.replace(/\/*$/, "/"), served = folder(location.pathname);
    const root = folder(new URL(config.root, location.href).pathname);
    if (root === served || new URL(address).pathname.startsWith(served) || !(await isServerUp())) return null;
    return { served, root, variable: `GRADIO_ROOT_PATH=${served.slice(0, -1)}` };
  }

  /** Return the messages in the page's language, chosen as in text.js. @returns {Record<string, string>} */
  function catalogue() {
    const first = (tag) => tag.toLowerCase().split("-")[0], [, cookieLanguage] = /(?:^|; )lang=([^;]*)/.exec(document.cookie) ?? [];
    for (const tag of [new URLSearchParams(location.search).get("lang"), cookieLanguage, ...navigator.languages].filter(Boolean)) {
      const match = Object.keys(messages).find((name) => first(name) === first(tag));
      if (match) return messages[match];
    }
    return {};
  }

  const wait = (pause) => new Promise((resolve) => setTimeout(resolve, pause));
  async function isServerUp() {
    try { return (await fetch("gradio_api/app_id", { cache: "no-store", signal: AbortSignal.timeout(5000) })).ok; }
    catch { return false; }
  }

  /** @param {string} words */
  async function showMessage(words) {
    while (!document.body) await wait(10);
    const line = document.createElement("div");
    line.id = "incomplete";
    line.role = "alert";
    line.style.cssText = STYLE;
    line.textContent = words;
    document.body.prepend(line);
  }
}
