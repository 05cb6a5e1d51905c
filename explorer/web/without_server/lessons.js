// @ts-check
// Lessons, as in explorer/lessons/ and web/browser_api/lesson_endpoints.py, from the data of docs/try/lessons.*.js and the run.
import { NEEDS_PYTHON, openQuery, UserError, openRun } from "./actions.js";
import { drawFigure, cosine, entropy, vectorNorm, rowsOf, sum, largest, dotProduct, range, escapeToken, escapeTokenInText, formatCount, formatDigits, formatNumber, bracketNegative, quoteToken, quoteTokenInText } from "./figures.js";
import { FIGURES, MODELS, VIEWS } from "./page_data.js";
import { _, language, ngettext } from "../static/text.js";
import { DRAWN_VIEWS, formatHeading } from "./views.js";
import { ADDRESS_DEFAULTS } from "../static/shared_constants.js";
import { headRows, queryKeyVectors, selectKeys } from "./views/attention.js";
import { mainPair, rotatedPairs, rotationAngles } from "./views/positions.js";
import { depthNames } from "./views/prediction.js";
import { residualStream, updates } from "./views/residual.js";
import { parseNumber } from "../widgets/teaching/lesson.js";

/** @typedef {Record<string, any>} State */
/** Step, as packed by web/static_page.py. @typedef {{ title: string, before: any[], target: string, state: Record<string, any>, question_text: string, after: any[], values: Record<string, Quantity>,
 *   is_here: boolean, is_task: boolean, kind: string | null, question: any, hides: { ids: string[], view: string } | null, sets_sampling: boolean }} Step */
/** Lesson; it has no steps if most of them need Python. @typedef {{ name: string, title: string, audience: string, minutes: number, model: string, misconception: string, length: number, steps: Step[] }} Lesson */

/** @type {Lesson[]} */
const LESSONS = (await import(`./lessons.${language}.js`)).LESSONS;
const REVEAL_ANSWER = "?";

/** Return the list of lessons. */
export const listLessons = () => LESSONS.map(({ name, title, audience, minutes, length, misconception, steps }) => ({ name, title, audience, minutes, steps: length, against: misconception, needs: steps.length ? "" : NEEDS_PYTHON }));

/** Return a lesson that has steps. @param {string} name */
function findLesson(name) {
  const lesson = LESSONS.find((item) => item.name === name);
  if (!lesson) throw new UserError(_("There is no lesson {name}.", { name }));
  if (!lesson.steps.length) throw new UserError(NEEDS_PYTHON);
  return lesson;
}

/** Return the number of the nearest step. @param {Lesson} lesson @param {any} step */
const clampStep = ({ steps }, step) => Math.max(1, Math.min(Math.floor(+step) || 1, steps.length));
/** Return the URL query of a step's state. @param {Lesson} lesson @param {number} number @returns {Record<string, any>} */
const stepQuery = ({ model, steps }, number) => ({ checkpoint: MODELS[model]?.at(-1) ?? model, ...steps[number - 1].state });

/** Complete a URL query with the fields of its lesson's step. @param {Record<string, string>} query */
export function completeQuery(query) {
  const lesson = LESSONS.find(({ name, steps }) => name === query.lesson && steps.length);
  if (!lesson || "prompt" in query || "text" in query) return query;
  const step = clampStep(lesson, query.step), { is_here: isHere } = lesson.steps[step - 1];
  return { ...(isHere ? stepQuery(lesson, step) : {}), ...query, step: String(step) };
}

/** Return the state of a step, with an earlier reply to it. If the step needs Python, the page's run stays. @param {{ lesson: string, step: number, reply?: string }} action @param {State} state @returns {Promise<State>} */
export async function goToStep({ lesson: name, step, reply = "" }, state) {
  const lesson = findLesson(name), number = clampStep(lesson, step), { is_here: isHere } = lesson.steps[number - 1];
  return { ...(isHere ? await openQuery({ ...stepQuery(lesson, number), depth: "numbers" }, state) : state), lesson: name, step: number, reply: reply.startsWith(`${number}:`) ? reply : "" };
}

/** Latest step, with its run. @type {{ step: Step, context: Promise<Context> } | null} */
let latestStep = null;

