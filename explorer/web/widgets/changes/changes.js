const box = element.querySelector(".changes");

function show(edits) {
  element.hidden = !edits.length;
  const buttons = edits.map(([edit, words]) => button(`${words} ✕`, `take back: ${words}`, Explorer.edits().filter((text) => text !== edit)));
  if (edits.length > 1) buttons.push(button("take all back", "take all back", []));
  box.replaceChildren("The model is changed, and all you see follows: ", ...buttons);
}

function button(text, label, left) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.setAttribute("aria-label", label);
  button.addEventListener("click", () => Explorer.change(left));
  return button;
}

element.hidden = true;
Explorer.onContent(element, show);
