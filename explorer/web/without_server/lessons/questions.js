// @ts-check
// Questions and tasks of lessons, as in explorer/lessons/questions.py and tasks.py: the widget's content, and the grade of a reply. The
// correct answer is computed from the run each time.
import { _, ngettext } from "../../static/translations.js";
import { parseNumber } from "../../widgets/teaching/lesson.js";
import { range } from "../figures.js";
import { escapeToken, formatCount, formatNumber, quoteToken } from "../notation.js";
import { appendTokens, COUNTS, evaluate, formatAnswer, isConditionMet, SHARES, withValue } from "./quantities.js";
import { describeCalculation, roundingErrors, WORKED_EXAMPLES } from "./worked_examples.js";

/** @typedef {import("./quantities.js").Context} Context @typedef {import("./quantities.js").Quantity} Quantity */
/** Grade of a reply: whether it is right (null without a reply), a message, and the data that the widget draws. @typedef {{ isRight: boolean | null, words: string, truth: Record<string, any> }} Grade */
/** Question type, by its class in Python. `ask` returns the widget's content. `grade` grades a reply, or gives the answer for null; it returns null for an invalid reply.
 * @typedef {{ ask: (question: any, context: Context) => any, grade: (question: any, context: Context, reply: string | null) => Promise<Grade | null> }} Kind */

const NUM_SHOWN_TOKENS = 5, MAX_CHARS = 40, MAX_CELLS = 24, RELATIVE_TOLERANCE = 0.02, ABSOLUTE_TOLERANCE = 0.006;

/** Parse a whole number, or return null. @param {string} text */
const parseIndex = (text) => (/^\d{1,9}$/.test(text) ? +text : null);
/** Parse the numbers of a reply; null if they are not `count` numbers. @param {string} reply @param {number} count */
function parseNumbers(reply, count) {
  const numbers = reply.split("_").map(parseNumber);
  return numbers.length === count && !numbers.includes(null) ? numbers : null;
}
/** Join names: "a, b and c". @param {string[]} names */
const joinNames = (names) => (names.length > 1 ? _("{first} and {last}", { first: names.slice(0, -1).join(", "), last: names.at(-1) }) : names[0]);
/** Compute a result for each item. @template Item, Result @param {Item[]} items @param {(item: Item) => Promise<Result>} compute @returns {Promise<Result[]>} */
const evaluateAll = (items, compute) => Promise.all(items.map(compute));