/** @param {Lesson} lesson @param {Step} step @returns {Promise<Context>} */
function stepContext(lesson, step) {
  if (latestStep?.step !== step) {
    latestStep = { step, context: openContext(stepQuery(lesson, lesson.steps.indexOf(step) + 1)) };
    latestStep.context.catch(() => { latestStep = null; });
  }
  return latestStep.context;
}

/** Return the contents of the lesson's widget; none if they do not change. @param {string} scope @param {import("./views.js").ViewContext} context the page's run */
export async function packLesson(scope, { state }) {
  const lesson = LESSONS.find(({ name }) => name === state.lesson);
  if (!lesson?.steps.length) return { lesson: lesson ? { heading: lesson.title, problem: NEEDS_PYTHON } : { problem: _("There is no lesson {name}.", { name: state.lesson }) } };
  const step = lesson.steps[clampStep(lesson, state.step) - 1], [replyStep, reply] = state.reply.split(/:(.*)/s);
  if (!["show", "tune"].includes(scope) && !step.is_task) return {};
  return { lesson: await packStep(lesson, step, replyStep === String(state.step) ? reply : null, state) };
}

/** Pack a step for the widget. The answer is included only after a reply. @param {Lesson} lesson @param {Step} step @param {string | null} reply @param {State} state the page's */
async function packStep(lesson, step, reply, state) {
  const { name, title, misconception: against, steps } = lesson, { title: heading, before, target, state: { view } } = step, number = steps.indexOf(step) + 1, next = steps[number];
  const payload = { name, title, against, heading, step: number, steps: steps.length, before, target, view, sets_sampling: step.sets_sampling, ...(next && { next: { heading: next.title, before: next.before } }) };
  return { ...payload, ...(step.is_here ? await packQuestion(step, await stepContext(lesson, step), reply, state) : { problem: NEEDS_PYTHON, after: [] }) };
}

/** @param {Step} step @param {Context} context @param {string | null} reply @param {State} state */
async function packQuestion(step, context, reply, state) {
  const { kind, question } = step, packAnswerText = async () => ({ after: await fillValues(step.after, step, context) });
  if (step.is_task) {
    const task = await TASKS[kind](question, context, await makeContext(state));
    return { task, ...(task.is_done && await packAnswerText()) };
  }
  if (!kind) return packAnswerText();
  const packedQuestion = { words: step.question_text, ...await QUESTIONS[kind].ask(question, context) };
  if (packedQuestion.is_example) return { question: packedQuestion, ...await packAnswerText() };
  const grade = reply === null ? null : await QUESTIONS[kind].grade(question, context, reply === REVEAL_ANSWER ? null : reply);
  if (!grade) return { question: packedQuestion, hides: step.hides };
  const { isRight, words, truth } = grade;
  return { question: packedQuestion, judged: { is_right: isRight, words, truth, reply: isRight === null ? null : reply }, ...await packAnswerText() };
}

/** Fill in this run's numbers in a lesson's text. @param {any} part @param {Step} step @param {Context} context @returns {Promise<any>} */
async function fillValues(part, step, context) {
  if (Array.isArray(part)) return Promise.all(part.map((child) => fillValues(child, step, context)));
  if (part?.kind === "value") return { kind: "number", text: formatAnswer(await evaluate(context, step.values[part.name])) };
  if (part === null || typeof part !== "object") return part;
  return Object.fromEntries(await Promise.all(Object.entries(part).map(async ([name, child]) => [name, await fillValues(child, step, context)])));
}

/** Pack a step for a worksheet, with the answer and its figure. @param {string} name @param {number} number */
export async function packSheet(name, number) {
  const lesson = findLesson(name), step = lesson.steps[number - 1], { audience, minutes, model } = lesson, { target, state: { text } } = step, context = step.is_here ? await stepContext(lesson, step) : null;
  return { ...await packStep(lesson, step, REVEAL_ANSWER, context?.state), audience, minutes, text, model, figure: context && await packFigure(target, context), is_hidden: Boolean(step.hides?.ids.includes(target)) };
}

/** @param {string} id of a figure @param {Context} context */
async function packFigure(id, context) {
  const { view } = context.state, panel = DRAWN_VIEWS[view] && VIEWS[view].panels.find(({ name }) => `${view}-${name}` === id);
  if (!panel) return null;
  const { kind, height } = panel, values = await DRAWN_VIEWS[view].panels[panel.name](context);
  return { kind, height, title: formatHeading(panel, context), content: id in FIGURES ? drawFigure(id, values) : values };
}

