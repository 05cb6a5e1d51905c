// @ts-check
// The text and how it goes on: its tokens as chips, its end in brief, what was written and how it was played, the tree
// of continuations, and the visitor's guess.
import { makeMove, nextStepButton, select, runExample, changeSettings } from "../../static/page_actions.js";
import { roleKey, roleNames, setRole } from "./chat.js";
import { onContent } from "../../static/widget_contents.js";
import { button, countDraw, find, findAll, listenFor, make, readStorage, writeStorage, focusableWhileScrolling, addRovingFocus, setText, span, setTabStop, isPartOfCharacter, formatPercent, textNodes, tokenNodes } from "../../static/dom.js";
import { STORY_TABS } from "../../static/shared_constants.js";
import { _, messagePieces, ngettext } from "../../static/translations.js";
import { positionInB, urlNamesView, depthOfView, positionFromB, onState, setState, state, takeAwaitedPartner, initialView } from "../../static/page_state.js";

/** @param {HTMLElement} element */
export function tokenStrip(element) {
  const strip = find(element, ".strip"), choice = element.querySelector("select"), parts = find(element, ".parts");
  const begun = find(element, ".beginning"), isBegun = begun.querySelector("input"), legend = find(element, ".roles");
  const isB = find(element, ".tokens").dataset.run === "b"; // what is chosen are tokens of A: of B it is their partners
  const chips = () => findAll(strip, ".chip"), written = new WeakMap(); // a chip's token
  /** @type {string[]} */
  let roles = [];
  let shades = {}, numPrompt = 0, shadedBy = "", drawn = "";

  // Most answers are about the same tokens.
  function draw(content) {
    const text = content ? JSON.stringify(content) : "";
    element.hidden = !content;
    if (!content) strip.replaceChildren(); // where there are tokens, the style sheet keeps a line for them
    else if (text !== drawn) drawAnew(content);
    drawn = text;
    if (!content) return;
    isBegun.checked = content.beginning[1]; // whatever a click made of it
    countDraw(strip);
    mark();
  }

  // A chip stays as long as its token does: few of many change as text is written on.
  function drawAnew(content) {
    const { tokens, num_prompt, earlier, beginning, ...value } = content;
    find(element, ".tokens").classList.toggle("two", isB || "change" in value.shades);
    [shades, numPrompt] = [value.shades, num_prompt];
    const old = chips(), now = tokens.map((token, i) => (old[i] && written.get(old[i]) === token ? old[i] : chipOf(token, i)));
    now.forEach((chip, i) => chip.classList.toggle("generated", i >= num_prompt));
    const changed = now.findIndex((chip, i) => chip !== old[i]), from = changed < 0 ? now.length : changed;
    for (const chip of old.slice(from)) chip.remove();
    strip.append(...now.slice(from));
    strip.querySelector(".earlier")?.remove();
    if (earlier) strip.prepend(span("earlier", wordsOf(earlier)));
    const [expected] = beginning;
    begun.hidden = !expected;
    find(begun, "span").textContent = _("begins with {token}", { token: expected });
    parts.hidden = !tokens.some(isPartOfCharacter);
    roles = content.roles ?? [];
    now.forEach((chip, i) => setRole(chip, roles[i]));
    legend.hidden = !roles.some(Boolean);
    legend.replaceChildren(...Object.keys(roleNames()).filter((role) => roles.includes(role)).map(roleKey));
    shade();
  }

  const wordsOf = (earlier) => ngettext(
    "… {count} earlier token is beyond the model’s context",
    "… {count} earlier tokens are beyond the model’s context",
    earlier,
    { count: earlier.toLocaleString("en") },
  );

  function chipOf(token, i) {
    const chip = make("button", { type: "button", className: "chip", role: "option", dataset: { position: i } }, ...tokenNodes(token));
    written.set(chip, token);
    return chip;
  }

  // The story has no colours: its reader takes them for attention.
  /** @param {import("../../static/page_state.js").State} at */
  const nameOf = ({ view, shade }) => {
    const [only, ...others] = Object.keys(shades);
    if (depthOfView(view) === "story") return "";
    return others.length ? shade ?? choice.value : only;
  };

  function shade() {
    const name = nameOf(state), { shares = [], words = [] } = shades[name] || {};
    choice.parentElement.hidden = Object.keys(shades).length < 2;
    if (name) choice.value = name;
    shadedBy = name;
    chips().forEach((chip, i) => {
      chip.style.setProperty("--share", String(Math.abs(shares[i] ?? 0)));
      chip.classList.toggle("less", shares[i] < 0);
      const place = _("position {position}", { position: i }), origin = i < numPrompt ? "" : _("generated");
      chip.title = [place, origin, roleNames()[roles[i]], words[i]].filter(Boolean).join(", ");
    });
  }

  function mark() {
    if (nameOf(state) !== shadedBy) shade();
    const isClean = (state.clean_run ?? "b") === (isB ? "b" : "a");
    strip.dataset.role = state.view !== "patching" ? "" : isClean ? _("clean") : _("corrupted");
    const [query, key] = [state.query, state.key].map((position) => (isB ? positionInB(position) : position));
    const all = chips(), chosen = all[query] ?? null;
    all.forEach((chip, position) => {
      chip.ariaSelected = String(chip === chosen);
      chip.classList.toggle("key", position === key);
    });
    setTabStop(all, chosen);
    if (chosen) requestAnimationFrame(() => reveal(chosen));
  }

  // Scrolls the strip, and only the strip, so that the chip is in sight.
  function reveal(chip) {
    const left = chip.offsetLeft - strip.offsetLeft, right = left + chip.offsetWidth, around = 96; // pixels of its neighbours, and of what sticks there
    if (left < strip.scrollLeft) strip.scrollLeft = left - around;
    else if (right > strip.scrollLeft + strip.clientWidth) strip.scrollLeft = right - strip.clientWidth + around;
  }

  strip.addEventListener("click", ({ target }) => {
    /** @type {HTMLElement} */
    const chip = /** @type {Element} */ (target).closest(".chip");
    if (chip) choose(+chip.dataset.position);
  });
  function choose(position) {
    if (!isB) return select({ query: position });
    if (takeAwaitedPartner()) makeMove({ kind: "pin", a: state.query, b: position });
    else select({ query: positionFromB(position) });
  }
  addRovingFocus(strip, {
    at: () => ({ row: 0, column: isB ? positionInB(state.query) : state.query }),
    size: () => ({ rows: 1, columns: chips().length }),
    go: ({ column }) => {
      choose(column);
      chips()[column].focus();
    },
  });
  isBegun.addEventListener("change", () => makeMove({ kind: "beginning" }));
  choice.addEventListener("change", () => setState({ shade: choice.value }));
  onState(element, mark);
  onContent(element, draw);
}

