// @ts-check
// How many of a class replied what: counts alone, beside the question that they are of.
import { make, span } from "../../static/dom.js";
import { _, ngettext } from "../../static/language.js";
import { reachWhileScrolling } from "../../static/sideways.js";

const SHOWN = 8, BETWEEN = "_"; // different replies in words; between the parts of one
const BINS = 10; // in which numbers are counted (questions/judged.py)

/** @typedef {{ says: string, count: number, isRight: boolean }} Row */
/** @typedef {{ rows: string[], columns: string[], counts: number[][], right: number[] | null }} Grid */

/**
 * @param {Record<string, any> | null} question null where nothing is asked
 * @param {Record<string, number>} counts
 * @param {number} people
 * @param {{ truth: Record<string, any> } | null} judged once the truth is told
 * @returns {Node[]}
 */
export function countsNodes(question, counts, people, judged) {
  if (!question) return [make("p", { className: "quiet" }, _("This step asks nothing."))];
  const all = total(counts), of = make("p", { className: "of" }, ngettext("{count} of {people} has replied.", "{count} of {people} have replied.", all, { people: Math.max(people, all) }));
  if (question.kind === "cell" || question.kind === "curve") return [of, table(gridOf(question, counts, judged))];
  return [of, bars(rowsOf(question, counts, judged), all)];
}

/** @param {Record<string, number>} counts */
export const total = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);

/**
 * What was replied, and how often: every option, every part of a slider, or the most frequent words.
 * @param {Record<string, any>} question
 * @param {Record<string, number>} counts
 * @param {{ truth: Record<string, any> } | null} [judged]
 * @returns {Row[]}
 */
export function rowsOf(question, counts, judged = null) {
  const { kind } = question, truth = judged?.truth;
  if (kind === "choice") return question.options.map((says, i) => ({ says, count: counts[i + 1] ?? 0, isRight: Boolean(truth?.right.includes(i + 1)) }));
  if (kind === "number") {
    const { lowest, highest } = question, at = (i) => lowest + (i * (highest - lowest)) / BINS;
    const isIn = (i) => truth !== undefined && Math.max(0, Math.min(BINS - 1, Math.floor((BINS * (truth.truth - lowest)) / (highest - lowest)))) === i;
    return Array.from({ length: BINS }, (_bin, i) => ({ says: _("{from} to {to}", { from: short(at(i)), to: short(at(i + 1)) }), count: counts[i] ?? 0, isRight: isIn(i) }));
  }
  const isRight = (reply) => (kind === "token" && truth !== undefined ? truth.bars[truth.right]?.token.trim().toLowerCase() === reply : false);
  const found = Object.entries(counts).sort(([, a], [, b]) => b - a).map(([reply, count]) => ({ says: reply.replaceAll(BETWEEN, " · "), count, isRight: isRight(reply) }));
  const rest = found.slice(SHOWN);
  if (!rest.length) return found;
  return [...found.slice(0, SHOWN), { says: ngettext("{count} other", "{count} others", rest.length), count: rest.reduce((sum, { count }) => sum + count, 0), isRight: false }];
}

/**
 * Of a heatmap the cells that were chosen; of a curve, at each point the parts of the axis that it was drawn through.
 * @param {Record<string, any>} question
 * @param {Record<string, number>} given
 * @param {{ truth: Record<string, any> } | null} [judged]
 * @returns {Grid}
 */
export function gridOf(question, given, judged = null) {
  if (question.kind === "cell") {
    const { rows, columns } = question, counts = rows.map((_row, i) => columns.map((_column, j) => given[`${i}${BETWEEN}${j}`] ?? 0));
    return { rows, columns, counts, right: judged?.truth.right ?? null };
  }
  const { labels, lowest, highest } = question, counts = Array.from({ length: BINS }, () => labels.map(() => 0));
  for (const [reply, count] of Object.entries(given)) reply.split(BETWEEN).forEach((bin, j) => { counts[BINS - 1 - +bin][j] += count; });
  const rows = counts.map((_row, i) => short(highest - (i * (highest - lowest)) / BINS));
  return { rows, columns: labels, counts, right: null };
}

const short = (value) => String(+value.toPrecision(3)).replace("-", "−");

/** @param {Row[]} rows @param {number} all */
function bars(rows, all) {
  return make("ol", { className: "bars" }, ...rows.map(({ says, count, isRight }) => {
    const filled = make("i", { className: "filled" });
    filled.style.width = `${(100 * count) / Math.max(1, all)}%`;
    const row = make("li", { className: "row" }, span("says", says), make("span", { className: "bar", ariaHidden: "true" }, filled), span("count", String(count)));
    row.classList.toggle("is-right", isRight);
    if (isRight) row.querySelector(".says").append(span("says-right", ` ✓ ${_("the run")}`));
    return row;
  }));
}

/** @param {Grid} grid */
function table({ rows, columns, counts, right }) {
  const most = Math.max(1, ...counts.flat());
  const cell = (count, i, j) => {
    const made = make("td", {}, count ? String(count) : "");
    made.style.setProperty("--share", String(count / most));
    made.classList.toggle("is-right", right !== null && right[0] === i && right[1] === j);
    return made;
  };
  const head = make("tr", {}, make("td", { className: "none" }), ...columns.map((column) => make("th", { scope: "col" }, make("span", {}, column))));
  return reachWhileScrolling(make("div", { className: "scrolls" }, make("table", { className: "grid-of-counts" }, head,
    ...rows.map((row, i) => make("tr", {}, make("th", { scope: "row" }, row), ...counts[i].map((count, j) => cell(count, i, j)))))));
}
