const box = element.querySelector(".choosers");
let built = "";

function build() {
  const wanted = JSON.stringify(props.value || []);
  if (wanted === built) return follow(); // keeps the keyboard's focus on the list just used
  built = wanted;
  const lists = (props.value || []).map(({ field, title, options }) => {
    const label = document.createElement("label"), list = document.createElement("select");
    label.append(title, list);
    list.dataset.field = field;
    for (const [value, text] of options) {
      const option = new Option(text, value);
      option.dataset.number = typeof value === "number";
      list.add(option);
    }
    return label;
  });
  box.replaceChildren(...lists);
  follow();
}

function follow() {
  for (const list of box.querySelectorAll("select")) list.value = Explorer.state[list.dataset.field];
}

box.addEventListener("change", ({ target: list }) => {
  const option = list.selectedOptions[0];
  Explorer.pick({ [list.dataset.field]: option.dataset.number === "true" ? +option.value : option.value });
});
Explorer.onState(element, follow);
watch("value", build);
build();