// Quantities of a run and conditions on it (quantities.py). A context is a run with its selection; it also opens the other states with
// which a lesson compares it.

/** @typedef {import("./views.js").ViewContext & { replace: (change: Record<string, any>) => Promise<Context> }} Context */
/** Quantity of a run: its name in QUANTITIES, its arguments, and changed fields of the state. @typedef {{ name: string, arguments: Record<string, any>, change: Record<string, any> }} Quantity */
/** Condition, by its name in CONDITIONS. @typedef {{ name: string, arguments: any }} Condition */

const SELECTION_FIELDS = [...Object.keys(ADDRESS_DEFAULTS), "layer", "neuron"], PROMPT_FIELDS = ["prompt", "generated", "query", "key", "dropped", "began"];

/** Open the context of a URL query. @param {Record<string, any>} query @returns {Promise<Context>} */
const openContext = async (query) => makeContext(await openQuery(query, { view: "overview", depth: "numbers" }), query);

/** @param {Record<string, any>} state @param {Record<string, any>} [query] URL query of the state @returns {Promise<Context>} */
async function makeContext(state, query = state) {
  const runContext = await openRun(state), contexts = new Map();
  /** Return the context with changed fields, computed once; another text has its last token selected. @param {Record<string, any>} change @returns {Promise<Context>} */
  function replace(change) {
    const key = JSON.stringify(change), isSameRun = Object.keys(change).every((name) => SELECTION_FIELDS.includes(name));
    const keptFields = Object.entries(query).filter(([name]) => !("text" in change && PROMPT_FIELDS.includes(name)));
    if (!contexts.has(key)) contexts.set(key, isSameRun ? makeContext({ ...state, ...change }, { ...query, ...change }) : openContext({ ...Object.fromEntries(keptFields), ...change }));
    return contexts.get(key);
  }
  const context = { ...runContext, replace: (change) => (Object.keys(change).length ? replace(change) : Promise.resolve(context)) };
  return context;
}

/** @param {Context} context @param {{ token?: string, rank?: number }} choice */
const tokenId = ({ now, vocabulary }, { token, rank }) => (rank ? now[rank - 1] : vocabulary.indexOf(token));
/** Return the selected value's vector at the selected token, and head if it has heads. @param {Context} context @returns {Promise<Float32Array>} */
async function vector(context) {
  const { tap } = context.state, { data, shape } = await context.value(tap), [, layer, name] = /^blocks\.(\d+)\.attn\.(.+)$/.exec(tap) ?? [];
  return (shape.length === 3 ? await headRows({ ...context, layer: +layer }, name) : rowsOf(data, shape[1]))[context.position];
}
/** Return a score of every head, (L, H). @param {Context} context @param {string} score @returns {Promise<Float64Array>} */
const headScores = (context, score) => context.once(`${score} scores`, () => context.ask("headScores", { score }));
/** @param {Context} context @param {{ token?: string, rank?: number }} choice */
const attribution = (context, choice) => context.once(`attribution ${JSON.stringify(choice)}`, () => context.ask("attribution", { position: context.position, tokenId: tokenId(context, choice), contrastId: null }));
const PARAMETERS = { all: "", embedding: "^token_embedding", attention: "\\.attn\\.", feed_forward: "\\.ffn\\.", norms: "norm" };
/** Evaluate both operands. @param {Context} context @param {{ a: Quantity, b: Quantity }} args */
const evaluateBoth = async (context, { a, b }) => [await evaluate(context, a), await evaluate(context, b)];

