// @ts-check
// Questions on paper: with room for a reply, and as the run answers them.
import { make, span } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { makeSvg, set } from "../../static/svg.js";

/** @typedef {Record<string, any>} Data */

const line = () => span("blank");
const choices = (options, isRight = (_i) => false, numbers = []) =>
  make("ul", { className: "options" }, ...options.map((says, i) => make("li", { className: isRight(i) ? "is-right" : "" }, numbers[i] ? `${says}: ${numbers[i]}` : says)));
const table = (rows) => make("table", {}, ...rows.map((cells) => make("tr", {}, ...cells)));
const cell = (...contents) => make("td", {}, ...contents);

/** @type {Record<string, (question: Data) => Node[]>} */
const BLANKS = {
  choice: ({ options }) => [choices(options)],
  token: ({ options }) => (options.length ? [choices(options)] : [line()]),
  cell: ({ rows, columns, there }) => [table([
    [make("td", { className: "none" }), ...columns.map((name) => make("th", {}, name))],
    ...rows.map((name, i) => [make("th", {}, name), ...columns.map((_name, j) => make("td", { className: there[i][j] ? "" : "none" }))]),
  ])],
  number: ({ lowest, highest }) => [make("p", {}, line(), " ", _("(from {lowest} to {highest})", { lowest, highest }))],
  curve: ({ labels, lowest, highest }) => [axes(labels, lowest, highest)],
  blanks: ({ rows }) => [table(rows.map(({ says, value }) => [make("th", {}, says), cell(value ?? line())]))],
};

/** A question with room for a reply. @param {Data} question */
export const blank = (question) => BLANKS[question.kind](question);

/** @type {Record<string, (question: Data, truth: Data) => Node[]>} */
const TRUTHS = {
  choice: ({ options }, { right, shown }) => [choices(options, (i) => right.includes(i + 1), shown.map((value) => value?.[1]))],
  token: (_question, { bars, right }) => [choices(bars.map(({ token }) => `“${token}”`), (i) => i === right, bars.map(({ number }) => number))],
  cell: () => [],
  number: (_question, { written }) => [make("p", {}, make("strong", {}, written))],
  curve: ({ labels }, { written }) => [table([labels.map((label) => make("th", {}, label)), labels.map((_label, i) => cell(written[i]))])],
  blanks: ({ rows }, { truth }) => {
    let next = 0;
    return [table(rows.map(({ says, value }) => [make("th", {}, says), value === null ? cell(make("strong", {}, truth[next++])) : cell(value)]))];
  },
};

/** What the run answers. @param {Data} question @param {Data} found */
export const truth = (question, found) => TRUTHS[question.kind](question, found);

// An empty coordinate system, to draw a curve in.
function axes(labels, lowest, highest) {
  const svg = makeSvg("svg", "axes"), width = 320, height = 160, left = 44, bottom = 24;
  set(svg, { viewBox: `0 0 ${width} ${height}` });
  const add = (tag, attributes, words = "") => {
    const made = makeSvg(tag);
    made.textContent = words;
    set(made, attributes);
    svg.append(made);
  };
  add("path", { d: `M${left} 6V${height - bottom}H${width - 4}`, fill: "none", stroke: "#222" });
  add("text", { x: left - 5, y: 14, "text-anchor": "end" }, String(highest));
  add("text", { x: left - 5, y: height - bottom, "text-anchor": "end" }, String(lowest));
  labels.forEach((label, i) => {
    const x = left + 14 + (i * (width - left - 30)) / Math.max(1, labels.length - 1);
    add("path", { d: `M${x} ${height - bottom}v4`, stroke: "#222" });
    add("text", { x, y: height - 8, "text-anchor": "middle" }, label);
  });
  return svg;
}
