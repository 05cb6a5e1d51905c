// @ts-check
// Connection of the page without a server. An import map puts it in place of static/server_connection.js: the model in this browser
// answers the same requests.
import { applyAction, NEEDS_PYTHON } from "./actions.js";
import { stateContents, deriveText } from "./answers.js";
import { callWorker, interventionsOf, openModel, openRun, UserError, visibleIds } from "./model_runs.js";
import { samplingStages } from "../static/in_browser/generation.js";

/** The model refused a request; the message says why. */
export class RefusedError extends Error {}

export const clientId = "this-browser", isServerLost = false;
export function onServerReturn() {} // the worker is never lost
export function watchServer() {}
export async function checkConnection() {}

/** Functions of browser_api/endpoints.py that need no Python. @type {Record<string, (...args: any[]) => Promise<any>>} */
const functions = {
  async next_token_scores(state) {
    const { ids } = visibleIds(state, await openModel(state.checkpoint)), position = Math.min(state.query, ids.length - 1);
    const { logits } = await callWorker("prediction", { run: { checkpoint: state.checkpoint, ids, edits: interventionsOf(state) }, position });
    const { penalised } = samplingStages(logits, { repetition_penalty: state.repetition_penalty }, ids.slice(0, position + 1));
    const bytes = new Uint8Array(/** @type {Float32Array} */ (penalised).slice().sort().reverse().buffer);
    return { scores: btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")), size: penalised.length };
  },
  listed_lessons: async () => (await import("./lessons.js")).listLessons(),
  walk: async (state, name) => (await import("./walkthroughs.js")).WALKTHROUGHS[name](await openRun(state)),
  lesson_sheet: async (state, name, index) => (await import("./lessons.js")).packSheet(name, index),
};

/** @param {string} name @param {any[]} args */
export async function callServer(name, args) {
  if (!functions[name]) throw new RefusedError(NEEDS_PYTHON);
  try { return await functions[name](...args); } catch (error) { throw error instanceof UserError ? new RefusedError(error.message) : error; }
}

/** Yield the lines of a response as they are computed. @param {{ about: string, state: any, action?: any, inspect?: any }} request @param {AbortSignal} signal */
export async function* responseLines({ about: scope, state, action, inspect }, signal) {
  try {
    if (action) {
      const update = await applyAction(action, state);
      yield update;
      if (!update.done) return;
      state = { ...state, ...update.change };
    }
    for await (const contents of stateContents(scope, state)) {
      if (signal.aborted) throw signal.reason;
      yield { contents, version: state.checkpoint };
      if (inspect) yield { inspection: await deriveText(state, inspect) };
      inspect = null;
    }
  } catch (error) {
    if (error instanceof UserError) throw new RefusedError(error.message);
    throw error;
  }
}

