// @ts-check
// Starts the page without a server: the controls that are Gradio's on the served page are plain ones here.
import { connectState } from "../static/page_state.js";
import { controlValues, applyUpdate } from "../static/page_actions.js";
import { find, findAll, notify } from "../static/dom.js";
import { PLOTLY_SCRIPT_URL } from "../static/plotly_figures.js";
import * as page from "../static/page.js";
import { write } from "./actions.js";
import { language } from "../static/translations.js";
import { translateElement } from "./languages.js";
import { ask, ToldError } from "./model.js";
import { RANGES } from "./page_data.js";

const NAMES = [...Object.keys(RANGES), "stop_strings"];
const prompt = /** @type {HTMLTextAreaElement} */ (find(document, "#prompt textarea")), all = /** @type {HTMLInputElement} */ (find(document, "#all-tokens input"));
/** The boxes of a setting: a slider has two. @param {string} name @returns {HTMLInputElement[]} */
const boxesOf = (name) => /** @type {any} */ (findAll(document, `#${name} input`));
let writing = new AbortController();

/** The controls follow the state. */
function follow() {
  const [text, ...values] = controlValues(NAMES);
  if (text !== undefined) prompt.value = text;
  all.checked = values.pop();
  NAMES.forEach((name, i) => {
    const { value, interactive = true } = values[i]?.__type__ ? values[i] : { value: values[i] };
    for (const box of boxesOf(name)) Object.assign(box, { value, disabled: !interactive });
  });
}

for (const name of NAMES) for (const box of boxesOf(name)) box.addEventListener("input", () => {
  for (const other of boxesOf(name)) if (other !== box) other.value = box.value;
  page.changeSettings({ [name]: name === "stop_strings" ? box.value : box.value === "" ? null : inRange(name, +box.value) });
});
const inRange = (name, value) => Math.max(RANGES[name][0], Math.min(RANGES[name][1], value));
all.addEventListener("input", () => { page.changeSettings({ top_k: all.checked ? 0 : +boxesOf("top_k")[0].value }); follow(); });

const run = () => page.runPrompt(prompt.value);
find(document, "#run").addEventListener("click", run);
prompt.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  run();
});

/** Writes on, as the page's state says, until the end or `halt`. @param {(state: any) => any} change of the state that it begins with */
async function begin(change) {
  halt();
  const { signal } = writing = new AbortController(), before = change(await page.beginWriting());
  try {
    await write(before, before, (update) => { if (!signal.aborted) applyUpdate({ ...update, change: { ...update.change, seed: before.seed } }); }, signal);
  } catch (error) {
    if (!(error instanceof ToldError)) throw error;
    notify(error.message);
  } finally { if (!signal.aborted) page.wrote(); }
}
function halt() { writing.abort(); }

find(document, "#generate").addEventListener("click", () => begin((now) => ({ ...now, began: now.generated.length })));
find(document, "#regenerate").addEventListener("click", () => begin((now) => ({ ...now, generated: now.generated.slice(0, now.began), seed: (now.seed + 1) % 2 ** 32 })));
for (const id of ["stop", "undo"]) find(document, `#${id}`).addEventListener("click", halt);

document.documentElement.lang = language;
translateElement(document.body); // before anything is built into it
connectState({ props: {}, watch: () => {}, emit: { sync: follow, halt, localize: () => page.build(), wake: () => {} } });
page.start();

/** Has the browser keep the files that were fetched, for a visit without a network. */
async function keepFiles() {
  await navigator.serviceWorker.register("service_worker.js");
  const { active } = await navigator.serviceWorker.ready;
  await /** @type {any} */ (window).explorer.settled(); // by then all was fetched that the page needs
  await Promise.all([import("./lessons/lesson.js"), import("./walkthroughs.js"), import("../widgets/teaching/walkthrough.js")]); // and now what it may
  const files = performance.getEntriesByType("resource").map(({ name }) => name);
  active.postMessage([location.href.split(/[?#]/)[0], PLOTLY_SCRIPT_URL, ...files, ...await ask("fetchedFiles", null)]);
}
if (navigator.serviceWorker) keepFiles().catch(() => {}); // without it the page needs the network, and works as well
