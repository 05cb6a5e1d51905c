// @ts-check
// Entry point of the page without a server, with plain controls in place of Gradio's.
import { connectState } from "../static/page_state.js";
import { controlValues, applyUpdate } from "../static/page_actions.js";
import { find, findAll, notify } from "../static/dom.js";
import { PLOTLY_SCRIPT_URL } from "../static/plotly_figures.js";
import * as page from "../static/page.js";
import { continueRun, callWorker, UserError } from "./actions.js";
import { _, language } from "../static/text.js";
import { translateElement } from "./answers.js";
import { RANGES } from "./page_data.js";

const SETTING_NAMES = [...Object.keys(RANGES), "stop_strings"];
const prompt = /** @type {HTMLTextAreaElement} */ (find(document, "#prompt textarea")), allTokensBox = /** @type {HTMLInputElement} */ (find(document, "#all-tokens input"));
/** Return the inputs of a setting; a slider has two. @param {string} name @returns {HTMLInputElement[]} */
const settingInputs = (name) => /** @type {any} */ (findAll(document, `#${name} input`));
let generation = new AbortController();

/** Update the controls from the state. */
function updateControls() {
  const [text, ...values] = controlValues(SETTING_NAMES);
  if (text !== undefined) prompt.value = text;
  allTokensBox.checked = values.pop();
  SETTING_NAMES.forEach((name, i) => { for (const box of settingInputs(name)) box.value = values[i]; });
}

for (const name of SETTING_NAMES) for (const box of settingInputs(name)) box.addEventListener("input", () => {
  for (const otherBox of settingInputs(name)) if (otherBox !== box) otherBox.value = box.value;
  page.changeSettings({ [name]: name === "stop_strings" ? box.value : box.value === "" ? null : inRange(name, +box.value) });
});
const inRange = (name, value) => Math.max(RANGES[name][0], Math.min(RANGES[name][1], value));
allTokensBox.addEventListener("input", () => { page.changeSettings({ top_k: allTokensBox.checked ? 0 : +settingInputs("top_k")[0].value }); updateControls(); });

const run = () => page.runPrompt(prompt.value);
find(document, "#run").addEventListener("click", run);
prompt.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  run();
});

/** Generate from the page's state, until the end or `halt`. @param {(state: any) => any} change of the state before it begins @returns {Promise<number[]>} what was generated; nothing if it was halted */
async function beginGenerating(change) {
  halt();
  const { signal } = generation = new AbortController(), initialState = change(await page.beginWriting());
  let generated = [];
  try {
    await continueRun(initialState, initialState, (update) => { if (!signal.aborted) applyUpdate({ ...update, change: { ...update.change, seed: initialState.seed } }); ({ generated } = update.change); }, signal);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    notify(error.message);
  } finally { if (!signal.aborted) page.endGeneration(); }
  return signal.aborted ? [] : generated;
}

/** Write the last continuation anew with the next seed; at temperature 0 none matters, so tell if the text is the same. */
async function writeAnotherEnding() {
  let previous = null; // state before
  const generated = await beginGenerating((now) => {
    previous = now;
    return { ...now, generated: now.generated.slice(0, now.began), seed: now.temperature ? (now.seed + 1) % 2 ** 32 : now.seed };
  });
  if (!previous.temperature && generated.join() === previous.generated.join()) notify(_("The same ending again: at temperature 0 the likeliest token is always taken."));
}

function halt() { generation.abort(); }

find(document, "#generate").addEventListener("click", () => beginGenerating((now) => ({ ...now, began: now.generated.length })));
find(document, "#regenerate").addEventListener("click", writeAnotherEnding);
for (const id of ["stop", "undo"]) find(document, `#${id}`).addEventListener("click", halt);

document.documentElement.lang = language;
translateElement(document.body); // before anything is built into it
connectState({ props: {}, watch: () => {}, emit: { sync: updateControls, halt, localize: () => page.build(), wake: () => {} } });
page.start();

/** Cache the fetched files in the browser, for a visit without a network. */
async function cacheFiles() {
  await navigator.serviceWorker.register("service_worker.js");
  const { active } = await navigator.serviceWorker.ready;
  await /** @type {any} */ (window).explorer.settled(); // everything that the page needs is fetched
  await Promise.all([import("./lessons.js"), import("../widgets/teaching/walkthrough.js")]); // what it may need later
  const files = performance.getEntriesByType("resource").map(({ name }) => name);
  active.postMessage([location.href.split(/[?#]/)[0], PLOTLY_SCRIPT_URL, ...files, ...await callWorker("fetchedFiles", null)]);
}
if (navigator.serviceWorker) cacheFiles().catch(() => {}); // without a cache the page needs the network
