// @ts-check
import { find, findAll, say } from "../../static/dom.js";
import { isElsewhere } from "../../static/keys.js";
import { _, ngettext } from "../../static/language.js";
import { lessonTold, onLessonTold } from "../../static/lessons.js";
import { qrOf } from "../../static/qr.js";
import { changeRoom, closeRoom, isTeacher, joinRoom, linkOf, onRoom, openRoom, room } from "../../static/room.js";
import { written } from "../../static/room_line.js";
import { makeSvg, set } from "../../static/svg.js";
import { countsNodes } from "./counts.js";

const QUIET = 4, SPOKEN_EVERY = 6000; // modules around a QR code; milliseconds between two sentences for who listens

/** @param {HTMLElement} element */
export default function roomMenu(element) {
  const open = find(element, ".open"), list = find(element, ".list"), outside = find(list, ".outside"), leading = find(list, ".leading");
  const told = find(list, ".told"), leads = /** @type {HTMLInputElement} */ (find(leading, ".leads input"));
  const link = /** @type {HTMLAnchorElement} */ (find(leading, ".link")), typed = /** @type {HTMLInputElement} */ (find(outside, ".typed"));
  let code = "", drawn = "", spokenAt = 0;

  function show() {
    say(told, "");
    follow();
    const { bottom, right } = open.getBoundingClientRect();
    list.style.top = `${Math.max(8, bottom + 4)}px`;
    list.hidden = false;
    const most = document.documentElement.clientWidth - list.offsetWidth - 8; // whoever leads a class has the page's beginning in sight
    list.style.left = `${Math.max(8, isTeacher() ? most : Math.min(right - list.offsetWidth, most))}px`;
    open.ariaExpanded = "true";
    find(list, isTeacher() ? ".leads input" : ".begin").focus({ preventScroll: true });
  }

  function hide() {
    if (list.contains(document.activeElement)) open.focus({ preventScroll: true });
    list.hidden = true;
    open.ariaExpanded = "false";
  }

  function follow() {
    const isLeading = isTeacher();
    say(open, isLeading ? _("Class · {people}", { people: room.people }) : _("Class"));
    [outside.hidden, leading.hidden] = [isLeading, !isLeading];
    for (const control of findAll(outside, ":is(button,input)")) /** @type {HTMLButtonElement} */ (control).disabled = Boolean(room);
    if (!isLeading) return;
    invite();
    leads.checked = room.leads;
    say(find(leading, ".people"), room.isReached ? ngettext("{count} student is there", "{count} students are there", room.people) : _("The server does not answer."));
    if (room.problem) say(told, room.problem);
    drawCounts();
  }

  // The code, the link and its picture, once a room.
  function invite() {
    if (code === room.code) return;
    code = room.code;
    say(find(leading, ".code"), written(code));
    link.href = linkOf(code, location.href);
    say(link, link.href.replace(/^https?:\/\//, ""));
    const rows = qrOf(link.href), box = find(leading, ".qr");
    box.replaceChildren(...(rows ? [qrPicture(rows)] : []));
  }

  function drawCounts() {
    const step = lessonTold(), isHere = step && step.name === room.lesson && step.step === room.step;
    const asked = isHere && !step.question?.is_example ? step.question : null;
    const data = JSON.stringify([asked, room.counts, room.people, isHere && step.judged?.truth]);
    if (data === drawn) return;
    drawn = data;
    find(leading, ".counts").replaceChildren(...countsNodes(asked ?? null, room.counts, room.people, isHere ? step.judged ?? null : null));
    find(leading, ".replies").hidden = !room.lesson;
    speak();
  }

  // Whoever listens is told how many there are, and not each of them.
  function speak() {
    const now = Date.now(), left = spokenAt + SPOKEN_EVERY - now;
    if (left > 0) return void setTimeout(() => { if (isTeacher() && Date.now() >= spokenAt + SPOKEN_EVERY) speak(); }, left);
    spokenAt = now;
    const count = Object.values(room.counts).reduce((sum, one) => sum + one, 0);
    say(find(leading, ".spoken"), count ? ngettext("{count} reply", "{count} replies", count) : "");
  }

  /** @param {() => Promise<void>} act */
  async function tried(act) {
    say(told, "");
    try { await act(); } catch (error) { say(told, "status" in error ? error.message : _("The server does not answer: try again in a while.")); }
  }

  async function copy() {
    try { await navigator.clipboard.writeText(link.href); } catch { return void prompt(_("Copy this link:"), link.href); }
    say(told, _("The link is copied."));
  }

  open.addEventListener("click", () => (list.hidden ? show() : hide()));
  find(outside, ".begin").addEventListener("click", () => tried(openRoom).then(() => { if (isTeacher()) show(); }));
  find(outside, "form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!typed.value.trim()) return typed.focus();
    joinRoom(typed.value.trim());
    hide();
  });
  find(leading, ".copy").addEventListener("click", copy);
  leads.addEventListener("change", () => changeRoom({ leads: leads.checked }));
  find(leading, ".end").addEventListener("click", () => tried(closeRoom).then(() => { if (!room) find(outside, ".begin").focus(); }));
  element.addEventListener("keydown", (event) => { if (event.key === "Escape" && !list.hidden) event.stopPropagation(), hide(); });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "c" || event.repeat || isElsewhere(event) || !isTeacher()) return;
    if (list.hidden) show(); else hide();
  });
  // Whoever leads a class works on the page meanwhile: their list stays.
  document.addEventListener("pointerdown", ({ target }) => {
    if (!list.hidden && !isTeacher() && target instanceof Node && !element.contains(target)) hide();
  });
  onRoom(follow);
  onLessonTold(() => { if (isTeacher()) drawCounts(); });
  follow();
}

/** Dark on light in either theme, as cameras want it. @param {boolean[][]} rows */
function qrPicture(rows) {
  const size = rows.length + 2 * QUIET, svg = makeSvg("svg"), back = makeSvg("rect"), dark = makeSvg("path");
  set(svg, { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": _("the link as a QR code"), "shape-rendering": "crispEdges" });
  set(back, { width: size, height: size, fill: "#fff" });
  set(dark, { fill: "#000", d: rows.map((row, y) => row.map((is, x) => (is ? `M${x + QUIET} ${y + QUIET}h1v1h-1z` : "")).join("")).join("") });
  svg.append(back, dark);
  return svg;
}
