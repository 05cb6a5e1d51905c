// @ts-check
// The steps of the lesson, each page by page.
import { make } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { goToStep, lessonTold, onLessonTold, showAnyway } from "../../static/lessons.js";
import { state } from "../../static/state.js";
import { prose } from "../lesson/prose.js";
import { isShown, pageAfter, pagesOf, pictureOf } from "./decks.js";

/** @param {() => void} changed is called when another page is to be seen @returns {import("./stage.js").Deck} */
export function lessonDeck(changed) {
  let told = lessonTold(), page = pagesOf(told)[0], coming = 0; // −1 where the last page of the step before is to come
  const leaving = new AbortController();

  onLessonTold((now) => {
    const isOther = now.name !== told.name || now.step !== told.step, pages = pagesOf(now);
    page = isOther ? pages[coming < 0 ? pages.length - 1 : 0] : pageAfter(page, told, now);
    if (!pages.includes(page)) page = pages[0];
    if (isOther) coming = 0;
    told = now;
    changed();
  }, leaving.signal);

  return {
    go(by) {
      const pages = pagesOf(told), next = pages.indexOf(page) + by;
      if (pages[next] === "answer" && !told.judged) return showAnyway();
      if (next >= 0 && next < pages.length) {
        page = pages[next];
        return changed();
      }
      const step = told.step + by;
      if (step < 1 || step > told.steps) return;
      coming = by;
      goToStep(state.lesson, step);
    },
    shown() {
      const { heading, title, step, steps, before, next, question } = told;
      return {
        heading: heading ?? "", at: `${step} / ${steps}`, page, picture: isShown(told) ? pictureOf(told.target) : "",
        notes: [...prose(before ?? []), ...(question ? [make("p", {}, make("strong", {}, question.words))] : [])],
        next: next ? [make("p", {}, make("strong", {}, next.heading)), ...prose(next.before)] : [make("p", {}, _("“{title}” ends here.", { title }))],
      };
    },
    leave: () => leaving.abort(),
  };
}
