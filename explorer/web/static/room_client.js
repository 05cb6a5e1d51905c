// @ts-check
// A class's room: this page leads it, or joins it, follows the teacher and sends replies.
import { requestUpdate, requestView } from "./page_actions.js";
import { RefusedError } from "./server_connection.js";
import { scrollToFigure } from "./widget_contents.js";
import { button, find, make, readStoredObject, setText, writeStorage } from "./dom.js";
import { forgetReplies, goToState, ROOM_STORAGE_KEY, lessonPositions, replyAtStep, ROOM, sendReply as replyOpenly, urlWithoutRoom } from "./history.js";
import { _, language } from "./text.js";
import { gradioEvents, onEveryState, depthOfView, setState, state } from "./page_state.js";

/** @typedef {import("./page_state.js").State} State */

// Requests to the server (room_routes.py).

const REQUEST_TIMEOUT_MS = 45_000; // the server answers a long poll after 20 s at the latest

/** The server refused a request: its message and the HTTP status. */
class RoomRefusedError extends RefusedError {
  /** @param {string} words @param {number} status */
  constructor(words, status) {
    super(words);
    this.status = status;
  }
}

/**
 * Send a request and return its response.
 * @param {"open" | "next" | "lead" | "reply" | "leave" | "close"} name
 * @param {Record<string, any>} body
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 * @throws {RoomRefusedError | Error} an Error if the server is unreachable
 */