/** @type {Record<string, Kind>} */
export const QUESTIONS = {
  NumberQuestion: {
    ask: ({ quantity, lowest, highest }) => ({ kind: "number", is_count: COUNTS.includes(quantity.name), lowest, highest }),
    async grade({ quantity, lowest, highest, tolerance }, context, reply) {
      const truth = await evaluate(context, quantity), data = { truth, written: formatAnswer(truth), within: tolerance, lowest: Math.min(lowest, truth), highest: Math.max(highest, truth) };
      const words = _("The run has {number}.", { number: await appendTokens(formatAnswer(truth), quantity, context) }), value = reply === null ? null : parseNumber(reply);
      if (reply === null) return { isRight: null, words, truth: data };
      if (value === null) return null;
      const error = Math.abs(value - truth), difference = error ? [_("You are off by {difference}.", { difference: formatAnswer(error) })] : [];
      return { isRight: error <= tolerance, words: [words, ...difference].join(" "), truth: { ...data, yours: formatAnswer(value) } };
    },
  },

  ChoiceQuestion: {
    ask: ({ options }) => ({ kind: "choice", options: options.map(({ text }) => text) }),
    async grade({ options }, context, reply) {
      const areRight = await evaluateAll(options, ({ when }) => isConditionMet(context, when)), values = await evaluateAll(options, ({ value }) => value && evaluate(context, value)), right = range(options.length).filter((i) => areRight[i]).map((i) => i + 1);
      const displayValues = values.map((value) => (value === null ? null : [value, formatAnswer(value)])), truth = { right, shown: displayValues, are_shares: options.every(({ value }) => !value || SHARES.includes(value.name)) }, choice = reply === null ? null : parseIndex(reply);
      if (reply !== null && !options[choice - 1]) return null;
      const answers = joinNames([...new Set(await evaluateAll(right.map((number) => options[number - 1]), ({ text, value }) => appendTokens(`“${text.replace(/[.。]+$/, "")}”`, value, context)))]);
      return { isRight: reply === null ? null : right.includes(choice), words: right.length ? _("The answer is {places}.", { places: answers }) : _("In this run none of them is right."), truth };
    },
  },

  TokenQuestion: {
    ask: ({ options }) => ({ kind: "token", options }),
    async grade({ rank }, { now, vocabulary, prediction: { plain } }, reply) {
      const truth = now[rank - 1], ids = now.slice(0, Math.max(NUM_SHOWN_TOKENS, rank)), normalise = (text) => text.trim().toLowerCase() || text, word = reply?.trim();
      if (reply !== null && (!word || reply.length > MAX_CHARS)) return null;
      const yours = reply === null ? null : now.find((id) => normalise(vocabulary[id]) === normalise(word)) ?? null; // the likeliest matching token
      if (yours !== null && !ids.includes(yours)) ids.push(yours);
      const bars = ids.map((id) => ({ token: vocabulary[id], rank: 1 + now.indexOf(id), share: plain[id], number: formatNumber(plain[id]) })), data = { bars, right: ids.indexOf(truth), yours: yours === null ? null : ids.indexOf(yours) };
      const verdict = _("The model says {token}, with probability {probability}.", { token: quoteToken(vocabulary[truth]), probability: formatNumber(plain[truth]) });
      if (reply === null) return { isRight: null, words: verdict, truth: data };
      const noToken = yours === null ? [_("{word} is not a single token of this model.", { word: quoteToken(word) })] : [];
      const tokenRank = yours !== null && yours !== truth ? [_("It gives {token} place {rank:,}.", { token: quoteToken(vocabulary[yours]), rank: formatCount(1 + now.indexOf(yours)) })] : [];
      return { isRight: yours === truth, words: [...noToken, verdict, ...tokenRank].join(" "), truth: data };
    },
  },

  CurveQuestion: {
    ask: ({ labels, lowest, highest }) => ({ kind: "curve", labels, lowest, highest }),
    async grade({ quantity, argument, values, labels, lowest, highest, tolerance }, context, reply) {
      const truth = await evaluateAll(values, (value) => evaluate(context, withValue(quantity, argument, value))), formatted = truth.map(formatAnswer);
      const data = { truth, written: formatted, within: tolerance, lowest: Math.min(lowest, ...truth), highest: Math.max(highest, ...truth) };
      const words = _("The run has {numbers}.", { numbers: labels.map((label, i) => `${label}: ${formatted[i]}`).join(", ") });
      if (reply === null) return { isRight: null, words, truth: data };
      const points = parseNumbers(reply, truth.length);
      if (!points) return null;
      const numNear = points.filter((point, i) => Math.abs(point - truth[i]) <= tolerance).length;
      return { isRight: numNear === truth.length, words: `${_("{near} of {count} points are near enough.", { near: numNear, count: truth.length })} ${words}`, truth: data };
    },
  },

  LargestCellQuestion: {
    ask(question, context) {
      const { rows, columns, labels, exists } = cells(question, context);
      return { kind: "cell", rows: labels(question.rows, rows), columns: labels(question.columns, columns), there: rows.map((row) => columns.map((column) => exists(row, column))) };
    },
    async grade(question, context, reply) {
      const { quantity } = question, { rows, columns, labels, exists } = cells(question, context), evaluateCell = (row, column) => evaluate(context, withValue(withValue(quantity, question.rows, row), question.columns, column));
      const values = await evaluateAll(rows, (row) => evaluateAll(columns, async (column) => (exists(row, column) ? evaluateCell(row, column) : null)));
      let [i, j] = [0, 0];
      values.forEach((row, r) => row.forEach((value, c) => { if (value !== null && value > values[i][j]) [i, j] = [r, c]; }));
      const truth = { values: values.map((row) => row.map((value) => (value === null ? null : [value, formatNumber(value)]))), right: [i, j], are_shares: SHARES.includes(quantity.name) };
      const words = _("The largest is row {row}, column {column}: {value}.", { row: labels(question.rows, rows)[i], column: labels(question.columns, columns)[j], value: formatNumber(values[i][j]) });
      if (reply === null) return { isRight: null, words, truth };
      const [row, column] = reply.split("_").map(parseIndex), yours = values[row]?.[column] ?? null, isRight = row === i && column === j;
      if (yours === null) return null;
      return { isRight, words: isRight ? words : `${_("Yours has {value}.", { value: formatNumber(yours) })} ${words}`, truth };
    },
  },

  FillInBlanksQuestion: {
    async ask({ worked_example: name, blanks, change }, context) {
      const rows = await WORKED_EXAMPLES[name](await context.replace(change)), empty = selectBlanks(rows, blanks);
      return { kind: "blanks", rows: rows.map(({ text, blankText, shown }, i) => ({ says: (blanks === "all" && blankText) || text, value: empty.includes(i) ? null : shown })), is_example: blanks === "none" };
    },
    async grade({ worked_example: name, blanks, change }, context, reply) {
      const rows = await WORKED_EXAMPLES[name](await context.replace(change)), empty = selectBlanks(rows, blanks), formatted = empty.map((i) => rows[i].shown);
      if (reply === null) return { isRight: null, words: "", truth: { truth: formatted } };
      const numbers = empty.length ? parseNumbers(reply, empty.length) : null;
      if (!numbers) return null;
      const errors = roundingErrors(rows), isNear = (value, i) => Math.abs(value - rows[i].value) <= Math.max(RELATIVE_TOLERANCE * Math.abs(rows[i].value), ABSOLUTE_TOLERANCE, errors[i]);
      const areRight = numbers.map((value, n) => isNear(value, empty[n])), right = areRight.filter(Boolean).length, isRight = right === empty.length;
      const verdict = ngettext("{right} of {count} blank is right.", "{right} of {count} blanks are right.", empty.length, { right });
      const hint = isRight ? [] : [_("Work it out: {calculation}.", { calculation: describeCalculation(rows, rows[empty[areRight.indexOf(false)]]) })];
      return { isRight, words: [verdict, ...hint].join(" "), truth: { truth: formatted, are_right: areRight } };
    },
  },
};

