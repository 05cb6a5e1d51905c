// @ts-check
// A lesson on paper: its words and pictures, its questions with room to reply, and on a page of their own the answers that
// the run gives now. Asked for step by step, as each may take a while.
import { bitmapBefore } from "../../static/bitmap.js";
import { palette } from "../../static/colour.js";
import { call, Refused } from "../../static/connection.js";
import { button, find, make, span } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { config, plotly } from "../../static/plotly.js";
import { state } from "../../static/state.js";
import { THEMES } from "../../static/themes.js";
import { addMap } from "./map_on_paper.js";
import { blank, truth } from "./on_paper.js";
import { prose } from "./prose.js";

const WIDTH = 640, MOST_HEIGHT = 330; // pixels of a figure on paper

/** Opens the sheet of a lesson. @param {string} name @param {number} steps */
export async function openSheet(name, steps) {
  const focused = /** @type {HTMLElement} */ (document.activeElement), closing = new AbortController();
  const told = span("told"), print = button(_("Print"), () => window.print(), { disabled: true });
  const sheet = make("div", { id: "sheet", role: "dialog", ariaModal: "true", ariaLabel: _("sheet of the lesson") });
  const close = () => {
    closing.abort();
    sheet.remove();
    document.body.classList.remove("with-sheet");
    focused?.focus();
  };
  const paper = make("main", { className: "paper" }), answers = make("section", { className: "answers" }, make("h2", {}, _("Answers")));
  told.role = "status";
  sheet.append(make("div", { className: "bar" }, print, button(_("Close"), close), told), paper);
  document.addEventListener("keydown", ({ key }) => { if (key === "Escape") close(); }, { signal: closing.signal });
  document.body.append(sheet);
  document.body.classList.add("with-sheet");
  find(sheet, ".bar button:not([disabled])").focus();
  for (let place = 1; place <= steps; place++) {
    told.textContent = _("step {step} of {steps}", { step: place, steps });
    try {
      const step = await call("lesson_sheet", [state, name, place], closing.signal);
      if (place === 1) paper.append(...titled(step));
      paper.append(await stepOnPaper(step));
      const answer = await answerTo(step);
      if (answer) answers.append(answer);
    } catch (error) {
      if (closing.signal.aborted) return;
      told.textContent = error instanceof Refused ? error.message : _("The server does not answer.");
      return;
    }
  }
  if (answers.children.length > 1) paper.append(answers);
  told.textContent = "";
  print.disabled = false;
  print.focus();
  sheet.dataset.ready = "true";
}

const titled = ({ title, audience, minutes, against, model, note }) => [
  make("h1", {}, title),
  make("p", { className: "about" }, _("For {audience} · {minutes} minutes · with {model}", { audience, minutes, model })),
  make("p", { className: "about" }, _("Against the belief: {belief}", { belief: against })),
  ...(note ? [make("p", { className: "about" }, note)] : []),
];

/** What is printed before the answers. */
async function stepOnPaper(step) {
  const { step: place, heading, before, text, question, task, after, problem, missing } = step;
  const made = make("section", { className: "step" }, make("h2", {}, `${place}. ${heading}`), make("p", { className: "text" }, _("Text: “{text}”", { text })), ...prose(before));
  if (problem || missing) made.append(make("p", {}, problem ?? missing.words));
  if (!step.is_hidden) await addFigure(made, step.figure);
  if (question) made.append(make("div", { className: "asks" }, make("p", {}, question.words), ...blank(question)));
  if (task) made.append(make("p", { className: "task" }, "☐ ", _("Try it on the page, and write down what you found:"), " ", span("blank")));
  const isTold = !task && (!question || question.is_example); // what follows from a reply is no secret where there is none
  if (isTold) made.append(...prose(after ?? []));
  return made;
}

/** What is told once there is a reply; null where nothing is. */
async function answerTo({ step, heading, question, judged, after, figure, is_hidden: isHidden }) {
  if (!question || question.is_example || !judged) return null;
  const made = make("section", { className: "answer" }, make("h3", {}, `${step}. ${heading}`), ...truth(question, judged.truth));
  if (judged.words) made.append(make("p", {}, judged.words));
  made.append(...prose(after ?? []));
  if (isHidden) await addFigure(made, figure);
  return made;
}

async function addFigure(into, figure) {
  if (!figure?.picture || figure.picture.instead) return;
  const { kind, title, height, picture } = figure, made = make("figure", {}, make("figcaption", {}, title));
  if (kind === "head_grid") made.append(grid(picture));
  else if (kind === "figure" && plotly()) {
    const plot = make("div", { className: "plot" });
    made.append(plot);
    into.append(made);
    const [data, layout] = picture.map((part) => JSON.parse(part)), { meta, ...rest } = layout;
    plot.role = "img";
    plot.ariaLabel = meta?.alt ?? "";
    const size = { width: WIDTH, height: Math.min(height, MOST_HEIGHT) };
    await plotly().newPlot(plot, data, { ...rest, template: THEMES.light.template, ...size }, { ...config(), staticPlot: true });
    return;
  } else if (kind === "model_map") {
    into.append(made);
    return addMap(made, picture);
  } else return;
  into.append(made);
}

function grid({ heads, pixels, data, signed, alt }) {
  const { sequential, diverging } = THEMES.light, before = bitmapBefore(palette(signed ? diverging : sequential), pixels, pixels);
  const made = make("div", { className: "heads", role: "img", ariaLabel: alt });
  made.style.gridTemplateColumns = `repeat(${heads}, 1fr)`;
  made.append(...data.map((bytes) => make("img", { src: before + bytes, alt: "" })));
  return made;
}
