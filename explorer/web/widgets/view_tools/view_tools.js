// @ts-check
// What a view is controlled by: fields of the selection, changes to the model, prompts to choose from, the second run,
// and the step of the training.
import { ablatedHead, addIntervention, changeModel, chooseCheckpoint, interventions, makeMove, select, runPrompt, setInterventions, showRuns, showProbabilityChange } from "../../static/page_actions.js";
import { call, Refused } from "../../static/server_connection.js";
import { hasStaleFigures, widgetBlock, onContent } from "../../static/widget_contents.js";
import { makeLink } from "../../static/history.js";
import { button, closeMenu, countDraw, find, findAll, foldButton, hide, make, readStorage, writeStorage, setText, span, toggleFold } from "../../static/dom.js";
import { _, messagePieces } from "../../static/translations.js";
import { COMPARING, EFFECT } from "../../static/shared_constants.js";
import { awaitPartnerToken, setAlignment, isPartnerAwaited, modelName, onState, state } from "../../static/page_state.js";

const INLINE_LISTS = 2; // as in page.css

/** @param {HTMLElement} element */
export function choosers(element) {
  const box = find(element, ".choosers"), fold = foldButton();
  let built = new Map(), shown = []; // what a list shows, as JSON -> the list; what they show

  // A list that shows the same as before stays, and with it the keyboard's focus. While text is written those alone are
  // given that name its tokens; the others stay.
  function build({ choices, all }) {
    shown = choices = all ? choices : shown.map((old) => choices.find(({ field }) => field === old.field) ?? old);
    const lists = choices.map((choice) => [JSON.stringify(choice), choice]);
    const before = built;
    built = new Map(lists.map(([text, choice]) => [text, before.get(text) || listOf(choice)]));
    for (const label of before.values()) if (![...built.values()].includes(label)) label.remove();
    const wanted = [...built.values()].filter((label) => !isHeld(label));
    if (wanted.some((label, i) => label !== box.children[i]) || wanted.length !== box.children.length) box.replaceChildren(...wanted);
    follow();
  }

  // The list of a figure that has a place for it stands there, in its line.
  function isHeld(label) {
    const holder = find(element.closest(".tabitem"), `[data-holds="${find(label, "[data-field]").dataset.field}"]`);
    if (holder && label.parentElement !== holder) holder.append(label);
    return Boolean(holder);
  }
  const fields = () => [...built.values()].map((label) => find(label, "[data-field]"));

  function listOf({ field, title, options, most, free }) {
    const label = free ? written(field, title, options) : listed(field, title, options, most);
    label.addEventListener("change", choose);
    return label;
  }

  function listed(field, title, options, most) {
    const range = { type: "number", min: 0, max: most, title: _("0 to {most}", { most }) };
    if (!options) return make("label", {}, span("", title), make("input", { ...range, dataset: { field } }));
    const items = options.map(([value, text]) => make("option", { value, text, dataset: { number: typeof value === "number" } }));
    return make("label", {}, span("", title), make("select", { dataset: { field } }, ...items));
  }

  // Any text, with some to choose from; the one of "" is what an empty box stands for.
  function written(field, title, options) {
    const id = `${widgetBlock(element).id}-${field}`, [[, nothing], ...some] = options;
    const list = make("datalist", { id }, ...some.map(([value]) => make("option", { value })));
    const input = make("input", { type: "text", maxLength: 40, placeholder: nothing, spellcheck: false, dataset: { field } });
    input.setAttribute("list", id);
    return make("label", {}, span("", title), input, list);
  }

  function follow() {
    for (const list of fields()) {
      /** @type {HTMLInputElement | HTMLSelectElement} */ (list).value = state[list.dataset.field];
      if (list instanceof HTMLSelectElement && list.selectedIndex < 0)
        list.selectedIndex = list.options.length - 1; // a token so new that it is not listed yet
    }
    fold.hidden = !shown.length;
    setText(fold, findAll(box, "label").map(chosen).join(" · "));
  }

  function chosen(label) {
    const list = /** @type {HTMLInputElement | HTMLSelectElement} */ (find(label, "[data-field]"));
    const value = list instanceof HTMLSelectElement ? list.selectedOptions[0]?.text : list.value || list.placeholder;
    return `${label.firstChild.textContent} ${value}`;
  }

  const choose = ({ target: list }) => {
    if (list instanceof HTMLSelectElement) {
      const [{ value, dataset }] = list.selectedOptions;
      return select({ [list.dataset.field]: dataset.number === "true" ? +value : value });
    }
    const { dataset, value, max, type } = /** @type {HTMLInputElement} */ (list);
    if (type === "text") return select({ [dataset.field]: value });
    select({ [dataset.field]: Math.round(Math.max(0, Math.min(+max, +value))) });
  };
  // The first few are in a line; all, at a button.
  const rest = button("⋯", () => { rest.ariaExpanded = String(box.classList.toggle("whole")); });
  Object.assign(rest, { className: "rest", ariaExpanded: "false", ariaLabel: _("more settings"), title: _("more settings") });
  box.after(rest);
  box.before(fold);
  onState(element, follow);
  onContent(element, (content) => {
    build(content);
    rest.hidden = shown.length <= INLINE_LISTS;
  });
}