async function sendRoomRequest(name, body, signal) {
  const timeout = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
  const response = await fetch(`rooms/${name}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ lang: language, ...body }),
    keepalive: name === "leave", // the page may be closing
    signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
  });
  const answer = await response.json(); // throws for a proxy's HTML page, which means that Python is gone
  if (response.ok) return answer;
  throw new RoomRefusedError(answer.detail, response.status);
}

// The room. Its code is in the URL (`room`). The teacher's key and the student's id are only in sessionStorage, so that a
// shared link contains neither.

/**
 * @typedef {object} Room
 * @property {string} code
 * @property {string} [key] of the teacher
 * @property {string} [student] id of the student
 * @property {boolean} leads whether the class is to follow
 * @property {boolean} follows whether this page follows
 * @property {boolean} isReached whether the server answers
 * @property {boolean} isHeard whether it has answered so far
 * @property {string} problem message from the server
 * @property {boolean} [isClosing] whether this page is closing the room
 * @property {number} people
 * @property {string} lesson lesson of the class
 * @property {number} step
 * @property {boolean} holds whether the answers are held back until the teacher shows them
 * @property {number} held_from first step whose answers are held back; 0 for none
 * @property {Record<string, string>} heldReplies lesson and step -> this student's reply, while its answer is held back
 * @property {Record<string, number>} counts reply -> number of students
 * @property {ClassQuestion | null} question the teacher's own question
 * @property {{ number: number, counts: Record<string, number> } | null} own_replies replies to it; for a student only if the teacher shows them
 * @property {number} asked number of the last such question
 * @property {{ number: number, reply: string } | null} ownReply this student's reply to it
 * @property {string} [presented] element id of the figure that the teacher presents
 */
/** @typedef {{ number: number, text: string, answers: string[], shows_replies: boolean }} ClassQuestion */

const STORED_FIELDS = ["code", "key", "student", "leads", "follows", "question", "asked", "ownReply", "holds", "heldReplies", "lesson", "held_from"];

/** Current room, or null. @type {Room | null} */
export let room = null;
/** Reason why the last room ended; "" for none to show. */
export let endReason = "";

const roomEvents = new EventTarget();
let abortController = new AbortController();

/** Call `listener` on each change of the room. @param {() => void} listener */
export const onRoom = (listener) => roomEvents.addEventListener("room", listener);

/** Call `listener` with each entered room and a signal that aborts when it is left. @param {(room: Room, left: AbortSignal) => void} listener */
const onEntered = (listener) => roomEvents.addEventListener("entered", () => listener(room, abortController.signal));

export const isTeacher = () => Boolean(room?.key);
/** Return whether a teacher decides what this page shows. */
export const isLed = () => Boolean(room?.student && room.follows && room.leads);

/** Return the fields that identify this page to the server. */
const memberFields = () => (room.key ? { code: room.code, key: room.key } : { code: room.code, student: room.student });

/** Change fields of the room and notify the listeners. @param {Partial<Room>} change */
export function changeRoom(change) {
  Object.assign(room, change);
  storeRoom();
  roomEvents.dispatchEvent(new Event("room"));
}

/** Return the URL at which students join. @param {string} code @param {string} address */
export function joinUrl(code, address) {
  const url = new URL(address);
  url.hash = "";
  url.search = `?${ROOM}=${code}`;
  return url.href;
}

/** @returns {Partial<Room>} */
const storedRoom = () => readStoredObject(ROOM_STORAGE_KEY, "sessionStorage") ?? {};
const storeRoom = () => writeStorage(ROOM_STORAGE_KEY, room && Object.fromEntries(STORED_FIELDS.map((name) => [name, room[name]])), "sessionStorage");

/** @param {Partial<Room> & { code: string }} fields */
function enterRoomAs(fields) {
  room = { leads: true, follows: true, isReached: true, isHeard: false, problem: "", people: 0, lesson: "", step: 0, holds: false, held_from: 0, heldReplies: {}, counts: {}, question: null, own_replies: null, asked: 0, ownReply: null, ...fields };
  endReason = "";
  abortController = new AbortController();
  writeRoomToUrl(room.key ? null : room.code);
  changeRoom({});
  roomEvents.dispatchEvent(new Event("entered"));
}

/** Leave the room; the page goes on alone. @param {string} [reason] */
export function endRoom(reason = "") {
  room = null;
  endReason = reason;
  abortController.abort();
  storeRoom();
  writeRoomToUrl(null);
  roomEvents.dispatchEvent(new Event("room"));
}

/** @param {string | null} code */
function writeRoomToUrl(code) {
  const url = urlWithoutRoom(new URL(location.href));
  if (code) url.searchParams.set(ROOM, code);
  history.replaceState(history.state, "", url);
}

/** Open a room that this page leads, and forget its replies. Throws like `sendRoomRequest`. */
export async function openRoom() {
  enterRoomAs(await sendRoomRequest("open", {}));
  forgetReplies();
}

const READ_AS = { B: "8", S: "5", Z: "2" }; // as rooms.py has it

/** Return a code as the teacher's page shows it, without its hyphen. @param {string} text */
const parseCode = (text) => text.toUpperCase().replace(/[\s–—-]/g, "").replace(/[BSZ]/g, (letter) => READ_AS[letter]);

/** Join a room, under the same student id as before in this tab. @param {string} text code as typed */
export function joinRoom(text) {
  const code = parseCode(text), stored = storedRoom(), isSame = stored.code === code && Boolean(stored.student);
  const { student, follows, ownReply, heldReplies = {}, lesson = "", held_from = 0 } = stored; // an answer is still held until the class says otherwise
  enterRoomAs({ code, ...(isSame ? { student, follows, ownReply, heldReplies, lesson, held_from } : { student: newStudentId() }) });
}
const newStudentId = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Leave a room as a student. */
export function leaveRoom() {
  sendRoomRequest("leave", memberFields()).catch(() => {}); // the server drops pages that stop polling
  endRoom();
}

/** Close the room that this page leads; the server deletes it. Throws like `sendRoomRequest`. */
export async function closeRoom() {
  room.isClosing = true; // so that news of its end is ignored
  try { await sendRoomRequest("close", memberFields()); } catch (error) {
    room.isClosing = false;
    throw error;
  }
  endRoom();
}

/** Enter the room in the URL, or the one that this tab leads. */
export function enterRoom() {
  const urlCode = new URLSearchParams(location.search).get(ROOM), { code, key, leads, question = null, asked = 0, holds = false } = storedRoom();
  if (key && (!urlCode || urlCode === code)) enterRoomAs({ code, key, leads, question, asked, holds });
  else if (urlCode) joinRoom(urlCode);
}

// Following another page: all of its state but the personal fields.

const PERSONAL_FIELDS = ["lang", "turn", "version", "move", "own", "reply", "guess"];
const RUN_FIELDS = ["checkpoint", "prompt", "generated", "dropped", "edits", "branches", "began", "chat", "lesson", "step"];
const VIEW_FIELDS = ["view", "shown", "depth", "unfolded"];
const SETTING_FIELDS = ["temperature", "top_k", "max_new_tokens", "seed", "top_p", "min_p", "repetition_penalty", "stop_strings"];

/** Return the fields of a state that others follow. @param {State} state @returns {State} */
export const sharedFields = (state) => Object.fromEntries(Object.entries(state).filter(([name]) => !PERSONAL_FIELDS.includes(name)));

/** Return the fields in which another page's state differs. Unknown names and values that no URL can have are dropped. @param {State} otherState @param {State} ownState @returns {State} */
export function changeFrom(otherState, ownState) {
  const isUrlValue = (value) => ["string", "number", "boolean"].includes(typeof value) || (Array.isArray(value) && value.every((item) => typeof item === "number"));
  const isChange = ([name, value]) => Object.hasOwn(ownState, name) && !PERSONAL_FIELDS.includes(name) && isUrlValue(value) && String(value) !== String(ownState[name]);
  return Object.fromEntries(Object.entries(otherState).filter(isChange));
}

/** Return the scope of a change: another run, another view or figure, another selection; null for none. @param {State} change @returns {"run" | "view" | "pick" | null} */
export function changeScope(change) {
  const names = Object.keys(change);
  if (names.some((name) => RUN_FIELDS.includes(name) || name.startsWith("b."))) return "run";
  if (names.some((name) => VIEW_FIELDS.includes(name))) return "view";
  return names.length ? "pick" : null;
}

/** Go to another page's state, with this page's own reply to a lesson's step. @param {State} teacherState */
export function followTeacher(teacherState) {
  const change = changeFrom(teacherState, state), scope = changeScope(change);
  if (!scope) return;
  if (scope === "run") {
    const isOtherStep = "lesson" in change || "step" in change, { lesson, step } = { ...state, ...change };
    return goToState({ ...change, ...(isOtherStep ? { reply: lessonPositions()[lesson]?.replies[step] ?? "" } : {}) }, false);
  }
  const mode = depthOfView(state.view);
  setState(change);
  if (SETTING_FIELDS.some((name) => name in change)) gradioEvents.sync();
  if (scope === "view") requestView(mode);
  else requestUpdate(scope);
}

// Leading: the teacher's page sends its state at once, and then at a limited rate.

const SEND_INTERVAL_MS = 400, RETRY_MS = 1000;

let sentText = "", sentAt = 0;
/** @type {any} */
let timer = null;
let isSending = false;

/** Send the state to the class whenever this page leads one. */
export function startLeading() {
  onEntered(() => { sentText = ""; });
  onRoom(scheduleSend);
  onEveryState(scheduleSend);
}

function scheduleSend() {
  if (timer !== null || isSending || !isTeacher() || !state.checkpoint || classMessage() === sentText) return;
  timer = setTimeout(sendToClass, Math.max(0, sentAt + SEND_INTERVAL_MS - Date.now()));
}

/** Return the message to the class as JSON. */
const classMessage = () => JSON.stringify({ leads: room.leads, state: room.leads ? { ...sharedFields(state), ...(room.presented ? { presented: room.presented } : {}) } : null, lesson: state.lesson, step: state.step, held_from: room.holds && state.lesson ? state.step + Number(replyAtStep(state.step, state.reply) !== null) : 0, question: room.question });

/** Ask the class a question of the teacher's own, in place of the one before. @param {string} text @param {string[]} answers none for replies in the students' words */
export function askClass(text, answers) {
  const number = room.asked + 1;
  changeRoom({ question: { number, text, answers, shows_replies: false }, asked: number, own_replies: null });
}
/** Set whether students see the replies to the teacher's question. @param {boolean} shows */
export const showRepliesToClass = (shows) => changeRoom({ question: { ...room.question, shows_replies: shows } });
/** End the teacher's question; the server deletes its replies. */
export const endQuestion = () => changeRoom({ question: null, own_replies: null });

/** Return the counts of the replies to the teacher's question; null if this page has none. */
export const ownReplyCounts = () => (room?.question && room.own_replies?.number === room.question.number ? room.own_replies.counts : null);

async function sendToClass() {
  timer = null;
  if (!isTeacher()) return;
  const sendingRoom = room, text = classMessage();
  [isSending, sentAt] = [true, Date.now()];
  let problem = sendingRoom.problem;
  try {
    await sendRoomRequest("lead", { ...memberFields(), ...JSON.parse(text) });
    [sentText, problem] = [text, ""];
  } catch (error) {
    if (error instanceof RoomRefusedError) [sentText, problem] = [text, error.message]; // a repeated request would be refused too
    else sentAt = Date.now() + RETRY_MS;
  }
  isSending = false;
  if (room === sendingRoom) changeRoom({ problem });
}

// Listening: students follow the teacher and send replies; the teacher gets their counts.

const MIN_RETRY_MS = 500, MAX_RETRY_MS = 8000;
const ENDING_STATUSES = [403, 404, 422], ANSWER_REQUEST = "?";

let lastTeacherState = null, shownFigure = ""; // latest state from the teacher; the presented figure that this page has scrolled to
const countedReplies = new Map(); // step of the room's lesson -> this page's reply, as the class counts it

/** Listen to each room that is entered. */
export function startListening() {
  onEntered((enteredRoom, signal) => {
    [lastTeacherState, shownFigure] = [null, ""];
    countedReplies.clear();
    listen(enteredRoom, signal);
  });
  onEveryState((now, before) => {
    if (!room?.student) return;
    if (!before.checkpoint && now.checkpoint) queueMicrotask(catchUp); // the page has loaded
    releaseReply();
    sendReply();
  });
  onRoom(showHolding);
}

/** Set whether this page follows the teacher. @param {boolean} follows */
export function setFollowing(follows) {
  shownFigure = "";
  changeRoom({ follows: follows });
  if (follows) catchUp();
}

function catchUp() {
  if (!room?.follows || !room.leads || !lastTeacherState || !state.checkpoint) return;
  followTeacher(lastTeacherState);
  showPresented(lastTeacherState.presented ?? "");
}

const FIGURE = /^[a-z_]{1,40}-[a-z_]{1,40}$/; // element id of a view's figure

/** Scroll once to the figure that the teacher presents. @param {any} figure element id; "" for none */
function showPresented(figure) {
  if (figure === shownFigure) return;
  const isNew = typeof figure === "string" && FIGURE.test(figure) && figure.startsWith(`${state.view}-`);
  shownFigure = isNew ? figure : "";
  if (isNew) scrollToFigure(figure, () => shownFigure === figure && isLed());
}

/** @param {Room} listeningRoom @param {AbortSignal} signal */
async function listen(listeningRoom, signal) {
  for (let tag = "", pause = MIN_RETRY_MS; room === listeningRoom;) {
    try {
      const news = await sendRoomRequest("next", { ...memberFields(), seen: tag }, signal);
      if (room !== listeningRoom) return;
      pause = MIN_RETRY_MS;
      if (news.closed) return listeningRoom.isClosing ? undefined : endRoom("closed");
      tag = news.tag;
      handleNews(news);
    } catch (error) {
      if (room !== listeningRoom) return;
      const isRefused = error instanceof RoomRefusedError;
      if (isRefused && ENDING_STATUSES.includes(error.status)) return endRoom(error.message);
      changeRoom({ isReached: isRefused, problem: isRefused ? error.message : "" });
      await new Promise((resolve) => { setTimeout(resolve, pause); });
      pause = Math.min(2 * pause, MAX_RETRY_MS);
    }
  }
}

/** @param {Record<string, any>} news only a tag if nothing is new */
function handleNews({ tag, state: teacherState, ...news }) {
  if (news.lesson !== undefined && news.lesson !== room.lesson) countedReplies.clear();
  changeRoom({ ...news, isReached: true, isHeard: true, ...(room.key ? {} : { problem: "" }) });
  if (room.key || teacherState === undefined) return;
  lastTeacherState = teacherState;
  catchUp();
  releaseReply();
  sendReply();
}

// A held answer: the reply goes to the class at once, and into this page's state, which asks for the verdict, later.

/** Return whether the teacher holds back the answer of this page's step. */
export const isAnswerHeld = () => Boolean(room?.student && room.held_from && state.lesson === room.lesson && state.step >= room.held_from);

const heldReplyKey = () => `${state.lesson} ${state.step}`;

/** Return the reply to this page's step whose answer is held back, or null. @returns {string | null} */
export const heldReply = () => room?.heldReplies?.[heldReplyKey()] ?? null;

/** Reply to the step's question. @param {string} reply */
export function replyToStep(reply) {
  if (!isAnswerHeld()) return replyOpenly(reply);
  changeRoom({ heldReplies: { ...room.heldReplies, [heldReplyKey()]: reply } });
  sendReply();
}

/** Reply openly, once the teacher has shown the answer. */
function releaseReply() {
  const reply = heldReply();
  showHolding();
  if (reply === null || isAnswerHeld()) return;
  const { [heldReplyKey()]: _released, ...heldReplies } = room.heldReplies;
  changeRoom({ heldReplies });
  replyOpenly(reply);
}

const showHolding = () => document.body.classList.toggle("answer-held", isAnswerHeld()); // the style sheet hides what shows answers

/** Send the reply to the step's question, or withdraw it. */
function sendReply() {
  if (!room.lesson || state.lesson !== room.lesson) return;
  const { lesson, step } = state, ownReply = heldReply() ?? replyAtStep(step, state.reply), reply = ownReply && ownReply !== ANSWER_REQUEST ? ownReply : null;
  if ((countedReplies.get(step) ?? null) === reply) return;
  countedReplies.set(step, reply);
  sendRoomRequest("reply", { ...memberFields(), lesson, step, reply }).catch((error) => {
    if (error instanceof RoomRefusedError && room) return changeRoom({ problem: error.message });
    countedReplies.delete(step); // sent again once the server is back
  });
}

/** Send this student's reply to the teacher's own question. @param {string} reply number of an answer, or words */
export async function replyToClass(reply) {
  const replyingRoom = room, { number } = room.question;
  changeRoom({ ownReply: { number, reply } });
  try { await sendRoomRequest("reply", { ...memberFields(), lesson: "", step: number, reply }); } catch (error) {
    if (room === replyingRoom && room.question?.number === number) changeRoom({ ownReply: null, problem: error instanceof RoomRefusedError ? error.message : "" });
  }
}

// Line above a student's page: the class, whether the page follows, and buttons to leave or let go.

/** Add the empty line to the top of the page. */
export function placeRoomLine() {
  const line = make("div", { id: "room-line", hidden: true }), words = make("span", { role: "status" });
  const followButton = button("", () => setFollowing(!room.follows)), leaveButton = button(_("Leave"), leaveRoom, { title: _("Leave the class") });
  const showLine = (/** @type {boolean} */ isShown) => { // the class makes space for it
    line.hidden = !isShown;
    document.body.classList.toggle("in-room", isShown);
  };
  const closeButton = button(_("Close"), () => showLine(false));
  line.append(words, followButton, leaveButton, closeButton);
  find(document, "body > .skip").after(line);
  onRoom(() => {
    const isStudent = Boolean(room?.student);
    showLine(isStudent || Boolean(endReason));
    line.classList.toggle("over", !isStudent);
    document.body.classList.toggle("is-led", isLed());
    dispatchEvent(new Event("explorer:led")); // for scripts that are loaded before this one
    document.body.classList.toggle("follows-lesson", Boolean(isLed() && room.lesson)); // a followed lesson is left with the class
    [followButton.hidden, leaveButton.hidden, closeButton.hidden] = [!isStudent || !room.isHeard || !room.leads, !isStudent, isStudent];
    setText(words, isStudent ? roomStatus(room) : endMessage(endReason));
    if (isStudent) setText(followButton, room.follows ? _("On my own") : _("Follow again"));
  });
}

/** @param {Room} room */
function roomStatus({ code, leads, follows, isReached, isHeard, problem }) {
  const name = formatCode(code);
  if (problem) return problem;
  if (!isReached) return _("Class {name}: the server does not answer. The page tries again.", { name });
  if (!isHeard) return _("Class {name}: joining …", { name });
  if (!leads) return _("Class {name}: look around on your own.", { name });
  return follows ? _("Class {name}: you follow the teacher.", { name }) : _("Class {name}: you look around on your own.", { name });
}

/** @param {string} reason */
const endMessage = (reason) => (reason === "closed" ? _("The class is over. The page is yours again; nothing was kept.") : reason);

/** Format a code in two halves, which are easier to read and type. @param {string} code */
export const formatCode = (code) => (code.length === 10 ? `${code.slice(0, 5)}-${code.slice(5)}` : code);
