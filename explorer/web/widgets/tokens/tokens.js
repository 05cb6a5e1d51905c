// @ts-check
// The text and its continuation: tokens as chips, a summary of the next token, the generated text and its playback,
// the tree of continuations, the guess of the next word, and a conversation as the prompt.
import { ablatedHead, goToTop, interventions, isWriting, makeMove, nextStepButton, select, runExample, changeSettings, runChat } from "../../static/page_actions.js";
import { undo } from "../../static/history.js";
import { onContent } from "../../static/widget_contents.js";
import { button, clearNotices, countDraw, find, findAll, make, notify, readStorage, writeStorage, makeFocusableWhileScrolling, addRovingFocus, setText, span, setTabStop, isPartOfCharacter, textNodes, tokenNodes } from "../../static/dom.js";
import { STORY_TABS } from "../../static/shared_constants.js";
import { _, splitMessage, ngettext, formatShortPercent, describeGuess, guessChoices } from "../../static/text.js";
import { partnerInB, positionInB, urlNamesView, depthOfView, positionFromB, onState, setState, state, takeAwaitedPartner, initialView } from "../../static/page_state.js";

const CHIP_GAP = 2; // pixels, as in the style sheet
let alignedTexts = ""; // tokens and partners that the chips' margins are for

/** Let aligned tokens of two runs stand below each other, by a margin before the left one of them. */
function alignChips() {
  const rows = ["#strip", "#strip-b"].map((id) => findAll(document, `${id} .chip`).filter(({ offsetWidth }) => offsetWidth)), partners = rows[0].map((_chip, i) => partnerInB(i));
  const texts = JSON.stringify([rows.map((chips) => chips.map(({ textContent }) => textContent)), partners]);
  if (texts === alignedTexts) return;
  alignedTexts = texts;
  for (const chip of rows.flat()) chip.style.marginLeft = "";
  const ends = [0, 0], placed = [0, 0], widths = rows.map((chips) => chips.map((chip) => chip.getBoundingClientRect().width + CHIP_GAP));
  const placeBefore = (row, position) => { for (; placed[row] < position; placed[row]++) ends[row] += widths[row][placed[row]]; };
  partners.forEach((partner, i) => {
    if (partner === null || !rows[1][partner]) return;
    [i, partner].forEach((position, row) => placeBefore(row, position));
    const shift = ends[1] - ends[0], row = shift > 0 ? 0 : 1;
    if (shift) rows[row][row ? partner : i].style.marginLeft = `${Math.abs(shift)}px`;
    ends[row] += Math.abs(shift);
  });
}

