// @ts-check
// A class in one room: this page leads it, or is in it and follows; replies count among those of the class.
import { requestUpdate, requestView } from "./page_actions.js";
import { Refused } from "./server_connection.js";
import { button, find, make, setText } from "./dom.js";
import { forgetReplies, goToState, ROOM_STORAGE_KEY, lessonPositions, replyAtStep, ROOM, urlWithoutRoom } from "./history.js";
import { _, language } from "./translations.js";
import { bus, onEveryState, depthOfView, setState, state } from "./page_state.js";

/** @typedef {import("./page_state.js").State} State */

// What a room is asked, on the server (room_routes.py).

const PATIENCE = 45_000; // milliseconds; what says nothing new comes after twenty seconds

/** A sentence in place of an answer, and the status of HTTP that came with it. */
class RoomRefused extends Refused {
  /** @param {string} words @param {number} status */
  constructor(words, status) {
    super(words);
    this.status = status;
  }
}

/**
 * The answer.
 * @param {"open" | "next" | "lead" | "reply" | "leave" | "close"} name
 * @param {Record<string, any>} given
 * @param {AbortSignal} [signal] says that it is no longer wanted
 * @returns {Promise<any>}
 * @throws {RoomRefused | Error} the latter where nobody answers
 */
async function askRoom(name, given, signal) {
  const late = AbortSignal.timeout(PATIENCE);
  const response = await fetch(`rooms/${name}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ lang: language, ...given }),
    keepalive: name === "leave", // as the page goes
    signal: signal ? AbortSignal.any([signal, late]) : late,
  });
  const answer = await response.json(); // a proxy's page says that Python is gone
  if (response.ok) return answer;
  throw new RoomRefused(answer.detail, response.status);
}

// A class in one room: this page leads it, or is in it. The address says which (`room`); that this page leads, and as whom
// it is there, this tab alone keeps, so that neither is in a link that is passed on.

/**
 * @typedef {object} Room
 * @property {string} code
 * @property {string} [key] of whom leads it
 * @property {string} [student] of whom is in it
 * @property {boolean} leads whether the class is to follow
 * @property {boolean} follows whether this page does
 * @property {boolean} isReached whether the server answers
 * @property {boolean} isHeard whether it has answered
 * @property {string} problem a sentence of the server's
 * @property {boolean} [isClosing] whether this page is about to close it
 * @property {number} people
 * @property {string} lesson whose questions are replied to
 * @property {number} step
 * @property {Record<string, number>} counts reply -> how many gave it
 */

const OF_TAB = ["code", "key", "student", "leads", "follows"];

/** Null where there is none. @type {Room | null} */
export let room = null;
/** Why there is none any more; "" where nobody need know. */
export let ended = "";

const told = new EventTarget();
let leaving = new AbortController();

/** Calls `listener` with every change of the room. @param {() => void} listener */
export const onRoom = (listener) => told.addEventListener("room", listener);

/** Calls `listener` with each room that is entered, and what says that it was left. @param {(room: Room, left: AbortSignal) => void} listener */
const onEntered = (listener) => told.addEventListener("entered", () => listener(room, leaving.signal));

export const isTeacher = () => Boolean(room?.key);

/** As whom this page asks. */
const who = () => (room.key ? { code: room.code, key: room.key } : { code: room.code, student: room.student });

/** Changes what is known of the room. @param {Partial<Room>} change */
export function changeRoom(change) {
  Object.assign(room, change);
  keep();
  told.dispatchEvent(new Event("room"));
}

/** The address at which students join. @param {string} code @param {string} address */
export function linkOf(code, address) {
  const url = new URL(address);
  url.hash = "";
  url.search = `?${ROOM}=${code}`;
  return url.href;
}

/** @returns {Partial<Room>} */
function kept() {
  try { return JSON.parse(sessionStorage.getItem(ROOM_STORAGE_KEY)) ?? {}; } catch { return {}; } // not every frame has a storage
}
function keep() {
  try {
    if (!room) return sessionStorage.removeItem(ROOM_STORAGE_KEY);
    sessionStorage.setItem(ROOM_STORAGE_KEY, JSON.stringify(Object.fromEntries(OF_TAB.map((name) => [name, room[name]]))));
  } catch { /* until the page is left, then */ }
}

/** @param {Partial<Room> & { code: string }} given */
function enter(given) {
  room = { leads: true, follows: true, isReached: true, isHeard: false, problem: "", people: 0, lesson: "", step: 0, counts: {}, ...given };
  ended = "";
  leaving = new AbortController();
  inAddress(room.key ? null : room.code);
  changeRoom({});
  told.dispatchEvent(new Event("entered"));
}

/** The page goes on alone. @param {string} [why] */
export function end(why = "") {
  room = null;
  ended = why;
  leaving.abort();
  keep();
  inAddress(null);
  told.dispatchEvent(new Event("room"));
}

/** @param {string | null} code */
function inAddress(code) {
  const url = urlWithoutRoom(new URL(location.href));
  if (code) url.searchParams.set(ROOM, code);
  history.replaceState(history.state, "", url);
}

/** Opens a room, which this page leads; no answer that was shown here before is shown to it. Throws what `askRoom` does. */
export async function openRoom() {
  enter(await askRoom("open", {}));
  forgetReplies();
}

/** Joins one, as whom this tab was there before. @param {string} typed a code as somebody wrote it */
export function joinRoom(typed) {
  const code = typed.toUpperCase().replace(/[\s–—-]/g, ""), before = kept(), isSame = before.code === code && Boolean(before.student);
  enter({ code, student: isSame ? before.student : newName(), follows: isSame ? before.follows : true });
}
const newName = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Leaves the room that another leads. */
export function leaveRoom() {
  askRoom("leave", who()).catch(() => {}); // who no longer asks is gone anyway
  end();
}

/** Closes the room that this page leads; nothing of it stays. Throws what `askRoom` does. */
export async function closeRoom() {
  room.isClosing = true; // what is heard of it is no news
  try { await askRoom("close", who()); } catch (error) {
    room.isClosing = false;
    throw error;
  }
  end();
}

/** Enters the room that the address names, or that this tab leads. */
export function enterRoom() {
  const named = new URLSearchParams(location.search).get(ROOM), { code, key, leads } = kept();
  if (key && (!named || named === code)) enter({ code, key, leads });
  else if (named) joinRoom(named);
}

// Going where another page is: all that its state says, but what stays each person's own.

const OWN = ["lang", "turn", "version", "move", "own", "reply", "guess"];
const OF_RUN = ["checkpoint", "prompt", "generated", "dropped", "edits", "branches", "began", "chat", "lesson", "step"];
const OF_VIEW = ["view", "shown", "depth", "unfolded"];
const SETTINGS = ["temperature", "top_k", "max_new_tokens", "seed", "top_p", "min_p", "repetition_penalty", "stop_strings"];

/** What of a state others follow. @param {State} state @returns {State} */
export const shared = (state) => Object.fromEntries(Object.entries(state).filter(([name]) => !OWN.includes(name)));

/** What of another's state is another here: a name that this page has not, or a value that no address has, is left out. @param {State} theirs @param {State} mine @returns {State} */
export function changeTo(theirs, mine) {
  const isWord = (value) => ["string", "number", "boolean"].includes(typeof value) || (Array.isArray(value) && value.every((one) => typeof one === "number"));
  const isOther = ([name, value]) => Object.hasOwn(mine, name) && !OWN.includes(name) && isWord(value) && String(value) !== String(mine[name]);
  return Object.fromEntries(Object.entries(theirs).filter(isOther));
}

/** What a change asks for: another run, another tab or figure, a place in it; null for nothing. @param {State} change @returns {"run" | "view" | "pick" | null} */
export function changeScope(change) {
  const names = Object.keys(change);
  if (names.some((name) => OF_RUN.includes(name) || name.startsWith("b."))) return "run";
  if (names.some((name) => OF_VIEW.includes(name))) return "view";
  return names.length ? "pick" : null;
}

/** Goes where another page is, with the reply that was given here to the step of a lesson. @param {State} theirs */
export function followTeacher(theirs) {
  const change = changeTo(theirs, state), kind = changeScope(change);
  if (!kind) return;
  if (kind === "run") {
    const isOtherStep = "lesson" in change || "step" in change, { lesson, step } = { ...state, ...change };
    return goToState({ ...change, ...(isOtherStep ? { reply: lessonPositions()[lesson]?.replies[step] ?? "" } : {}) }, false);
  }
  const mode = depthOfView(state.view);
  setState(change);
  if (SETTINGS.some((name) => name in change)) bus.sync();
  if (kind === "view") requestView(mode);
  else requestUpdate(kind);
}

// The class is told where this page is, which leads it: at once, and then now and then.

const EVERY = 400, AGAIN = 1000; // milliseconds between two moves that are told; until it is tried again

let sent = "", sentAt = 0;
/** @type {any} */
let timer = null;
let isSending = false;

/** Has the class be told, whenever this page leads one. */
export function startLeading() {
  onEntered(() => { sent = ""; });
  onRoom(lead);
  onEveryState(lead);
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

// What happens in the room: whoever is in it follows its teacher, and replies count; whoever leads it is told how many.

const FIRST_PAUSE = 500, LONGEST_PAUSE = 8000; // milliseconds until somebody is asked again who did not answer
const OVER = [403, 404, 422], SHOWN_ANYWAY = "?";

let theirs = null; // the state that the teacher showed last
const replied = new Map(); // step of the room's lesson -> the reply that the class has

/** Has the page know what happens in any room that is entered. */
export function startListening() {
  onEntered((here, left) => {
    theirs = null;
    replied.clear();
    listen(here, left);
  });
  onEveryState((now, before) => {
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
  if (room?.follows && room.leads && theirs && state.checkpoint) followTeacher(theirs);
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
  const { lesson, step } = state, given = replyAtStep(step, state.reply), reply = given && given !== SHOWN_ANYWAY ? given : null;
  if ((replied.get(step) ?? null) === reply) return;
  replied.set(step, reply);
  askRoom("reply", { ...who(), lesson, step, reply }).catch((error) => {
    if (error instanceof RoomRefused && room) return changeRoom({ problem: error.message });
    replied.delete(step); // it is told once the server is back
  });
}

// Above the page of whoever is in a class: which, whether this page follows the teacher, and the ways out.

/** Puts the line, which says nothing yet, at the top of the page. */
export function placeRoomLine() {
  const line = make("div", { id: "room-line", hidden: true }), words = make("span", { role: "status" });
  const turn = button("", () => follow(!room.follows)), leave = button(_("Leave"), leaveRoom);
  const hide = button(_("Close"), () => { line.hidden = true; });
  line.append(words, turn, leave, hide);
  find(document, "body > .skip").after(line);
  onRoom(() => {
    const isIn = Boolean(room?.student);
    line.hidden = !isIn && !ended;
    line.classList.toggle("over", !isIn);
    document.body.classList.toggle("in-room", isIn);
    [turn.hidden, leave.hidden, hide.hidden] = [!isIn || !room.isHeard || !room.leads, !isIn, isIn];
    setText(words, isIn ? saidOf(room) : endOf(ended));
    if (isIn) setText(turn, room.follows ? _("Let go") : _("Follow again"));
  });
}

/** @param {Room} here */
function saidOf({ code, leads, follows, isReached, isHeard, problem }) {
  const name = written(code);
  if (problem) return problem;
  if (!isReached) return _("Class {name}: the server does not answer. The page tries again.", { name });
  if (!isHeard) return _("Class {name}: joining …", { name });
  if (!leads) return _("Class {name}: look around on your own.", { name });
  return follows ? _("Class {name}: you follow the teacher.", { name }) : _("Class {name}: you look on your own.", { name });
}

/** @param {string} why */
const endOf = (why) => (why === "closed" ? _("The class is over. The page is yours again; nothing was kept.") : why);

/** A code in two halves, as it is read and typed. @param {string} code */
export const written = (code) => (code.length === 10 ? `${code.slice(0, 5)}-${code.slice(5)}` : code);
