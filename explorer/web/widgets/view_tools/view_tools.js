// @ts-check
// Controls of a view: fields of the selection, interventions, lists and pairs of prompts, the second run, and the
// training step.
import { ablatedHead, addIntervention, changeModel, chooseCheckpoint, interventions, makeMove, replacedWords, select, runPrompt, setInterventions, showRuns, showProbabilityChange } from "../../static/page_actions.js";
import { callServer, RefusedError } from "../../static/server_connection.js";
import { hasStaleFigures, widgetBlock, onContent } from "../../static/widget_contents.js";
import { makeLink } from "../../static/history.js";
import { button, closeMenu, countDraw, find, findAll, makeFoldButton, setHidden, make, readStorage, writeStorage, setText, span, toggleFold, notify } from "../../static/dom.js";
import { _, splitMessage, describeChangeEffect } from "../../static/text.js";
import { awaitPartnerToken, setAlignment, isPartnerAwaited, modelName, onState, state } from "../../static/page_state.js";

const SPARE_FIELDS = { all: ["query", "rival"], compare: ["layer", "head"], experiments: ["key"] }; // by view; their lists are behind a button, as the row of tokens or a figure chooses them

/** The lists that select a view's layer, head, token and other fields. @param {HTMLElement} element */
export function choosers(element) {
  const box = find(element, ".choosers"), fold = makeFoldButton(), view = widgetBlock(element).id.replace(/-choosers$/, "");
  const isSpare = ({ field }) => [...SPARE_FIELDS.all, ...(SPARE_FIELDS[view] ?? [])].includes(field);
  let labels = new Map(), shownChoices = []; // JSON of a choice -> its label

  // Unchanged lists stay in place and keep the focus. During generation Python sends only the lists of tokens (`all` is
  // false); the others stay.
  function updateLists({ choices, all }) {
    shownChoices = choices = all ? choices : shownChoices.map((old) => choices.find(({ field }) => field === old.field) ?? old);
    const lists = [...choices].sort((a, b) => +isSpare(a) - +isSpare(b)).map((choice) => [JSON.stringify(choice), choice]);
    const oldLabels = labels;
    labels = new Map(lists.map(([text, choice]) => [text, oldLabels.get(text) || makeLabel(choice)]));
    for (const label of oldLabels.values()) if (![...labels.values()].includes(label)) label.remove();
    const inlineLabels = [...labels.values()].filter((label) => !placeInHolder(label));
    if (inlineLabels.some((label, i) => label !== box.children[i]) || inlineLabels.length !== box.children.length) box.replaceChildren(...inlineLabels);
    update();
  }

  // Move a list into the figure that has a place for it; return whether there is one.
  function placeInHolder(label) {
    const holder = find(element.closest(".tabitem"), `[data-holds="${find(label, "[data-field]").dataset.field}"]`);
    if (holder && label.parentElement !== holder) holder.append(label);
    return Boolean(holder);
  }
  const fieldControls = () => [...labels.values()].map((label) => find(label, "[data-field]"));

  function makeLabel({ field, title, options, most, free }) {
    const label = free ? textBoxLabel(field, title, options) : listLabel(field, title, options, most);
    label.classList.toggle("spare", isSpare({ field }));
    label.addEventListener("change", selectValue);
    return label;
  }

  function listLabel(field, title, options, max) {
    const range = { type: "number", min: 0, max, title: _("0 to {most}", { most: max }) };
    if (!options) return make("label", {}, span("", title), make("input", { ...range, dataset: { field } }));
    const items = options.map(([value, text]) => make("option", { value, text, dataset: { number: typeof value === "number" } }));
    return make("label", {}, span("", title), make("select", { dataset: { field } }, ...items));
  }

  // A text box with suggestions; the first option names what an empty box means.
  function textBoxLabel(field, title, options) {
    const id = `${widgetBlock(element).id}-${field}`, [[, emptyText], ...suggestions] = options;
    const list = make("datalist", { id }, ...suggestions.map(([value]) => make("option", { value })));
    const input = make("input", { type: "text", maxLength: 40, placeholder: emptyText, spellcheck: false, dataset: { field } });
    input.setAttribute("list", id);
    return make("label", {}, span("", title), input, list);
  }

  function update() {
    for (const list of fieldControls()) {
      const value = state[list.dataset.field], { placeholder = "" } = /** @type {HTMLInputElement} */ (list);
      /** @type {HTMLInputElement | HTMLSelectElement} */ (list).value = value && placeholder.slice(1, -1) === `·${value}` ? `·${value}` : value; // with its space; it is between isolates
      if (list.dataset.field === "rival" && list.closest("label").classList.contains("in-use") !== Boolean(state.rival)) { list.closest("label").classList.toggle("in-use"); fitLists(); } // a chosen contrast stays in sight
      if (list instanceof HTMLSelectElement && list.selectedIndex < 0)
        list.selectedIndex = list.options.length - 1; // a token just generated, not listed yet
    }
    fold.hidden = !shownChoices.length;
    setText(fold, findAll(box, "label").map(choiceText).join(" · "));
  }

  function choiceText(label) {
    const list = /** @type {HTMLInputElement | HTMLSelectElement} */ (find(label, "[data-field]"));
    const value = list instanceof HTMLSelectElement ? list.selectedOptions[0]?.text : list.value || list.placeholder;
    return `${label.firstChild.textContent} ${value}`;
  }

  const selectValue = ({ target: list }) => {
    if (list instanceof HTMLSelectElement) {
      const [{ value, dataset }] = list.selectedOptions;
      return select({ [list.dataset.field]: dataset.number === "true" ? +value : value });
    }
    const { dataset, value, max, type } = /** @type {HTMLInputElement} */ (list);
    if (type === "text") return select({ [dataset.field]: value });
    select({ [dataset.field]: Math.round(Math.max(0, Math.min(+max, +value))) });
  };
  // The lists stand in one line; a button shows the spare ones and, where they do not fit, those after the first.
  const moreButton = button("⋯", () => {
    moreButton.ariaExpanded = String(box.classList.toggle("open"));
    box.classList.add("whole");
    fitLists();
  }, { className: "rest", ariaExpanded: "false" });
  new ResizeObserver(fitLists).observe(element);
  function fitLists() {
    if (!box.checkVisibility() || moreButton.ariaExpanded === "true") return;
    const hasSpare = findAll(box, ".spare:not(.in-use)").length > 0, isShown = (label) => label.checkVisibility();
    box.classList.add("whole"); // to measure whether all fit
    moreButton.hidden = !hasSpare;
    const isFitting = box.scrollWidth <= box.clientWidth;
    box.classList.toggle("whole", isFitting);
    moreButton.hidden = isFitting && !hasSpare;
    const names = findAll(box, "label").filter((label) => !isShown(label)).map((label) => label.firstChild.textContent).join(", ");
    moreButton.title = moreButton.ariaLabel = _("more lists: {names}", { names });
  }
  fold.hidden = moreButton.hidden = true; // until there are lists
  box.after(moreButton);
  box.before(fold);
  onState(update);
  onContent(element, (content) => {
    updateLists(content);
    fitLists();
  });
}

