// @ts-check
// Questions and tasks of lessons, as explorer/lessons/questions.py and tasks.py: what is asked, and what the run says of a reply. The true
// answer is worked out of the run each time.
import { _, ngettext } from "../../static/translations.js";
import { parseNumber } from "../../widgets/teaching/lesson.js";
import { range } from "../figures.js";
import { escapeToken, formatCount, formatNumber, quoteToken } from "../notation.js";
import { appendTokens, COUNTS, evaluate, holds, SHARES, withValue } from "./quantities.js";
import { WORKED_EXAMPLES } from "./worked_examples.js";

/** @typedef {import("./quantities.js").Context} Context @typedef {import("./quantities.js").Quantity} Quantity */
/** Whether a reply is right, null without one; what the run says, and what the widget draws of it. @typedef {{ isRight: boolean | null, words: string, truth: Record<string, any> }} Grade */
/** A kind of question by its class in Python: what the widget asks, and the grade of a reply, of none for the truth alone; null for what is no reply.
 * @typedef {{ ask: (question: any, context: Context) => any, grade: (question: any, context: Context, reply: string | null) => Promise<Grade | null> }} Kind */

const NUM_SHOWN_TOKENS = 5, MAX_CHARS = 40, MAX_CELLS = 24, RELATIVE_TOLERANCE = 0.02, ABSOLUTE_TOLERANCE = 0.006;

/** Whole numbers in full, others with three digits. @param {number} value */
export const formatAnswer = (value) => (Number.isInteger(value) ? formatCount(value).replace("-", "−") : formatNumber(value));

/** The whole number in a text. @param {string} text */
const indexOf = (text) => (/^\d{1,9}$/.test(text) ? +text : null);
/** The numbers of a reply; null where it has others. @param {string} reply @param {number} count */
function numbersOf(reply, count) {
  const numbers = reply.split("_").map(parseNumber);
  return numbers.length === count && !numbers.includes(null) ? numbers : null;
}
/** Names as in "a, b and c". @param {string[]} names */
const joinNames = (names) => (names.length > 1 ? _("{first} and {last}", { first: names.slice(0, -1).join(", "), last: names.at(-1) }) : names[0]);
/** An evaluation of each, one after another. @template Item, Result @param {Item[]} items @param {(item: Item) => Promise<Result>} work @returns {Promise<Result[]>} */
const each = (items, work) => Promise.all(items.map(work));

