const box = element.querySelector(".what-ifs");
let built = new Map(); // what a control offers, as JSON -> the control

// A control that offers the same as before stays, so that no slider is replaced under the hand that moves it.
function build(offers) {
  const before = built;
  built = new Map(offers.map(({ amount, ...offer }) => [JSON.stringify(offer), offer]).map(([kind, offer]) => [kind, before.get(kind) || control(offer)]));
  const wanted = [...built.values()];
  if (wanted.some((label, i) => label !== box.children[i]) || wanted.length !== box.children.length) box.replaceChildren(...wanted);
  offers.forEach(({ amount }, i) => { if (!wanted[i].contains(document.activeElement)) wanted[i].show(amount); });
}

function control(offer) {
  const label = document.createElement("label"), input = document.createElement("input"), value = document.createElement("output");
  const place = (amount) => (offer.log ? Math.log10(amount) : amount);
  input.type = offer.switch ? "checkbox" : "range";
  input.dataset.edit = offer.edit;
  if (!offer.switch) [input.min, input.max, input.step] = [offer.minimum, offer.maximum, offer.log ? "any" : offer.step];
  label.append(...(offer.switch ? [input, offer.title] : [offer.title, input, value]));
  const meant = (amount) => (amount === offer.default ? " (as it is)" : offer.silences && amount === 0 ? " (silenced)" : "");
  const tell = (amount) => { value.textContent = amount.toLocaleString("en") + meant(amount); };
  label.show = (amount) => {
    if (offer.switch) input.checked = amount === 1;
    else input.value = place(amount);
    tell(amount);
  };
  input.addEventListener("input", () => {
    const near = Math.abs(input.value - place(offer.default)) < offer.step / 2;
    const amount = near ? offer.default : offer.log ? +(10 ** input.value).toPrecision(3) : +input.value;
    tell(amount);
    const edit = offer.switch ? input.checked && offer.edit : amount !== offer.default && `${offer.edit}*${amount}`;
    const others = Explorer.edits().filter((text) => text !== offer.edit && !text.startsWith(`${offer.edit}*`));
    Explorer.change(edit ? [...others, edit] : others);
  });
  return label;
}

Explorer.onContent(element, build);
