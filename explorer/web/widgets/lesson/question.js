// @ts-check
// A lesson's question, and afterwards the reply and the truth in the same picture.
import { button, make } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { askAgain, replyWith, showAnyway } from "../../static/lessons.js";
import { askBlanks } from "./ask_blanks.js";
import { askCell } from "./ask_cell.js";
import { askChoice } from "./ask_choice.js";
import { askCurve } from "./ask_curve.js";
import { askNumber } from "./ask_number.js";
import { askToken } from "./ask_token.js";

/** @typedef {{ is_right: boolean | null, words: string, truth: Record<string, any>, reply: string | null }} Judged */
/**
 * Makes the nodes of a question: to be replied to, or with the reply and the truth.
 * @typedef {(asked: Record<string, any>, judged: Judged | undefined, reply: (reply: string) => void) => Node[]} Ask
 */

/** @type {Record<string, Ask>} */
const ASKS = { choice: askChoice, token: askToken, cell: askCell, number: askNumber, curve: askCurve, blanks: askBlanks };

/** @param {Record<string, any>} asked @param {Judged | undefined} judged */
export function questionNodes(asked, judged) {
  const nodes = [make("p", { className: "words" }, asked.words), ...ASKS[asked.kind](asked, judged, replyWith)];
  if (asked.is_example) return nodes;
  if (judged) return [...nodes, button(_("Ask me again"), askAgain, { className: "quiet" })];
  return [...nodes, button(_("Show it without my reply"), showAnyway, { className: "quiet" })];
}