const MAX_SHOWN_CONTROLS = 3; // of more controls only the first is shown, the others behind a button
let lastEdits = null; // the edits when a control was used last

/** Apply the edits of a control. @param {string[]} newEdits */
function applyEdits(newEdits) {
  setInterventions(newEdits);
  lastEdits = state.edits;
}

/** The controls of interventions. @param {HTMLElement} element */
export function whatIfs(element) {
  const box = find(element, ".what-ifs"), fold = makeFoldButton(), moreButton = button("", () => {
    toggleFold(moreButton);
    writeStorage("explorer-more-changes", String(moreButton.ariaExpanded));
  }, { className: "more-changes" });
  const groupHeadings = new Map(), groupHeading = (group) => groupHeadings.get(group) ?? groupHeadings.set(group, make("strong", { className: "group" }, group)).get(group);
  let controls = new Map(), shownOffers = []; // controls: JSON of an offer without its amounts -> its control

  // The box restricts the controls to the chosen token. It starts checked if the run has such an edit.
  const onlyHereBox = make("input", { type: "checkbox" });
  const onlyHereLabel = make("label", { className: "only-here" }, onlyHereBox, span("", _("only at the chosen token")));
  onlyHereBox.addEventListener("input", () => {
    lastEdits = state.edits;
    showAmounts();
  });
  const appliesHere = (offer) => onlyHereBox.checked && !!offer.here;
  const showAmounts = () => shownOffers.forEach(({ amount, amountHere, ...offer }) => {
    const { label, show } = controls.get(JSON.stringify(offer));
    const isMoved = label.contains(document.activeElement) && state.edits === lastEdits; // a moved slider is ahead of the response
    if (!isMoved) show(appliesHere(offer) ? amountHere : amount);
  });

  // Unchanged controls stay, so that no slider is replaced while it is being dragged.
  onContent(element, (offers) => {
    const oldControls = controls;
    controls = new Map(offers.map(({ amount, amountHere, ...offer }) => [JSON.stringify(offer), offer])
      .map(([kind, offer]) => [kind, oldControls.get(kind) || (offer.scopes.length ? scopeList(offer) : makeControl(offer, appliesHere))]));
    const hasGroups = offers.length > MAX_SHOWN_CONTROLS && new Set(offers.map(({ group }) => group)).size > 1;
    const labels = [...controls.values()].flatMap(({ label }, i) => (hasGroups && i && (i === 1 || offers[i].group !== offers[i - 1].group) ? [groupHeading(offers[i].group), label] : [label]));
    if (offers.some(({ here }) => here)) labels.splice(offers.length > MAX_SHOWN_CONTROLS ? 1 : labels.length, 0, onlyHereLabel);
    if (offers.length > MAX_SHOWN_CONTROLS) labels.splice(labels.indexOf(onlyHereLabel) === 1 ? 2 : 1, 0, moreButton);
    setText(moreButton, _("{count} more ways to change", { count: offers.length - 1 }));
    moreButton.ariaExpanded = readStorage("explorer-more-changes") ?? "false";
    moreButton.hidden = Boolean(state.lesson);
    if (labels.some((label, i) => label !== box.children[i]) || labels.length !== box.children.length) box.replaceChildren(...labels);
    if (!oldControls.size || state.edits !== lastEdits) onlyHereBox.checked = offers.some((offer) => offer.here && offer.amountHere !== offer.default);
    shownOffers = offers;
    showAmounts();
    if (!state.edits && lastEdits && fold.ariaExpanded === "true" && !box.contains(document.activeElement)) toggleFold(fold); // the edits were undone elsewhere
    if (!state.edits) lastEdits = "";
    const isAblatedElsewhere = ({ ablates, everywhere: [, scale] }) => ablates && interventions().includes(ablationEdit(scale));
    const changed = offers.filter((offer) => (offer.amount !== offer.default || offer.amountHere !== offer.default) && !isAblatedElsewhere(offer)).length;
    fold.hidden = !offers.length;
    setText(fold, changed ? _("Changes: {count}", { count: changed }) : _("Change"));
  });
  let isInLesson = Boolean(state.lesson);
  onState(() => { // close it when a lesson begins
    if (state.lesson && !isInLesson && fold.ariaExpanded === "true") toggleFold(fold);
    isInLesson = Boolean(state.lesson);
  });
  box.before(fold);
}

