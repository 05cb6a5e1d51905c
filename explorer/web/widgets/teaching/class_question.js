// @ts-check
// A teacher's own question to the class: its form and replies in the panel of the class, and the card on a student's page.
import { button, find, findAll, make, setText, span } from "../../static/dom.js";
import { askClass, endQuestion, isTeacher, onRoom, ownReplyCounts, replyToClass, room, showRepliesToClass } from "../../static/room_client.js";
import { _ } from "../../static/translations.js";
import { renderBars, replyCounts, replyCountSentence, totalCount } from "./reply_counts.js";

const MAX_REPLY_CHARS = 80; // as room_store.py has it

/** @param {import("../../static/room_client.js").ClassQuestion} question */
const countedQuestion = ({ answers }) => (answers.length ? { kind: "choice", options: answers } : { kind: "text" });

/** @param {Record<string, number>} counts */
const drawBars = (counts) => renderBars(replyCounts(countedQuestion(room.question), counts), totalCount(counts));

/**
 * Connect the form in which a teacher asks the class, and show the question's replies while it is open.
 * @param {HTMLElement} panel
 * @param {HTMLElement} notice
 */
export function connectQuestionForm(panel, notice) {
  const writing = /** @type {HTMLDetailsElement} */ (find(panel, ".ask")), form = /** @type {HTMLFormElement} */ (find(writing, "form")), asked = find(panel, ".asked");
  const boxes = /** @type {HTMLInputElement[]} */ (findAll(form, "input")), replies = find(asked, ".own-counts"), showButton = find(asked, ".show"), endButton = find(asked, ".end-question");
  let drawn = "", revealedNumber = 0; // the question whose replies the teacher has seen before the class
  const revealButton = button("", () => {
    revealedNumber = revealedNumber === room.question.number ? 0 : room.question.number;
    update();
  }, { className: "quiet-button" });
  replies.after(revealButton);

  function update() {
    if (!isTeacher()) return;
    const { question, people } = room, counts = ownReplyCounts() ?? {}, isRevealed = question?.shows_replies || revealedNumber === question?.number;
    const data = JSON.stringify([question, counts, people, isRevealed]);
    if (data === drawn) return;
    drawn = data;
    [writing.hidden, asked.hidden] = [Boolean(question), !question];
    if (!question) return;
    setText(find(asked, "h2"), question.text);
    setText(showButton, question.shows_replies ? _("Hide from the students’ pages") : _("Show on the students’ pages"));
    setText(revealButton, isRevealed ? _("Hide the replies here") : _("Show the replies here"));
    revealButton.hidden = question.shows_replies;
    replies.replaceChildren(make("p", { className: "of" }, replyCountSentence(counts, people)), ...(isRevealed ? [drawBars(counts)] : []));
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const [text, ...answers] = boxes.map((box) => box.value.trim()), chosen = answers.filter(Boolean);
    if (!text) return boxes[0].focus();
    if (chosen.length === 1 || new Set(chosen).size < chosen.length) return setText(notice, _("Write two to four different answers, or none."));
    setText(notice, "");
    /** @type {HTMLDetailsElement} */ (find(panel, ".invite")).open = false; // the replies take its place
    askClass(text, chosen);
    showButton.focus();
  });
  showButton.addEventListener("click", () => showRepliesToClass(!room.question.shows_replies));
  endButton.addEventListener("click", () => {
    endQuestion();
    form.reset();
    writing.open = true;
    boxes[0].focus();
  });
  onRoom(update);
  update();
}

/** Add the card with the teacher's question to a student's page: below the line of the class, over whatever the page shows. */
export function placeQuestionCard() {
  const card = /** @type {HTMLDetailsElement} */ (make("details", { id: "class-question", open: true, hidden: true })), heading = make("summary"), body = make("div"), status = make("p", { role: "status" });
  card.append(heading, body, status);
  find(document, "#room-line").after(card);
  let drawn = "", drawnNumber = 0;
  onRoom(() => {
    const question = room?.student ? room.question : null, counts = ownReplyCounts();
    card.hidden = !question;
    if (!question) return;
    const reply = room.ownReply?.number === question.number ? room.ownReply.reply : "", data = JSON.stringify([question, counts, reply]);
    if (data === drawn) return;
    const typed = drawnNumber === question.number ? body.querySelector("input")?.value : "", hadFocus = body.contains(document.activeElement);
    if (drawnNumber !== question.number || counts) card.open = true;
    [drawn, drawnNumber] = [data, question.number];
    setText(heading, question.text);
    body.replaceChildren(counts ? drawBars(counts) : question.answers.length ? answerButtons(question.answers, reply) : replyForm(typed || reply));
    setText(status, counts ? ownReplySentence(question, reply) : reply ? _("Your reply is sent. You can change it.") : "");
    if (hadFocus) /** @type {HTMLElement | null} */ (body.querySelector("[aria-pressed=true], input") ?? heading).focus();
  });
}

/** @param {import("../../static/room_client.js").ClassQuestion} question @param {string} reply */
const ownReplySentence = ({ answers }, reply) => (reply ? _("Your reply: {reply}", { reply: answers[Number(reply) - 1] ?? reply }) : "");

/** @param {string[]} answers @param {string} reply */
const answerButtons = (answers, reply) => make("div", { className: "answers" }, ...answers.map((answer, i) => {
  const isChosen = reply === String(i + 1), node = button("", () => replyToClass(String(i + 1)), { ariaPressed: String(isChosen) });
  node.append(span("says", answer), isChosen ? "✓" : "");
  return node;
}));

/** @param {string} words */
function replyForm(words) {
  const box = make("input", { type: "text", maxLength: MAX_REPLY_CHARS, value: words, ariaLabel: _("your reply"), autocomplete: "off" });
  const form = make("form", {}, box, make("button", { type: "submit" }, _("Send")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (box.value.trim()) replyToClass(box.value.trim());
  });
  return form;
}
