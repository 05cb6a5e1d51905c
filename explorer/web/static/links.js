// @ts-check
// Links to other places of the page: a click goes there at once, and what browsers do with links works, too.
import { pick, setEdits } from "./choosing.js";
import { make } from "./dom.js";
import { addressOf, withoutRoom } from "./history.js";
import { reveal } from "./reveal.js";
import { state } from "./state.js";

/**
 * @param {string} words
 * @param {import("./state.js").State} look the change of the selection that leads there, and the changes to the model if they are others
 * @param {string} [picture] element id of what is to come into sight
 */
export function linkTo(words, look, picture) {
  const link = make("a", {}, words);
  const lead = () => { link.href = withoutRoom(addressOf({ ...state, ...look }, location.href)).href; };
  lead();
  for (const type of ["pointerenter", "focus"]) link.addEventListener(type, lead); // what else is chosen is another by then
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // the address in another tab or window
    event.preventDefault();
    const { edits, ...selection } = look;
    if (edits) setEdits(edits.split("~"));
    pick(selection);
    if (picture) reveal(picture);
  });
  return link;
}