/** Return the ablation that a slider at 0 stands for; moving the slider removes it. @param {string} scale */
const ablationEdit = (scale) => scale.replace(/scale$/, "zero");

// Return a list of the scopes of an edit, and a function that selects one, counted from 1; 0 for none.
function scopeList({ title, scopes }) {
  const texts = scopes.map(([, text]) => text);
  const list = make("select", {}, new Option(_("off"), "0"), ...scopes.map(([words], i) => new Option(words, `${i + 1}`)));
  list.addEventListener("change", () => {
    const others = interventions().filter((edit) => !texts.includes(edit));
    applyEdits(list.selectedIndex ? addIntervention(others, texts[list.selectedIndex - 1]) : others);
  });
  return { label: make("label", {}, span("", title), list), show: (amount) => (list.selectedIndex = amount) };
}

// Return a labelled slider with its number, or a switch, and a function that sets its amount.
function makeControl(offer, appliesHere) {
  const input = make("input", { type: offer.switch ? "checkbox" : "range", dataset: { edit: offer.edit } });
  const title = span("", offer.title), number = make("input", { type: "number", step: "any", ariaLabel: offer.title }), kind = make("output");
  const sliderValue = (amount) => (offer.log ? Math.log10(amount) : amount);
  const amountAt = (position) => (offer.log ? +(10 ** position).toPrecision(3) : position);
  const [least, most] = [offer.minimum, offer.maximum].map(amountAt);
  if (!offer.switch) [input.min, input.max, input.step] = [offer.minimum, offer.maximum, offer.log ? "any" : offer.step];
  [number.min, number.max] = [String(least), String(most)];
  const label = make("label", {}, ...(offer.switch ? [input, title] : [title, kind, input, number]));
  const texts = () => (appliesHere(offer) ? offer.here : offer.everywhere), format = (amount) => String(+amount.toPrecision(4));
  const isOwn = (edit, scale) => edit === scale || edit.startsWith(`${scale}*`) || (offer.ablates && edit === ablationEdit(scale)), others = () => interventions().filter((edit) => !isOwn(edit, texts()[1]));
  const showValue = (amount) => {
    const [part] = texts()[0].split("*"), isReplaced = amount === offer.default && others().some((other) => other.startsWith(`${part}*`)); // as by its mean
    number.value = isReplaced ? "" : format(amount);
    setText(kind, isReplaced ? "" : amount === offer.default ? _("as it is") : offer.ablates && amount === 0 ? _("ablated") : "");
  };
  const change = (amount) => {
    showValue(amount);
    const edit = offer.switch ? input.checked && texts()[0] : amount !== offer.default && `${texts()[0]}*${amount}`;
    applyEdits(edit ? addIntervention(others(), edit) : others());
  };
  input.addEventListener("input", () => {
    const isNearDefault = Math.abs(+input.value - sliderValue(offer.default)) < offer.step / 2;
    change(isNearDefault ? offer.default : amountAt(+input.value));
  });
  number.addEventListener("change", () => {
    const amount = number.value === "" ? offer.default : Math.max(least, Math.min(most, +number.value));
    input.value = String(sliderValue(amount));
    change(format(amount) === format(offer.default) ? offer.default : amount);
  });
  return {
    label,
    show(amount) {
      if (offer.switch) input.checked = amount === 1;
      else input.value = sliderValue(amount);
      showValue(amount);
    },
  };
}