const MAX_FIRST_CONTROLS = 3; // of more, the first alone is there at first
let put = null; // the changes that there were when a control was used last

/** @param {string[]} changed */
function putEdits(changed) {
  setInterventions(changed);
  put = state.edits;
}

/** @param {HTMLElement} element */
export function whatIfs(element) {
  const box = find(element, ".what-ifs"), fold = foldButton(), more = button("", () => {
    toggleFold(more);
    writeStorage("explorer-more-changes", String(more.ariaExpanded));
  }, { className: "more-changes" });
  let built = new Map(); // what a control offers, as JSON -> the control
  let offered = []; // what was shown last

  // Whether controls change the chosen token alone: from the beginning where the run has such a change.
  const only = make("input", { type: "checkbox" });
  const onlyHere = make("label", { className: "only-here" }, only, span("", _("only at the chosen token")));
  only.addEventListener("input", () => {
    put = state.edits;
    showAmounts();
  });
  const isHere = (offer) => only.checked && !!offer.here;
  const showAmounts = () => offered.forEach(({ amount, amountHere, ...offer }) => {
    const { label, show } = built.get(JSON.stringify(offer));
    const isMoved = label.contains(document.activeElement) && state.edits === put; // it is ahead of what was answered
    if (!isMoved) show(isHere(offer) ? amountHere : amount);
  });

  // A control that offers the same as before stays, so that no slider is replaced under the hand that moves it.
  onContent(element, (offers) => {
    const before = built;
    built = new Map(offers.map(({ amount, amountHere, ...offer }) => [JSON.stringify(offer), offer])
      .map(([kind, offer]) => [kind, before.get(kind) || (offer.scopes.length ? listOf(offer) : control(offer, isHere))]));
    const labels = [...built.values()].map(({ label }) => label);
    if (offers.some(({ here }) => here)) labels.splice(offers.length > MAX_FIRST_CONTROLS ? 1 : labels.length, 0, onlyHere);
    if (offers.length > MAX_FIRST_CONTROLS) labels.splice(labels.indexOf(onlyHere) === 1 ? 2 : 1, 0, more);
    setText(more, _("{count} more changes", { count: offers.length - 1 }));
    more.ariaExpanded = readStorage("explorer-more-changes") ?? "false"; // as it was left
    more.hidden = Boolean(state.lesson);
    if (labels.some((label, i) => label !== box.children[i]) || labels.length !== box.children.length) box.replaceChildren(...labels);
    if (!before.size || state.edits !== put) only.checked = offers.some((offer) => offer.here && offer.amountHere !== offer.default);
    offered = offers;
    showAmounts();
    if (!state.edits && put && fold.ariaExpanded === "true" && !box.contains(document.activeElement)) toggleFold(fold); // taken back elsewhere
    if (!state.edits) put = "";
    const isSaidByAnother = ({ ablates, everywhere: [, place] }) => ablates && interventions().includes(ablationOf(place));
    const changed = offers.filter((offer) => (offer.amount !== offer.default || offer.amountHere !== offer.default) && !isSaidByAnother(offer)).length;
    fold.hidden = !offers.length;
    setText(fold, changed ? _("Changes: {count}", { count: changed }) : _("Change"));
  });
  let isInLesson = Boolean(state.lesson);
  onState(element, () => { // a lesson begins with it closed
    if (state.lesson && !isInLesson && fold.ariaExpanded === "true") toggleFold(fold);
    isInLesson = Boolean(state.lesson);
  });
  box.before(fold);
}

