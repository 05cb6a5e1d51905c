// @ts-check
// What is on the stage: the picture in its place, and how large it and a lesson's words are.
import { find, findAll } from "../../static/dom.js";
import { lettersOfMap, pictureRoom, wordsRoom } from "./room.js";

const PRESENTED = "presented";
let waiting = 0; // until a picture is there

/** Takes a picture to the screen, whose tab may be about to open. @param {string} id "" for none @param {number} [frames] to wait */
export function place(id, frames = 600) {
  cancelAnimationFrame(waiting);
  const picture = id && document.getElementById(id);
  for (const former of findAll(document, `.${PRESENTED}`)) if (former !== picture) former.classList.remove(PRESENTED);
  if (!id) return;
  if (!picture?.clientWidth && !picture?.querySelector("[data-draws]")) {
    if (frames) waiting = requestAnimationFrame(() => place(id, frames - 1));
    return;
  }
  picture.classList.add(PRESENTED);
  window.dispatchEvent(new Event("resize"));
}

/**
 * Says where all stands, and how large it is (page.css).
 * @param {HTMLElement} head
 * @param {import("./stage.js").Shown} shown
 * @param {boolean} [areMany] whether the words need more than their usual room
 */
export function layOut(head, shown, areMany = false) {
  const { page, picture } = shown, screen = { width: innerWidth, height: innerHeight }, height = head.offsetHeight;
  const room = pictureRoom(screen, height, Boolean(page), areMany), words = wordsRoom(screen, height, !picture, areMany);
  for (const [name, value] of Object.entries(room)) document.body.style.setProperty(`--stage-${name}`, name === "scale" ? String(value) : `${value}px`);
  for (const name of ["left", "width", "height"]) document.body.style.setProperty(`--words-${name}`, `${words[name]}px`);
  const letters = lettersOfMap(room);
  document.body.style.setProperty("--stage-map-type", `${letters.type}px`);
  document.body.classList.toggle("crowded", letters.isCrowded);
  document.body.classList.toggle("tight", letters.isTight);
  if (page && !fit(words.scales) && picture && !areMany) layOut(head, shown, true);
}

// The largest words that have room; says whether any have.
function fit(scales) {
  const column = find(document, "#lesson .lesson"), told = find(column, ".told");
  for (const scale of scales) {
    document.body.style.setProperty("--words-scale", String(scale));
    if (told.scrollHeight <= told.clientHeight + 1) return true;
  }
  return false;
}
