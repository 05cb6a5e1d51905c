// @ts-check
// The lessons, as explorer/web/browser_api/lesson_endpoints.py answers: from the data of docs/try/lessons.*.js, and the run.
import { NEEDS_PYTHON, openQuery } from "../actions.js";
import { drawFigure } from "../figures.js";
import { ToldError } from "../model.js";
import { FIGURES, MODELS, VIEWS } from "../page_data.js";
import { _, language, lookUpMessage } from "../../static/translations.js";
import { DRAWN_VIEWS } from "../views.js";
import { evaluate, makeContext, openContext } from "./quantities.js";
import { formatAnswer, QUESTIONS, TASKS } from "./questions.js";

/** @typedef {Record<string, any>} State @typedef {import("./quantities.js").Context} Context */
/** A step as web/static_lessons.py packs it. @typedef {{ title: string, before: any[], target: string, state: Record<string, any>, question_text: string, after: any[], values: Record<string, import("./quantities.js").Quantity>,
 *   is_here: boolean, is_task: boolean, kind: string | null, question: any, hides: { ids: string[], view: string } | null }} Step */
/** Without steps where most of them need Python. @typedef {{ name: string, title: string, audience: string, minutes: number, model: string, misconception: string, length: number, steps: Step[] }} Lesson */

/** @type {Lesson[]} */
const LESSONS = (await import(`./lessons.${language}.js`)).LESSONS;
const REVEAL_ANSWER = "?";

/** The lessons to choose from. */
export const listLessons = () => LESSONS.map(({ name, title, audience, minutes, length, misconception, steps }) => ({ name, title, audience, minutes, steps: length, against: misconception, needs: steps.length ? "" : NEEDS_PYTHON }));

/** A lesson with its steps. @param {string} name */
function find(name) {
  const lesson = LESSONS.find((one) => one.name === name);
  if (!lesson) throw new ToldError(_("There is no lesson {name}.", { name }));
  if (!lesson.steps.length) throw new ToldError(NEEDS_PYTHON);
  return lesson;
}

/** The number of the nearest step. @param {Lesson} lesson @param {any} step */
const nearest = ({ steps }, step) => Math.max(1, Math.min(Math.floor(+step) || 1, steps.length));
/** What names a step's state. @param {Lesson} lesson @param {number} number @returns {Record<string, any>} */
const queryOf = ({ model, steps }, number) => ({ checkpoint: MODELS[model]?.at(-1) ?? model, ...steps[number - 1].state });

/** An address with the fields of its lesson's step where it has none itself. @param {Record<string, string>} query */
export function completeQuery(query) {
  const lesson = LESSONS.find(({ name, steps }) => name === query.lesson && steps.length);
  if (!lesson || "prompt" in query || "text" in query) return query;
  const step = nearest(lesson, query.step), { is_here: isHere } = lesson.steps[step - 1];
  return { ...(isHere ? queryOf(lesson, step) : {}), ...query, step: String(step) };
}

/** The state of a step, with an earlier reply to it; of one that needs Python, the page's. @param {{ lesson: string, step: number, reply?: string }} action @param {State} state @returns {Promise<State>} */
export async function goToStep({ lesson: name, step, reply = "" }, state) {
  const lesson = find(name), number = nearest(lesson, step), { is_here: isHere } = lesson.steps[number - 1];
  return { ...(isHere ? await openQuery({ ...queryOf(lesson, number), depth: "numbers" }, state) : state), lesson: name, step: number, reply: reply.startsWith(`${number}:`) ? reply : "" };
}

/** The step that was told last, with its run. @type {{ step: Step, context: Promise<Context> } | null} */
let latest = null;

/** @param {Lesson} lesson @param {Step} step @returns {Promise<Context>} */
function contextOf(lesson, step) {
  if (latest?.step !== step) {
    latest = { step, context: openContext(queryOf(lesson, lesson.steps.indexOf(step) + 1)) };
    latest.context.catch(() => { latest = null; });
  }
  return latest.context;
}

