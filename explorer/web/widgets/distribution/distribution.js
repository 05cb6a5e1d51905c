const box = element.querySelector(".distribution"), head = box.querySelector("thead"), body = box.querySelector("tbody");
const search = box.querySelector("[type=search]"), log = box.querySelector("[type=checkbox]"), note = box.querySelector(".note");
const line = box.querySelector(".line"), stretches = box.querySelector(".stretches"), luck = box.querySelector(".luck"), falls = box.querySelector(".falls");
const HINT = "Point at a number, or move to it with the arrow keys, to see how it comes about.";
const DECADES = 6; // of the logarithmic bars
const LETTER = 7, AROUND = 6; // pixels that a label takes
let value = null, built = "", place = "", before = null, width = 0;

function show(content) {
  const now = placeOf(content), drawn = value?.rows.find((row) => row.id === value.drawn);
  if (now !== place) before = null;
  else if (content.drawn !== value.drawn) before = drawn.token;
  [value, place] = [content, now];
  const names = content.columns.map((column) => column.name).join();
  if (names !== built) build(content.columns);
  built = names;
  fill();
  drawLine();
  box.dataset.draws = +(box.dataset.draws || 0) + 1;
}

// Where in which text the random number is drawn: there, settings alone can make it fall on another token.
function placeOf({ u }) {
  const { checkpoint, prompt, generated, edits, query } = Explorer.state;
  return [checkpoint, prompt, generated, edits, query, u].join(" ");
}

// Rows and cells stay while the stages do, and with them the keyboard's focus.
function build(columns) {
  const heading = document.createElement("tr");
  heading.append(cell("th", "token"), ...columns.map((column) => cell("th", column.name)));
  head.replaceChildren(heading);
  body.replaceChildren();
}

function cell(kind, name) {
  const made = document.createElement(kind);
  made.className = name;
  made.tabIndex = -1;
  return made;
}

function newRow() {
  const row = document.createElement("tr"), token = cell("th", "token"), take = document.createElement("button");
  token.scope = "row";
  token.append(...["rank", "text", "tag"].map(span), take);
  take.type = "button";
  take.tabIndex = -1; // Enter on the row does the same
  take.className = "take";
  take.textContent = "take";
  take.title = "Take this token instead: the text then goes on from here with it.";
  row.append(token, ...value.columns.map((column) => cell("td", column.name)));
  const bars = document.createElement("div");
  bars.className = "bars";
  bars.append(document.createElement("b"), document.createElement("i"));
  row.querySelector(".probability").append(bars, span("number"));
  return row;
}

function span(name) {
  const made = document.createElement("span");
  made.className = name;
  return made;
}

function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function fill() {
  const [first, ...titles] = head.rows[0].cells;
  say(first, "token");
  first.dataset.note = "Tokens by rank: the likeliest first.";
  value.columns.forEach(({ title, about }, i) => { say(titles[i], title); titles[i].dataset.note = about; });
  while (body.rows.length > value.rows.length) body.lastChild.remove();
  while (body.rows.length < value.rows.length) body.append(newRow());
  value.rows.forEach((row, i) => fillRow(body.rows[i], row, row.rank > (value.rows[i - 1]?.rank ?? 0) + 1));
  if (!box.querySelector("[tabindex='0']:is(td, th)")) body.rows[0].cells[0].tabIndex = 0;
  search.classList.toggle("none", Boolean(value.find) && !value.found);
  tell(document.activeElement);
}

function fillRow(element, row, apart) {
  const [token, ...cells] = element.cells, [rank, text, tag, take] = token.children;
  const actual = row.id === value.actual, drawn = row.id === value.drawn;
  if (element.dataset.token !== String(row.id) || text.textContent !== row.token) text.replaceChildren(...Explorer.tokenNodes(row.token));
  element.dataset.token = row.id;
  element.classList.toggle("apart", apart);
  element.classList.toggle("cut", row.cut);
  element.classList.toggle("actual", actual);
  element.classList.toggle("found", row.found);
  say(rank, (apart ? "…" : "") + row.rank.toLocaleString("en"));
  say(tag, [actual ? "text" : "", drawn ? "u" : ""].filter(Boolean).join(" "));
  tag.title = [actual ? "the token that the text has here" : "", drawn ? "the token that the random number u falls on" : ""].filter(Boolean).join("; ");
  take.hidden = actual || !Explorer.take;
  take.setAttribute("aria-label", `take ${row.about}`);
  token.dataset.note = row.about + (take.hidden ? "" : ". “take”, or Enter, puts it here instead.");
  row.cells.forEach((words, i) => {
    say(cells[i].querySelector(".number") || cells[i], words);
    cells[i].dataset.note = row.notes[i];
  });
  const [bar, alone] = element.querySelector(".bars").children;
  bar.style.width = `${100 * length(row.probability)}%`;
  alone.style.left = `${100 * length(row.plain)}%`;
}

function length(probability) {
  return log.checked ? Math.max(0, 1 + Math.log10(probability) / DECADES) : probability;
}

function drawLine() {
  while (stretches.children.length > value.stretches.length) stretches.lastChild.remove();
  while (stretches.children.length < value.stretches.length) stretches.append(span("stretch"));
  value.stretches.forEach(({ id, token, start, end, note }, i) => {
    const stretch = stretches.children[i], room = (end - start) * width;
    stretch.style.left = `${100 * start}%`;
    stretch.style.width = `${100 * (end - start)}%`;
    stretch.dataset.note = note;
    stretch.classList.toggle("drawn", id === value.drawn);
    stretch.replaceChildren(...(room > token.length * LETTER + AROUND ? Explorer.tokenNodes(token) : []));
  });
  luck.style.left = `${100 * value.u}%`;
  falls.replaceChildren(value.words);
  if (before === null) return;
  const was = span("was");
  was.append(...Explorer.tokenNodes(before));
  falls.append(" Before the change it was ", was, ".");
}

// How the number in the cell, or the stretch, comes about.
function tell(target) {
  const told = target?.closest?.("[data-note]");
  say(note, told && box.contains(told) ? told.dataset.note : HINT);
}

box.addEventListener("mouseover", ({ target }) => tell(target));
box.addEventListener("mouseleave", () => tell(document.activeElement));
box.addEventListener("focusin", ({ target }) => {
  tell(target);
  if (!target.matches("td, th")) return;
  for (const other of box.querySelectorAll("[tabindex='0']:is(td, th)")) other.tabIndex = -1;
  target.tabIndex = 0;
});
box.addEventListener("click", ({ target }) => { if (target.matches(".take")) take(target.closest("tr")); });
box.addEventListener("keydown", (event) => {
  const at = event.target.closest("td, th"), row = at?.parentElement;
  if (!at) return;
  const rows = [...head.rows, ...body.rows], i = rows.indexOf(row), j = at.cellIndex;
  const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] || [];
  if (event.key === "Enter") take(row);
  else if (down === undefined) return;
  else (rows[i + down]?.cells[j + right] || at).focus();
  event.preventDefault();
});

function take(row) {
  const button = row.querySelector(".take");
  if (button && !button.hidden) Explorer.take(+row.dataset.token);
}

search.addEventListener("input", () => Explorer.tune({ find: search.value }));
log.addEventListener("change", fill);
const follow = () => { if (document.activeElement !== search) search.value = Explorer.state.find || ""; };
follow();
Explorer.onState(element, follow);
Explorer.onContent(element, show);
Reach.sideways(box.querySelector(".table"), body.parentElement);
new ResizeObserver(([{ contentRect }]) => {
  width = contentRect.width;
  if (value) drawLine();
}).observe(line);