/** The strip of a text's tokens. @param {HTMLElement} element */
export function tokenStrip(element) {
  const strip = find(element, ".strip"), shadeSelect = element.querySelector("select"), parts = find(element, ".parts");
  const beginningOption = find(element, ".beginning"), beginningBox = beginningOption.querySelector("input"), legend = find(element, ".roles");
  const isB = find(element, ".tokens").dataset.run === "b"; // the selection names tokens of A; in B their aligned ones are marked
  const chips = () => findAll(strip, ".chip"), chipTokens = new WeakMap(); // chip -> its token
  /** @type {string[]} */
  let roles = [];
  let shades = {}, promptLength = 0, drawnShade = "", drawnContent = "";

  // Most responses repeat the same tokens, so nothing is redrawn then.
  function draw(content) {
    const json = content ? JSON.stringify(content) : "";
    element.hidden = !content;
    if (!content) strip.replaceChildren(); // the style sheet reserves a line for tokens to come
    else if (json !== drawnContent) redrawChips(content);
    drawnContent = json;
    if (!content) return;
    beginningBox.checked = content.beginning[1]; // undoes a click that the server refused
    countDraw(strip);
    markSelection();
  }

  // Keep the chips of unchanged tokens: generating changes few of many.
  function redrawChips(content) {
    const { tokens, num_prompt, earlier, beginning, ...value } = content;
    find(element, ".tokens").classList.toggle("two", isB || "change" in value.shades);
    [shades, promptLength] = [value.shades, num_prompt];
    const oldChips = chips(), newChips = tokens.map((token, i) => (oldChips[i] && chipTokens.get(oldChips[i]) === token ? oldChips[i] : makeChip(token, i)));
    newChips.forEach((chip, i) => chip.classList.toggle("generated", i >= num_prompt));
    const changed = newChips.findIndex((chip, i) => chip !== oldChips[i]), firstChanged = changed < 0 ? newChips.length : changed;
    for (const chip of oldChips.slice(firstChanged)) chip.remove();
    strip.append(...newChips.slice(firstChanged));
    strip.querySelector(".earlier")?.remove();
    if (earlier) strip.prepend(span("earlier", earlierText(earlier)));
    const [expected] = beginning;
    beginningOption.hidden = !expected;
    find(beginningOption, "span").textContent = _("begins with {token}", { token: expected });
    parts.hidden = !tokens.some(isPartOfCharacter);
    roles = content.roles ?? [];
    newChips.forEach((chip, i) => setRole(chip, roles[i]));
    legend.hidden = !roles.some(Boolean);
    legend.replaceChildren(...Object.keys(roleNames()).filter((role) => roles.includes(role)).map(roleLegendItem));
    updateShades();
  }

  const earlierText = (earlier) => ngettext(
    "… {count} earlier token is beyond the model’s context",
    "… {count} earlier tokens are beyond the model’s context",
    earlier,
    { count: earlier.toLocaleString("en") },
  );

  function makeChip(token, i) {
    const chip = make("button", { type: "button", className: "chip", role: "option", dataset: { position: i } }, ...tokenNodes(token));
    chipTokens.set(chip, token);
    return chip;
  }

  /** Return the name of the shading; "" in the story, where readers would take it for attention. @param {import("../../static/page_state.js").State} state */
  const currentShade = ({ view, shade }) => {
    const [only, ...others] = Object.keys(shades);
    if (depthOfView(view) === "story") return "";
    return others.length ? shade ?? shadeSelect.value : only;
  };

  function updateShades() {
    const name = currentShade(state), { shares = [] } = shades[name] || {};
    shadeSelect.parentElement.hidden = Object.keys(shades).length < 2;
    if (name) shadeSelect.value = name;
    drawnShade = name;
    chips().forEach((chip, i) => {
      chip.style.setProperty("--share", String(Math.abs(shares[i] ?? 0)));
      chip.classList.toggle("less", shares[i] < 0);
    });
  }

  function markSelection() {
    if (currentShade(state) !== drawnShade) updateShades();
    const isClean = (state.clean_run ?? "a") === (isB ? "b" : "a");
    strip.dataset.role = state.view !== "patching" ? "" : isClean ? _("clean") : _("corrupted");
    const [query, key] = [state.query, state.key].map((position) => (isB ? positionInB(position) : position));
    const allChips = chips(), selected = allChips[query] ?? null, { words = [] } = shades[drawnShade] ?? {};
    const frames = depthOfView(state.view) === "story" ? {} : { [key]: _("the chosen key: dashed frame"), [query]: _("the chosen query: solid frame") };
    allChips.forEach((chip, position) => {
      chip.ariaSelected = String(chip === selected);
      chip.classList.toggle("key", position === key);
      const positionText = _("position {position}", { position }), originText = position < promptLength ? "" : _("generated");
      chip.title = [positionText, frames[position], originText, roleNames()[roles[position]], words[position]].filter(Boolean).join(", ");
    });
    setTabStop(allChips, selected);
    requestAnimationFrame(() => {
      alignChips();
      if (selected) scrollToChip(selected);
    });
  }

  // Scroll the strip, and only the strip, until the chip is visible.
  function scrollToChip(chip) {
    const left = chip.offsetLeft - strip.offsetLeft, right = left + chip.offsetWidth, margin = 96; // pixels for its neighbours and the sticky elements there
    if (left < strip.scrollLeft) strip.scrollLeft = left - margin;
    else if (right > strip.scrollLeft + strip.clientWidth) strip.scrollLeft = right - strip.clientWidth + margin;
  }

  strip.addEventListener("click", ({ target }) => {
    /** @type {HTMLElement} */
    const chip = /** @type {Element} */ (target).closest(".chip");
    if (chip) selectToken(+chip.dataset.position);
  });
  function selectToken(position) {
    if (!isB) return select({ query: position });
    if (takeAwaitedPartner()) makeMove({ kind: "pin", a: state.query, b: position });
    else select({ query: positionFromB(position) });
  }
  addRovingFocus(strip, {
    at: () => ({ row: 0, column: isB ? positionInB(state.query) : state.query }),
    size: () => ({ rows: 1, columns: chips().length }),
    go: ({ column }) => {
      selectToken(column);
      chips()[column].focus();
    },
  });
  beginningBox.addEventListener("change", () => makeMove({ kind: "beginning" }));
  shadeSelect.addEventListener("change", () => setState({ shade: shadeSelect.value }));
  onState(markSelection);
  onContent(element, draw);
}

