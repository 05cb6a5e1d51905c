// @ts-check
import { onContent } from "../../static/contents.js";
import { countDraw, find } from "../../static/dom.js";
import { reachWhileScrolling } from "../../static/sideways.js";

/** @param {HTMLElement} element */
export default function story(element) {
  const text = reachWhileScrolling(find(element, ".story")), [prompt, generated] = text.children;
  onContent(element, (value) => {
    prompt.textContent = value.prompt;
    generated.textContent = value.generated;
    requestAnimationFrame(() => { text.scrollTop = text.scrollHeight; }); // once a frame the page's layout is known anyway
    countDraw(text);
  });
}
