// @ts-check
// Above the page of whoever is in a class: which, whether this page follows the teacher, and the ways out.
import { button, make, say } from "./dom.js";
import { _ } from "./language.js";
import { ended, leaveRoom, onRoom, room } from "./room.js";
import { follow } from "./room_member.js";

/** Puts the line, which says nothing yet, at the top of the page. */
export function placeRoomLine() {
  const line = make("div", { id: "room-line", hidden: true }), words = make("span", { role: "status" });
  const turn = button("", () => follow(!room.follows)), leave = button(_("Leave"), leaveRoom);
  const hide = button(_("Close"), () => { line.hidden = true; });
  line.append(words, turn, leave, hide);
  document.body.prepend(line);
  onRoom(() => {
    const isIn = Boolean(room?.student);
    line.hidden = !isIn && !ended;
    line.classList.toggle("over", !isIn);
    document.body.classList.toggle("in-room", isIn);
    [turn.hidden, leave.hidden, hide.hidden] = [!isIn || !room.isHeard || !room.leads, !isIn, isIn];
    say(words, isIn ? saidOf(room) : endOf(ended));
    if (isIn) say(turn, room.follows ? _("Let go") : _("Follow again"));
  });
}

/** @param {import("./room.js").Room} here */
function saidOf({ code, leads, follows, isReached, isHeard, problem }) {
  const name = written(code);
  if (problem) return problem;
  if (!isReached) return _("Class {name}: the server does not answer, it is asked again.", { name });
  if (!isHeard) return _("Class {name}: joining …", { name });
  if (!leads) return _("Class {name}: look around on your own.", { name });
  return follows ? _("Class {name}: you follow the teacher.", { name }) : _("Class {name}: you look on your own.", { name });
}

/** @param {string} why */
const endOf = (why) => (why === "closed" ? _("The class is over: the page is yours, and nothing of it was kept.") : why);

/** A code in two halves, as it is read and typed. @param {string} code */
export const written = (code) => (code.length === 10 ? `${code.slice(0, 5)}-${code.slice(5)}` : code);