/** The summary of the text and its next token. @param {HTMLElement} element */
export function brief(element) {
  const line = find(element, ".brief");
  line.addEventListener("click", ({ target }) => { if (!/** @type {Element} */ (target).closest(".term")) find(document, "#prompt textarea").focus(); });
  onContent(element, (value) => {
    const values = {
      text: make("span", { className: "text", dir: "auto" }, ...textNodes(value.text)),
      next: span("next", span("label", make("span", { className: "term", dataset: { term: "Step picks" } }, _("Step picks")), ": "), ...tokenNodes(value.next)),
      probability: span("probability", formatShortPercent(value.probability)),
    };
    // The visible text is the accessible name, with words between for screen readers only.
    const pieces = splitMessage(_("{text}: next {next}, probability {probability}"), values);
    line.replaceChildren(...pieces.map((piece) => (typeof piece === "string" ? span("heard", piece) : piece)));
  });
}

const NO_CHARACTER = "\ufffd"; // in place of bytes that make none

/** Return tokens' texts as one, with characters for the bytes that make some; the others stay "\xe2", as in the list of tokens. @param {string} text */
export const joinBytes = (text) => text.replace(/(?:\\x[0-9a-f]{2})+/g, (bytes) => {
  const characters = new TextDecoder().decode(Uint8Array.from(bytes.slice(2).split("\\x"), (hex) => parseInt(hex, 16)));
  return characters.includes(NO_CHARACTER) ? bytes : characters;
});

/** The prompt with the generated text, whose tokens can be clicked to explain them. @param {HTMLElement} element */
export function story(element) {
  const text = makeFocusableWhileScrolling(find(element, ".story")), [prompt, generated, ended] = text.children;
  const updateExplained = () => { for (const node of /** @type {HTMLElement[]} */ (findAll(generated, "[data-position]"))) node.classList.toggle("explained", +node.dataset.position === state.query + 1); };
  generated.addEventListener("click", ({ target }) => {
    const node = /** @type {HTMLElement | null} */ (/** @type {Element} */ (target).closest("[data-position]"));
    if (node) select({ query: Math.max(0, +node.dataset.position - 1) }); // its prediction is that after the token before
  });
  onState(updateExplained);
  onContent(element, (value) => {
    const tail = value.tokens.join(""), isWhole = value.generated.endsWith(tail); // a token may be a part of a character
    const written = value.generated.includes(NO_CHARACTER) && value.tokens.length === state.generated.length ? joinBytes(tail) : value.generated;
    const nodes = value.tokens.map((token, i) => make("span", { title: _("Explain this token"), dataset: { position: value.position + i } }, ...textNodes(token)));
    prompt.textContent = value.prompt;
    generated.replaceChildren(...(isWhole ? [...textNodes(value.generated.slice(0, value.generated.length - tail.length)), ...nodes] : textNodes(written)));
    updateExplained();
    setText(ended, value.ended);
    requestAnimationFrame(() => { text.scrollTop = text.scrollHeight; }); // in a frame, when the layout is up to date anyway
    countDraw(text);
  });
}

const STEP_MS = 500;

