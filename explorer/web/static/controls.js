// @ts-check
// Gradio's own controls follow the state where it changed by itself.
import { bus } from "./bus.js";
import { promptAtFirst } from "./reload.js";
import { state } from "./state.js";

/** @type {string | null} */
let prompt = null; // that its box is to show
let vocabSize = 0, isFirst = true;

/**
 * Has the controls follow.
 * @param {string | null | undefined} text for the prompt's box, if that is another
 * @param {Record<string, any>} change of the state
 */
export function syncControls(text, change) {
  if (typeof text === "string") {
    prompt = isFirst ? promptAtFirst(text) : text;
    isFirst = false;
  }
  if ("vocab_size" in change) {
    if (vocabSize === change.vocab_size) return;
    vocabSize = change.vocab_size;
  }
  bus?.sync();
}

/** What Gradio's prompt and settings show: undefined for what they show already. @param {string[]} names of the settings */
export function controls(names) {
  const text = prompt ?? undefined;
  prompt = null;
  return [text, ...names.map((name) => (name === "top_k" && vocabSize ? topK() : state[name]))];
}

const topK = () => ({ __type__: "update", value: Math.min(state.top_k, vocabSize), maximum: vocabSize }); // as Gradio's own server would say it