/** The contents of the lesson's widget; none where they stay. @param {string} scope @param {import("../views.js").About} about the page's run */
export async function packLesson(scope, { state }) {
  const lesson = LESSONS.find(({ name }) => name === state.lesson);
  if (!lesson?.steps.length) return { lesson: lesson ? { heading: lesson.title, problem: NEEDS_PYTHON } : { problem: _("There is no lesson {name}.", { name: state.lesson }) } };
  const step = lesson.steps[nearest(lesson, state.step) - 1], [place, reply] = state.reply.split(/:(.*)/s);
  if (!["show", "tune"].includes(scope) && !step.is_task) return {};
  return { lesson: await packStep(lesson, step, place === String(state.step) ? reply : null, state) };
}

/** A step as the widget takes it; of the answer it has what the reply entitles to. @param {Lesson} lesson @param {Step} step @param {string | null} reply @param {State} state the page's */
async function packStep(lesson, step, reply, state) {
  const { name, title, misconception: against, steps } = lesson, { title: heading, before, target, state: { view } } = step, number = steps.indexOf(step) + 1, next = steps[number];
  const payload = { name, title, against, heading, step: number, steps: steps.length, before, target, view, ...(next && { next: { heading: next.title, before: next.before } }) };
  return { ...payload, ...(step.is_here ? await packQuestion(step, await contextOf(lesson, step), reply, state) : { problem: NEEDS_PYTHON, after: [] }) };
}

/** @param {Step} step @param {Context} context @param {string | null} reply @param {State} state */
async function packQuestion(step, context, reply, state) {
  const { kind, question } = step, after = async () => ({ after: await fillValues(step.after, step, context) });
  if (step.is_task) {
    const task = await TASKS[kind](question, context, await makeContext(state));
    return { task, ...(task.is_done && await after()) };
  }
  if (!kind) return after();
  const asked = { words: step.question_text, ...await QUESTIONS[kind].ask(question, context) };
  if (asked.is_example) return { question: asked, ...await after() };
  const grade = reply === null ? null : await QUESTIONS[kind].grade(question, context, reply === REVEAL_ANSWER ? null : reply);
  if (!grade) return { question: asked, hides: step.hides };
  const { isRight, words, truth } = grade;
  return { question: asked, judged: { is_right: isRight, words, truth, reply: isRight === null ? null : reply }, ...await after() };
}

/** A lesson's words with this run's numbers in the place of their names. @param {any} part @param {Step} step @param {Context} context @returns {Promise<any>} */
async function fillValues(part, step, context) {
  if (Array.isArray(part)) return Promise.all(part.map((inner) => fillValues(inner, step, context)));
  if (part?.kind === "value") return { kind: "number", text: formatAnswer(await evaluate(context, step.values[part.name])) };
  if (part === null || typeof part !== "object") return part;
  return Object.fromEntries(await Promise.all(Object.entries(part).map(async ([name, inner]) => [name, await fillValues(inner, step, context)])));
}

/** A step on paper: with the answer, and its figure. @param {string} name @param {number} number */
export async function packSheet(name, number) {
  const lesson = find(name), step = lesson.steps[number - 1], { audience, minutes, model } = lesson, { target, state: { text } } = step, context = step.is_here ? await contextOf(lesson, step) : null;
  return { ...await packStep(lesson, step, REVEAL_ANSWER, context?.state), audience, minutes, text, model, figure: context && await figureOf(target, context), is_hidden: Boolean(step.hides?.ids.includes(target)) };
}

/** @param {string} id of a figure @param {Context} context */
async function figureOf(id, context) {
  const { view } = context.state, panel = DRAWN_VIEWS[view] && VIEWS[view].panels.find(({ name }) => `${view}-${name}` === id);
  if (!panel) return null;
  const { kind, height, title } = panel, values = await DRAWN_VIEWS[view].panels[panel.name](context);
  return { kind, height, title: lookUpMessage(title), content: id in FIGURES ? drawFigure(id, values) : values };
}
