// @ts-check
// Opening a model from the Hugging Face Hub, a path or a file; and the comparison of the open model with another implementation.
import { requestUpdate, changeModel } from "../../static/page_actions.js";
import { callServer, RefusedError, clientId } from "../../static/server_connection.js";
import { formatDuration, followJob, isJobRunning, cancelJob, onContent } from "../../static/widget_contents.js";
import { button, countDraw, find, make, span } from "../../static/dom.js";
import { _ } from "../../static/translations.js";
import { state } from "../../static/page_state.js";

const HEADER_BYTES = 1 << 16; // enough for the server to identify any file type

/** The form that opens a model, and the result of its comparison. @param {HTMLElement} element */
export function openModel(element) {
  const box = find(element, ".open-model"), form = find(box, "form"), input = box.querySelector("input");
  const opening = find(box, ".opening"), comparison = find(box, ".check"), startedJobs = new Set();
  const { maxBytes, tooLarge } = box.dataset, fileInput = /** @type {HTMLInputElement | null} */ (find(form, "[type=file]"));

  // The last entry of the model menu opens this form (header.js).
  element.closest("#open-model").addEventListener("wanted", () => {
    form.hidden = false;
    updateVisibility();
    input.focus();
  });
  find(form, ".close").addEventListener("click", close);
  form.addEventListener("keydown", ({ key }) => { if (key === "Escape") close(); });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    lookUpModel();
  });
  async function lookUpModel() {
    const name = input.value.trim();
    if (!name) return;
    opening.replaceChildren(_("looking it up…"));
    try { offerModel(name, await callServer("model_needs", [name])); } catch (error) { showError(error); }
  }
  const showError = (error) => opening.replaceChildren(span("error", error instanceof RefusedError ? error.message : ""));

  // A file that is chosen, or dropped anywhere on the page, is uploaded and opened by its path on the server.
  if (fileInput) {
    fileInput.addEventListener("change", () => { if (fileInput.files[0]) uploadFile(fileInput.files[0]); });
    find(form, ".choose").addEventListener("click", () => fileInput.click());
    const hasFiles = ({ dataTransfer }) => dataTransfer?.types.includes("Files");
    document.addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
    document.addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      form.hidden = false;
      updateVisibility();
      if (event.dataTransfer.files[0]) uploadFile(event.dataTransfer.files[0]);
    });
  }

  /** @param {File} file */
  async function uploadFile(file) {
    fileInput.value = ""; // so that choosing the same file again fires a change event
    if (file.size > +maxBytes) return opening.replaceChildren(span("error", tooLarge));
    const abortController = new AbortController();
    opening.replaceChildren(make("progress", { ariaLabel: file.name }), file.name, button(_("Cancel"), () => { abortController.abort(); opening.replaceChildren(); }));
    try {
      // The server rejects other files than GGUF by their first bytes, so only these are sent.
      const isGguf = (await file.slice(0, 4).text()) === "GGUF", body = isGguf ? file : file.slice(0, HEADER_BYTES);
      const headers = { "X-File-Name": encodeURIComponent(file.name) };
      const response = await fetch("explorer/upload", { method: "POST", headers, body, signal: abortController.signal });
      const { path, detail } = await response.json();
      if (!response.ok) throw new RefusedError(detail);
      input.value = path;
      lookUpModel();
    } catch (error) { if (!abortController.signal.aborted) showError(error); }
  }

  const updateVisibility = () => { box.hidden = Boolean(form.hidden && comparison.hidden); };
  function close() {
    form.hidden = true;
    opening.replaceChildren();
    updateVisibility();
  }

  /** @param {string} name @param {{ words: string, job: string, checkpoint: string }} needs */
  function offerModel(name, { words, job, checkpoint }) {
    if (input.value.trim() !== name) return;
    opening.replaceChildren(span("needs", words), button(_("Open"), () => startOpening(name, job, checkpoint)), button(_("Cancel"), close));
  }

  /** @param {string} name @param {string} job @param {string} checkpoint the model's name once it is open */
  function startOpening(name, job, checkpoint) {
    /** @param {import("../../static/widget_contents.js").Progress | null} progress */
    function show(progress) {
      if (progress?.error) return opening.replaceChildren(span("error", progress.error));
      if (!progress || !isJobRunning(progress)) return opening.replaceChildren();
      const { done, of, seconds } = progress, isLoading = done >= of;
      const bar = make("progress", { ariaLabel: _("fetched"), ...(isLoading || of === 1 ? {} : { max: of, value: done }) });
      const progressText = isLoading || of === 1 ? _("loading…") : _("{done} of {of}, about {time} left", { done: formatSize(done), of: formatSize(of), time: formatDuration(seconds) });
      opening.replaceChildren(bar, progressText, button(_("Cancel"), () => { cancelJob(job); opening.replaceChildren(); }));
    }
    show({ state: "waiting", done: 0, of: 1, seconds: 0, error: "" });
    followJob(job, ["begin_opening", [name, clientId]], show, () => {
      close();
      changeModel(checkpoint);
    });
  }

  // Compare the open model once with another implementation, if there is one; the user can cancel.
  function startComparison(job, words) {
    startedJobs.add(job);
    const showResult = () => comparison.replaceChildren(words);
    followJob(job, ["begin_check", [state.checkpoint, clientId]], (progress) => {
      if (!progress || !isJobRunning(progress)) return showResult();
      comparison.replaceChildren(_("being compared with another implementation… "), button(_("Cancel"), () => cancelJob(job)));
    }, () => requestUpdate("show"));
  }

  onContent(element, ({ names, words, differs, check: job }) => {
    find(form, "datalist").replaceChildren(...names.map((name) => make("option", { value: name })));
    comparison.hidden = !words;
    comparison.classList.toggle("differs", differs);
    if (!job || startedJobs.has(job)) comparison.replaceChildren(words);
    else startComparison(job, words);
    updateVisibility();
    countDraw(box);
  });
}

/** Format a file size. @param {number} bytes */
const formatSize = (bytes) => (bytes >= 1e9 ? _("{size} GB", { size: (bytes / 1e9).toFixed(1) }) : _("{size} MB", { size: Math.ceil(bytes / 1e6) }));
