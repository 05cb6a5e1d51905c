// @ts-check
import { pick } from "../../static/choosing.js";
import { call, Refused } from "../../static/connection.js";
import { onContent } from "../../static/contents.js";
import { find, findAll } from "../../static/dom.js";
import { state } from "../../static/state.js";

/** @param {HTMLElement} element */
export default function promptLists(element) {
  const boxes = /** @type {HTMLTextAreaElement[]} */ (findAll(element, "textarea"));
  const make = find(element, "button"), told = find(element, ".error");
  let shown = ""; // the lists that the boxes began with, as JSON: what somebody writes stays until there are others

  onContent(element, (content) => {
    element.hidden = !content;
    told.textContent = ""; // it was of what is another now
    if (!content) return;
    make.textContent = content.make;
    const lists = JSON.stringify(content.lists);
    if (lists === shown) return;
    shown = lists;
    boxes.forEach((box, i) => { box.value = content.lists[i]; });
  });

  make.addEventListener("click", async () => {
    told.textContent = "";
    try { pick({ direction: await call("direction_of_lists", [state, ...boxes.map((box) => box.value)]) }); }
    catch (error) { if (error instanceof Refused) told.textContent = error.message; }
  });
}