/** Buttons and a slider that replay the generated tokens. @param {HTMLElement} element */
export function playback(element) {
  const status = find(element, ".told"), slider = element.querySelector("input");
  const [back, play, forward] = element.querySelectorAll("button");
  let generation = { first: 0, tokens: [], unseen: 0 }, timer = 0, expectedIndex = -1;

  // Index i selects the token before generated token i; the last index selects the last token.
  const lastIndex = () => generation.tokens.length - 1;
  const currentIndex = () => state.query - generation.first;
  const clampIndex = (i) => Math.max(0, Math.min(lastIndex(), i));

  function show(content) {
    generation = content;
    slider.max = String(lastIndex());
    element.hidden = lastIndex() < 1;
    update();
  }

  function update() {
    const index = currentIndex(), total = generation.unseen + lastIndex();
    if (timer && (index !== expectedIndex || element.hidden)) pause(); // another token was selected
    slider.value = String(clampIndex(index));
    back.disabled = index <= 0;
    forward.disabled = index >= lastIndex();
    status.replaceChildren(...(index < 0 ? [textBefore(total)] : index >= lastIndex() ? [textAtEnd(total)] : textBetween(index, total)));
    slider.setAttribute("aria-valuetext", status.textContent);
  }

  const textBefore = (total) => ngettext(
    "A token of the prompt is chosen. Play goes through the {count} generated token.",
    "A token of the prompt is chosen. Play goes through the {count} generated tokens.",
    total,
  );
  const textAtEnd = (total) => isWriting() ? ngettext(
    "{count} token so far",
    "{count} tokens so far",
    total,
  ) : ngettext(
    "The end: {count} token added in all.",
    "The end: {count} tokens added in all.",
    total,
  );
  const textBetween = (index, total) => splitMessage(
    _("step {step} of {total}: after {token} the model wrote {next}"),
    { step: generation.unseen + index + 1, total, token: tokenNode(index), next: tokenNode(index + 1) },
  );
  const tokenNode = (i) => span("token", ...tokenNodes(generation.tokens[i]));

  function showIndex(i) {
    expectedIndex = clampIndex(i);
    select({ query: generation.first + expectedIndex });
  }

  function labelPlayButton(text, ariaLabel) {
    play.textContent = text;
    play.ariaLabel = ariaLabel;
  }

  function pause() {
    clearInterval(timer);
    timer = 0;
    labelPlayButton(_("Play"), _("play"));
  }

  function startPlaying() {
    showIndex(currentIndex() >= lastIndex() ? 0 : currentIndex());
    labelPlayButton(_("Pause"), _("pause"));
    timer = window.setInterval(() => {
      showIndex(currentIndex() + 1);
      if (currentIndex() >= lastIndex()) pause();
    }, STEP_MS);
  }

  function stepTo(i) {
    pause();
    showIndex(i);
  }

  play.addEventListener("click", () => (timer ? pause() : startPlaying()));
  back.addEventListener("click", () => stepTo(currentIndex() - 1));
  forward.addEventListener("click", () => stepTo(currentIndex() + 1));
  slider.addEventListener("input", () => stepTo(+slider.value));
  element.hidden = true;
  onState(update);
  onContent(element, show);
}