/** The ablation of what a slider scales; the slider is then at 0, and ends it by being moved. @param {string} scale */
const ablationOf = (scale) => scale.replace(/scale$/, "zero");

// A list of how much of the model a change holds for; and what has it show which is chosen, from 1, or 0 for none.
function listOf({ title, scopes }) {
  const texts = scopes.map(([, text]) => text);
  const list = make("select", {}, new Option(_("off"), "0"), ...scopes.map(([words], i) => new Option(words, `${i + 1}`)));
  list.addEventListener("change", () => {
    const others = interventions().filter((edit) => !texts.includes(edit));
    putEdits(list.selectedIndex ? addIntervention(others, texts[list.selectedIndex - 1]) : others);
  });
  return { label: make("label", {}, span("", title), list), show: (amount) => (list.selectedIndex = amount) };
}

// A slider with its number, or a switch, with its words; and what has it show an amount.
function control(offer, isHere) {
  const input = make("input", { type: offer.switch ? "checkbox" : "range", dataset: { edit: offer.edit } });
  const title = span("", offer.title), number = make("input", { type: "number", step: "any", ariaLabel: offer.title }), kind = make("output");
  const place = (amount) => (offer.log ? Math.log10(amount) : amount);
  const amountAt = (position) => (offer.log ? +(10 ** position).toPrecision(3) : position);
  const [least, most] = [offer.minimum, offer.maximum].map(amountAt);
  if (!offer.switch) [input.min, input.max, input.step] = [offer.minimum, offer.maximum, offer.log ? "any" : offer.step];
  [number.min, number.max] = [String(least), String(most)];
  const label = make("label", {}, ...(offer.switch ? [input, title] : [title, input, number, kind]));
  const written = (amount) => String(+amount.toPrecision(4));
  const tell = (amount) => {
    number.value = written(amount);
    setText(kind, amount === offer.default ? _("as it is") : offer.ablates && amount === 0 ? _("ablated") : "");
  };
  const change = (amount) => {
    tell(amount);
    const [text, inPlaceOf] = isHere(offer) ? offer.here : offer.everywhere;
    const edit = offer.switch ? input.checked && text : amount !== offer.default && `${text}*${amount}`;
    const ended = offer.ablates ? [inPlaceOf, ablationOf(inPlaceOf)] : [inPlaceOf];
    const others = interventions().filter((other) => !ended.includes(other) && !other.startsWith(`${inPlaceOf}*`));
    putEdits(edit ? addIntervention(others, edit) : others);
  };
  input.addEventListener("input", () => {
    const isNear = Math.abs(+input.value - place(offer.default)) < offer.step / 2;
    change(isNear ? offer.default : amountAt(+input.value));
  });
  number.addEventListener("change", () => {
    const amount = number.value === "" ? offer.default : Math.max(least, Math.min(most, +number.value));
    input.value = String(place(amount));
    change(written(amount) === written(offer.default) ? offer.default : amount);
  });
  return {
    label,
    show(amount) {
      if (offer.switch) input.checked = amount === 1;
      else input.value = place(amount);
      tell(amount);
    },
  };
}

