// A page from the viewpoint of rooms: its requests to the server, each answered by a test.
import { addBanner } from "../../../../explorer/web/static/dom.js";
import { startLeading, startListening, openRoom } from "../../../../explorer/web/static/room_client.js";
import { connectState, setState } from "../../../../explorer/web/static/page_state.js";
import { settled, standInPage } from "./browser_stubs.js";

export const CODE = "K7MQ29TF4X", KEY = "a-key-of-32-characters-abcdefghi", kept = {};
export const MINE = { checkpoint: "tiny", prompt: [1], generated: [], view: "attention", query: 0, key: 0, lesson: "", step: 0, reply: "", turn: 0 };
/** What was asked of the rooms; each is answered by its `answer`. @type {any[]} */
export const asked = [];
export const last = (name) => asked.findLast((one) => one.name === name);
export const all = (name) => asked.filter((one) => one.name === name);

/** Has node have a page with a tab's storage and an address, and rooms to ask. */
export function standInRooms() {
  standInPage();
  globalThis.localStorage = { getItem: () => null, setItem() {} };
  globalThis.sessionStorage = { getItem: (name) => kept[name] ?? null, setItem: (name, text) => { kept[name] = text; }, removeItem: (name) => { delete kept[name]; } };
  globalThis.location = new URL("http://here/sub/?view=tokens");
  globalThis.history = { state: null, replaceState: (_state, _title, url) => { globalThis.location = new URL(url); } };
  globalThis.fetch = (where, { body, signal, keepalive }) => {
    const name = String(where).split("/").pop();
    if (!String(where).startsWith("rooms/")) return new Promise(() => {}); // a figure's answer never comes
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
      asked.push({ name, signal, keepalive, ...JSON.parse(body), answer: (content, status = 200) => resolve({ ok: status === 200, status, json: async () => content }), fail: () => reject(new TypeError("nobody is there")) });
    });
  };
  addBanner();
  connectState({ props: {}, watch() {}, emit: { sync() {}, halt() {} } });
  setState(MINE);
  startListening();
  startLeading();
}

/** Once all is done that follows from an answer. */
export async function heard() {
  await settled();
  await settled();
}

/** The room's next answer. */
export async function told(news) {
  last("next").answer({ tag: String(asked.length), ...news });
  await heard();
}

/** This page opens a room. */
export async function opened() {
  const opening = openRoom();
  await settled();
  last("open").answer({ code: CODE, key: KEY });
  await opening;
}
