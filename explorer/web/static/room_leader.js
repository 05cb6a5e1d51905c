// @ts-check
// The class is told where this page is, which leads it: at once, and then now and then.
import { shared } from "./following.js";
import { changeRoom, isTeacher, onEntered, onRoom, room, who } from "./room.js";
import { askRoom, RoomRefused } from "./room_calls.js";
import { keptBy, state } from "./state.js";

const EVERY = 400, AGAIN = 1000; // milliseconds between two moves that are told; until it is tried again

let sent = "", sentAt = 0;
/** @type {any} */
let timer = null;
let isSending = false;

/** Has the class be told, whenever this page leads one. */
export function keepLeading() {
  onEntered(() => { sent = ""; });
  onRoom(lead);
  keptBy(lead);
}

function lead() {
  if (timer !== null || isSending || !isTeacher() || !state.checkpoint || shown() === sent) return;
  timer = setTimeout(send, Math.max(0, sentAt + EVERY - Date.now()));
}

/** What the class is told, as text. */
const shown = () => JSON.stringify({ leads: room.leads, state: room.leads ? shared(state) : null, lesson: state.lesson, step: state.step });

async function send() {
  timer = null;
  if (!isTeacher()) return;
  const here = room, text = shown();
  [isSending, sentAt] = [true, Date.now()];
  let problem = here.problem;
  try {
    await askRoom("lead", { ...who(), ...JSON.parse(text) });
    [sent, problem] = [text, ""];
  } catch (error) {
    if (error instanceof RoomRefused) [sent, problem] = [text, error.message]; // it would be refused again
    else sentAt = Date.now() + AGAIN;
  }
  isSending = false;
  if (room === here) changeRoom({ problem });
}