/** @param {HTMLElement} element */
export function brief(element) {
  const line = find(element, ".brief");
  line.addEventListener("click", () => find(document, "#prompt textarea").focus());
  onContent(element, (value) => {
    const values = {
      text: make("span", { className: "text", dir: "auto" }, ...textNodes(value.text)),
      next: span("next", span("label", `${_("will be drawn")}: `), ...tokenNodes(value.next)),
      probability: span("probability", formatPercent(value.probability)),
    };
    // What is seen is the name, with words between that are only heard.
    const pieces = messagePieces(_("{text}: next {next}, probability {probability}"), values);
    line.replaceChildren(...pieces.map((piece) => (typeof piece === "string" ? span("heard", piece) : piece)));
  });
}

/** @param {HTMLElement} element */
export function story(element) {
  const text = focusableWhileScrolling(find(element, ".story")), [prompt, generated, ended] = text.children;
  onContent(element, (value) => {
    prompt.textContent = value.prompt;
    generated.replaceChildren(...textNodes(value.generated));
    setText(ended, value.ended);
    requestAnimationFrame(() => { text.scrollTop = text.scrollHeight; }); // once a frame the page's layout is known anyway
    countDraw(text);
  });
}

const STEP_MS = 500;

/** @param {HTMLElement} element */
export function playback(element) {
  const told = find(element, ".told"), slider = element.querySelector("input");
  const [back, play, forward] = element.querySelectorAll("button");
  let value = { first: 0, tokens: [], unseen: 0 }, timer = 0, playedTo = -1;

  // Place i is after the token before the generated token i; the last place is after them all.
  const last = () => value.tokens.length - 1;
  const place = () => state.query - value.first;
  const within = (i) => Math.max(0, Math.min(last(), i));

  function show(content) {
    value = content;
    slider.max = String(last());
    element.hidden = last() < 1;
    follow();
  }

  function follow() {
    const at = place(), total = value.unseen + last();
    if (timer && (at !== playedTo || element.hidden)) pause(); // somebody chose another token
    slider.value = String(within(at));
    back.disabled = at <= 0;
    forward.disabled = at >= last();
    told.replaceChildren(...(at < 0 ? [before(total)] : at >= last() ? [behind(total)] : between(at, total)));
    slider.setAttribute("aria-valuetext", told.textContent);
  }

  const before = (total) => ngettext(
    "The prompt is on show. Play goes through the {count} generated token.",
    "The prompt is on show. Play goes through the {count} generated tokens.",
    total,
  );
  const behind = (total) => ngettext(
    "The end: {count} token added.",
    "The end: {count} tokens added.",
    total,
  );
  const between = (at, total) => messagePieces(
    _("step {step} of {total}: after {token} the model wrote {next}"),
    { step: value.unseen + at + 1, total, token: token(at), next: token(at + 1) },
  );
  const token = (i) => span("token", ...tokenNodes(value.tokens[i]));

  function go(i) {
    playedTo = within(i);
    select({ query: value.first + playedTo });
  }

  function label(text, ariaLabel) {
    play.textContent = text;
    play.ariaLabel = ariaLabel;
  }

  function pause() {
    clearInterval(timer);
    timer = 0;
    label(_("Play"), _("play"));
  }

  function start() {
    go(place() >= last() ? 0 : place());
    label(_("Pause"), _("pause"));
    timer = window.setInterval(() => {
      if (!element.isConnected) return pause();
      go(place() + 1);
      if (place() >= last()) pause();
    }, STEP_MS);
  }

  function stepTo(i) {
    pause();
    go(i);
  }

  play.addEventListener("click", () => (timer ? pause() : start()));
  back.addEventListener("click", () => stepTo(place() - 1));
  forward.addEventListener("click", () => stepTo(place() + 1));
  slider.addEventListener("input", () => stepTo(+slider.value));
  element.hidden = true;
  onState(element, follow);
  onContent(element, show);
}

