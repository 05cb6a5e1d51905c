// @ts-check
import { edits, setEdits } from "../../static/choosing.js";
import { onContent } from "../../static/contents.js";
import { find, make, span } from "../../static/dom.js";
import { _ } from "../../static/language.js";

/** @param {HTMLElement} element */
export default function whatIfs(element) {
  const box = find(element, ".what-ifs");
  let built = new Map(); // what a control offers, as JSON -> the control

  // A control that offers the same as before stays, so that no slider is replaced under the hand that moves it.
  onContent(element, (offers) => {
    const before = built;
    built = new Map(offers.map(({ amount, ...offer }) => [JSON.stringify(offer), offer])
      .map(([kind, offer]) => [kind, before.get(kind) || control(offer)]));
    const controls = [...built.values()], labels = controls.map(({ label }) => label);
    if (labels.some((label, i) => label !== box.children[i]) || labels.length !== box.children.length) box.replaceChildren(...labels);
    offers.forEach(({ amount }, i) => { if (!labels[i].contains(document.activeElement)) controls[i].show(amount); });
  });
}

// A slider, or a switch, with its words; and what has it show an amount.
function control(offer) {
  const input = make("input", { type: offer.switch ? "checkbox" : "range", dataset: { edit: offer.edit } }), value = make("output");
  const title = span("", offer.title);
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
    const edit = offer.switch ? input.checked && offer.edit : amount !== offer.default && `${offer.edit}*${amount}`;
    const others = edits().filter((text) => text !== offer.edit && !text.startsWith(`${offer.edit}*`));
    setEdits(edit ? [...others, edit] : others);
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
