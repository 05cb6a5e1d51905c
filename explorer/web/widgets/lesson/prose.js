// @ts-check
// A lesson's words, which come as a small tree (lessons/course/words.py), as elements of text.
import { make } from "../../static/dom.js";
import { reachWhileScrolling } from "../../static/sideways.js";

/** @typedef {string | { kind: string, text?: string, parts?: Part[] }} Part */
/** @typedef {{ kind: string, text?: string, parts?: Part[], ordered?: boolean, items?: Part[][], head?: Part[][], rows?: Part[][][] }} Block */

/** @type {Record<string, (block: Block) => HTMLElement>} */
const BLOCKS = {
  paragraph: ({ parts }) => make("p", {}, ...inline(parts)),
  list: ({ ordered, items }) => make(ordered ? "ol" : "ul", {}, ...items.map((item) => make("li", {}, ...inline(item)))),
  table: ({ head, rows }) => make("table", {}, row("th", head), ...rows.map((cells) => row("td", cells))),
  code: ({ text }) => reachWhileScrolling(make("pre", {}, make("code", {}, text))),
};
const TAGS = /** @type {Record<string, "strong" | "em" | "code" | "b">} */ ({ strong: "strong", emphasis: "em", code: "code", number: "b" });

/** @param {Block[]} tree @returns {HTMLElement[]} */
export const prose = (tree) => tree.map((block) => BLOCKS[block.kind](block));

/** @param {Part[]} parts @returns {(string | Node)[]} */
const inline = (parts) => parts.map((part) => (typeof part === "string" ? part : make(TAGS[part.kind], {}, ...(part.parts ? inline(part.parts) : [part.text]))));

/** @param {"th" | "td"} tag @param {Part[][]} cells */
const row = (tag, cells) => make("tr", {}, ...cells.map((cell) => make(tag, {}, ...inline(cell))));
