const strip = element.querySelector(".strip");
const choice = element.querySelector("select");
let shades = {}, numPrompt = 0, shadedBy = "";

// A chip stays as long as its token does: few of many change as text is written on.
function draw({ tokens, num_prompt, earlier, ...value }) {
  [shades, numPrompt] = [value.shades, num_prompt];
  const old = [...strip.querySelectorAll(".chip")];
  const chips = tokens.map((token, i) => (old[i]?.token === token ? old[i] : chipOf(token, i)));
  chips.forEach((chip, i) => chip.classList.toggle("generated", i >= num_prompt));
  const changed = chips.findIndex((chip, i) => chip !== old[i]), from = changed < 0 ? chips.length : changed;
  for (const chip of old.slice(from)) chip.remove();
  strip.append(...chips.slice(from));
  strip.querySelector(".earlier")?.remove();
  if (earlier) {
    const note = document.createElement("span");
    note.className = "earlier";
    note.textContent = `… ${earlier.toLocaleString("en")} earlier tokens are beyond the model's context`;
    strip.prepend(note);
  }
  strip.dataset.draws = +(strip.dataset.draws || 0) + 1;
  shade();
  mark();
}

function chipOf(token, i) {
  const chip = document.createElement("button");
  chip.type = "button";
  chip.className = "chip";
  chip.setAttribute("role", "option");
  chip.dataset.position = i;
  chip.token = token;
  chip.append(...Explorer.tokenNodes(token));
  return chip;
}

function shade() {
  const name = Explorer.state.shade ?? choice.value, { shares, words } = shades[name] || {};
  choice.value = shadedBy = name;
  if (!shares) return;
  for (const chip of strip.querySelectorAll(".chip")) {
    const i = +chip.dataset.position;
    chip.style.setProperty("--share", shares[i]);
    chip.title = [`position ${i}`, i < numPrompt ? "" : "generated", words[i]].filter(Boolean).join(", ");
  }
}

function mark() {
  if (Explorer.state.shade !== shadedBy) shade();
  for (const chip of strip.querySelectorAll(".chip")) {
    const position = +chip.dataset.position;
    chip.setAttribute("aria-selected", position === Explorer.state.query);
    chip.classList.toggle("key", position === Explorer.state.key);
    chip.tabIndex = position === Explorer.state.query ? 0 : -1;
    if (position === Explorer.state.query) requestAnimationFrame(() => reveal(chip));
  }
}

// Scrolls the strip, and only the strip, so that the chip is in sight.
function reveal(chip) {
  const above = chip.offsetTop - strip.offsetTop, below = above + chip.offsetHeight;
  if (above < strip.scrollTop) strip.scrollTop = above - 4;
  else if (below > strip.scrollTop + strip.clientHeight) strip.scrollTop = below - strip.clientHeight + 4;
}

strip.addEventListener("click", (event) => {
  const chip = event.target.closest(".chip");
  if (chip) Explorer.pick({ query: +chip.dataset.position });
});
strip.addEventListener("keydown", (event) => {
  const last = strip.querySelectorAll(".chip").length - 1;
  const to = {
    ArrowRight: Math.min(last, Explorer.state.query + 1),
    ArrowLeft: Math.max(0, Explorer.state.query - 1),
    Home: 0,
    End: last,
  }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  Explorer.pick({ query: to });
  strip.querySelector(`[data-position="${to}"]`).focus();
});
choice.addEventListener("change", () => Explorer.mark({ shade: choice.value }));
Explorer.onState(element, mark);
Explorer.onContent(element, draw);