/** The list of a run's interventions, each with a button to undo it. @param {HTMLElement} element */
export function changes(element) {
  const box = find(element, ".changes");
  const effectLink = makeLink(_("what it did"), { view: "experiments", depth: "numbers" }, "experiments-next_token_change");
  onState(() => { effectLink.hidden = state.view === "experiments"; });
  const undoButton = (run, text, label, remainingEdits, dataset = {}) => button(text, () => setInterventions(remainingEdits(), run), { ariaLabel: label, dataset });

  /** List a run's edits, each with a button to undo it. @param {import("../../static/page_actions.js").Edits} target @param {[string, string][]} editList */
  function listEdits(target, editList) {
    /** @type {HTMLElement[]} */
    const buttons = editList.map(([edit, description]) => undoButton(target, `${description} ✕`, _("take back: {words}", { words: description }), () => interventions(target).filter((other) => other !== edit), { edit, words: description }));
    if (editList.length > 1) buttons.push(undoButton(target, _("take all back"), _("take all back"), () => []));
    if (target === "edits" && editList.length) buttons.push(effectLink);
    const changedSentence = state["b.checkpoint"] ? _("A is changed: {changes}") : editList.every(([edit]) => ablatedHead(edit)) ? (editList.length === 1 ? _("{changes} Everything is computed without it.") : _("{changes} Everything is computed without them.")) : _("The model is changed: {changes}");
    const isMapped = state.view === "patching", ownSentence = isMapped ? _("{changes} The maps are of the unchanged model.") : changedSentence;
    const template = target === "edits" ? ownSentence : isMapped && !content.edits.length ? _("B is changed: {changes} The maps are of the unchanged model.") : _("B is changed: {changes}");
    return editList.length ? [span("of", ...splitMessage(template, { changes: buttons }))] : [];
  }

  /** Keep the switch in a figure that was pressed under the pointer. @param {() => void} update */
  function keepControlInPlace(update) {
    const control = document.activeElement?.closest(".acts"), topBefore = control?.getBoundingClientRect().top;
    update();
    if (control) scrollBy({ top: control.getBoundingClientRect().top - topBefore, behavior: "instant" });
  }

  function announceReplacements() {
    for (const { dataset } of findAll(box, "[data-edit]")) {
      const before = replacedWords.get(dataset.edit);
      if (before) notify(_("Replaced “{before}” by “{after}”. One part has one change at a time.", { before, after: dataset.words }));
      replacedWords.delete(dataset.edit);
    }
  }

  setHidden(element, true);
  let content = { edits: [] }, lastWording = "";
  const isNoted = () => document.body.dataset.depth === "story" && findAll(document, ".switched-off").some((note) => note.checkVisibility()); // beside its switch
  const isListed = ({ length }) => length > 1 || (length === 1 && !isNoted());
  const updateHidden = () => setHidden(element, !isListed([...interventions(), ...interventions("b.edits")]) || !Object.values(content).some((editList) => editList.length));
  const wording = () => `${document.body.dataset.depth} ${state.view === "patching"} ${!state["b.checkpoint"]}`;
  const draw = () => keepControlInPlace(() => {
    lastWording = wording();
    updateHidden();
    box.replaceChildren(...listEdits("edits", content.edits), ...listEdits("b.edits", content["b.edits"] ?? []));
  });
  onState(() => { keepControlInPlace(updateHidden); requestAnimationFrame(lastWording === wording() ? updateHidden : draw); }); // others open or close notes
  onContent(element, (newContent) => { content = newContent; draw(); announceReplacements(); });
  const showEffect = ({ words, chances }) => { setText(find(element, ".effect"), words); showProbabilityChange(chances); };
  onContent(element, (effect) => keepControlInPlace(() => showEffect(describeChangeEffect(effect))), "-effect");
}

