// @ts-check
import { edits, setEdits } from "../../static/choosing.js";
import { onContent } from "../../static/contents.js";
import { find, make, say, span } from "../../static/dom.js";
import { foldButton } from "../../static/fold.js";
import { _ } from "../../static/language.js";
import { state } from "../../static/state.js";

let put = null; // the changes that there were when a control was used last

/** @param {string[]} changed */
function putEdits(changed) {
  setEdits(changed);
  put = state.edits;
}

/** @param {HTMLElement} element */
export default function whatIfs(element) {
  const box = find(element, ".what-ifs"), fold = foldButton();
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
    if (offers.some(({ here }) => here)) labels.unshift(onlyHere);
    if (labels.some((label, i) => label !== box.children[i]) || labels.length !== box.children.length) box.replaceChildren(...labels);
    if (!before.size || state.edits !== put) only.checked = offers.some((offer) => offer.here && offer.amountHere !== offer.default);
    offered = offers;
    showAmounts();
    const changed = offers.filter((offer) => offer.amount !== offer.default || offer.amountHere !== offer.default).length;
    fold.hidden = !offers.length;
    say(fold, changed ? _("changed here: {count}", { count: changed }) : _("try a change"));
  });
  box.before(fold);
}

// A list of how much of the model a change holds for; and what has it show which is chosen, from 1, or 0 for none.
function listOf({ title, scopes }) {
  const texts = scopes.map(([, text]) => text);
  const list = make("select", {}, new Option(_("nowhere"), "0"), ...scopes.map(([words], i) => new Option(words, `${i + 1}`)));
  list.addEventListener("change", () => {
    const others = edits().filter((edit) => !texts.includes(edit));
    putEdits(list.selectedIndex ? [...others, texts[list.selectedIndex - 1]] : others);
  });
  return { label: make("label", {}, span("", title), list), show: (amount) => (list.selectedIndex = amount) };
}

// A slider, or a switch, with its words; and what has it show an amount.
function control(offer, isHere) {
  const input = make("input", { type: offer.switch ? "checkbox" : "range", dataset: { edit: offer.edit } });
  const title = span("", offer.title), value = make("output");
  const place = (amount) => (offer.log ? Math.log10(amount) : amount);
  if (!offer.switch) [input.min, input.max, input.step] = [offer.minimum, offer.maximum, offer.log ? "any" : offer.step];
  const label = make("label", {}, ...(offer.switch ? [input, title] : [title, input, value]));
  const tell = (amount) => {
    const told = amount.toLocaleString("en");
    if (amount === offer.default) value.textContent = _("{amount} (as it is)", { amount: told });
    else value.textContent = offer.silences && amount === 0 ? _("{amount} (silenced)", { amount: told }) : told;
  };
  input.addEventListener("input", () => {
    const isNear = Math.abs(+input.value - place(offer.default)) < offer.step / 2;
    const amount = isNear ? offer.default : offer.log ? +(10 ** +input.value).toPrecision(3) : +input.value;
    tell(amount);
    const [text, inPlaceOf] = isHere(offer) ? offer.here : offer.everywhere;
    const edit = offer.switch ? input.checked && text : amount !== offer.default && `${text}*${amount}`;
    const others = edits().filter((other) => other !== inPlaceOf && !other.startsWith(`${inPlaceOf}*`));
    putEdits(edit ? [...others, edit] : others);
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
