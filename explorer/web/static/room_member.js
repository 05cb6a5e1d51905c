// @ts-check
// What happens in the room: whoever is in it follows its teacher, and replies count; whoever leads it is told how many.
import { goAlong } from "./following.js";
import { replyTo } from "./lessons.js";
import { changeRoom, end, onEntered, room, who } from "./room.js";
import { askRoom, RoomRefused } from "./room_calls.js";
import { keptBy, state } from "./state.js";

/** @typedef {import("./room.js").Room} Room */

const FIRST_PAUSE = 500, LONGEST_PAUSE = 8000; // milliseconds until somebody is asked again who did not answer
const OVER = [403, 404, 422], SHOWN_ANYWAY = "?";

let theirs = null; // the state that the teacher showed last
const replied = new Map(); // step of the room's lesson -> the reply that the class has

/** Has the page know what happens in any room that is entered. */
export function keepListening() {
  onEntered((here, left) => {
    theirs = null;
    replied.clear();
    listen(here, left);
  });
  keptBy((now, before) => {
    if (!room?.student) return;
    if (!before.checkpoint && now.checkpoint) queueMicrotask(catchUp); // the page has opened
    tellReply();
  });
}

/** Whether this page goes where the teacher is. @param {boolean} does */
export function follow(does) {
  changeRoom({ follows: does });
  if (does) catchUp();
}

function catchUp() {
  if (room?.follows && room.leads && theirs && state.checkpoint) goAlong(theirs);
}

/** @param {Room} here @param {AbortSignal} left */
async function listen(here, left) {
  for (let seen = "", pause = FIRST_PAUSE; room === here;) {
    try {
      const news = await askRoom("next", { ...who(), seen }, left);
      if (room !== here) return;
      pause = FIRST_PAUSE;
      if (news.closed) return here.isClosing ? undefined : end("closed");
      seen = news.tag;
      hear(news);
    } catch (error) {
      if (room !== here) return;
      const isRefused = error instanceof RoomRefused;
      if (isRefused && OVER.includes(error.status)) return end(error.message);
      changeRoom({ isReached: isRefused, problem: isRefused ? error.message : "" });
      await new Promise((resolve) => { setTimeout(resolve, pause); });
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
  }
}

/** @param {Record<string, any>} news a tag alone where there are none */
function hear({ tag, state: shown, ...news }) {
  if (news.lesson !== undefined && news.lesson !== room.lesson) replied.clear();
  changeRoom({ ...news, isReached: true, isHeard: true, ...(room.key ? {} : { problem: "" }) });
  if (room.key || shown === undefined) return;
  theirs = shown;
  catchUp();
  tellReply();
}

/** The reply to the step's question counts among those of the class. */
function tellReply() {
  if (!room.lesson || state.lesson !== room.lesson) return;
  const { lesson, step } = state, given = replyTo(step, state.reply), reply = given && given !== SHOWN_ANYWAY ? given : null;
  if ((replied.get(step) ?? null) === reply) return;
  replied.set(step, reply);
  askRoom("reply", { ...who(), lesson, step, reply }).catch((error) => {
    if (error instanceof RoomRefused && room) return changeRoom({ problem: error.message });
    replied.delete(step); // it is told once the server is back
  });
}
