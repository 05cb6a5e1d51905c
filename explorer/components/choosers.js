const box = element.querySelector(".choosers");
let built = new Map(); // what a list shows, as JSON -> the list

// A list that shows the same as before stays, and with it the keyboard's focus.
function build(choices) {
  const lists = choices.map((choice) => [JSON.stringify(choice), choice]);
  const before = built;
  built = new Map(lists.map(([text, choice]) => [text, before.get(text) || listOf(choice)]));
  const wanted = [...built.values()];
  if (wanted.some((label, i) => label !== box.children[i]) || wanted.length !== box.children.length) box.replaceChildren(...wanted);
  follow();
}

function listOf({ field, title, options }) {
  const label = document.createElement("label"), list = document.createElement("select");
  label.append(title, list);
  list.dataset.field = field;
  for (const [value, text] of options) {
    const option = new Option(text, value);
    option.dataset.number = typeof value === "number";
    list.add(option);
  }
  return label;
}

function follow() {
  for (const list of box.querySelectorAll("select")) list.value = Explorer.state[list.dataset.field];
}

box.addEventListener("change", ({ target: list }) => {
  const option = list.selectedOptions[0];
  Explorer.pick({ [list.dataset.field]: option.dataset.number === "true" ? +option.value : option.value });
});
Explorer.onState(element, follow);
Explorer.onContent(element, build);