/** @param {HTMLElement} element */
export function changes(element) {
  const box = find(element, ".changes");
  const whatItDid = makeLink(_("what it did"), { view: "experiments", depth: "numbers" }, "experiments-next_token_change");
  onState(element, () => { whatItDid.hidden = state.view === "experiments"; });
  const takeBack = (of, text, label, left, dataset = {}) => button(text, () => setInterventions(left(), of), { ariaLabel: label, dataset });

  /** @param {import("../../static/page_actions.js").Edits} of @param {[string, string][]} made */
  function listed(of, made) {
    const heads = made.map(([edit]) => ablatedHead(edit)), isPlain = ["story", "numbers"].includes(document.body.dataset.depth ?? "");
    /** @type {HTMLElement[]} */
    const buttons = made.map(([edit, described], i) => {
      const words = isPlain && heads[i] ? _("Layer {layer} head {head} is switched off", heads[i]) : described;
      return takeBack(of, `${words} ✕`, _("take back: {words}", { words }), () => interventions(of).filter((other) => other !== edit), { edit, words });
    });
    if (made.length > 1) buttons.push(takeBack(of, _("take all back"), _("take all back"), () => []));
    if (of === "edits" && made.length) buttons.push(whatItDid);
    const without = heads.every(Boolean) ? (made.length === 1 ? _("{changes} Everything is computed without it.") : _("{changes} Everything is computed without them.")) : _("The model is changed: {changes} Everything is computed so.");
    const told = of === "edits" ? without : _("B is changed: {changes}");
    return made.length ? [span("of", ...messagePieces(told, { changes: buttons }))] : [];
  }

  /** Keeps the switch in a figure that was pressed under the pointer. @param {() => void} write */
  function writeAbove(write) {
    const control = document.activeElement?.closest(".acts"), before = control?.getBoundingClientRect().top;
    write();
    if (control) scrollBy({ top: control.getBoundingClientRect().top - before, behavior: "instant" });
  }

  hide(element, true);
  let shown = { edits: [] }, depth = "";
  const write = () => writeAbove(() => {
    depth = document.body.dataset.depth ?? "";
    hide(element, !Object.values(shown).some((each) => each.length));
    box.replaceChildren(...listed("edits", shown.edits), ...listed("b.edits", shown["b.edits"] ?? []));
  });
  onState(element, () => { if (depth !== document.body.dataset.depth) requestAnimationFrame(write); }); // its words differ
  onContent(element, (made) => { shown = made; write(); });
  onContent(element, ({ words, chances }) => writeAbove(() => { setText(find(element, ".effect"), words); showProbabilityChange(chances); }), EFFECT);
}

/** @param {HTMLElement} element */
export function promptLists(element) {
  const boxes = /** @type {HTMLTextAreaElement[]} */ (findAll(element, "textarea"));
  const make = find(element, "button"), told = find(element, ".error");
  let shown = ""; // the lists that the boxes began with, as JSON: what somebody writes stays until there are others

  onContent(element, (content) => {
    hide(element, !content);
    told.textContent = ""; // it was of what is another now
    if (!content) return;
    make.textContent = content.make;
    const lists = JSON.stringify(content.lists);
    if (lists === shown) return;
    shown = lists;
    boxes.forEach((box, i) => { box.value = content.lists[i]; });
  });

  make.addEventListener("click", async () => {
    told.textContent = "";
    try { select({ direction: await call("direction_of_lists", [state, ...boxes.map((box) => box.value)]) }); }
    catch (error) { if (error instanceof Refused) told.textContent = error.message; }
  });
}

/** @param {HTMLElement} element */
export function promptPairs(element) {
  const menu = /** @type {HTMLDetailsElement} */ (find(element, ".pairs")), list = find(menu, "div"), ready = find(element, ".ready");
  closeMenu(menu);
  // Where one prompt is open yet, they stand in the empty place of the figures.
  function follow() {
    const prompt = String(state["b.prompt"] ?? ""), isAlone = !state["b.checkpoint"] || !prompt || prompt === String(state.prompt);
    menu.hidden = isAlone;
    ready.hidden = !isAlone;
    (isAlone ? ready : list).append(...findAll(element, "[data-pair]"));
  }
  onState(element, follow);
  follow();
  for (const button of findAll(element, "[data-pair]"))
    button.addEventListener("click", () => {
      menu.open = false;
      makeMove({ kind: "pair", pair: +button.dataset.pair });
    });
}