/** The tree of continuations. @param {HTMLElement} element */
export function branches(element) {
  const list = find(element, ".tree"), table = find(element, ".leaves"), body = find(table, "tbody");
  let rows = [];

  function draw(content) {
    const focusedIndex = list.contains(document.activeElement) ? rowIndex(document.activeElement) : -1;
    rows = content;
    element.hidden = !rows.length;
    let count = 0;
    for (const row of rows) row.name = row.compared ? ++count : 0;
    list.replaceChildren(...rows.map(branchRow));
    body.replaceChildren(...rows.filter((row) => row.compared).map(comparisonRow));
    table.hidden = count < 2;
    if (focusedIndex >= 0) focusRow(Math.min(focusedIndex, rows.length - 1));
    countDraw(list);
  }

  const rowIndex = (node) => +node.closest(".stretch").dataset.index;
  const focusRow = (i) => list.children[i] && find(list.children[i], ".go").focus();
  const pathTo = (i) => (i < 0 ? [] : [...pathTo(rows[i].parent), ...rows[i].ids]);
  const prune = (i) => makeMove({ kind: "prune", path: [...pathTo(rows[i].parent), rows[i].ids[0]] });

  function branchRow(row, i) {
    const count = row.ids.length, { bits, each: perToken } = row, beginning = row.tokens[0].trim() || _("a space");
    const tokens = ngettext("{count} token", "{count} tokens", count), firstProbability = _("first token {probability}", { probability: row.first });
    const likelihood = count === 1 ? _("log₂ P {bits}", { bits }) : _("log₂ P of all {bits}, {each} per token", { bits, each: perToken });
    const goButton = button("", () => makeMove({ kind: "go", path: pathTo(i) }), { className: "go", title: row.tokens.join("") });
    if (row.here) goButton.ariaCurrent = "true";
    const text = span("text", span("first", ...tokenNodes(row.tokens[0])), span("rest", ...textNodes(row.tokens.slice(1).join(""))));
    if (row.name) text.prepend(span("name", `${row.name}`));
    goButton.append(text, span("figures", [row.origins, firstProbability, tokens, likelihood].filter(Boolean).join(" · ")));
    const pruneButton = button("×", () => prune(i), {
      className: "prune",
      title: _("take away this stretch and all that follows it"),
      ariaLabel: ngettext(
        "take away {count} token beginning with {beginning}",
        "take away {count} tokens beginning with {beginning}",
        count,
        { beginning },
      ),
    });
    const item = make("li", { className: "stretch", dataset: { index: i } }, goButton, pruneButton);
    item.classList.toggle("shown", row.shown);
    item.classList.toggle("here", row.here);
    item.style.setProperty("--depth", String(Math.min(row.depth, 8)));
    item.style.setProperty("--share", row.probability.toFixed(4));
    return item;
  }

  function comparisonRow(row) {
    const name = make("th", { scope: "row" }, span("name", `${row.name}`), row.origins);
    const cells = [row.length, row.total, row.per_token, row.perplexity].map((text) => make("td", {}, `${text}`));
    const tableRow = make("tr", {}, name, ...cells);
    tableRow.classList.toggle("shown", row.here);
    return tableRow;
  }

  // Arrow keys move between rows, and Delete prunes.
  addRovingFocus(list, {
    at: ({ target }) => ({ row: rowIndex(target), column: 0 }),
    size: () => ({ rows: rows.length, columns: 1 }),
    go: ({ row }) => focusRow(row),
  });
  list.addEventListener("keydown", (event) => {
    if (event.key !== "Delete") return;
    event.preventDefault();
    prune(rowIndex(event.target));
  });
  element.hidden = true;
  onContent(element, draw);
}

const STORAGE_KEY = "explorer:visited";
const DOUBLE_CLICK_MS = 500; // longest time between the clicks of a double click
const PROMPT_DELAY_MS = 500; // Gradio updates the prompt's text after the page's state, without an event
const MAX_ENDING_CHARACTERS = 34; // shown before the word to guess