/** Return the indices of the rows that are blank. @param {import("./worked_examples.js").Row[]} rows @param {"none" | "one" | "all"} blanks */
function selectBlanks(rows, blanks) {
  const computed = range(rows.length).filter((i) => rows[i].compute);
  return { none: [], one: computed.slice(-1), all: computed }[blanks];
}

/** Return the values along both axes of a question for a cell. @param {any} question @param {Context} context */
function cells({ rows, columns, row_values: ofRows, column_values: ofColumns }, { config, tokens }) {
  const sizes = { query: tokens.length, key: tokens.length, layer: config.num_layers, head: config.num_heads };
  const axisValues = (name, values) => { const available = values.filter((value) => value < sizes[name]); return available.length ? available : range(Math.min(sizes[name], MAX_CELLS)); };
  return {
    rows: axisValues(rows, ofRows), columns: axisValues(columns, ofColumns), exists: (row, column) => rows !== "query" || columns !== "key" || column <= row,
    labels: (name, values) => values.map((value) => (name in { query: 1, key: 1 } ? `${escapeToken(tokens[value])} (${value})` : String(value))),
  };
}

/** @typedef {import("./quantities.js").Condition} Condition */
/** Return the quantity and the number that a condition compares, as lessons/tasks.py; null for other conditions. @param {Condition} condition */
const parseBound = ({ name, arguments: [quantity, bound] = [] }) => (["more", "less"].includes(name) && bound.name === "number" ? { quantity, bound: bound.arguments.value } : null);