/** @param {HTMLElement} element */
export function branches(element) {
  const list = find(element, ".tree"), table = find(element, ".leaves"), body = find(table, "tbody");
  let rows = [];

  function draw(content) {
    const focused = list.contains(document.activeElement) ? indexOf(document.activeElement) : -1;
    rows = content;
    element.hidden = !rows.length;
    let count = 0;
    for (const row of rows) row.name = row.compared ? ++count : 0;
    list.replaceChildren(...rows.map(stretch));
    body.replaceChildren(...rows.filter((row) => row.compared).map(compared));
    table.hidden = count < 2;
    if (focused >= 0) focus(Math.min(focused, rows.length - 1));
    countDraw(list);
  }

  const indexOf = (within) => +within.closest(".stretch").dataset.index;
  const focus = (i) => list.children[i] && find(list.children[i], ".go").focus();
  const pathTo = (i) => (i < 0 ? [] : [...pathTo(rows[i].parent), ...rows[i].ids]);
  const take = (i) => makeMove({ kind: "prune", path: [...pathTo(rows[i].parent), rows[i].ids[0]] });

  function stretch(row, i) {
    const count = row.ids.length, { bits, each } = row, beginning = row.tokens[0].trim() || _("a space");
    const tokens = ngettext("{count} token", "{count} tokens", count), first = _("first token {probability}", { probability: row.first });
    const likely = count === 1 ? _("log₂ P {bits}", { bits }) : _("log₂ P of all {bits}, {each} per token", { bits, each });
    const go = button("", () => makeMove({ kind: "go", path: pathTo(i) }), { className: "go", title: row.tokens.join("") });
    if (row.here) go.ariaCurrent = "true";
    const text = span("text", span("first", ...tokenNodes(row.tokens[0])), span("rest", ...textNodes(row.tokens.slice(1).join(""))));
    if (row.name) text.prepend(span("name", `${row.name}`));
    go.append(text, span("figures", [row.origins, first, tokens, likely].filter(Boolean).join(" · ")));
    const prune = button("×", () => take(i), {
      className: "prune",
      title: _("take away this stretch and all that follows it"),
      ariaLabel: ngettext(
        "take away {count} token beginning with {beginning}",
        "take away {count} tokens beginning with {beginning}",
        count,
        { beginning },
      ),
    });
    const item = make("li", { className: "stretch", dataset: { index: i } }, go, prune);
    item.classList.toggle("shown", row.shown);
    item.classList.toggle("here", row.here);
    item.style.setProperty("--depth", String(Math.min(row.depth, 8)));
    item.style.setProperty("--share", row.probability.toFixed(4));
    return item;
  }

  function compared(row) {
    const name = make("th", { scope: "row" }, span("name", `${row.name}`), row.origins);
    const cells = [row.length, row.total, row.per_token, row.perplexity].map((text) => make("td", {}, `${text}`));
    const line = make("tr", {}, name, ...cells);
    line.classList.toggle("shown", row.here);
    return line;
  }

  // The arrow keys go from row to row, Delete prunes.
  addRovingFocus(list, {
    at: ({ target }) => ({ row: indexOf(target), column: 0 }),
    size: () => ({ rows: rows.length, columns: 1 }),
    go: ({ row }) => focus(row),
  });
  list.addEventListener("keydown", (event) => {
    if (event.key !== "Delete") return;
    event.preventDefault();
    take(indexOf(event.target));
  });
  element.hidden = true;
  onContent(element, draw);
}

