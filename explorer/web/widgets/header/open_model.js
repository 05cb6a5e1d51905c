// @ts-check
// Opening another model: of the Hugging Face Hub, of a path, or of a file; and the check of the model on show.
import { requestUpdate, changeModel } from "../../static/page_actions.js";
import { call, Refused, visitor } from "../../static/server_connection.js";
import { formatDuration, followJob, isJobRunning, cancelJob, onContent } from "../../static/widget_contents.js";
import { button, countDraw, find, make, span } from "../../static/dom.js";
import { _ } from "../../static/translations.js";
import { state } from "../../static/page_state.js";

const HEAD_BYTES = 1 << 16; // in which any kind of file can be told

/** @param {HTMLElement} element */
export function openModel(element) {
  const box = find(element, ".open-model"), form = find(box, "form"), input = box.querySelector("input");
  const opening = find(box, ".opening"), check = find(box, ".check"), begun = new Set();
  const { maxBytes, tooLarge } = box.dataset, chosen = /** @type {HTMLInputElement | null} */ (find(form, "[type=file]"));

  // Of the page's list of models the last entry asks for it (header.js).
  element.closest("#open-model").addEventListener("wanted", () => {
    form.hidden = false;
    seen();
    input.focus();
  });
  find(form, ".close").addEventListener("click", close);
  form.addEventListener("keydown", ({ key }) => { if (key === "Escape") close(); });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    lookUp();
  });
  async function lookUp() {
    const name = input.value.trim();
    if (!name) return;
    opening.replaceChildren(_("looking it up…"));
    try { offer(name, await call("model_needs", [name])); } catch (error) { refuse(error); }
  }
  const refuse = (error) => opening.replaceChildren(span("error", error instanceof Refused ? error.message : ""));

  // A file that is chosen, or dropped anywhere on the page, is given to Python, and opened by the path that it has there.
  if (chosen) {
    chosen.addEventListener("change", () => { if (chosen.files[0]) give(chosen.files[0]); });
    find(form, ".choose").addEventListener("click", () => chosen.click());
    const hasFiles = ({ dataTransfer }) => dataTransfer?.types.includes("Files");
    document.addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
    document.addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      form.hidden = false;
      seen();
      if (event.dataTransfer.files[0]) give(event.dataTransfer.files[0]);
    });
  }

  /** @param {File} file */
  async function give(file) {
    chosen.value = ""; // so that the same can be chosen again
    if (file.size > +maxBytes) return opening.replaceChildren(span("error", tooLarge));
    const unwanted = new AbortController();
    opening.replaceChildren(make("progress", { ariaLabel: file.name }), file.name, button(_("Cancel"), () => { unwanted.abort(); opening.replaceChildren(); }));
    try {
      // Python refuses what is no GGUF file by its first bytes: no more of it is sent.
      const isGguf = (await file.slice(0, 4).text()) === "GGUF", body = isGguf ? file : file.slice(0, HEAD_BYTES);
      const headers = { "X-File-Name": encodeURIComponent(file.name) };
      const response = await fetch("explorer/upload", { method: "POST", headers, body, signal: unwanted.signal });
      const { path, detail } = await response.json();
      if (!response.ok) throw new Refused(detail);
      input.value = path;
      lookUp();
    } catch (error) { if (!unwanted.signal.aborted) refuse(error); }
  }

  const seen = () => { box.hidden = Boolean(form.hidden && check.hidden); };
  function close() {
    form.hidden = true;
    opening.replaceChildren();
    seen();
  }

  /** @param {string} name @param {{ words: string, job: string, checkpoint: string }} needs */
  function offer(name, { words, job, checkpoint }) {
    if (input.value.trim() !== name) return;
    opening.replaceChildren(span("needs", words), button(_("Open"), () => open(name, job, checkpoint)), button(_("Cancel"), close));
  }

  /** @param {string} name @param {string} job @param {string} checkpoint its name once it is open */
  function open(name, job, checkpoint) {
    /** @param {import("../../static/widget_contents.js").Progress | null} progress */
    function show(progress) {
      if (progress?.error) return opening.replaceChildren(span("error", progress.error));
      if (!progress || !isJobRunning(progress)) return opening.replaceChildren();
      const { done, of, seconds } = progress, loads = done >= of;
      const bar = make("progress", { ariaLabel: _("fetched"), ...(loads || of === 1 ? {} : { max: of, value: done }) });
      const words = loads || of === 1 ? _("loading…") : _("{done} of {of}, about {time} left", { done: megabytes(done), of: megabytes(of), time: formatDuration(seconds) });
      opening.replaceChildren(bar, words, button(_("Cancel"), () => { cancelJob(job); opening.replaceChildren(); }));
    }
    show({ state: "waiting", done: 0, of: 1, seconds: 0, error: "" });
    followJob(job, ["begin_opening", [name, visitor]], show, () => {
      close();
      changeModel(checkpoint);
    });
  }

  // The model shown is compared once with another implementation, where there is one; whoever will not wait ends it.
  function compare(job, words) {
    begun.add(job);
    const instead = () => check.replaceChildren(words);
    followJob(job, ["begin_check", [state.checkpoint, visitor]], (progress) => {
      if (!progress || !isJobRunning(progress)) return instead();
      check.replaceChildren(_("being compared with another implementation… "), button(_("Cancel"), () => cancelJob(job)));
    }, () => requestUpdate("show"));
  }

  onContent(element, ({ names, words, differs, check: job }) => {
    find(form, "datalist").replaceChildren(...names.map((name) => make("option", { value: name })));
    check.hidden = !words;
    check.classList.toggle("differs", differs);
    if (!job || begun.has(job)) check.replaceChildren(words);
    else compare(job, words);
    seen();
    countDraw(box);
  });
}

/** Bytes in words. @param {number} bytes */
const megabytes = (bytes) => (bytes >= 1e9 ? _("{size} GB", { size: (bytes / 1e9).toFixed(1) }) : _("{size} MB", { size: Math.ceil(bytes / 1e6) }));