/** Return whether a quantity is the likeliest token's probability. @param {Quantity} quantity */
const isOfLikeliest = ({ name, arguments: { rank } }) => name === "probability" && rank === 1;

/** Describe whether the text meets a condition, and what is wanted. @param {Condition} condition @param {Condition[]} others @param {Context} context */
async function describeCondition(condition, others, context) {
  const bounds = parseBound(condition);
  if (!bounds) return "";
  const { quantity, bound } = bounds, value = await evaluate(context, quantity), isMore = condition.name === "more";
  const sameQuantity = others.filter((other) => JSON.stringify(parseBound(other)?.quantity) === JSON.stringify(quantity));
  const isMet = (await Promise.all(sameQuantity.map((other) => isConditionMet(context, other)))).every(Boolean), values = { value: formatNumber(value), bound: String(bound) };
  if (quantity.name === "tokens") return isMet ? _("The number of tokens is right.") : _("It has {value} tokens; it needs {wanted}.", { value: value.toLocaleString("en"), wanted: formatCountRange(sameQuantity) });
  if (quantity.name === "mean_surprisal" && isMore) return isMet ? _("The surprisal is high enough.") : _("Its surprisal is {value} bits a token; it needs more than {bound}.", values);
  if (isOfLikeliest(quantity) && isMore) return isMet ? _("The probability is high enough.") : _("The likeliest token has probability {value}; it needs more than {bound}.", values);
  return "";
}

/** Format the range of counts that some conditions allow. @param {Condition[]} conditions */
function formatCountRange(conditions) {
  const findBound = (/** @type {string} */ name) => conditions.filter((condition) => condition.name === name).map((condition) => parseBound(condition)?.bound).at(-1);
  const [more, less] = [findBound("more"), findBound("less")];
  if (less === undefined) return _("at least {count}", { count: more + 1 });
  if (more === undefined) return _("at most {count}", { count: less - 1 });
  return less - more === 3 ? _("{low} or {high}", { low: more + 1, high: less - 1 }) : _("{low} to {high}", { low: more + 1, high: less - 1 });
}

/** Tasks on the page: whether they are done, and a message. @type {Record<string, (task: any, step: Context, now: Context) => Promise<{ is_done: boolean, words: string }>>} */
export const TASKS = {
  async FindHeadTask({ score: name, at_least: minScore }, _step, now) {
    const { layer, head } = now, score = await evaluate(now, { name: "head_score", arguments: { score: name }, change: {} });
    return { is_done: score >= minScore, words: _("You chose layer {layer} head {head}: its score is {score}; it needs at least {least}.", { layer, head, score: formatNumber(score), least: formatNumber(minScore) }) };
  },
  async FindPromptTask({ when }, step, now) {
    if (String(now.ids) === String(step.ids)) return { is_done: false, words: _("This is still the text of the lesson: change it, and press Run.") };
    const conditions = when.name === "all" ? when.arguments : [when];
    if (await isConditionMet(now, when)) {
      const praised = conditions.map(parseBound).find((/** @type {any} */ bounds) => bounds && (bounds.quantity.name === "mean_surprisal" || isOfLikeliest(bounds.quantity)))?.quantity;
      if (!praised) return { is_done: true, words: _("Well done: it holds for your text.") };
      const value = formatNumber(await evaluate(now, praised));
      return { is_done: true, words: isOfLikeliest(praised) ? _("Well done: after your text the likeliest token has probability {value}.", { value }) : _("Well done: your text has a surprisal of {value} bits a token.", { value }) };
    }
    const texts = new Set(await Promise.all(conditions.map((/** @type {Condition} */ condition) => describeCondition(condition, conditions, now))));
    return { is_done: false, words: [...texts].filter(Boolean).join(" ") || _("It does not hold for this text yet.") };
  },
};
