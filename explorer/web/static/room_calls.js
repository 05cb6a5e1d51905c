// @ts-check
// What a room is asked, on the server (rooms/routes.py).
import { Refused } from "./connection.js";
import { language } from "./language.js";

const PATIENCE = 45_000; // milliseconds; what says nothing new comes after twenty seconds

/** A sentence in place of an answer, and the status of HTTP that came with it. */
export class RoomRefused extends Refused {
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
export async function askRoom(name, given, signal) {
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