/** The card for guessing the next word. @param {HTMLElement} element */
export function guess(element) {
  const card = find(element, ".guess"), form = /** @type {HTMLFormElement} */ (find(card, "form")), result = find(card, ".seen");
  const box = /** @type {HTMLInputElement} */ (find(form, "input")), choices = find(form, ".choices");
  let isHidden = !readStorage(STORAGE_KEY) && !urlNamesView, wantsToGuessInClass = false, currentPlace = "", isChangingText = false;

  function show(content) {
    const { text } = content;
    const ending = Array.from(text).slice(-MAX_ENDING_CHARACTERS).join("");
    find(form, ".ending").replaceChildren(...textNodes(ending.length < text.length ? `…${ending.replace(/^\S*\s+/, "")}` : text), " ___");
    choices.replaceChildren(...guessChoices(content.candidates).map((word) => button(word, () => { box.value = word; form.requestSubmit(); })));
    find(result, "output").textContent = [describeGuess(content, Boolean(state.guess)), changeSentence()].join(" ").trim();
    card.inert = isChangingText; // a response may still be about the old text
    updateCard();
    setTimeout(scrollPromptToEnd, PROMPT_DELAY_MS);
    countDraw(card);
  }

  function updateCard() {
    const asks = isHidden && (!isLed() || (wantsToGuessInClass && state.view === STORY_TABS[0])); // a class sees at once what its teacher shows
    form.hidden = !asks;
    result.hidden = asks;
    document.body.classList.toggle("guessing", asks && (state.depth ?? initialView().depth) === "story");
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    isHidden = false;
    writeStorage(STORAGE_KEY, "true");
    updateCard();
    changeSettings({ guess: box.value.trim() });
    find(document, "#step").focus({ preventScroll: true });
    document.body.classList.add("guessed");
    ignoreSecondClick();
    requestAnimationFrame(goToTop); // on a phone the focused bar is below everything
  });

  /** Ignore clicks on the list that comes where the button was: the second of a double click. */
  function ignoreSecondClick() {
    const list = find(document, "#next-token");
    list.inert = true;
    setTimeout(() => { list.inert = false; }, DOUBLE_CLICK_MS);
  }

  find(form, ".know").addEventListener("click", () => {
    isHidden = false;
    writeStorage(STORAGE_KEY, "true");
    updateCard();
    find(document, "[data-mode=numbers]").click();
  });
  function askAgain() {
    isHidden = true;
    wantsToGuessInClass = isLed();
    updateCard();
    if (state.view !== STORY_TABS[0]) select({ view: STORY_TABS[0] }); // its figures do not reveal the answer
    box.focus();
  }

  find(result, ".again").addEventListener("click", askAgain);
  const otherTextButton = find(result, ".another"), texts = JSON.parse(otherTextButton.dataset.texts);
  let shownTexts = new Set();
  otherTextButton.addEventListener("click", async () => {
    askAgain();
    isChangingText = card.inert = true; // a guess would be forgotten when the new text arrives
    const { value } = /** @type {HTMLTextAreaElement} */ (find(document, "#prompt textarea")), index = texts.indexOf(value);
    shownTexts.add(value);
    if (texts.every((text) => shownTexts.has(text))) shownTexts = new Set([value]); // start over once all were shown
    const nextText = [...texts.slice(index + 1), ...texts.slice(0, index + 1)].find((text) => !shownTexts.has(text));
    shownTexts.add(nextText);
    const whenRun = runExample(nextText);
    if (index < 0) notify(_("This is another text. Undo brings back the one before."), "", button(_("Undo"), () => { clearNotices(); undo(); }, { className: "plain" }));
    await whenRun;
    isChangingText = card.inert = false;
  });
  let nextButton = null; // stays in one place from step to step
  function updateNextButton() {
    const next = nextStepButton(state.view ?? STORY_TABS[0]), isFocused = nextButton && nextButton === document.activeElement;
    if (next.textContent === nextButton?.textContent) return;
    nextButton?.remove();
    find(result, "p").prepend(nextButton = next);
    if (isFocused) next.focus({ preventScroll: true });
  }
  card.inert = true; // until the first response
  updateNextButton();
  updateCard(); // before the first paint
  document.addEventListener("focusout", scrollPromptToEnd);
  onState(() => {
    updateCard();
    updateNextButton();
    setTimeout(scrollPromptToEnd, PROMPT_DELAY_MS);
    const newPlace = placeKey(state);
    if (currentPlace !== newPlace) box.value = state.guess ?? "";
    currentPlace = newPlace;
  });
  addEventListener("explorer:led", updateCard);
  onContent(element, show);
}

/** Return whether a teacher decides what this page shows. */
const isLed = () => document.body.classList.contains("is-led");

/** Return sentences on the run's interventions and on a second run, which the story shows nowhere else; "" for none. */
function changeSentence() {
  const edits = interventions(), head = edits.length === 1 ? ablatedHead(edits[0]) : null;
  const change = head ? _("Layer {layer} head {head} is off.", head) : edits.length ? _("The model is changed now.") : "";
  return [change, state["b.checkpoint"] && _("Story tells about run A only; Numbers shows B, too.")].filter(Boolean).join(" ");
}

/** Scroll a one-line prompt to its end, where the next word follows, unless it is being edited. */
function scrollPromptToEnd() {
  const box = find(document, "#prompt textarea");
  if (box !== document.activeElement) box.scrollLeft = box.scrollWidth;
}

/** Return a key of the text and the selected position. @param {import("../../static/page_state.js").State} state */
const placeKey = ({ prompt, generated, query }) => `${prompt} ${generated} ${query}`;

// A conversation as the prompt, for models with a chat template: its messages, and the roles of its tokens.

/** @typedef {{ role: string, content: string }} Message */

/** Return the names of the roles of tokens. @returns {Record<string, string>} */
const roleNames = () => ({
  system: _("system"),
  user: _("user"),
  assistant: _("assistant"),
  tool: _("tool"),
  template: _("written by the chat template"),
});

/** @param {HTMLElement} chip @param {string | undefined} role */
function setRole(chip, role) {
  if (role) chip.dataset.role = role;
  else delete chip.dataset.role;
}

/** Return an entry of the strip's legend. @param {string} role */
const roleLegendItem = (role) => make("span", { className: "role", dataset: { role } }, roleNames()[role]);

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
