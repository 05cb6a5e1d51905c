const list = element.querySelector(".tree"), table = element.querySelector(".leaves"), body = table.querySelector("tbody");
let rows = [];

function draw(content) {
  const focused = list.contains(document.activeElement) && +document.activeElement.closest(".stretch").dataset.index;
  rows = content;
  element.hidden = !rows.length;
  let branches = 0;
  for (const row of rows) row.name = row.compared ? ++branches : 0;
  list.replaceChildren(...rows.map(stretch));
  body.replaceChildren(...rows.filter((row) => row.compared).map(compared));
  table.hidden = branches < 2;
  if (focused !== false) list.children[Math.min(focused, rows.length - 1)]?.querySelector(".go").focus();
  list.dataset.draws = +(list.dataset.draws || 0) + 1;
}

const pathTo = (i) => (i < 0 ? [] : [...pathTo(rows[i].parent), ...rows[i].ids]);

function stretch(row, i) {
  const item = document.createElement("li"), go = document.createElement("button"), prune = document.createElement("button");
  item.className = "stretch";
  item.dataset.index = i;
  item.classList.toggle("shown", row.shown);
  item.classList.toggle("here", row.here);
  item.style.setProperty("--depth", Math.min(row.depth, 8));
  item.style.setProperty("--share", row.probability.toFixed(4));
  go.type = prune.type = "button";
  go.className = "go";
  go.title = row.tokens.join("");
  if (row.here) go.setAttribute("aria-current", "true");
  const text = span("text", span("first", ...Explorer.tokenNodes(row.tokens[0])), span("rest", row.tokens.slice(1).join("")));
  if (row.name) text.prepend(span("name", `${row.name}`));
  const tokens = row.ids.length === 1 ? "1 token" : `${row.ids.length} tokens`;
  const each = row.ids.length === 1 ? "" : ` (${row.each} each)`;
  const origin = row.origins ? `${row.origins} · ` : "";
  go.append(text, span("figures", `${origin}${row.first} · ${tokens} · log₂ P ${row.bits}${each}`));
  prune.className = "prune";
  prune.textContent = "×";
  prune.title = "take away this stretch and all that follows it";
  prune.setAttribute("aria-label", `take away ${tokens} beginning with ${row.tokens[0].trim() || "a space"}`);
  go.addEventListener("click", () => Explorer.move({ kind: "go", path: pathTo(i) }));
  prune.addEventListener("click", () => take(i));
  item.append(go, prune);
  return item;
}

const take = (i) => Explorer.move({ kind: "prune", path: [...pathTo(rows[i].parent), rows[i].ids[0]] });

function compared(row) {
  const line = document.createElement("tr"), name = document.createElement("th");
  name.scope = "row";
  name.append(span("name", `${row.name}`), row.origins);
  line.classList.toggle("shown", row.here);
  line.append(name, ...[row.length, row.total, row.per_token, row.perplexity].map(cell));
  return line;
}

function cell(text) {
  const cell = document.createElement("td");
  cell.textContent = text;
  return cell;
}

function span(className, ...content) {
  const span = document.createElement("span");
  span.className = className;
  span.append(...content);
  return span;
}

// The arrow keys go from row to row, Delete prunes.
list.addEventListener("keydown", (event) => {
  const i = +event.target.closest(".stretch").dataset.index;
  const to = { ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: rows.length - 1 }[event.key];
  if (event.key === "Delete") take(i);
  else if (to !== undefined) list.children[to]?.querySelector(".go").focus();
  else return;
  event.preventDefault();
});
element.hidden = true;
Explorer.onContent(element, draw);
