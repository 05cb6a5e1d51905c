const line = element.querySelector(".brief"), [text, next, probability] = line.children;

function show(value) {
  text.textContent = value.text;
  next.replaceChildren(...Explorer.tokenNodes(value.next));
  probability.textContent = value.probability;
  line.setAttribute("aria-label", `${value.text}: next ${value.next}, probability ${value.probability}; to the prompt`);
}

line.addEventListener("click", () => document.getElementById("prompt").querySelector("textarea").focus());
Explorer.onContent(element, show);