/** The two lists of prompts that define a direction. @param {HTMLElement} element */
export function promptLists(element) {
  const boxes = /** @type {HTMLTextAreaElement[]} */ (findAll(element, "textarea"));
  const makeButton = find(element, "button"), errorLine = find(element, ".error");
  let drawnLists = ""; // JSON of the lists first shown; the user's text stays until Python sends others

  onContent(element, (content) => {
    setHidden(element, !content);
    errorLine.textContent = ""; // an error of the previous content
    if (!content) return;
    makeButton.textContent = content.make;
    const lists = JSON.stringify(content.lists);
    if (lists === drawnLists) return;
    drawnLists = lists;
    boxes.forEach((box, i) => { box.value = content.lists[i]; });
  });

  makeButton.addEventListener("click", async () => {
    errorLine.textContent = "";
    try { select({ direction: await callServer("direction_of_lists", [state, ...boxes.map((box) => box.value)]) }); }
    catch (error) { if (error instanceof RefusedError) errorLine.textContent = error.message; }
  });
}

/** The pairs of prompts to compare. @param {HTMLElement} element */
export function promptPairs(element) {
  const menu = /** @type {HTMLDetailsElement} */ (find(element, ".pairs")), menuList = find(menu, "div"), inlineList = find(element, ".ready");
  closeMenu(menu);
  // Before a second prompt is open, the pairs stand in the empty space of the figures.
  function update() {
    const prompt = String(state["b.prompt"] ?? ""), isAlone = !state["b.checkpoint"] || !prompt || prompt === String(state.prompt);
    menu.hidden = isAlone;
    inlineList.hidden = !isAlone;
    (isAlone ? inlineList : menuList).append(...findAll(element, "[data-pair]"));
  }
  onState(update);
  update();
  for (const button of findAll(element, "[data-pair]"))
    button.addEventListener("click", () => {
      menu.open = false;
      makeMove({ kind: "pair", pair: +button.dataset.pair });
    });
}

/** Advice on how to end the prompt, with a prompt to use instead. @param {HTMLElement} element */
export function advice(element) {
  const line = find(element, ".advice");

  function show({ words, offer }) {
    setHidden(element, !words);
    line.replaceChildren(words);
    if (!offer) return;
    const end = `${offer.length > 24 ? "…" : ""}${offer.slice(-24)}`;
    line.append(button(_("Use this prompt: {end}", { end }), () => runPrompt(offer, true), { title: offer }));
  }

  setHidden(element, true);
  onContent(element, show);
}