/** @param {HTMLElement} element */
export function advice(element) {
  const line = find(element, ".advice");

  function show({ words, offer }) {
    hide(element, !words);
    line.replaceChildren(words);
    if (!offer) return;
    const end = `${offer.length > 24 ? "…" : ""}${offer.slice(-24)}`;
    const use = () => runPrompt(offer, true);
    line.append(button(_("Use this prompt: {end}", { end }), use, { title: offer }));
  }

  hide(element, true);
  onContent(element, show);
}

// Going through figures by itself at a steady pace, the next one only once the one before is painted: none pile up.

const EVERY_MS = 800, SOON_MS = 20, PATIENCE_MS = 15_000; // that a figure may take, or else there is none

/**
 * @param {() => boolean} advance goes on to the next; says whether there is another after it
 * @param {() => boolean} isBusy whether the one before is still to be painted
 * @param {(isPlaying: boolean) => void} tell when it begins and ends
 */
export function player(advance, isBusy, tell) {
  let timer = null, since = 0;

  function look() {
    const waited = performance.now() - since;
    if (isBusy() && waited > PATIENCE_MS) return void stop();
    if (isBusy() || waited < EVERY_MS) return wait();
    since = performance.now();
    if (advance()) wait();
    else stop();
  }
  function wait() { timer = setTimeout(look, SOON_MS); }

  /** Says whether it was playing. */
  function stop() {
    const wasPlaying = timer !== null;
    clearTimeout(timer);
    timer = null;
    if (wasPlaying) tell(false);
    return wasPlaying;
  }

  return {
    stop,
    /** What is on show stays as long as any other, but for what it has stayed already. */
    start() {
      since = performance.now() - EVERY_MS;
      tell(true);
      wait();
    },
  };
}

// A slider over the steps of its training that a model was kept at. They stand evenly, so that steps which double each
// time are on a logarithmic scale.

/** A checkpoint's name, when it was kept in words, and what is written below its place. @typedef {[string, string, string]} Moment */

const MOST_TICKS = 14; // that have room on a wide screen; of a narrow one every second or fourth of them has

/**
 * @param {HTMLElement} box where it is put first
 * @param {"checkpoint" | "b.checkpoint"} of which run's
 * @param {string} name
 */
function stepSlider(box, of, name) {
  const slider = make("input", { type: "range", min: "0", step: "1", ariaLabel: name });
  const told = make("output", { className: "step" }), ticks = make("span", { className: "ticks", ariaHidden: "true" });
  /** @type {Moment[]} */
  let moments = [];

  const last = () => moments.length - 1;
  const place = () => moments.findIndex(([checkpoint]) => checkpoint === state[of]);
  const go = (i) => chooseCheckpoint(moments[Math.max(0, Math.min(last(), i))][0], of);

  /** @param {Moment[]} content */
  function show(content) {
    if (JSON.stringify(content) !== JSON.stringify(moments)) {
      moments = content;
      slider.max = String(last());
      const every = Math.ceil(moments.length / MOST_TICKS);
      ticks.replaceChildren(...moments.map(([, , text], i) => tick(text, i / last(), last() - i, every)));
    }
    follow();
  }

  function follow() {
    const [, words] = moments[place()] ?? ["", ""], run = of === "checkpoint" ? "A" : "B";
    slider.value = String(place());
    slider.setAttribute("aria-valuetext", words);
    setText(told, state["b.checkpoint"] && words ? `${run}: ${words}` : words);
  }

  slider.addEventListener("input", () => go(+slider.value));
  box.prepend(told, span("track", slider, ticks));
  return { show, follow, go, place, last, nameAt: (i) => moments[i][0] };
}

// The text stands below every so manieth place, counted from the last.
function tick(text, share, fromLast, every) {
  const isSaid = fromLast % every === 0, nth = fromLast / every;
  const made = span(isSaid ? ["tick", nth % 2 ? "" : "second", nth % 4 ? "" : "fourth"].join(" ").trim() : "tick", isSaid ? text : "");
  made.style.setProperty("--share", String(share));
  return made;
}

