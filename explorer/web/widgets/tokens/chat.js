// @ts-check
// A conversation as the prompt, for models with a chat template: its messages, and the roles of its tokens.
import { runChat } from "../../static/page_actions.js";
import { onContent } from "../../static/widget_contents.js";
import { button, countDraw, find, findAll, make, span } from "../../static/dom.js";
import { _ } from "../../static/translations.js";

/** @typedef {{ role: string, content: string }} Message */

/** Return the names of the roles of tokens. @returns {Record<string, string>} */
export const roleNames = () => ({
  system: _("system"),
  user: _("user"),
  assistant: _("assistant"),
  tool: _("tool"),
  template: _("written by the chat template"),
});

/** @param {HTMLElement} chip @param {string | undefined} role */
export function setRole(chip, role) {
  if (role) chip.dataset.role = role;
  else delete chip.dataset.role;
}

/** Return an entry of the strip's legend. @param {string} role */
export const roleLegendItem = (role) => make("span", { className: "role", dataset: { role } }, roleNames()[role]);

/** The form of a conversation. @param {HTMLElement} element */
export function chatForm(element) {
  const [chat, text] = /** @type {HTMLButtonElement[]} */ (findAll(element, "[data-written]"));
  const form = /** @type {HTMLFormElement} */ (find(element, "form")), turns = find(form, ".turns"), reply = find(form, ".reply");
  let drawnMessages = "", answer = ""; // the messages of the last run as JSON, and the model's answer to them

  /** @param {boolean} isChat */
  function showChat(isChat) {
    form.hidden = !isChat;
    chat.ariaPressed = String(isChat);
    text.ariaPressed = String(!isChat);
    document.body.classList.toggle("chatting", isChat);
  }

  /** @param {Message} message */
  function turnRow({ role, content }) {
    const box = make("textarea", { rows: 1, value: content, spellcheck: false, placeholder: role === "system" ? _("optional: the role that the model plays") : "" });
    const row = make("div", { className: "turn", dataset: { role } }, make("label", {}, span("role", roleNames()[role]), box));
    if (role !== "system") row.append(button("×", () => row.remove(), { className: "remove", ariaLabel: _("remove this turn") }));
    return row;
  }

  const boxes = () => /** @type {HTMLTextAreaElement[]} */ (findAll(turns, "textarea"));
  const messages = () => boxes().map((box) => ({ role: box.closest("div").dataset.role, content: box.value })).filter(({ content }) => content.trim());

  /** @param {Message[]} messageList */
  function draw(messageList) {
    const [first] = messageList, systemTurn = first?.role === "system" ? [] : [{ role: "system", content: "" }];
    turns.replaceChildren(...[...systemTurn, ...messageList].map(turnRow));
  }

  chat.addEventListener("click", () => {
    const prompt = /** @type {HTMLTextAreaElement} */ (find(document, "#prompt textarea"));
    if (!boxes().length) draw([{ role: "user", content: prompt.value }]);
    showChat(true);
    boxes().at(-1).focus();
  });
  text.addEventListener("click", () => showChat(false));

  // “Add” turns the model's answer into an assistant message, then appends a turn of the other role.
  find(form, ".add").addEventListener("click", () => {
    const isAnswered = answer && JSON.stringify(messages()) === drawnMessages;
    if (isAnswered) turns.append(turnRow({ role: "assistant", content: answer }));
    const last = find(turns, ".turn:last-child").dataset.role;
    turns.append(turnRow({ role: last === "user" ? "assistant" : "user", content: "" }));
    reply.hidden = true;
    boxes().at(-1).focus();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    runChat(messages());
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || !/** @type {Element} */ (event.target).closest("textarea")) return;
    event.preventDefault();
    form.requestSubmit();
  });

  onContent(element, (content) => {
    document.body.classList.toggle("chats", Boolean(content));
    if (!content) {
      drawnMessages = "";
      turns.replaceChildren();
      return showChat(false);
    }
    const newMessages = JSON.stringify(content.messages);
    if (newMessages !== drawnMessages && content.messages.length) draw(content.messages);
    if (newMessages !== drawnMessages && (drawnMessages || content.messages.length)) showChat(content.messages.length > 0);
    drawnMessages = newMessages;
    answer = content.reply;
    reply.hidden = !answer;
    reply.replaceChildren(span("role", roleNames().assistant), span("", answer));
    countDraw(element);
  });
}