/** @type {Record<string, Kind>} */
export const QUESTIONS = {
  NumberQuestion: {
    ask: ({ quantity, lowest, highest }) => ({ kind: "number", is_count: COUNTS.includes(quantity.name), lowest, highest }),
    async grade({ quantity, lowest, highest, tolerance }, context, reply) {
      const truth = await evaluate(context, quantity), data = { truth, written: formatAnswer(truth), within: tolerance, lowest: Math.min(lowest, truth), highest: Math.max(highest, truth) };
      const words = _("The run has {number}.", { number: await appendTokens(formatAnswer(truth), quantity, context) }), value = reply === null ? null : parseNumber(reply);
      if (reply === null) return { isRight: null, words, truth: data };
      if (value === null) return null;
      const error = Math.abs(value - truth), off = error ? [_("You are off by {difference}.", { difference: formatAnswer(error) })] : [];
      return { isRight: error <= tolerance, words: [words, ...off].join(" "), truth: { ...data, yours: formatAnswer(value) } };
    },
  },

  ChoiceQuestion: {
    ask: ({ options }) => ({ kind: "choice", options: options.map(({ text }) => text) }),
    async grade({ options }, context, reply) {
      const areRight = await each(options, ({ when }) => holds(context, when)), values = await each(options, ({ value }) => value && evaluate(context, value)), right = range(options.length).filter((i) => areRight[i]).map((i) => i + 1);
      const shown = values.map((value) => (value === null ? null : [value, formatAnswer(value)])), truth = { right, shown, are_shares: options.every(({ value }) => !value || SHARES.includes(value.name)) }, chosen = reply === null ? null : indexOf(reply);
      if (reply !== null && !options[chosen - 1]) return null;
      const places = joinNames([...new Set(await each(right.map((number) => options[number - 1]), ({ text, value }) => appendTokens(`“${text.replace(/[.。]+$/, "")}”`, value, context)))]);
      return { isRight: reply === null ? null : right.includes(chosen), words: right.length ? _("The answer is {places}.", { places }) : _("In this run none of them is so."), truth };
    },
  },

  TokenQuestion: {
    ask: ({ options }) => ({ kind: "token", options }),
    async grade({ rank }, { now, vocabulary, prediction: { plain } }, reply) {
      const truth = now[rank - 1], ids = now.slice(0, Math.max(NUM_SHOWN_TOKENS, rank)), own = (text) => text.trim().toLowerCase() || text, word = reply?.trim();
      if (reply !== null && (!word || reply.length > MAX_CHARS)) return null;
      const yours = reply === null ? null : now.find((id) => own(vocabulary[id]) === own(word)) ?? null; // the likeliest of those
      if (yours !== null && !ids.includes(yours)) ids.push(yours);
      const bars = ids.map((id) => ({ token: vocabulary[id], share: plain[id], number: formatNumber(plain[id]) })), data = { bars, right: ids.indexOf(truth), yours: yours === null ? null : ids.indexOf(yours) };
      const verdict = _("The run says {token}, with probability {probability}.", { token: quoteToken(vocabulary[truth]), probability: formatNumber(plain[truth]) });
      if (reply === null) return { isRight: null, words: verdict, truth: data };
      const before = yours === null ? [_("{word} is no single token of this model.", { word: quoteToken(word) })] : [];
      const after = yours !== null && yours !== truth ? [_("It gives {token} place {rank:,}.", { token: quoteToken(vocabulary[yours]), rank: formatCount(1 + now.indexOf(yours)) })] : [];
      return { isRight: yours === truth, words: [...before, verdict, ...after].join(" "), truth: data };
    },
  },

  CurveQuestion: {
    ask: ({ labels, lowest, highest }) => ({ kind: "curve", labels, lowest, highest }),
    async grade({ quantity, argument, values, labels, lowest, highest, tolerance }, context, reply) {
      const truth = await each(values, (value) => evaluate(context, withValue(quantity, argument, value))), written = truth.map(formatAnswer);
      const data = { truth, written, within: tolerance, lowest: Math.min(lowest, ...truth), highest: Math.max(highest, ...truth) };
      const words = _("The run has {numbers}.", { numbers: labels.map((label, i) => `${label}: ${written[i]}`).join(", ") });
      if (reply === null) return { isRight: null, words, truth: data };
      const points = numbersOf(reply, truth.length);
      if (!points) return null;
      const near = points.filter((point, i) => Math.abs(point - truth[i]) <= tolerance).length;
      return { isRight: near === truth.length, words: `${_("{near} of {count} points are near enough.", { near, count: truth.length })} ${words}`, truth: data };
    },
  },

  LargestCellQuestion: {
    ask(question, context) {
      const { rows, columns, labels, exists } = cells(question, context);
      return { kind: "cell", rows: labels(question.rows, rows), columns: labels(question.columns, columns), there: rows.map((row) => columns.map((column) => exists(row, column))) };
    },
    async grade(question, context, reply) {
      const { quantity } = question, { rows, columns, labels, exists } = cells(question, context), of = (row, column) => evaluate(context, withValue(withValue(quantity, question.rows, row), question.columns, column));
      const values = await each(rows, (row) => each(columns, async (column) => (exists(row, column) ? of(row, column) : null)));
      let [i, j] = [0, 0];
      values.forEach((row, r) => row.forEach((value, c) => { if (value !== null && value > values[i][j]) [i, j] = [r, c]; }));
      const truth = { values: values.map((row) => row.map((value) => (value === null ? null : [value, formatNumber(value)]))), right: [i, j], are_shares: SHARES.includes(quantity.name) };
      const words = _("The largest is row {row}, column {column}: {value}.", { row: labels(question.rows, rows)[i], column: labels(question.columns, columns)[j], value: formatNumber(values[i][j]) });
      if (reply === null) return { isRight: null, words, truth };
      const [row, column] = reply.split("_").map(indexOf), yours = values[row]?.[column] ?? null, isRight = row === i && column === j;
      if (yours === null) return null;
      return { isRight, words: isRight ? words : `${_("Yours has {value}.", { value: formatNumber(yours) })} ${words}`, truth };
    },
  },

  FillInBlanksQuestion: {
    async ask({ worked_example: name, blanks, change }, context) {
      const rows = await WORKED_EXAMPLES[name](await context.replace(change)), empty = blanksOf(rows, blanks);
      return { kind: "blanks", rows: rows.map((row) => ({ says: row.text, value: empty.includes(row) ? null : formatAnswer(row.value) })), is_example: blanks === "none" };
    },
    async grade({ worked_example: name, blanks, change }, context, reply) {
      const truth = blanksOf(await WORKED_EXAMPLES[name](await context.replace(change)), blanks).map(({ value }) => value), written = truth.map(formatNumber);
      if (reply === null) return { isRight: null, words: "", truth: { truth: written } };
      const numbers = truth.length ? numbersOf(reply, truth.length) : null;
      if (!numbers) return null;
      const areRight = numbers.map((value, i) => Math.abs(value - truth[i]) <= Math.max(RELATIVE_TOLERANCE * Math.abs(truth[i]), ABSOLUTE_TOLERANCE)), right = areRight.filter(Boolean).length;
      return { isRight: right === truth.length, words: ngettext("{right} of {count} blank is right.", "{right} of {count} blanks are right.", truth.length, { right }), truth: { truth: written, are_right: areRight } };
    },
  },
};