/** @type {Record<string, (context: Context, args: any) => number | Promise<number>>} */
const QUANTITIES = {
  number: (_context, { value }) => value,
  probability: (context, choice) => context.prediction.plain[tokenId(context, choice)],
  chance: (context, choice) => context.prediction.sampled[tokenId(context, choice)],
  entropy: ({ prediction }) => entropy(prediction.plain),
  candidates: ({ prediction }) => prediction.sampled.filter((p) => p > 0).length,
  weight: async (context) => (await headRows(context, "pattern"))[context.position][context.key],
  head_score: async (context, { score }) => (await headScores(context, score))[context.layer * context.config.num_heads + context.head],
  heads_above: async (context, { score, least }) => (await headScores(context, score)).filter((value) => value >= least).length,
  norm: async (context) => vectorNorm(await vector(context)),
  async rms(context) { const x = await vector(context); return vectorNorm(x) / Math.sqrt(x.length); },
  element: async (context) => (await vector(context))[context.state.dim],
  async positive(context) { const x = await vector(context); return x.filter((value) => value > 0).length / x.length; },
  async cosine(context, { a, b }) { return cosine(...await /** @type {Promise<[Float32Array, Float32Array]>} */ (Promise.all([a, b].map((token) => context.ask("embeddingRow", { tokenId: tokenId(context, { token }) }))))); },
  head_adds: async (context, choice) => (await attribution(context, choice)).heads[context.layer * context.config.num_heads + context.head],
  feed_forward_adds: async (context, choice) => (await attribution(context, choice)).feed_forward[context.layer],
  tokens: ({ tokens }) => tokens.length,
  loss: ({ measures }) => (sum(measures.surprisal.slice(1)) / (measures.surprisal.length - 1)) * Math.LN2,
  mean_surprisal: ({ measures }) => sum(measures.surprisal.slice(1)) / (measures.surprisal.length - 1),
  parameters: (context, { part = "all" }) => context.ask("numParameters", { names: PARAMETERS[part] }),
  size: ({ config, dHead }, { name }) => (name === "d_head" ? dHead : config[name]),
  async sum(context, args) { const [a, b] = await evaluateBoth(context, args); return a + b; },
  async difference(context, args) { const [a, b] = await evaluateBoth(context, args); return a - b; },
  async ratio(context, args) { const [a, b] = await evaluateBoth(context, args); return b ? a / b : NaN; },
};
/** Format integers in full, others with three digits. @param {number} value */
const formatAnswer = (value) => formatAnswerDigits(value, MIN_DIGITS);
/** @param {number} value @param {number} digits */
const formatAnswerDigits = (value, digits) => (Number.isInteger(value) ? formatCount(value).replace("-", "−") : formatDigits(value, digits));

export const COUNTS = ["candidates", "heads_above", "tokens", "parameters"]; // quantities that are integers
export const SHARES = ["probability", "chance", "head_score", "weight", "cosine"]; // quantities of at most 1

/** @param {Context} context @param {Quantity} quantity @returns {Promise<number>} */
export async function evaluate(context, { name, arguments: args, change }) { return QUANTITIES[name](await context.replace(change), args); }

/** Append the tokens that a quantity counts, if it counts some: "3: ·un + ha + ppy". @param {string} text @param {Quantity | null} quantity @param {Context} context */
async function appendTokens(text, quantity, context) {
  return quantity?.name === "tokens" ? `${text}: ${(await context.replace(quantity.change)).tokens.map(escapeToken).join(" + ")}` : text;
}

/** Return a quantity with another value of an argument or, if it has no such argument, of a field of the state. @param {Quantity} quantity @param {string} name @param {any} value @returns {Quantity} */
function withValue(quantity, name, value) {
  const field = name in quantity.arguments ? "arguments" : "change";
  return { ...quantity, [field]: { ...quantity[field], [name]: value } };
}

/** Conditions on a run. @type {Record<string, (context: Context, given: any) => Promise<boolean>>} */
const CONDITIONS = {
  async more(context, [a, b]) { return (await evaluate(context, a)) > (await evaluate(context, b)); },
  async less(context, [a, b]) { return (await evaluate(context, a)) < (await evaluate(context, b)); },
  async about(context, [a, b, within]) { return Math.abs((await evaluate(context, a)) - (await evaluate(context, b))) <= (await evaluate(context, within)); },
  async all(context, conditions) { return (await Promise.all(conditions.map((condition) => isConditionMet(context, condition)))).every(Boolean); },
  async not(context, condition) { return !(await isConditionMet(context, condition)); },
};

/** @param {Context} context @param {Condition} condition */
const isConditionMet = (context, { name, arguments: args }) => CONDITIONS[name](context, args);

// Worked examples: calculations with the run's own numbers (worked_examples.py). Rows are given or computed numbers.

/** @typedef {(values: number[]) => number} Formula */
/** Text, or a function of the numbers shown in the rows. @typedef {string | ((shown: string[]) => string)} RowText */
/** Number with its name or formula; a computed one has its function of the values above, and the template of its calculation. @typedef {{ text: RowText, value: number, digits: number, compute?: Formula, calculation?: string, blankText?: RowText }} Row */

const MIN_DIGITS = 3, MAX_DIGITS = 9;

