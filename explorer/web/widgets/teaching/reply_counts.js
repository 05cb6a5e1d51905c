// @ts-check
// Counts of a class's replies to a question: as bars, or as a grid.
import { make, makeFocusableWhileScrolling, span } from "../../static/dom.js";
import { _, ngettext } from "../../static/translations.js";

const MAX_LISTED_REPLIES = 8, PART_SEPARATOR = "_"; // different words listed; separator of the parts of one reply
const BIN_COUNT = 10; // bins of a numeric reply, as in lessons/questions.py

/** @typedef {{ says: string, count: number, isRight: boolean }} ReplyCount */
/** @typedef {{ rows: string[], columns: string[], counts: number[][], right: number[] | null }} ReplyGrid */

/**
 * Render how often each reply was given.
 * @param {Record<string, any> | null} question null if the step has none
 * @param {Record<string, number>} counts
 * @param {number} studentCount
 * @param {{ truth: Record<string, any> } | null} judged null before the answer is shown
 * @param {boolean} isRevealed whether to show more than their number
 * @returns {Node[]}
 */
export function renderCounts(question, counts, studentCount, judged, isRevealed) {
  if (!question) return [make("p", { className: "quiet" }, _("This step has no question."))];
  const replyTotal = totalCount(counts), summary = make("p", { className: "of" }, replyCountSentence(counts, studentCount));
  if (!isRevealed) return [summary];
  if (question.kind === "cell" || question.kind === "curve") return [summary, renderGrid(replyGrid(question, counts, judged))];
  return [summary, renderBars(replyCounts(question, counts, judged), replyTotal)];
}

/** @param {Record<string, number>} counts @param {number} studentCount */
export function replyCountSentence(counts, studentCount) {
  const replyTotal = totalCount(counts);
  return ngettext("{count} of {people} has replied.", "{count} of {people} have replied.", replyTotal, { people: Math.max(studentCount, replyTotal) });
}

/** @param {Record<string, number>} counts */
export const totalCount = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);

/**
 * Count the replies: of every option, of every bin of a slider, of the most frequent words, or of all texts.
 * @param {Record<string, any>} question
 * @param {Record<string, number>} counts
 * @param {{ truth: Record<string, any> } | null} [judged]
 * @returns {ReplyCount[]}
 */
export function replyCounts(question, counts, judged = null) {
  const { kind } = question, truth = judged?.truth;
  if (kind === "choice") return question.options.map((says, i) => ({ says, count: counts[i + 1] ?? 0, isRight: Boolean(truth?.right.includes(i + 1)) }));
  if (kind === "number") {
    const { lowest, highest } = question, binStart = (i) => lowest + (i * (highest - lowest)) / BIN_COUNT;
    const containsTruth = (i) => truth !== undefined && Math.max(0, Math.min(BIN_COUNT - 1, Math.floor((BIN_COUNT * (truth.truth - lowest)) / (highest - lowest)))) === i;
    return Array.from({ length: BIN_COUNT }, (_bin, i) => ({ says: _("{from} to {to}", { from: formatShort(binStart(i)), to: formatShort(binStart(i + 1)) }), count: counts[i] ?? 0, isRight: containsTruth(i) }));
  }
  const sorted = Object.entries(counts).sort(([, a], [, b]) => b - a);
  if (kind === "text") return sorted.map(([says, count]) => ({ says, count, isRight: false }));
  const isRight = (reply) => (kind === "token" && truth !== undefined ? truth.bars[truth.right]?.token.trim().toLowerCase() === reply : false);
  const rows = sorted.map(([reply, count]) => ({ says: reply.replaceAll(PART_SEPARATOR, " · "), count, isRight: isRight(reply) }));
  const others = rows.slice(MAX_LISTED_REPLIES);
  if (!others.length) return rows;
  return [...rows.slice(0, MAX_LISTED_REPLIES), { says: ngettext("{count} other", "{count} others", others.length), count: others.reduce((sum, { count }) => sum + count, 0), isRight: false }];
}

/**
 * Count the replies in a grid: the chosen cells of a heatmap, or a curve's bin of values at each point.
 * @param {Record<string, any>} question
 * @param {Record<string, number>} replies
 * @param {{ truth: Record<string, any> } | null} [judged]
 * @returns {ReplyGrid}
 */
export function replyGrid(question, replies, judged = null) {
  if (question.kind === "cell") {
    const { rows, columns } = question, counts = rows.map((_row, i) => columns.map((_column, j) => replies[`${i}${PART_SEPARATOR}${j}`] ?? 0));
    return { rows, columns, counts, right: judged?.truth.right ?? null };
  }
  const { labels, lowest, highest } = question, counts = Array.from({ length: BIN_COUNT }, () => labels.map(() => 0));
  for (const [reply, count] of Object.entries(replies)) reply.split(PART_SEPARATOR).forEach((bin, j) => { counts[BIN_COUNT - 1 - +bin][j] += count; });
  const rows = counts.map((_row, i) => formatShort(highest - (i * (highest - lowest)) / BIN_COUNT));
  return { rows, columns: labels, counts, right: null };
}

const formatShort = (value) => String(+value.toPrecision(3)).replace("-", "−");

/** @param {ReplyCount[]} rows @param {number} replyTotal */
export function renderBars(rows, replyTotal) {
  return make("ol", { className: "bars" }, ...rows.map(({ says, count, isRight }) => {
    const filled = make("i", { className: "filled" });
    filled.style.width = `${(100 * count) / Math.max(1, replyTotal)}%`;
    const row = make("li", { className: "row" }, span("says", says), make("span", { className: "bar", ariaHidden: "true" }, filled), span("count", String(count)));
    row.classList.toggle("is-right", isRight);
    if (isRight) row.querySelector(".says").append(span("says-right", ` ${_("✓ right")}`));
    return row;
  }));
}

/** @param {ReplyGrid} grid */
function renderGrid({ rows, columns, counts, right }) {
  const maxCount = Math.max(1, ...counts.flat());
  const cell = (count, i, j) => {
    const node = make("td", {}, count ? String(count) : "");
    node.style.setProperty("--share", String(count / maxCount));
    node.classList.toggle("is-right", right !== null && right[0] === i && right[1] === j);
    return node;
  };
  const head = make("tr", {}, make("td", { className: "none" }), ...columns.map((column) => make("th", { scope: "col" }, make("span", {}, column))));
  return makeFocusableWhileScrolling(make("div", { className: "scrolls" }, make("table", { className: "grid-of-counts" }, head,
    ...rows.map((row, i) => make("tr", {}, make("th", { scope: "row" }, row), ...counts[i].map((count, j) => cell(count, i, j)))))));
}
