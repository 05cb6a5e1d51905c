// @ts-check
// What a picture's widget is given: a picture, or in its place a sentence that says why there is none.
import { onContent } from "./contents.js";
import { countDraw, find, say } from "./dom.js";
import { jobsIn } from "./jobs.js";

/**
 * Calls `show` with every picture that Python gives the widget of an element, and shows every sentence itself.
 * @param {HTMLElement} element
 * @param {HTMLElement} drawing what is hidden behind a sentence
 * @param {(picture: any) => any} show it is drawn once that resolves
 */
export function onPicture(element, drawing, show) {
  const words = find(element, ".instead"), follow = jobsIn(element);
  onContent(element, (content) => {
    const instead = content?.instead ?? "";
    follow(content?.job ?? null);
    words.hidden = !instead;
    drawing.hidden = Boolean(instead);
    say(words, instead);
    if (!instead) return show(content);
    element.hidden = false;
    countDraw(drawing);
  });
}
