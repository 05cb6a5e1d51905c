// @ts-check
import { show } from "../../static/choosing.js";
import { onContent } from "../../static/contents.js";
import { countDraw, button as buttonOf, find, make, say, span } from "../../static/dom.js";
import { _ } from "../../static/language.js";
import { makeMove } from "../../static/moves.js";
import { awaitPartner, followPartners, isPartnerAwaited } from "../../static/partners.js";
import { onState, state } from "../../static/state.js";
import { stepSlider } from "../../static/step_slider.js";

/** @param {HTMLElement} element */
export default function runs(element) {
  const box = find(element, ".runs"), ways = find(box, ".ways"), two = find(box, ".two"), step = find(box, ".training-step");
  const steps = stepSlider(step, "b.checkpoint", _("step of the training of B"));
  let value = null, typing = false;

  function draw(content) {
    value = content;
    followPartners(value.two);
    two.hidden = !value.two || typing;
    ways.hidden = !two.hidden;
    step.hidden = !value.two?.moments.length;
    steps.show(value.two?.moments ?? []);
    if (two.hidden) ways.replaceChildren(...waysIn());
    else two.replaceChildren(...compared());
    countDraw(box);
  }

  function waysIn() {
    if (typing) return [promptBox()];
    /** @type {HTMLElement[]} */
    const found = [anotherPrompt()];
    if (value.step) found.push(buttonOf(_("another training step"), () => withModel(value.step), { title: _("The step before this one, or of the first the one after; a slider then goes to any.") }));
    if (value.models.length) found.push(modelList(_("another model")));
    if (value.changed) found.push(buttonOf(_("without the changes"), () => makeMove({ kind: "compare", with: "unchanged" })));
    return [span("what", _("compare with")), ...found];
  }

  const anotherPrompt = (properties) => buttonOf(_("another prompt"), () => { typing = true; draw(value); find(ways, "input").focus(); }, properties);

  function promptBox() {
    const input = make("input", { type: "text", value: value.two?.prompt ?? value.prompt, maxLength: 4000, ariaLabel: _("the other prompt"), spellcheck: false });
    const form = make("form", {}, span("what", _("compare with")), input, make("button", { type: "submit" }, _("Compare")),
      buttonOf("×", () => { typing = false; draw(value); }, { ariaLabel: _("no other prompt") }));
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
    const shown = [["a", "A"], ["b", "B"], ["difference", "A − B"]].map(([name, text]) =>
      buttonOf(text, () => show(name), { dataset: { shown: name }, title: TITLES()[name] }));
    const missing = gaps.some(Boolean) ? _("; without a partner: {a} of A, {b} of B", { a: gaps[0], b: gaps[1] }) : "";
    const which = span("switch", ...shown);
    which.ariaLabel = _("which run the pictures show");
    which.role = "group";
    const seldom = [
      anotherPrompt({ title: _("B reads another prompt, by its own model and with its own changes.") }),
      buttonOf(_("copy A to B"), () => makeMove({ kind: "copy" }), { title: _("B becomes what A is now") }),
      span("aligned", aligned + missing),
      pinning(),
    ];
    if (pins) seldom.push(buttonOf(_("align anew"), () => makeMove({ kind: "unpin" }), { title: _("Without the pairs that you put together.") }));
    queueMicrotask(mark);
    return [
      which,
      buttonOf("⇄", () => makeMove({ kind: "swap" }), { title: _("swap A and B"), ariaLabel: _("swap A and B") }),
      buttonOf("×", () => makeMove({ kind: "close" }), { title: _("close B"), ariaLabel: _("close B") }),
      more(),
      make("span", { className: "about", title: about }, _("B: {about}", { about })),
      span("seldom", ...seldom),
    ];
  }

  // On a telephone what is seldom pressed is behind a button.
  function more() {
    const tell = (button) => { button.ariaExpanded = String(box.classList.contains("open")); };
    const made = buttonOf("⋯", () => { box.classList.toggle("open"); tell(made); }, { className: "more", ariaLabel: _("more of the two runs") });
    tell(made);
    return made;
  }

  // Which token of B is to stand beside the chosen one of A, is told by the next click on one of B.
  function pinning() {
    const tell = () => say(pin, isPartnerAwaited() ? _("now choose its partner in B") : _("put together"));
    const pin = buttonOf("", () => { awaitPartner(); tell(); }, { title: _("Choose which token of B stands beside the chosen token of A.") });
    tell();
    return pin;
  }

  function mark() {
    for (const one of two.querySelectorAll("[data-shown]")) one.ariaPressed = String(/** @type {HTMLElement} */ (one).dataset.shown === (state.shown ?? "a"));
  }

  const TITLES = () => ({
    a: _("Pictures show A, on the scale of both."),
    b: _("Pictures show B, on the scale of both."),
    difference: _("Pictures show what A has more than B, at the tokens that stand beside each other."),
  });

  onState(element, mark);
  onContent(element, draw);
}
