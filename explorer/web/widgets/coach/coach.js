const line = element.querySelector(".coach");

function show({ words, look, offer }) {
  element.hidden = !words;
  line.replaceChildren(words);
  if (look) line.append(button("Show me", () => { Explorer.pick(look); Reach.reveal(line.dataset.shown); }));
  if (offer) line.append(button(`Use this prompt: ${offer.length > 24 ? "…" : ""}${offer.slice(-24)}`, () => { props.value = offer; trigger("apply"); }, offer));
}

function button(text, act, title = "") {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.title = title;
  button.addEventListener("click", act);
  return button;
}

element.hidden = true;
Explorer.onContent(element, show);