// Playing through figures at a steady pace. The next one waits until the previous is painted, so that none pile up.

const FRAME_INTERVAL_MS = 800, POLL_MS = 20, FRAME_TIMEOUT_MS = 15_000; // playing stops if a figure takes longer

/**
 * Return functions that start and stop playing.
 * @param {() => boolean} advance shows the next figure and returns whether there is another after it
 * @param {() => boolean} isBusy whether the last figure is still to be painted
 * @param {(isPlaying: boolean) => void} onChange called when playing starts and stops
 */
export function makePlayer(advance, isBusy, onChange) {
  let timer = null, shownAt = 0;

  function poll() {
    const elapsed = performance.now() - shownAt;
    if (isBusy() && elapsed > FRAME_TIMEOUT_MS) return void stop();
    if (isBusy() || elapsed < FRAME_INTERVAL_MS) return schedulePoll();
    shownAt = performance.now();
    if (advance()) schedulePoll();
    else stop();
  }
  function schedulePoll() { timer = setTimeout(poll, POLL_MS); }

  /** Stop, and return whether it was playing. */
  function stop() {
    const wasPlaying = timer !== null;
    clearTimeout(timer);
    timer = null;
    if (wasPlaying) onChange(false);
    return wasPlaying;
  }

  return {
    stop,
    /** Start at once with the next figure, as the current one has been visible already. */
    start() {
      shownAt = performance.now() - FRAME_INTERVAL_MS;
      onChange(true);
      schedulePoll();
    },
  };
}

// A slider over a model's saved training steps. They are evenly spaced, so that doubling steps form a logarithmic scale.

/** A checkpoint's name, its step as a sentence, and its tick label. @typedef {[string, string, string]} Moment */

const MAX_TICKS = 14; // that fit a wide screen; narrower ones show every second or fourth

/**
 * Make a slider of training steps.
 * @param {HTMLElement} box that gets it as its first child
 * @param {"checkpoint" | "b.checkpoint"} target the run's field
 * @param {string} name
 */
function stepSlider(box, target, name) {
  const slider = make("input", { type: "range", min: "0", step: "1", ariaLabel: name });
  const output = make("output", { className: "step" }), ticks = make("span", { className: "ticks", ariaHidden: "true" });
  /** @type {Moment[]} */
  let moments = [];

  const lastIndex = () => moments.length - 1;
  const currentIndex = () => moments.findIndex(([checkpoint]) => checkpoint === state[target]);
  const goToIndex = (i) => chooseCheckpoint(moments[Math.max(0, Math.min(lastIndex(), i))][0], target);

  /** @param {Moment[]} content */
  function show(content) {
    if (JSON.stringify(content) !== JSON.stringify(moments)) {
      moments = content;
      slider.max = String(lastIndex());
      const labelInterval = Math.ceil(moments.length / MAX_TICKS);
      ticks.replaceChildren(...moments.map(([, , text], i) => makeTick(text, i / lastIndex(), lastIndex() - i, labelInterval)));
    }
    update();
  }

  function update() {
    const [, words] = moments[currentIndex()] ?? ["", ""], run = target === "checkpoint" ? "A" : "B";
    slider.value = String(currentIndex());
    slider.setAttribute("aria-valuetext", words);
    setText(output, state["b.checkpoint"] && words ? `${run}: ${words}` : words);
  }

  slider.addEventListener("input", () => goToIndex(+slider.value));
  box.prepend(output, span("track", slider, ticks));
  return { show, update, goToIndex, currentIndex, lastIndex, nameAt: (i) => moments[i][0] };
}

// Make a tick; every `interval`-th one, counted from the last, is labelled.
function makeTick(text, share, fromLast, interval) {
  const isLabelled = fromLast % interval === 0, tickNumber = fromLast / interval;
  const node = span(isLabelled ? ["tick", tickNumber % 2 ? "" : "second", tickNumber % 4 ? "" : "fourth"].join(" ").trim() : "tick", isLabelled ? text : "");
  node.style.setProperty("--share", String(share));
  return node;
}

