// @ts-check
import { onContent } from "../../static/contents.js";
import { button, countDraw, find, make, span } from "../../static/dom.js";
import { _, ngettext } from "../../static/language.js";
import { makeMove } from "../../static/moves.js";
import { rove } from "../../static/roving.js";
import { tokenNodes } from "../../static/token_text.js";

/** @param {HTMLElement} element */
export default function branches(element) {
  const list = find(element, ".tree"), table = find(element, ".leaves"), body = find(table, "tbody");
  let rows = [];

  function draw(content) {
    const focused = list.contains(document.activeElement) ? indexOf(document.activeElement) : -1;
    rows = content;
    element.hidden = !rows.length;
    let count = 0;
    for (const row of rows) row.name = row.compared ? ++count : 0;
    list.replaceChildren(...rows.map(stretch));
    body.replaceChildren(...rows.filter((row) => row.compared).map(compared));
    table.hidden = count < 2;
    if (focused >= 0) focus(Math.min(focused, rows.length - 1));
    countDraw(list);
  }

  const indexOf = (within) => +within.closest(".stretch").dataset.index;
  const focus = (i) => list.children[i] && find(list.children[i], ".go").focus();
  const pathTo = (i) => (i < 0 ? [] : [...pathTo(rows[i].parent), ...rows[i].ids]);
  const take = (i) => makeMove({ kind: "prune", path: [...pathTo(rows[i].parent), rows[i].ids[0]] });

  function stretch(row, i) {
    const count = row.ids.length, { bits, each } = row, beginning = row.tokens[0].trim() || _("a space");
    const tokens = ngettext("{count} token", "{count} tokens", count);
    const likely = count === 1 ? _("log₂ P {bits}", { bits }) : _("log₂ P {bits} ({each} each)", { bits, each });
    const go = button("", () => makeMove({ kind: "go", path: pathTo(i) }), { className: "go", title: row.tokens.join("") });
    if (row.here) go.ariaCurrent = "true";
    const text = span("text", span("first", ...tokenNodes(row.tokens[0])), span("rest", row.tokens.slice(1).join("")));
    if (row.name) text.prepend(span("name", `${row.name}`));
    go.append(text, span("figures", [row.origins, row.first, tokens, likely].filter(Boolean).join(" · ")));
    const prune = button("×", () => take(i), {
      className: "prune",
      title: _("take away this stretch and all that follows it"),
      ariaLabel: ngettext(
        "take away {count} token beginning with {beginning}",
        "take away {count} tokens beginning with {beginning}",
        count,
        { beginning },
      ),
    });
    const item = make("li", { className: "stretch", dataset: { index: i } }, go, prune);
    item.classList.toggle("shown", row.shown);
    item.classList.toggle("here", row.here);
    item.style.setProperty("--depth", String(Math.min(row.depth, 8)));
    item.style.setProperty("--share", row.probability.toFixed(4));
    return item;
  }

  function compared(row) {
    const name = make("th", { scope: "row" }, span("name", `${row.name}`), row.origins);
    const cells = [row.length, row.total, row.per_token, row.perplexity].map((text) => make("td", {}, `${text}`));
    const line = make("tr", {}, name, ...cells);
    line.classList.toggle("shown", row.here);
    return line;
  }

  // The arrow keys go from row to row, Delete prunes.
  rove(list, {
    at: ({ target }) => ({ row: indexOf(target), column: 0 }),
    size: () => ({ rows: rows.length, columns: 1 }),
    go: ({ row }) => focus(row),
  });
  list.addEventListener("keydown", (event) => {
    if (event.key !== "Delete") return;
    event.preventDefault();
    take(indexOf(event.target));
  });
  element.hidden = true;
  onContent(element, draw);
}
