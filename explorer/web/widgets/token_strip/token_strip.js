// @ts-check
import { pick } from "../../static/choosing.js";
import { onContent } from "../../static/contents.js";
import { countDraw, find, findAll, make, span } from "../../static/dom.js";
import { _, ngettext } from "../../static/language.js";
import { modeOf } from "../../static/mode.js";
import { makeMove } from "../../static/moves.js";
import { inB, ofB, takePartner } from "../../static/partners.js";
import { rove, stopAt } from "../../static/roving.js";
import { onState, setState, state } from "../../static/state.js";
import { isPartOfCharacter, tokenNodes } from "../../static/token_text.js";

/** @param {HTMLElement} element */
export default function tokenStrip(element) {
  const strip = find(element, ".strip"), choice = element.querySelector("select"), parts = find(element, ".parts");
  const begun = find(element, ".beginning"), isBegun = begun.querySelector("input");
  const isB = find(element, ".tokens").dataset.run === "b"; // what is chosen are tokens of A: of B it is their partners
  const chips = () => findAll(strip, ".chip"), written = new WeakMap(); // a chip's token
  let shades = {}, numPrompt = 0, shadedBy = "", drawn = "";

  // Most answers are about the same tokens.
  function draw(content) {
    element.hidden = !content;
    if (!content) return;
    const text = JSON.stringify(content);
    if (text !== drawn) drawAnew(content);
    drawn = text;
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
    shade();
  }

  const wordsOf = (earlier) => ngettext(
    "… {count} earlier token is beyond the model's context",
    "… {count} earlier tokens are beyond the model's context",
    earlier,
    { count: earlier.toLocaleString("en") },
  );

  function chipOf(token, i) {
    const chip = make("button", { type: "button", className: "chip", role: "option", dataset: { position: i } }, ...tokenNodes(token));
    written.set(chip, token);
    return chip;
  }

  // The simple page says what the colour is, and has no list to choose another.
  /** @param {import("../../static/state.js").State} at */
  const nameOf = ({ view, shade }) => {
    const [only, ...others] = Object.keys(shades);
    if (!others.length) return only;
    return modeOf(view) === "story" ? "surprisal" : shade ?? choice.value;
  };

  function shade() {
    const name = nameOf(state), { shares, words } = shades[name] || {};
    choice.parentElement.hidden = Object.keys(shades).length < 2;
    choice.value = shadedBy = name;
    if (!shares) return;
    chips().forEach((chip, i) => {
      chip.style.setProperty("--share", String(Math.abs(shares[i])));
      chip.classList.toggle("less", shares[i] < 0);
      const place = _("position {position}", { position: i }), origin = i < numPrompt ? "" : _("generated");
      chip.title = [place, origin, words[i]].filter(Boolean).join(", ");
    });
  }

  function mark() {
    if (nameOf(state) !== shadedBy) shade();
    const [query, key] = [state.query, state.key].map((position) => (isB ? inB(position) : position));
    const all = chips(), chosen = all[query] ?? null;
    all.forEach((chip, position) => {
      chip.ariaSelected = String(chip === chosen);
      chip.classList.toggle("key", position === key);
    });
    stopAt(all, chosen);
    if (chosen) requestAnimationFrame(() => reveal(chosen));
  }

  // Scrolls the strip, and only the strip, so that the chip is in sight.
  function reveal(chip) {
    const left = chip.offsetLeft - strip.offsetLeft, right = left + chip.offsetWidth, around = 60; // pixels of its neighbours
    if (left < strip.scrollLeft) strip.scrollLeft = left - around;
    else if (right > strip.scrollLeft + strip.clientWidth) strip.scrollLeft = right - strip.clientWidth + around;
  }

  strip.addEventListener("click", ({ target }) => {
    /** @type {HTMLElement} */
    const chip = /** @type {Element} */ (target).closest(".chip");
    if (chip) choose(+chip.dataset.position);
  });
  function choose(position) {
    if (!isB) return pick({ query: position });
    if (takePartner()) makeMove({ kind: "pin", a: state.query, b: position });
    else pick({ query: ofB(position) });
  }
  rove(strip, {
    at: () => ({ row: 0, column: isB ? inB(state.query) : state.query }),
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