/** The controls of the second run. @param {HTMLElement} element */
export function runs(element) {
  const box = find(element, ".runs"), startControls = find(box, ".ways"), comparisonControls = find(box, ".two"), stepBox = find(document, "#series .series + .training-step"); // below A's slider
  const stepControl = stepSlider(stepBox, "b.checkpoint", _("step of the training of B"));
  let content = null, isTyping = false;

  function draw(newContent) {
    content = newContent;
    setAlignment(content.two);
    comparisonControls.hidden = !content.two || isTyping;
    widgetBlock(element).classList.toggle("in-use", !comparisonControls.hidden);
    startControls.hidden = !comparisonControls.hidden;
    stepBox.hidden = !content.two?.moments.length;
    stepControl.show(content.two?.moments ?? []);
    if (comparisonControls.hidden) startControls.replaceChildren(...startOptions());
    else comparisonControls.replaceChildren(...comparisonNodes());
    countDraw(box);
  }

  function startOptions() {
    /** @type {HTMLElement[]} */
    const options = [promptButton(), button(_("one word replaced"), () => makeMove({ kind: "compare", with: "similar" }), { title: _("The most unexpected word of the prompt, replaced by a similar one.") })];
    if (content.step) options.push(button(_("another training step"), () => compareWithModel(content.step), { title: _("The step before this one (for the first, the step after). A slider then chooses any step.") }));
    if (content.models.length) options.push(modelList(_("another model")));
    if (content.changed) options.push(button(_("without the changes"), () => makeMove({ kind: "compare", with: "unchanged" })));
    const menu = make("details", { className: "menu" }, make("summary", {}, _("compare with")), make("div", {}, ...options));
    closeMenu(menu);
    return isTyping ? [menu, promptBox()] : [menu];
  }

  const promptButton = (properties, text = _("another prompt")) => button(text, () => {
    isTyping = true;
    toggleMore(false);
    draw(content);
    const box = /** @type {HTMLInputElement} */ (find(startControls, "input"));
    box.focus();
    box.select(); // the run's own prompt, to edit or replace
  }, properties);

  function promptBox() {
    const input = make("input", { type: "text", value: content.two?.prompt ?? content.prompt, maxLength: 4000, ariaLabel: _("the other prompt"), spellcheck: false });
    const form = make("form", {}, input, make("button", { type: "submit" }, _("Compare")), button("×", () => { isTyping = false; draw(content); }, { ariaLabel: _("no other prompt") }));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      isTyping = false;
      makeMove({ kind: "compare", with: "prompt", text: input.value });
    });
    input.addEventListener("keydown", ({ key }) => { if (key === "Escape") { isTyping = false; draw(content); } });
    return form;
  }

  const compareWithModel = (checkpoint) => makeMove({ kind: "compare", with: "model", checkpoint });

  function modelList(title) {
    const list = make("select", { ariaLabel: title }, new Option(title, ""), ...content.models.map(([model, checkpoint]) => new Option(model, checkpoint)));
    list.addEventListener("change", () => { if (list.value) compareWithModel(list.value); });
    return list;
  }

  function comparisonNodes() {
    const { about, aligned, gaps, pins } = content.two;
    const runButtons = [["a", "A"], ["b", "B"], ["difference", "A − B"], ["both", "A | B"]].map(([name, text]) =>
      button(text, () => showRuns(name), { dataset: { shown: name }, title: TITLES()[name] }));
    const gapText = gaps.some(Boolean) ? _("; tokens without a partner: A has {a}, B has {b}", { a: gaps[0], b: gaps[1] }) : "";
    const runSwitch = span("switch", ...runButtons);
    Object.assign(runSwitch, { role: "group", ariaLabel: _("which run the figures show") });
    const moreControls = [
      button(_("close B"), () => { toggleMore(false); makeMove({ kind: "close" }); }),
      button(_("swap A and B"), () => makeMove({ kind: "swap" })),
      promptButton({ title: _("B reads another prompt, by its own model and with its own changes.") }),
      button(_("copy A to B"), () => makeMove({ kind: "copy" }), { title: _("B becomes what A is now") }),
      span("aligned about-b", _("B: {about}", { about })),
      span("aligned", aligned + gapText),
      pairButton(),
    ];
    if (pins) moreControls.push(button(_("align again"), () => makeMove({ kind: "unpin" }), { title: _("Without the pairs that you made by hand.") }));
    queueMicrotask(markShownRun);
    const aboutButton = promptButton({ className: "about", title: `${_("another prompt")}\n${about}` }, _("B: {about}", { about }));
    return [runSwitch, makeMoreButton(), aboutButton, span("seldom", ...moreControls)];
  }

  // Rarely used controls are behind a button.
  const makeMoreButton = () => button("⋯", () => toggleMore(!box.classList.contains("open")), { className: "more", ariaLabel: _("more of the two runs"), ariaExpanded: String(box.classList.contains("open")) });

  function toggleMore(isOpen) {
    box.classList.toggle("open", isOpen);
    const moreButton = find(comparisonControls, ".more");
    if (moreButton) moreButton.ariaExpanded = String(isOpen);
  }

  // Pair two tokens by hand: the next click on a token of B pairs it with the chosen token of A.
  function pairButton() {
    const updateText = () => setText(pairingButton, isPartnerAwaited() ? _("now choose its partner in B") : _("pair two tokens by hand"));
    const pairingButton = button("", () => { awaitPartnerToken(); updateText(); }, { title: _("Choose which token of B stands beside the chosen token of A.") });
    updateText();
    return pairingButton;
  }

  function markShownRun() {
    for (const runButton of comparisonControls.querySelectorAll("[data-shown]")) runButton.ariaPressed = String(/** @type {HTMLElement} */ (runButton).dataset.shown === (state.shown ?? "a"));
  }

  const TITLES = () => ({
    a: _("Figures show A, on the scale of both."),
    b: _("Figures show B, on the scale of both."),
    difference: _("Figures show A − B, at tokens that stand beside each other."),
    both: _("Figures show A and B side by side, on one scale."),
  });

  box.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape" || !box.classList.contains("open")) return;
    toggleMore(false);
    find(comparisonControls, ".more").focus();
  });
  document.addEventListener("pointerdown", ({ target }) => { if (!box.contains(/** @type {Node} */ (target))) toggleMore(false); });
  onState(markShownRun);
  onContent(element, draw);
}

