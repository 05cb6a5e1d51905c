// @ts-check
import { ask } from "../../static/asking.js";
import { call, Refused } from "../../static/connection.js";
import { onContent } from "../../static/contents.js";
import { button, countDraw, find, make, span } from "../../static/dom.js";
import { duration, followJob, isGoingOn, leave } from "../../static/jobs.js";
import { _ } from "../../static/language.js";
import { changeModel } from "../../static/moves.js";
import { state } from "../../static/state.js";
import { visitor } from "../../static/visitor.js";

/** @param {HTMLElement} element */
export default function openModel(element) {
  const box = find(element, ".open-model"), form = find(box, "form"), input = box.querySelector("input");
  const opening = find(box, ".opening"), check = find(box, ".check"), begun = new Set();

  // Of the page's list of models the last entry asks for it (picker.js).
  element.closest("#open-model").addEventListener("wanted", () => {
    form.hidden = false;
    seen();
    input.focus();
  });
  find(form, ".close").addEventListener("click", close);
  form.addEventListener("keydown", ({ key }) => { if (key === "Escape") close(); });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const name = input.value.trim();
    if (!name) return;
    opening.replaceChildren(_("looking it up…"));
    try { offer(name, await call("model_needs", [name])); }
    catch (error) { opening.replaceChildren(span("error", error instanceof Refused ? error.message : "")); }
  });

  const seen = () => { box.hidden = Boolean(form.hidden && check.hidden); };
  function close() {
    form.hidden = true;
    opening.replaceChildren();
    seen();
  }

  /** @param {string} name @param {{ words: string, job: string }} needs */
  function offer(name, { words, job }) {
    if (input.value.trim() !== name) return;
    opening.replaceChildren(span("needs", words), button(_("Open"), () => open(name, job)), button(_("Cancel"), close));
  }

  /** @param {string} name @param {string} job */
  function open(name, job) {
    /** @param {import("../../static/jobs.js").Progress | null} progress */
    function show(progress) {
      if (progress?.error) return opening.replaceChildren(span("error", progress.error));
      if (!progress || !isGoingOn(progress)) return opening.replaceChildren();
      const { done, of, seconds } = progress, loads = done >= of;
      const bar = make("progress", { ariaLabel: _("fetched"), ...(loads ? {} : { max: of, value: done }) });
      const words = loads ? _("loading…") : _("{done} of {of}, about {time} left", { done: megabytes(done), of: megabytes(of), time: duration(seconds) });
      opening.replaceChildren(bar, words, button(_("Cancel"), () => { leave(job); opening.replaceChildren(); }));
    }
    show({ state: "waiting", done: 0, of: 1, seconds: 0, error: "" });
    followJob(job, ["begin_opening", [name, visitor]], show, () => {
      close();
      changeModel(name);
    });
  }

  // The model shown is compared once with another implementation, where there is one; whoever will not wait ends it.
  function compare(job, words) {
    begun.add(job);
    const instead = () => check.replaceChildren(words);
    followJob(job, ["begin_check", [state.checkpoint, visitor]], (progress) => {
      if (!progress || !isGoingOn(progress)) return instead();
      check.replaceChildren(_("being compared with another implementation… "), button(_("Cancel"), () => leave(job)));
    }, () => ask("show"));
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