const VISITED = "explorer:visited"; // its place in the browser's storage

const PROMPT_MS = 500; // Gradio writes the prompt's text after the page's state, without an event
const MAX_ENDING = 34; // characters of the text before the word that is to be guessed

/** @param {HTMLElement} element */
export function guess(element) {
  const card = find(element, ".guess"), form = /** @type {HTMLFormElement} */ (find(card, "form")), seen = find(card, ".seen");
  const box = /** @type {HTMLInputElement} */ (find(form, "input")), choices = find(form, ".choices");
  let isHidden = !readStorage(VISITED) && !urlNamesView, place = null;
  let guessedAt = null; // the place that the guess in the state is about

  function show({ choices: words, says, told, wrote, text }) {
    const end = Array.from(text).slice(-MAX_ENDING).join("");
    find(form, ".ending").replaceChildren(...textNodes(end.length < text.length ? `…${end.replace(/^\S*\s+/, "")}` : text), " ___");
    choices.replaceChildren(...words.map((word) => button(word, () => { box.value = word; form.requestSubmit(); })));
    find(seen, "output").textContent = (guessedAt === savedPlace(state) && told) || wrote || says;
    card.inert = false;
    reveal();
    setTimeout(showEndOfPrompt, PROMPT_MS);
    countDraw(card);
  }

  function reveal() {
    form.hidden = !isHidden;
    seen.hidden = isHidden;
    coverTheAnswer();
  }

  function coverTheAnswer() { document.body.classList.toggle("guessing", isHidden && (state.depth ?? initialView().depth) === "story"); }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    isHidden = false;
    writeStorage(VISITED, "true");
    reveal();
    guessedAt = savedPlace(state);
    changeSettings({ guess: box.value.trim() });
    find(document, "#step").focus({ preventScroll: true });
    document.body.classList.add("guessed");
    if (matchMedia("(max-width: 600px)").matches) requestAnimationFrame(() => find(document, "#columns").scrollIntoView()); // there the bar, which has the focus, is below all
  });
  find(form, ".know").addEventListener("click", () => {
    isHidden = false;
    writeStorage(VISITED, "true");
    reveal();
    find(document, "[data-mode=numbers]").click();
  });
  function askAgain() {
    isHidden = true;
    reveal();
    if (state.view !== STORY_TABS[0]) select({ view: STORY_TABS[0] }); // where no figure tells the answer
    box.focus();
  }

  find(seen, ".again").addEventListener("click", askAgain);
  const another = find(seen, ".another"), texts = JSON.parse(another.dataset.texts);
  let played = new Set(); // in this visit
  another.addEventListener("click", () => {
    askAgain();
    card.inert = true; // until there are words for it
    const { value } = /** @type {HTMLTextAreaElement} */ (find(document, "#prompt textarea")), at = texts.indexOf(value);
    played.add(value);
    if (texts.every((text) => played.has(text))) played = new Set([value]); // all of them: from the beginning
    const coming = [...texts.slice(at + 1), ...texts.slice(0, at + 1)].find((text) => !played.has(text));
    played.add(coming);
    runExample(coming);
  });
  const next = nextStepButton(STORY_TABS[0]);
  if (next) find(seen, "p").prepend(next);
  card.inert = true; // until there is something to guess
  reveal(); // before it is seen at all
  // A guess is told as long as the place is the same.
  listenFor(element, document, "focusout", showEndOfPrompt);
  onState(element, () => {
    coverTheAnswer();
    setTimeout(showEndOfPrompt, PROMPT_MS);
    const now = savedPlace(state);
    if (place === now) return;
    if (place === null && state.guess) guessedAt = now; // the address has it
    place = now;
    if (guessedAt !== now && state.guess) setState({ guess: "" });
    box.value = state.guess ?? "";
  });
  onContent(element, show);
}

/** Where the prompt is a single line that is not being written in, its end is in sight: the next word comes there. */
function showEndOfPrompt() {
  const box = find(document, "#prompt textarea");
  if (box !== document.activeElement) box.scrollLeft = box.scrollWidth;
}

/** @param {import("../../static/page_state.js").State} at */
const savedPlace = ({ prompt, generated, query }) => `${prompt} ${generated} ${query}`;