/** @param {HTMLElement} element */
export function runs(element) {
  const box = find(element, ".runs"), ways = find(box, ".ways"), two = find(box, ".two"), step = find(document, "#series .series + .training-step"); // below A's
  const steps = stepSlider(step, "b.checkpoint", _("step of the training of B"));
  let value = null, typing = false;

  function draw(content) {
    value = content;
    setAlignment(value.two);
    two.hidden = !value.two || typing;
    widgetBlock(element).classList.toggle("in-use", !two.hidden);
    ways.hidden = !two.hidden;
    step.hidden = !value.two?.moments.length;
    steps.show(value.two?.moments ?? []);
    if (two.hidden) ways.replaceChildren(...waysIn());
    else two.replaceChildren(...compared());
    countDraw(box);
  }

  const isAlone = () => COMPARING.includes(state.view) && !value.two; // a view of two runs, with one

  function waysIn() {
    /** @type {HTMLElement[]} */
    const found = [anotherPrompt()];
    if (value.step) found.push(button(_("another training step"), () => withModel(value.step), { title: _("The step before this one (for the first, the step after). A slider then chooses any step.") }));
    if (value.models.length) found.push(modelList(_("another model")));
    if (value.changed) found.push(button(_("without the changes"), () => makeMove({ kind: "compare", with: "unchanged" })));
    const menu = make("details", { className: "menu" }, make("summary", {}, _("compare with")), make("div", {}, ...found));
    closeMenu(menu);
    return typing || isAlone() ? [menu, promptBox()] : [menu];
  }

  const anotherPrompt = (properties) => button(_("another prompt"), () => {
    typing = true;
    openMore(false);
    draw(value);
    const box = /** @type {HTMLInputElement} */ (find(ways, "input"));
    box.focus();
    box.select(); // the run's own prompt, to be changed or typed over
  }, properties);

  function promptBox() {
    const input = make("input", { type: "text", value: value.two?.prompt ?? value.prompt, maxLength: 4000, ariaLabel: _("the other prompt"), spellcheck: false });
    const form = make("form", {}, input, make("button", { type: "submit" }, _("Compare")),
      button("×", () => { typing = false; draw(value); }, { ariaLabel: _("no other prompt"), hidden: isAlone() }));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      typing = false;
      makeMove({ kind: "compare", with: "prompt", text: input.value });
    });
    input.addEventListener("keydown", ({ key }) => { if (key === "Escape") { typing = false; draw(value); } });
    return form;
  }

  const withModel = (checkpoint) => makeMove({ kind: "compare", with: "model", checkpoint });

  function modelList(title) {
    const list = make("select", { ariaLabel: title }, new Option(title, ""), ...value.models.map(([model, checkpoint]) => new Option(model, checkpoint)));
    list.addEventListener("change", () => { if (list.value) withModel(list.value); });
    return list;
  }

  function compared() {
    const { about, aligned, gaps, pins } = value.two;
    const shown = [["a", "A"], ["b", "B"], ["difference", "A − B"], ["both", "A | B"]].map(([name, text]) =>
      button(text, () => showRuns(name), { dataset: { shown: name }, title: TITLES()[name] }));
    const missing = gaps.some(Boolean) ? _("; tokens without a partner: A has {a}, B has {b}", { a: gaps[0], b: gaps[1] }) : "";
    const which = span("switch", ...shown);
    which.ariaLabel = _("which run the figures show");
    which.role = "group";
    const seldom = [
      button(_("close B"), () => { openMore(false); makeMove({ kind: "close" }); }),
      button(_("swap A and B"), () => makeMove({ kind: "swap" })),
      anotherPrompt({ title: _("B reads another prompt, by its own model and with its own changes.") }),
      button(_("copy A to B"), () => makeMove({ kind: "copy" }), { title: _("B becomes what A is now") }),
      span("aligned about-b", _("B: {about}", { about })),
      span("aligned", aligned + missing),
      pinning(),
    ];
    if (pins) seldom.push(button(_("align again"), () => makeMove({ kind: "unpin" }), { title: _("Without the pairs that you made by hand.") }));
    queueMicrotask(mark);
    return [
      which,
      more(),
      make("span", { className: "about", title: about }, _("B: {about}", { about })),
      span("seldom", ...seldom),
    ];
  }

  // What is seldom pressed is behind a button.
  function more() {
    const made = button("⋯", () => openMore(!box.classList.contains("open")), { className: "more", ariaLabel: _("more of the two runs") });
    made.ariaExpanded = String(box.classList.contains("open"));
    return made;
  }

  function openMore(isOpen) {
    box.classList.toggle("open", isOpen);
    const press = find(two, ".more");
    if (press) press.ariaExpanded = String(isOpen);
  }

  // Which token of B is to stand beside the chosen one of A, is told by the next click on one of B.
  function pinning() {
    const tell = () => setText(pin, isPartnerAwaited() ? _("now choose its partner in B") : _("pair two tokens by hand"));
    const pin = button("", () => { awaitPartnerToken(); tell(); }, { title: _("Choose which token of B stands beside the chosen token of A.") });
    tell();
    return pin;
  }

  function mark() {
    for (const one of two.querySelectorAll("[data-shown]")) one.ariaPressed = String(/** @type {HTMLElement} */ (one).dataset.shown === (state.shown ?? "a"));
  }

  const TITLES = () => ({
    a: _("Figures show A, on the scale of both."),
    b: _("Figures show B, on the scale of both."),
    difference: _("Figures show A − B, at tokens that stand beside each other."),
    both: _("Figures show A and B side by side, on one scale."),
  });

  box.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" || !box.classList.contains("open")) return;
    openMore(false);
    find(two, ".more").focus();
  });
  document.addEventListener("pointerdown", ({ target }) => { if (!box.contains(/** @type {Node} */ (target))) openMore(false); });
  let wasAlone = false;
  onState(element, () => {
    mark();
    if (value && isAlone() !== wasAlone) draw(value);
    wasAlone = Boolean(value) && isAlone();
  });
  onContent(element, draw);
}