/** @param {string} text @param {number} value @returns {Row} */
const givenRow = (text, value) => ({ text, value, digits: MIN_DIGITS });
/** Append a row that is computed from those above. @param {Row[]} rows @param {RowText} text @param {string} calculation @param {Formula} compute @param {RowText} [blankText] formula while other numbers are blank */
function addComputedRow(rows, text, calculation, compute, blankText = "") {
  rows.push({ text, value: compute(rows.map((row) => row.value)), digits: MIN_DIGITS, compute, calculation, blankText });
}
/** Return the rows of a worked example, which a person can compute from the numbers shown above each. @param {string} name @param {Context} context */
async function workOut(name, context) {
  const rows = await WORKED_EXAMPLES[name](context);
  for (let i = 0; i < rows.length; i++) {
    const inputs = impreciseInputs(rows, i);
    for (const input of inputs) rows[input].digits++;
    if (inputs.length) i = -1; // from the first row again
  }
  const numbers = rows.map(showRow), resolve = (/** @type {RowText | undefined} */ text) => (typeof text === "function" ? text(numbers) : text);
  return rows.map((row, i) => ({ ...row, text: resolve(row.text), blankText: resolve(row.blankText), shown: numbers[i] }));
}
/** Return the number of a row as the page shows it. @param {Row} row */
const showRow = ({ value, digits }) => formatAnswerDigits(value, digits);
/** Return the inputs of a row that need a digit more; none if it follows from the numbers shown. @param {Row[]} rows @param {number} index */
function impreciseInputs(rows, index) {
  const { compute, digits } = rows[index], shown = rows.slice(0, index).map((above) => +showRow(above).replaceAll("−", "-").replaceAll(",", ""));
  if (!compute || formatAnswerDigits(compute(shown), digits) === showRow(rows[index])) return [];
  const result = compute(shown);
  return range(index).filter((i) => compute(shown.map((value, j) => value + +(j === i))) !== result && shown[i] !== rows[i].value && rows[i].digits < MAX_DIGITS);
}
/** Return a row's formula with the numbers shown. @param {any[]} rows @param {any} row */
const describeCalculation = (rows, { text, calculation, shown }) => `${[text, calculation.replace(/\{(\d+)\}/g, (_match, i) => bracketNegative(rows[i].shown))].filter(Boolean).join(" = ")} ≈ ${shown}`;

/** Return half a unit of the last digit shown; 0 for a whole number. @param {any} row */
function maxRounding({ value, shown }) {
  const [mantissa, exponent = "0"] = shown.split("e"), decimals = mantissa.split(".")[1]?.length ?? 0;
  return Number.isInteger(value) ? 0 : 0.5 * 10 ** (+exponent.replace("−", "-") - decimals);
}
/** Return how far each row can be off for a person who computes with the numbers shown, to first order. @param {any[]} rows */
function roundingErrors(rows) {
  const errors = rows.map(maxRounding), shiftRow = (i, shift) => rows.reduce((values, { value, compute }, j) => [...values, (compute && j > i ? compute(values) : value) + (j === i ? shift : 0)], /** @type {number[]} */ ([]));
  rows.forEach((row, i) => {
    const shifted = [maxRounding(row), -maxRounding(row)].map((shift) => shiftRow(i, shift));
    for (let j = i + 1; j < rows.length; j++) errors[j] += Math.max(...shifted.map((values) => Math.abs(values[j] - rows[j].value)));
  });
  return errors;
}

/** Return a value's row at the selected token. @param {Context} context @param {string} name @returns {Promise<Float32Array>} */
async function rowAt({ value, position }, name) { const { data, shape } = await value(name); return rowsOf(data, shape[1])[position]; }

/** Append the softmax of the last rows: powers of e of each less the largest, their sum, and the shares. @param {Row[]} rows @param {string[]} names @param {((shown: string[]) => string)[]} [formulas] of the numbers, if these are computed */
function addSoftmaxRows(rows, names, formulas = []) {
  const start = rows.length - names.length, end = rows.length, total = end + names.length, values = rows.slice(start).map(({ value }) => value), max = values.indexOf(largest(values));
  values.forEach((_value, i) => addComputedRow(rows, (shown) => `e^(${shown[start + i]} − ${bracketNegative(shown[start + max])})`, "", (v) => Math.exp(v[start + i] - largest(v.slice(start, end))), formulas.length ? (shown) => `e^(${formulas[i](shown)} − ${formulas[max](shown)})` : ""));
  addComputedRow(rows, _("their sum"), names.map((_name, i) => `{${end + i}}`).join(" + "), (v) => sum(v.slice(end, total)));
  names.forEach((token, i) => addComputedRow(rows, _("share of {token}", { token }), `{${end + i}} / {${total}}`, (v) => v[end + i] / v[total]));
}

