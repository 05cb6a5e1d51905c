const box = element.querySelector(".choosers");
let built = new Map(), shown = []; // what a list shows, as JSON -> the list; what they show

// A list that shows the same as before stays, and with it the keyboard's focus. While text is written those alone are
// given that name its tokens; the others stay.
function build({ choices, all }) {
  shown = choices = all ? choices : shown.map((old) => choices.find(({ field }) => field === old.field) ?? old);
  const lists = choices.map((choice) => [JSON.stringify(choice), choice]);
  const before = built;
  built = new Map(lists.map(([text, choice]) => [text, before.get(text) || listOf(choice)]));
  const wanted = [...built.values()];
  if (wanted.some((label, i) => label !== box.children[i]) || wanted.length !== box.children.length) box.replaceChildren(...wanted);
  follow();
}

function listOf({ field, title, options, most }) {
  const label = document.createElement("label"), list = document.createElement(options ? "select" : "input");
  label.append(title, list);
  list.dataset.field = field;
  if (!options) {
    Object.assign(list, { type: "number", min: 0, max: most, title: `0 to ${most}` });
    return label;
  }
  for (const [value, text] of options) {
    const option = new Option(text, value);
    option.dataset.number = typeof value === "number";
    list.add(option);
  }
  return label;
}

function follow() {
  for (const list of box.querySelectorAll("[data-field]")) {
    list.value = Explorer.state[list.dataset.field];
    if (list.selectedIndex < 0) list.selectedIndex = list.options.length - 1; // a token so new that it is not listed yet
  }
}

box.addEventListener("change", ({ target: list }) => {
  if (!list.options) {
    const number = Math.round(Math.max(0, Math.min(list.max, list.value)));
    return Explorer.pick({ [list.dataset.field]: number });
  }
  const option = list.selectedOptions[0];
  Explorer.pick({ [list.dataset.field]: option.dataset.number === "true" ? +option.value : option.value });
});
Explorer.onState(element, follow);
Explorer.onContent(element, build);
