import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const SCRIPT = readFileSync(new URL("../../../../explorer/web/inline/reload_incomplete_page.js", import.meta.url), "utf8");
const HERE = "http://here.example", NOT_YET = "Parts of this page are missing. It reloads once the server answers.";
class Script {}
class Link {}
const script = (src) => Object.assign(new Script(), { src });
const link = (rel, href) => Object.assign(new Link(), { rel, href });
const turns = () => new Promise((resolve) => setTimeout(resolve, 5));

/** A tab of the browser, with its number of reloads, the notices shown, and the pauses before each reload. */
function opened(answers = [], { root = HERE, path = "/" } = {}) {
  const tab = { reloads: 0, said: [], paused: [] }, kept = new Map();
  const sessionStorage = { getItem: (name) => kept.get(name) ?? null, setItem: (name, text) => kept.set(name, text) };
  const fetch = async () => answers.shift() ?? { ok: true };
  const setTimeout = (act, pause) => { tab.paused.push(pause); queueMicrotask(act); };
  const body = { prepend: ({ textContent }) => tab.said.push(textContent) };
  const document = { body, createElement: () => ({ style: {} }) };
  const names = ["window", "location", "sessionStorage", "fetch", "setTimeout", "document", "HTMLScriptElement", "HTMLLinkElement"];
  tab.page = () => {
    const window = Object.assign(new EventTarget(), { gradio_config: { root } });
    const location = { origin: HERE, href: HERE + path, pathname: path, reload: () => { tab.reloads += 1; } };
    new Function(...names, SCRIPT)(window, location, sessionStorage, fetch, setTimeout, document, Script, Link);
    return (name, values) => {
      const event = new Event(name);
      for (const [field, value] of Object.entries(values)) Object.defineProperty(event, field, { value });
      window.dispatchEvent(event);
      return turns();
    };
  };
  return tab;
}

const LACKS = {
  "a script": ["error", { target: script(`${HERE}/plotly.js`) }],
  "a style": ["error", { target: link("stylesheet", `${HERE}/page.css`) }],
  "a module that was to be there early": ["error", { target: link("modulepreload", `${HERE}/figure.js`) }],
  "a module of ours": ["explorer:missing", { detail: "widgets/figure/figure.js" }],
  "a module of Gradio's": ["vite:preloadError", { payload: Error(`Failed to fetch: ${HERE}/Blocks.js`) }],
};
for (const [what, [name, values]] of Object.entries(LACKS))
  test(`a page that lacks ${what} comes anew, once, and says so`, async () => {
    const tab = opened(), fail = tab.page();
    await fail(name, values);
    await fail(name, values);
    assert.deepEqual([tab.reloads, tab.said], [1, [NOT_YET]]);
  });

/** URL path, Gradio's root, a missing file -> the variable in the advice, "" for none. */
const CUT = [
  ["/x/", HERE, "/static/frame.js", "GRADIO_ROOT_PATH=/x"],
  ["/x", `${HERE}/`, "/theme.css", "GRADIO_ROOT_PATH=/x"],
  ["/a/b/", "http://127.0.0.1:7860", "/theme.css", "GRADIO_ROOT_PATH=/a/b"],
  ["/x/", `${HERE}/y`, "/y/theme.css", "GRADIO_ROOT_PATH=/x"],
  ["/x/", `${HERE}/x`, "/x/theme.css", ""],
  ["/x/", HERE, "/x/assets/index.js", ""],
  ["/", HERE, "/theme.css", ""],
];
for (const [path, root, missing, variable] of CUT)
  test(`a page at ${path} whose files are asked for at ${root} and that lacks ${missing} names ${variable || "nothing"}`, async () => {
    const tab = opened([], { root, path }), events = { a: ["error", { target: link("stylesheet", HERE + missing) }], b: ["vite:preloadError", { payload: Error(`Unable to preload CSS for ${HERE}${missing}`) }] };
    await tab.page()(...events[missing.length % 2 ? "a" : "b"]);
    assert.equal(tab.said[0].endsWith(`Start it with ${variable}.`), variable !== "");
    assert.deepEqual([tab.reloads, tab.said.length], [variable ? 0 : 1, 1]);
  });

test("a page without an answering server gets no advice about a proxy", async () => {
  const tab = opened([{ ok: false }, { ok: true }], { path: "/x/" });
  await tab.page()("error", { target: link("stylesheet", `${HERE}/theme.css`) });
  assert.deepEqual([tab.reloads, tab.said], [1, [NOT_YET]]);
});

const COMPLETE = {
  "a script of others": { target: script("http://elsewhere.example/script.js") },
  "a script within the page": { target: script("") },
  "an icon": { target: link("icon", `${HERE}/favicon.ico`) },
  "a figure": { target: { src: `${HERE}/figure.png` } },
};
for (const [what, values] of Object.entries(COMPLETE))
  test(`a page that lacks ${what} stays`, async () => {
    const tab = opened();
    await tab.page()("error", values);
    assert.deepEqual([tab.reloads, tab.said], [0, []]);
  });

test("the page waits until the server answers", async () => {
  const tab = opened([{ ok: false }, Promise.reject(new TypeError("Failed to fetch"))]);
  await tab.page()(...LACKS["a script"]);
  assert.deepEqual([tab.reloads, tab.paused], [1, [0, 2000, 2000]]);
});

test("a file that is missing five times within a minute each is named", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1e12 });
  const tab = opened();
  for (const [name, values] of [...Object.values(LACKS).slice(1), LACKS["a script"]]) await tab.page()(name, values);
  assert.deepEqual([tab.reloads, tab.paused], [4, [0, 500, 1000, 2000]]);
  assert.equal(tab.said.at(-1), "The file plotly.js is missing. Reload the page, or ask the person who runs the server.");
  await tab.page()(...LACKS["a module of ours"]);
  assert.match(tab.said.at(-1), /^The file figure.js is missing/);
  await tab.page()(...LACKS["a module of Gradio's"]);
  assert.match(tab.said.at(-1), /^The file Blocks.js is missing/);
  t.mock.timers.tick(60_000);
  await tab.page()(...LACKS["a script"]);
  assert.deepEqual([tab.reloads, tab.said.at(-1)], [5, NOT_YET]);
});