/** The slider and player of training steps. @param {HTMLElement} element */
export function series(element) {
  const box = find(element, ".series"), play = /** @type {HTMLButtonElement} */ (find(box, ".play"));
  const stepControl = stepSlider(box, "checkpoint", _("step of its training"));
  const stepPlayer = makePlayer(advance, hasStaleFigures, (isPlaying) => { play.textContent = isPlaying ? _("Pause") : _("Play"); });

  // Show the next step, and return whether there is another.
  function advance() {
    stepControl.goToIndex(stepControl.currentIndex() + 1);
    return stepControl.currentIndex() < stepControl.lastIndex();
  }

  function toggle() {
    if (stepPlayer.stop()) return;
    if (stepControl.currentIndex() >= stepControl.lastIndex()) chooseCheckpoint(stepControl.nameAt(0));
    stepPlayer.start();
  }

  play.textContent = _("Play");
  play.addEventListener("click", toggle);
  // Any other action stops playing. Enter and Space on the focused button do not, as they press it.
  const isPlayPress = (event) => play.contains(/** @type {Node} */ (event.target)) && (event.type === "pointerdown" || ["Enter", " "].includes(event.key));
  for (const type of ["pointerdown", "keydown", "wheel"])
    document.addEventListener(type, (event) => { if (!isPlayPress(event)) stepPlayer.stop(); }, { capture: true, passive: true });
  onState(stepControl.update);
  const sliderNodes = [...box.children];
  onContent(element, ({ moments, other }) => {
    box.hidden = !moments.length && !other;
    box.classList.toggle("no-steps", !moments.length);
    const openButton = () => button(_("Open {model}", { model: modelName(other) }), () => changeModel(other), { className: "play" });
    if (!moments.length) box.replaceChildren(_("This model kept no steps."), openButton());
    else if (!sliderNodes[0].isConnected) box.replaceChildren(...sliderNodes); // a connected slider stays, as it may be being dragged
    stepControl.show(moments);
    countDraw(box);
  });
}