/** @type {Record<string, (context: Context) => Promise<Row[]>>} */
const WORKED_EXAMPLES = {
  /** Compute q·k / √d from the sums of positive and of negative products. */
  async score(context) {
    const { position, key, dHead } = context, [q, k] = await queryKeyVectors(context), products = Array.from(q[position], (x, i) => x * k[key][i]);
    const below = sum(products.filter((x) => x < 0)), above = sum(products.filter((x) => x >= 0));
    const rows = [givenRow(_("the sum of all positive products q·k"), above), givenRow(_("the sum of all negative products q·k"), below), givenRow(_("d, how many dimensions a head has"), dHead)];
    addComputedRow(rows, _("q·k = both sums together"), "{0} + {1}", (v) => v[0] + v[1]);
    addComputedRow(rows, "√d", "√{2}", (v) => Math.sqrt(v[2]));
    addComputedRow(rows, _("score = q·k / √d"), "{3} / {4}", (v) => v[3] / v[4]);
    return rows;
  },
  /** Compute the softmax of the selected query's scores. */
  async softmax_row(context) {
    const scores = Array.from((await headRows(context, "scores"))[context.position].subarray(0, context.position + 1)), names = scores.map((_score, i) => escapeToken(context.tokens[i]));
    const rows = names.map((token, i) => givenRow(_("score of {token}", { token }), scores[i]));
    addSoftmaxRows(rows, names);
    return rows;
  },
  /** Compute one dimension of an RMSNorm: x / √(mean x² + ε) · g. */
  async rmsnorm(context) {
    const { config: { norm_eps: epsilon }, layer, state: { dim } } = context, x = await rowAt(context, `blocks.${layer}.resid_pre`), gain = await context.ask("weightAt", { name: `blocks.${layer}.attn_norm.weight`, index: dim });
    const rows = [givenRow(_("mean of all x²"), dotProduct(x, x) / x.length), givenRow("ε", epsilon), givenRow(_("x of dimension {dim}", { dim }), x[dim]), givenRow(_("g of dimension {dim}", { dim }), gain)];
    addComputedRow(rows, "√(mean x² + ε)", "√({0} + {1})", (v) => Math.sqrt(v[0] + v[1]));
    addComputedRow(rows, "x / √(mean x² + ε)", "{2} / {4}", (v) => v[2] / v[4]);
    addComputedRow(rows, "x / √(mean x² + ε) · g", "{5} · {3}", (v) => v[5] * v[3]);
    return rows;
  },
  /** Compute the selected neuron's SwiGLU activation. */
  async swiglu_neuron(context) {
    const [preactivation, up] = await Promise.all(["gate_pre", "up"].map(async (name) => (await rowAt(context, `blocks.${context.layer}.ffn.${name}`))[context.neuron]));
    const rows = [givenRow(_("gate before its activation, W₁x"), preactivation), givenRow("up, W₃x", up)];
    const sign = preactivation < 0 ? "" : "−"; // of −x
    addComputedRow(rows, ([shown]) => `σ(${shown}) = 1 / (1 + e^(${sign}${shown.replace("−", "")}))`, "", (v) => 1 / (1 + Math.exp(-v[0])));
    addComputedRow(rows, _("gate = W₁x · σ(W₁x)"), "{0} · {2}", (v) => v[0] * v[2]);
    addComputedRow(rows, _("the neuron gives gate · up"), "{3} · {1}", (v) => v[3] * v[1]);
    return rows;
  },
  /** Compute the softmax of the top-k logits, divided by the temperature. */
  async temperature_top_k({ prediction, vocabulary, now, state: { temperature, top_k: k } }) {
    const ids = now.slice(0, k), names = ids.map((id) => escapeToken(vocabulary[id])), logits = ids.map((id) => prediction.logits[id]);
    const rows = [...names.map((token, i) => givenRow(_("logit of {token}", { token }), logits[i])), givenRow(_("temperature T"), temperature)];
    const formulas = logits.map((_logit, i) => (/** @type {string[]} */ shown) => `${shown[i]} / T`);
    formulas.forEach((formula, i) => addComputedRow(rows, formula, `{${i}} / {${k}}`, (v) => v[i] / v[k]));
    addSoftmaxRows(rows, names, formulas);
    return rows;
  },
};

