// @ts-check
// Lessons, as in explorer/web/browser_api/lesson_endpoints.py, from the data of docs/try/lessons.*.js and the run.
import { NEEDS_PYTHON, openQuery } from "./actions.js";
import { drawFigure } from "./figures.js";
import { UserError } from "./model_runs.js";
import { FIGURES, MODELS, VIEWS } from "./page_data.js";
import { _, language } from "../static/translations.js";
import { DRAWN_VIEWS, formatHeading } from "./views.js";
import { evaluate, formatAnswer, makeContext, openContext, QUESTIONS, TASKS } from "./questions.js";

/** @typedef {Record<string, any>} State @typedef {import("./questions.js").Context} Context */
/** Step, as packed by web/static_page.py. @typedef {{ title: string, before: any[], target: string, state: Record<string, any>, question_text: string, after: any[], values: Record<string, import("./questions.js").Quantity>,
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