/** @param {HTMLElement} element */
export function series(element) {
  const box = find(element, ".series"), play = /** @type {HTMLButtonElement} */ (find(box, ".play"));
  const steps = stepSlider(box, "checkpoint", _("step of its training"));
  const playing = player(advance, hasStaleFigures, (isPlaying) => { play.textContent = isPlaying ? _("Pause") : _("Play"); });

  // Whether there is another after it.
  function advance() {
    steps.go(steps.place() + 1);
    return steps.place() < steps.last();
  }

  function toggle() {
    if (playing.stop()) return;
    if (steps.place() >= steps.last()) chooseCheckpoint(steps.nameAt(0));
    playing.start();
  }

  play.textContent = _("Play");
  play.addEventListener("click", toggle);
  // Whatever else somebody does stops it; the button has the focus once it was pressed.
  const isPress = (event) => play.contains(/** @type {Node} */ (event.target)) && (event.type === "pointerdown" || ["Enter", " "].includes(event.key));
  for (const type of ["pointerdown", "keydown", "wheel"])
    document.addEventListener(type, (event) => { if (!isPress(event)) playing.stop(); }, { capture: true, passive: true });
  onState(element, steps.follow);
  const slider = [...box.children];
  onContent(element, ({ moments, other }) => {
    box.hidden = !moments.length && !other;
    box.classList.toggle("no-steps", !moments.length);
    document.body.classList.toggle("without-steps", !moments.length);
    const open = () => button(_("Open {model}", { model: modelName(other) }), () => changeModel(other), { className: "play" });
    if (!moments.length) box.replaceChildren(_("This model kept no steps."), open());
    else if (!slider[0].isConnected) box.replaceChildren(...slider); // or else it stays under the hand that moves it
    steps.show(moments);
    countDraw(box);
  });
}