// Questions and tasks (questions.py, tasks.py): the widget's content, and the grade of a reply. The correct answer is computed from the
// run each time.

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
/** Return an option as a verdict names it: in quotes, unless it has some. @param {string} text */
const quoteOption = (text) => (text.includes("“") ? text : `“${text}”`).replace(/[.。]+(?=”?$)/, "");
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
      const answers = joinNames([...new Set(await evaluateAll(right.map((number) => options[number - 1]), ({ text, value }) => appendTokens(quoteOption(text), value, context)))]);
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
      const rows = await workOut(name, await context.replace(change)), empty = selectBlanks(rows, blanks);
      return { kind: "blanks", rows: rows.map(({ text, blankText, shown }, i) => ({ says: (blanks === "all" && blankText) || text, value: empty.includes(i) ? null : shown })), is_example: blanks === "none" };
    },
    async grade({ worked_example: name, blanks, change }, context, reply) {
      const rows = await workOut(name, await context.replace(change)), empty = selectBlanks(rows, blanks), formatted = empty.map((i) => rows[i].shown);
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

/** Return the indices of the rows that are blank. @param {Row[]} rows @param {"none" | "one" | "all"} blanks */
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

// Numbers of walkthroughs, as explorer/analysis/walkthroughs.py.

const MAX_KEYS = 8, MAX_DIMENSIONS = 16;

/** Walkthroughs by their names in Python. @type {Record<string, (context: import("./views.js").ViewContext) => Promise<any>>} */
export const WALKTHROUGHS = {
  async attention(context) {
    const { tokens, layer, head, position, key: chosen, dHead } = context, [scores, weights, output] = (await Promise.all(["scores", "pattern", "z"].map((name) => headRows(context, name)))).map((rows) => rows[position]);
    const keys = selectKeys(weights, position, chosen, MAX_KEYS), values = await headRows(context, "v"), divisor = Math.sqrt(dHead), truncate = (row) => Array.from(row.subarray(0, MAX_DIMENSIONS));
    return {
      layer, head, query: quoteTokenInText(tokens, position), d_head: dHead, divisor: `√d = √${dHead} = ${formatNumber(divisor)}`, is_whole: keys.filter((key) => key <= position).length === position + 1, sum: truncate(output),
      keys: keys.map((key) => ({
        label: escapeTokenInText(tokens, key), key, chosen: key === chosen, numbers: [scores[key] * divisor, scores[key], key <= position ? scores[key] : null, weights[key]], value: key <= position ? truncate(values[key]) : null,
      })),
    };
  },
  async layers(context) {
    const { config, tokens, vocabulary, position } = context, norms = (await residualStream(context)).map((stage) => vectorNorm(stage[position])), updateNorms = (await updates(context)).map(vectorNorm);
    const { top, topProbabilities } = await context.ask("lens", { start: position, stop: position + 1, tokenIds: [] });
    return {
      token: quoteToken(tokens[position]), largest: largest(norms),
      stages: depthNames(config).map((label, i) => ({
        label, norm: norms[i], updates: i ? [{ layer: (i - 1) >> 1, sublayer: i % 2 ? "attn" : "ffn", norm: updateNorms[i - 1] }] : [],
        guesses: top[i][0].map((id, rank) => ({ token: escapeToken(vocabulary[id]), probability: topProbabilities[i][0][rank] })),
      })),
    };
  },
  async rotation(context) {
    const { config, dHead, tokens, position, key } = context;
    if (config.position !== "rope") throw new UserError(_("This layer has no RoPE."));
    const angles = await rotationAngles(context), pair = await mainPair(context);
    const packHand = async (name, index) => {
      const { before, after } = await rotatedPairs(context, name, index);
      return { token: quoteToken(tokens[index]), position: index, angle: angles[index][pair], before: before[pair], after: after[pair] };
    };
    const [q, k] = [await packHand("q", position), await packHand("k", key)], dot = dotProduct(q.after, k.after);
    return { pair, scale: 1, changes: "", q, k, divisor: `√${dHead}`, dot, adds: dot / Math.sqrt(dHead) };
  },
};