/** @param {import("./worked_examples.js").Row[]} rows @param {"none" | "one" | "all"} blanks */
function blanksOf(rows, blanks) {
  const computed = rows.filter(({ isGiven }) => !isGiven);
  return { none: [], one: computed.slice(-1), all: computed }[blanks];
}

/** The values along both axes of a question for a cell. @param {any} question @param {Context} context */
function cells({ rows, columns, row_values: ofRows, column_values: ofColumns }, { config, tokens }) {
  const sizes = { query: tokens.length, key: tokens.length, layer: config.num_layers, head: config.num_heads };
  const along = (name, values) => { const there = values.filter((value) => value < sizes[name]); return there.length ? there : range(Math.min(sizes[name], MAX_CELLS)); };
  return {
    rows: along(rows, ofRows), columns: along(columns, ofColumns), exists: (row, column) => rows !== "query" || columns !== "key" || column <= row,
    labels: (name, values) => values.map((value) => (name in { query: 1, key: 1 } ? `${escapeToken(tokens[value])} (${value})` : String(value))),
  };
}

/** @typedef {import("./quantities.js").Condition} Condition */
/** The quantity that a condition compares with a number, and the number, as lessons/tasks.py. @param {Condition} condition */
const boundsOf = ({ name, arguments: [quantity, bound] = [] }) => (["more", "less"].includes(name) && bound.name === "number" ? { quantity, bound: bound.arguments.value } : null);

/** What of a condition holds of the text, and what is wanted. @param {Condition} condition @param {Condition[]} others @param {Context} context */
async function describeCondition(condition, others, context) {
  const bounds = boundsOf(condition);
  if (!bounds) return "";
  const { quantity, bound } = bounds, value = await evaluate(context, quantity), isMore = condition.name === "more";
  const same = others.filter((other) => JSON.stringify(boundsOf(other)?.quantity) === JSON.stringify(quantity));
  const isMet = (await Promise.all(same.map((other) => holds(context, other)))).every(Boolean), values = { value: formatNumber(value), bound: String(bound) };
  if (quantity.name === "tokens") return isMet ? _("The number of tokens is right.") : _("It has {value} tokens; {wanted} are wanted.", { value: value.toLocaleString("en"), wanted: formatCountRange(same) });
  if (quantity.name === "mean_surprisal" && isMore) return isMet ? _("The surprisal is high enough.") : _("Its surprisal is {value} bits a token; more than {bound} are wanted.", values);
  if (quantity.name === "probability" && quantity.arguments.rank === 1 && isMore) return isMet ? _("The probability is high enough.") : _("The likeliest token has probability {value}; more than {bound} is wanted.", values);
  return "";
}

/** The whole numbers that conditions on one count admit. @param {Condition[]} conditions */
function formatCountRange(conditions) {
  const find = (/** @type {string} */ name) => conditions.filter((one) => one.name === name).map((one) => boundsOf(one)?.bound).at(-1);
  const [more, less] = [find("more"), find("less")];
  if (less === undefined) return _("at least {count}", { count: more + 1 });
  if (more === undefined) return _("at most {count}", { count: less - 1 });
  return less - more === 3 ? _("{low} or {high}", { low: more + 1, high: less - 1 }) : _("{low} to {high}", { low: more + 1, high: less - 1 });
}

/** What is done on the page: whether it is, and a sentence. @type {Record<string, (task: any, step: Context, now: Context) => Promise<{ is_done: boolean, words: string }>>} */
export const TASKS = {
  async FindHeadTask({ score: name, at_least: least }, _step, now) {
    const { layer, head } = now, score = await evaluate(now, { name: "head_score", arguments: { score: name }, change: {} });
    return { is_done: score >= least, words: _("You chose layer {layer} head {head}: its score is {score}; {least} is asked for.", { layer, head, score: formatNumber(score), least: formatNumber(least) }) };
  },
  async FindPromptTask({ when }, step, now) {
    if (String(now.ids) === String(step.ids)) return { is_done: false, words: _("This is still the text of the lesson: change it, and press Run.") };
    const conditions = when.name === "all" ? when.arguments : [when];
    if (await holds(now, when)) {
      const surprisal = conditions.map(boundsOf).find((/** @type {any} */ bounds) => bounds?.quantity.name === "mean_surprisal")?.quantity;
      return { is_done: true, words: surprisal ? _("Well done: your text has a surprisal of {value} bits a token.", { value: formatNumber(await evaluate(now, surprisal)) }) : _("Well done: it holds for your text.") };
    }
    const texts = new Set(await Promise.all(conditions.map((/** @type {Condition} */ condition) => describeCondition(condition, conditions, now))));
    return { is_done: false, words: [...texts].filter(Boolean).join(" ") || _("It does not hold for this text yet.") };
  },
};
