// @ts-check
import { onContent } from "../../static/contents.js";
import { button, countDraw, find, findAll, make, say } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { goToStep, leaveLesson, tellLesson } from "../../static/lessons.js";
import { reveal } from "../../static/reveal.js";
import { onState, state } from "../../static/state.js";
import { cover } from "./covers.js";
import { prose } from "./prose.js";
import { openSheet } from "./sheet.js";
import { questionNodes } from "./question.js";

const POINTED_OUT = "pointed-out", FRAMES = 600; // until a picture is taken not to come

/** @param {HTMLElement} element */
export default function lesson(element) {
  const column = find(element, ".lesson"), fold = find(column, ".fold"), heading = find(column, "h2");
  const back = /** @type {HTMLButtonElement} */ (find(column, ".back")), next = find(column, ".next");
  const drawn = new Map(); // part of the column -> what is drawn there, as text
  let content = null, place = "";

  function show(given) {
    content = given;
    const here = `${given.name} ${given.step}`, isNew = here !== place;
    place = here;
    cover(given.hides);
    say(heading, given.heading ?? "");
    say(find(column, ".of"), given.steps ? _("{title} · {step} of {steps}", { title: given.title, step: given.step, steps: given.steps }) : "");
    say(find(column, ".note"), given.note ?? "");
    say(find(column, ".against"), given.step === 1 ? _("Against the belief: {belief}", { belief: given.against }) : "");
    part(".before", given.before, prose, []);
    part(".question", [given.question, given.judged?.truth, given.judged?.reply, given.missing, given.problem], () => asked(given));
    part(".verdict", [given.judged?.is_right, given.judged?.words, given.task], () => verdict(given));
    part(".after", given.after, prose, []);
    back.disabled = !(given.step > 1);
    next.textContent = given.step < given.steps ? _("Next") : _("Finish");
    if (isNew) arrive(given.target);
    tellLesson(given);
    countDraw(column);
  }

  // What is drawn as it was stays, so that the keyboard's place does.
  function part(selector, data, make, otherwise) {
    const text = JSON.stringify(data ?? null);
    if (drawn.get(selector) === text) return;
    drawn.set(selector, text);
    find(column, selector).replaceChildren(...make(data ?? otherwise));
  }

  function asked({ question, judged, missing, problem }) {
    if (missing) {
      const offer = button(_("Go through it with {model}", { model: missing.offered }), () => goToStep(content.name, content.step, missing.offered), { className: "reply" });
      return [make("p", {}, missing.words), offer];
    }
    if (problem) return [make("p", {}, problem)];
    return question ? questionNodes(question, judged) : [];
  }

  function verdict({ judged, task }) {
    if (task) return [make("p", { className: task.is_done ? "right" : "open" }, task.is_done ? `✓ ${task.words}` : task.words)];
    if (!judged?.words) return [];
    const { is_right: isRight, words } = judged;
    if (isRight === null) return [make("p", { className: "open" }, words)];
    return [make("p", { className: isRight ? "right" : "wrong" }, make("strong", {}, isRight ? `✓ ${_("Right.")}` : `✗ ${_("Not so.")}`), ` ${words}`)];
  }

  function arrive(target) {
    pointAtNothing();
    find(column, ".told").scrollTop = 0;
    if (column.contains(document.activeElement)) heading.focus({ preventScroll: true });
    if (target) pointAt(target, place, FRAMES);
  }

  // Its tab may be about to open. @param {string} id @param {string} here the step that points @param {number} frames to wait
  function pointAt(id, here, frames) {
    const picture = document.getElementById(id);
    if (here !== place || !frames) return;
    if (!picture) return requestAnimationFrame(() => pointAt(id, here, frames - 1));
    picture.classList.add(POINTED_OUT);
    if (picture.closest(".panels")) reveal(id);
    else picture.scrollIntoView({ block: "nearest" });
  }

  function pointAtNothing() {
    for (const former of findAll(document, `.${POINTED_OUT}`)) former.classList.remove(POINTED_OUT);
  }

  function follow() {
    const isOpen = Boolean(state.lesson);
    if (isOpen !== column.hidden) return;
    column.hidden = !isOpen;
    document.body.classList.toggle("in-lesson", isOpen);
    window.dispatchEvent(new Event("resize")); // pictures have more room, or less
    if (isOpen) return;
    cover(null);
    place = "";
    pointAtNothing();
  }

  back.addEventListener("click", () => goToStep(state.lesson, content.step - 1));
  next.addEventListener("click", () => (content && content.step < content.steps ? goToStep(state.lesson, content.step + 1) : leaveLesson()));
  find(column, ".leave").addEventListener("click", leaveLesson);
  find(column, ".print").addEventListener("click", () => { if (content?.steps) openSheet(content.name, content.steps); });
  fold.addEventListener("click", () => {
    fold.ariaExpanded = String(fold.ariaExpanded !== "true");
    document.body.classList.toggle("lesson-folded", fold.ariaExpanded !== "true");
  });
  onState(element, follow);
  onContent(element, show);
  follow();
}
