// Texts of a page, and actions of a user (page_walk.py).

const SAYS = [
  "aria-label", "aria-pressed", "aria-selected", "aria-expanded", "aria-valuetext", "aria-current", "aria-checked",
  "title", "data-note", "data-state", "placeholder",
];
const DRAWS = ["width", "left", "--share", "--depth"];
const CLASSES = ["less", "key", "generated", "cut", "actual", "drawn", "here", "shown", "found", "is-right", "wrong"];
const CONTROLS = "button, select, input, textarea, a[href], [role=option], [role=tab], .plot, [data-part]";
const ONE_OF_MANY = ".chip, td, th, .take, .cell, .go, .prune, [data-part], .head";
const isMade = (id) => /^(component|html|modebar|range_id|clip|legend|$)/.test(id); // differs between pages
const placeOf = (element) => {
  let at = element;
  while (at && isMade(at.id)) at = at.parentElement;
  return at?.id ?? "";
};
const classOf = (element) => [...element.classList].find((name) => !name.startsWith("svelte")) ?? "";

function hash(text) {
  let found = 0;
  for (let i = 0; i < text.length; i++) found = (Math.imul(31, found) + text.charCodeAt(i)) | 0;
  return String(found);
}

// A figure's numbers, texts and badges, without what depends on the theme and the width.
function ofPlot({ data, layout }) {
  const plain = (_key, value) => (ArrayBuffer.isView(value) ? [...value] : value);
  const traces = (data ?? []).map(({ type, x, y, z, text, name, customdata, marker, cells }) =>
    `${type} ${hash(JSON.stringify([x, y, z, text, name, customdata, marker?.color, marker?.line?.width, cells?.data], plain))}`);
  return [...traces, hash(JSON.stringify([layout?.shapes, layout?.annotations, layout?.title, layout?.xaxis?.title, layout?.yaxis?.title]))].join("/");
}

/** Opens the intervention controls. */
function unfold() {
  for (const fold of document.querySelectorAll("[id$=-what-ifs] .fold[aria-expanded=false]")) fold.click();
}

/** All in sight that says something: [where, what] each. */
function read(skipped) {
  unfold();
  const lines = [], isInline = (node) => node.nodeType === 3 || node.matches?.(".term");
  function visit(element) {
    if (element.matches(skipped) || element.hidden) return;
    const { display, visibility } = getComputedStyle(element);
    if (display === "none" || visibility === "hidden") return;
    if (element.matches("a[href]")) element.dispatchEvent(new Event("focus")); // which it says its address for
    const said = [], tell = (name, value) => { if (value !== null && value !== undefined && value !== "") said.push(`${name}=${value}`); };
    for (const name of SAYS) tell(name, element.getAttribute(name));
    for (const name of DRAWS) tell(name, element.style?.getPropertyValue?.(name));
    for (const name of CLASSES) if (element.classList.contains(name)) tell("is", name);
    if (element.disabled) tell("is", "disabled");
    if (element.matches("input, select, textarea")) tell("value", element.type === "checkbox" ? element.checked : element.value);
    if (element.matches("input")) tell("max", element.max);
    if (element.matches("select")) tell("options", [...element.options].map(({ text }) => text).join("|"));
    if (element.matches("a[href]")) tell("leads to", element.href);
    if (element.matches("img")) tell("drawn", hash(element.src));
    tell("text", [...element.childNodes].filter(isInline).map((node) => node.textContent).join("").replace(/\s+/g, " ").trim());
    if (element.matches(".plot")) tell("drawn", ofPlot(element));
    const exact = said.join(" ").replace(/-?\d+\.\d{4,}/g, (number) => (+number).toFixed(4));
    const where = `${placeOf(element)} ${element.tagName.toLowerCase()}.${element === document.body ? "" : classOf(element)}`;
    if (said.length && element !== document.body) lines.push(`${where}: ${exact}`);
    if (!element.matches(".plot")) for (const child of element.children) if (!child.matches(".term")) visit(child);
  }
  visit(document.body);
  return lines;
}

let there = {};

/** The names of the controls in sight; of many of one kind, as tokens and cells are, some. */
function controls(skipped, most) {
  unfold();
  const kinds = {};
  for (const element of document.querySelectorAll(CONTROLS)) {
    if (element.closest(skipped) || element.disabled || !element.getClientRects().length) continue;
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    const { dataset, labels } = element, label = element.ariaLabel || dataset.field || dataset.edit || labels?.[0]?.textContent || element.title || element.textContent || "";
    const kind = `${placeOf(element)} ${element.tagName.toLowerCase()}.${classOf(element)}`;
    const words = label.trim().replace(/\s+/g, " ").replace(/\d+/g, "#").slice(0, 40);
    (kinds[element.matches(ONE_OF_MANY) ? kind : `${kind} ${words}`] ??= []).push(element);
  }
  there = {};
  for (const [name, all] of Object.entries(kinds)) {
    const picked = all.length <= most ? all : [all[Math.floor(all.length / 2)], all[0], all.at(-1)].slice(0, most);
    picked.forEach((element, i) => { there[picked.length > 1 ? `${name} #${i}` : name] = element; });
  }
  return Object.keys(there);
}

/** What somebody does with a control, and is done; of a figure, where to click. @param {number} chance from 0 to 1 */
function act(name, chance) {
  const element = there[name], one = (all) => all[Math.min(all.length - 1, Math.floor(chance * all.length))];
  if (!element?.isConnected) return "";
  const fire = (...kinds) => kinds.forEach((kind) => element.dispatchEvent(new Event(kind, { bubbles: true })));
  const write = (value, ...kinds) => {
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(element), "value").set.call(element, value);
    fire(...kinds);
    return `${element.value}`;
  };
  if (element.matches(".plot")) {
    element.scrollIntoView({ block: "center" });
    const box = (element.querySelector(".nsewdrag") ?? element).getBoundingClientRect(), share = 0.15 + 0.7 * chance;
    return [box.left + box.width * share, box.top + box.height * (1 - share)];
  }
  element.focus?.();
  if (element.matches("select")) {
    const others = [...element.options].filter(({ selected, disabled, value }) => !selected && !disabled && value);
    return others.length ? write(one(others).value, "input", "change") : "";
  }
  if (element.matches("[type=checkbox]")) return element.click() ?? "toggled";
  if (element.matches("[type=range]")) {
    const [low, high] = [+element.min, +element.max], places = [0, 0.25, 0.5, 0.75, 1].map((share) => low + share * (high - low));
    return write(String(one(places.filter((place) => Math.abs(place - +element.value) > 1e-9))), "input", "change", "pointerup");
  }
  if (element.matches("[type=number]")) {
    const low = +(element.min || 0), high = Math.min(+(element.max || 8), low + 6);
    return write(String(Math.round(low + chance * (high - low))), "input", "change", "blur");
  }
  if (element.matches("textarea, input")) {
    const written = write(one(["the", "owl", "The cat sat", "a"]), "input", "change");
    element.form?.requestSubmit();
    if (element.closest("#prompt")) document.querySelector("#run").click();
    return written;
  }
  return element.click() ?? "clicked";
}

window.stale = { read, controls, act };
