// @ts-check
// The whole model as one drawing, whose parts open in place: tokens are rows, blocks are columns, the chosen token's
// residual stream runs through them, and a curve is what it takes from an earlier token through one head.
import { makeHeadSwitch, select } from "../../static/page_actions.js";
import { showEvidence, queueDraw, onFigureContent } from "../../static/widget_contents.js";
import { button, countDraw, DIRECTIONS, find, hide, isKeyForFocus, listenFor, make, makeSvg, nearestInDirection, onThemeChange, setText, set, span, formatPercent } from "../../static/dom.js";
import { _, ngettext } from "../../static/translations.js";
import { changeInA, onState, seen, shownRun, state } from "../../static/page_state.js";

// Where things are: of numbers alone, so that one drawing can move to another.

const TOP = 60, BOTTOM = 58, MIN_HEIGHT = 340; // pixels above the first row, below the last, and of all
const CHARACTER = 7.3, SMALL = 6.7; // width of a letter of 12 and of 11 pixels
const NARROW = 560; // a phone's width: less room beside the blocks
const THICKEST = 14, WIDEST = 12; // the stream at its longest, and the widest curve

/** What is open, from all to one cell. */
const LEVELS = ["", "block", "head", "cell"];

/**
 * What the drawing's parts need of its place.
 * @param {any} model
 * @param {{ level: string, layer: number, head: number }} open
 * @param {{ width: number, height: number }} size
 */
export function drawingLayout(model, { level, layer, head }, { width, height }) {
  const isNarrow = width < NARROW, rows = model.rows.length, layers = model.blocks.length;
  const letters = Math.min(Math.max(...model.rows.map(([, , text]) => text.length), 6), isNarrow ? 8 : 13);
  const left = Math.max(isNarrow ? 0 : 72, letters * (isNarrow ? SMALL : CHARACTER) + 14), right = isNarrow ? Math.min(60, 14 + 9.8 * model.answer.length) : Math.min(130, 44 + 9.8 * model.answer.length);
  const all = width - left - right, isOpen = level !== "";
  const share = layers === 1 ? 1 : isNarrow ? 0.86 : { block: 0.58, head: 0.64, cell: 0.8 }[level] ?? 0;
  const closed = isOpen ? (all * (1 - share)) / Math.max(1, layers - 1) : all / layers;
  const wide = model.blocks.map((_block, l) => (isOpen && l === layer ? all * share : closed));
  const at = wide.map((_wide, l) => left + wide.slice(0, l).reduce((sum, one) => sum + one, 0));
  const room = wide.map((one, l) => (isOpen && l === layer ? Math.min(level === "cell" ? 116 : 150, one * (isNarrow ? 0.2 : 0.28)) : one));
  const lowest = height - BOTTOM - (isNarrow ? 14 : 0), pitch = rows > 1 ? (lowest - TOP) / (rows - 1) : 40;
  const y = model.rows.map((_row, i) => (rows > 1 ? TOP + i * pitch : lowest));
  const middle = y[model.rows.findIndex(([first]) => first === model.query)]; // of the stream
  const join = at.map((x, l) => x + room[l] * 0.46), mlp = at.map((x, l) => x + room[l] * 0.72);
  const gap = Math.min(10, closed * 0.12);
  const tall = Math.min(pitch, 46), above = Math.max(34, y[0] - tall / 2 - 6); // of a cell, and where the card begins
  const card = isOpen ? { x: at[layer] + room[layer], y: above, w: wide[layer] - room[layer] - gap - 8, h: height - 14 - above } : { x: join[layer], y: middle, w: 0, h: 0 };
  const grid = replyGrid(model.blocks[0].heads.length, card);
  const small = grid.at(head), cell = Math.min(pitch, 44, (level === "cell" ? (isNarrow ? 0 : 0.36) : 1) * Math.max(0, card.w - (isNarrow ? 4 : 84)) / rows);
  const pattern = !isOpen ? { x: join[layer], y: middle, w: 0, h: 0 }
    : level === "block" ? { x: small.x, y: small.y, w: small.w, h: small.w }
      : { x: card.x + (isNarrow ? 2 : 10), y: y[0] - tall / 2, w: cell * rows, h: y[rows - 1] - y[0] + tall };
  const steps = { x: pattern.x + pattern.w + (isNarrow ? 6 : 72), w: Math.max(0, card.x + card.w - pattern.x - pattern.w - (isNarrow ? 14 : 80)) };
  return { width, height, left, right, at, wide, room, join, mlp, gap, y, pitch, tall, widest: Math.min(WIDEST, Math.max(3, (0.22 * all) / layers)), middle, card, pattern, steps };
}

/** Where the heads of an open block are: as large as all fit into the card, above the feed-forward. @param {number} heads @param {{ x: number, y: number, w: number, h: number }} card */
function replyGrid(heads, card) {
  const gap = 10, label = 20, height = card.h - 58;
  let best = { columns: 1, size: 0 };
  for (let columns = 1; columns <= heads; columns += 1) {
    const rows = Math.ceil(heads / columns), size = Math.min((card.w - 12 - gap * (columns - 1)) / columns, height / rows - label);
    if (size > best.size + 0.01) best = { columns, size };
  }
  const { columns, size } = best, first = card.x + 10;
  const at = (head) => ({ x: first + (head % columns) * (size + gap), y: card.y + 6 + Math.floor(head / columns) * (size + label), w: size });
  return { at, size, bottom: card.y + 6 + Math.ceil(heads / columns) * (size + label) };
}

/** A layout between two, of the same lists. */
function between(from, to, share) {
  if (typeof to === "number") return typeof from === "number" ? from + (to - from) * share : to;
  if (Array.isArray(to)) return Array.isArray(from) && from.length === to.length ? to.map((one, i) => between(from[i], one, share)) : to;
  return Object.fromEntries(Object.entries(to).map(([name, one]) => [name, between(from?.[name], one, share)]));
}

// Numbers and texts.

const signed = (value) => (value === null ? "–" : `${value < -0.004 ? "−" : value > 0.004 ? "+" : ""}${Math.abs(value).toFixed(2)}`);
const bare = (text) => text.replace(/[\u2068\u2069]/g, "").replace(document.body?.dataset.depth === "story" ? /^·(?=[^·])/ : /^$/, ""); // in the story a word is a word
/** A text that has room for so many letters. @param {string} text @param {number} most */
const fit = (text, most) => (bare(text).length > most ? `${bare(text).slice(0, Math.max(0, Math.floor(most) - 1))}…` : bare(text));
/** A row's text in so much room; of a fold at least how many it has. @param {[number, number, string]} row @param {number} most */
const rowText = ([first, last, text], most) => (last > first && bare(text).length > most ? `… ${last - first + 1}` : fit(text, most));
const largest = (values) => Math.max(1e-9, ...values.map((value) => Math.abs(value ?? 0)));
/** Its colour and strength, beside the largest of its kind. */
const shade = (value, most) => {
  const share = Math.abs(value ?? 0) / most;
  return share < 0.04 ? { sign: "neutral", opacity: 0.3 } : { sign: value < 0 ? "takes" : "adds", opacity: +(0.25 + 0.75 * Math.min(1, share)).toFixed(3) };
};

/** Width of a curve. @param {number} norm @param {number} most the largest norm @param {number} widest its curve's width */
export const curveWidth = (norm, most, widest) => Math.max(0.75, +((widest * norm) / most).toFixed(2));

/** The path of the cells whose weight is about so many tenths. @param {number[][]} rows @param {number} tenth */
const cellsOf = (rows, tenth) => rows.map((row, i) => row.map((p, j) => (Math.ceil((p ?? 0) * 10 - 0.1) === tenth ? `M${j} ${i}h1v1h-1z` : "")).join("")).join("");

const MOVE = 170, FLOW = 1800; // milliseconds that an opening moves, and that a sentence takes through the model

/** @param {HTMLElement} element */
export function wholeModel(element) {
  const figure = find(element, ".whole"), path = find(figure, ".path"), readout = find(figure, ".readout");
  const drawing = find(figure, ".drawing"), sum = find(figure, ".sum"), still = matchMedia("(prefers-reduced-motion: reduce)");
  const names = ["blocks", "wires", "curves", "stream", "parts", "tokens", "card"];
  const groups = Object.fromEntries(names.map((name) => [name, makeSvg("g", `group-${name}`)])), svg = makeSvg("svg", "", ...Object.values(groups));
  /** @type {any} */
  let model = null;
  /** @type {any} */
  let layout = null;
  let frame = 0, prompt = "", followed = "", flowing = 0, turn = 0;
  let current = "", goal = ""; // where the keyboard is, and where it goes once that is there
  let isKept = false; // whether the keyboard is to stay in the drawing while its part is replaced
  /** Name of a node -> it. @type {Map<string, SVGElement & { turn?: number, item?: any }>} */
  const nodes = new Map();

  // What can be done with the head that is open.
  const runEdits = () => (shownRun(element) === "b" ? "b.edits" : "edits"), ablation = ({ layer, head }) => `blocks.${layer}.attn.z.${head}*zero`;
  const acts = find(figure, ".acts");
  const switching = makeHeadSwitch();
  acts.append(...switching.nodes);

  set(svg, { role: "group", "aria-description": _("Arrow keys go from part to part, Enter opens one, Escape leads back.") });
  drawing.append(svg);

  const isGuessing = () => document.body.classList.contains("guessing"), isStory = () => document.body.dataset.depth === "story";
  /** What is open of what there is to show; what is not there yet opens all the same. */
  function opened() {
    const { open = "", layer, head, query, key } = seen(shownRun(element));
    return { level: LEVELS.includes(open) ? open : "", layer: Math.min(layer, model.blocks.length - 1), head: Math.min(head, model.blocks[0].heads.length - 1), query, key };
  }
  /** Whether what is open has come. */
  const hasCome = ({ level, layer }) => Boolean(level) && model.open?.layer === layer;

  // Nodes stay as long as what they stand for does.

  function put(group, name, tag, attributes, text) {
    let node = nodes.get(name);
    if (!node) {
      node = makeSvg(tag);
      nodes.set(name, node);
      groups[group].append(node);
    }
    node.turn = turn;
    set(node, attributes);
    if (text !== undefined) setText(node, text);
    return node;
  }

  /**
   * A part that can be pointed at and pressed.
   * @param {string} group @param {string} name
   * @param {{ kind: string, label: string, box: number[], act?: () => void, lights?: (curve: any) => boolean }} item
   */
  function putItem(group, name, { kind, label, box, act, lights }) {
    const before = nodes.get(name), drawnAs = kind.split(" ")[0];
    if (before && before.item.drawnAs !== drawnAs) before.remove(), nodes.delete(name); // a head is a dot, a pattern or a switch
    const node = put(group, name, "g", { class: `item ${kind}`, role: "button", tabindex: name === current ? 0 : -1, "aria-label": label });
    node.item = { name, drawnAs, label, box, act, lights };
    return node;
  }

  /** Within an item, whose nodes go with it. */
  function within(node, index, tag, attributes, text) {
    while (node.children.length <= index) node.append(makeSvg(tag));
    set(node.children[index], attributes);
    if (text !== undefined) setText(node.children[index], text);
  }

  function draw() {
    if (!model || !layout) return;
    turn += 1;
    const { width, height } = layout, open = opened();
    set(svg, { viewBox: `0 0 ${width} ${height}`, width, height, "aria-label": isGuessing() ? _("The whole model; its guess is covered.") : model.alt });
    svg.classList.toggle("open", Boolean(open.level));
    drawBlocks(open);
    drawTokens();
    drawCurves(open);
    drawStream();
    drawCard(open);
    for (const [name, node] of nodes) if (node.turn !== turn) node.remove(), nodes.delete(name);
    if (nodes.get(goal)?.item) [current, goal] = [goal, ""];
    if (!nodes.get(current)?.item) current = `token:${model.query}`;
    for (const node of nodes.values()) if (node.item?.name) set(node, { tabindex: node.item.name === current ? 0 : -1 });
    if (isKept && !goal) nodes.get(current).focus({ preventScroll: true }), isKept = false;
  }

  const closeUp = (change) => select(changeInA(change, shownRun(element)));

  function drawBlocks(open) {
    const { at, wide, gap, height } = layout, most = largest(model.blocks.flatMap(({ heads }) => heads));
    const narrowest = Math.min(...wide), every = Math.max(1, Math.ceil(20 / narrowest));
    const tells = Math.max(1, Math.ceil(60 / narrowest)); // of the best guesses one of so many has room
    model.blocks.forEach((block, l) => {
      const isOpen = open.level && l === open.layer, x = at[l], w = wide[l] - gap, { guess, probability } = block;
      const told = isGuessing() ? "" : _("best guess {guess} {percent}", { guess: bare(guess), percent: formatPercent(probability) });
      const adds = block.heads.reduce((all, one) => all + (one ?? 0), 0);
      const added = isStory() ? [] : [_("heads {value}", { value: signed(adds) }), _("feed-forward {value}", { value: signed(block.feed_forward) })];
      const label = [_("Layer {layer}", { layer: l }), ...added, told].filter(Boolean).join(", ");
      const node = putItem("blocks", `block:${l}`, {
        kind: isOpen ? "block opened" : "block", label, box: [x, 4, x + w, 24], lights: (curve) => curve[0] === l,
        act: () => closeUp(isOpen ? { open: "" } : { open: "block", layer: l }),
      });
      set(node, { "aria-expanded": Boolean(isOpen) });
      within(node, 0, "rect", { class: "shape", x, y: 4, width: Math.max(0, w), height: height - 6, rx: Math.min(10, w / 3) });
      const title = w > 54 ? _("Layer {layer}", { layer: l }) : l % every === 0 || isOpen ? `${l}` : "";
      within(node, 1, "text", { class: "title", x: w > 54 ? x + 10 : x + w / 2, y: 22, "text-anchor": w > 54 ? "start" : "middle" }, title);
      const isTold = isOpen ? 1 : (model.blocks.length - 1 - l) % tells === 0 ? tells : 0, letters = (isOpen ? layout.room[l] + 40 : narrowest * isTold - 10) / SMALL;
      const ends = tells > 1 && !isOpen, place = { x: ends ? x + w : x + (isOpen ? layout.room[l] / 2 : w / 2), "text-anchor": ends ? "end" : "middle" };
      const isHidden = !isTold || (open.level && !isOpen && (letters < 4 || width() < NARROW)) || (isOpen && layout.room[l] < 60);
      put("tokens", `guess:${l}`, "text", { class: "guess", "aria-hidden": true, y: height - 27, ...place, "fill-opacity": 0.55 + 0.45 * (probability ?? 0) }, isHidden ? "" : fit(guess, letters));
      put("tokens", `share:${l}`, "text", { class: "guess share", "aria-hidden": true, y: height - 12, ...place }, isHidden || letters < 3 ? "" : formatPercent(probability));
      if (!open.level) drawDots(block.heads, l, x, w, most);
      else if (isOpen && open.level !== "block") drawSwitches(block.heads, l, open, most);
    });
    const soft = { class: "soft", x: layout.left - 12, "text-anchor": "end" };
    put("tokens", "best", "text", { ...soft, y: height - 27 }, width() < NARROW ? _("guess") : _("best guess"));
    put("tokens", "so-far", "text", { ...soft, y: height - 12 }, width() < NARROW ? "" : _("so far"));
  }

  const width = () => layout.width;
  /** In the story in words, elsewhere in logits. @param {number | null} value @param {number} most the largest of its kind */
  const effectText = (value, most) => (isStory() ? { adds: _("for the answer"), takes: _("against the answer"), neutral: _("of little effect on the answer") }[shade(value, most).sign] : signed(value));
  const headLabel = (l, h, value, most) => _("layer {layer} head {head}: {value}", { layer: l, head: h, value: effectText(value, most) });

  function drawDots(heads, l, x, w, most) {
    const space = Math.min(13, (w - 14) / heads.length), radius = Math.min(4.5, space * 0.38);
    if (space < 6.5) return;
    heads.forEach((value, h) => {
      const cx = x + 14 + h * space, { sign, opacity } = shade(value, most);
      const node = putItem("parts", `head:${l}.${h}`, {
        kind: "head", label: headLabel(l, h, value, most), box: [cx - space / 2, 30, cx + space / 2, 46], lights: (curve) => curve[0] === l && curve[1] === h,
        act: () => closeUp({ open: "head", layer: l, head: h }),
      });
      within(node, 0, "rect", { class: "reach", x: cx - space / 2, y: 28, width: space, height: 20 });
      within(node, 1, "circle", { class: `shape ${sign}`, cx, cy: 38, r: radius, "fill-opacity": opacity });
    });
  }

  /** The heads of the open block while one of them is large. */
  function drawSwitches(heads, l, open, most) {
    const { card, at } = layout, first = at[l] + 66, space = Math.min(34, (card.x + card.w - first) / heads.length);
    heads.forEach((value, h) => {
      const x = first + h * space, { sign, opacity } = shade(value, most), isHere = h === open.head;
      const node = putItem("card", `head:${l}.${h}`, {
        kind: isHere ? "switch here" : "switch", label: headLabel(l, h, value, most), box: [x, 8, x + space, 30], lights: (curve) => curve[0] === l && curve[1] === h,
        act: () => closeUp({ open: "head", layer: l, head: h }),
      });
      set(node, { "aria-pressed": isHere });
      within(node, 0, "rect", { class: `shape ${sign}`, x: x + 1, y: 8, width: Math.max(0, space - 3), height: 22, rx: 4, "fill-opacity": opacity * 0.6 });
      within(node, 1, "text", { x: x + space / 2 - 0.5, y: 23, "text-anchor": "middle" }, space > 11 ? `${h}` : "");
    });
  }

  function drawTokens() {
    const { left, y, pitch, at, wide, gap } = layout, end = at.at(-1) + wide.at(-1) - gap, chosen = seen(shownRun(element)).query;
    const letters = (left - 14) / (width() < NARROW ? SMALL : CHARACTER);
    model.rows.forEach(([first, last, text], i) => {
      const isFold = last > first, isLater = first > model.query;
      const label = isFold ? _("tokens {first} to {last}, folded", { first, last }) : _("token {position}: {text}", { position: first, text: bare(text) });
      const shown = rowText([first, last, text], letters), letterWidth = width() < NARROW ? SMALL : CHARACTER;
      const node = putItem("tokens", `token:${first}`, {
        kind: ["token", isFold && "folded", isLater && "later", first === chosen && "chosen"].filter(Boolean).join(" "), label,
        box: [0, y[i] - 8, left - 8, y[i] + 8], lights: ([, , key]) => key >= first && key <= last,
        act: () => (isFold ? closeUp({ key: Math.min(model.query, strongest(first, last)) }) : closeUp({ query: first })),
      });
      if (!isFold) set(node, { "aria-pressed": first === chosen });
      const lower = y[i] - Math.min(22, pitch) / 2, h = Math.min(22, pitch);
      within(node, 0, "rect", { class: "reach", x: 0, y: lower, width: left - 6, height: h });
      within(node, 1, "rect", { class: "shape", x: left - 18 - shown.length * letterWidth, y: lower, width: 12 + shown.length * letterWidth, height: h, rx: 5 });
      within(node, 2, "text", { x: left - 12, y: y[i] + 4, "text-anchor": "end" }, shown);
      put("wires", `wire:${first}`, "path", { class: isLater ? "wire later" : "wire", d: `M${left - 4} ${y[i]}H${end}` });
    });
  }

  /** The token of a fold that most is taken from. */
  function strongest(first, last) {
    const sums = new Map();
    for (const [, , key, norm] of model.curves) if (key >= first && key <= last) sums.set(key, (sums.get(key) ?? 0) + norm);
    return [...sums].sort((a, b) => b[1] - a[1])[0]?.[0] ?? first;
  }

  const rowOf = (position) => model.rows.findIndex(([first, last]) => first <= position && position <= last);
  const textOf = (position) => {
    const [first, last, text] = model.rows[rowOf(position)];
    return first === last ? bare(text) : _("token {position}", { position });
  };

  function drawCurves(open) {
    const { at, wide, join, y, middle, mlp, widest } = layout, longest = Math.max(1e-9, model.largest_norm);
    const inOrder = [...model.curves].sort((a, b) => Math.abs(a[4] ?? 0) - Math.abs(b[4] ?? 0)), most = Math.max(1e-9, model.largest_effect);
    const named = open.level ? undefined : inOrder.findLast(([, , , , effect]) => effect > 0); // which the sentence above is about
    for (const [l, h, key, norm, effect, weight] of inOrder) {
      if (wide[l] < 8) continue;
      const from = y[rowOf(key)], x = at[l] + Math.min(3, wide[l] * 0.1), end = join[l], bend = (end - x) * 0.55, { sign, opacity } = shade(effect, most);
      const node = put("curves", nameOf([l, h, key]), "path", {
        class: `curve ${sign}`, d: `M${x} ${from}C${x + bend} ${from} ${end - bend * 0.5} ${from + (middle - from) * 0.35} ${end} ${middle}`,
        "stroke-width": curveWidth(norm ?? 0, longest, widest), "stroke-opacity": opacity, pathLength: 1, "data-head": `${l}.${h}`, "data-key": key,
      });
      const label = isStory()
        ? _("layer {layer} head {head} looks at {token} ({weight}): {effect}", { layer: l, head: h, token: textOf(key), weight: formatPercent(weight), effect: effectText(effect, most) })
        : _("layer {layer} head {head} takes from {token}: weight {weight}, norm {norm}, {effect} to the answer", { layer: l, head: h, token: textOf(key), weight: formatPercent(weight), norm: (norm ?? 0).toFixed(2), effect: signed(effect) });
      node.item = { name: "", label, lights: (other) => other[0] === l && other[1] === h, act: () => closeUp({ open: "cell", layer: l, head: h, key }) };
      node.style.setProperty("--at", String(stageOf(l)));
    }
    if (named) markCurve(named);
    const sizes = largest(model.blocks.map(({ feed_forward: value }) => value));
    model.blocks.forEach(({ feed_forward: value }, l) => {
      const size = Math.max(5, Math.min(layout.pitch - 2, wide[l] * 0.5, 22) * Math.sqrt(Math.abs(value ?? 0) / sizes));
      put("parts", `ffn-mark:${l}`, "rect", { class: value < 0 ? "ffn less" : "ffn", x: mlp[l] - size / 2, y: middle - size / 2, width: size, height: size, rx: 3 }).style.setProperty("--at", String(stageOf(l) + 0.08));
    });
    const isBeside = ([l, h, key]) => (open.level !== "" && l !== open.layer) || ((open.level === "head" || open.level === "cell") && h !== open.head) || (open.level === "cell" && key !== open.key);
    for (const curve of inOrder) nodes.get(nameOf(curve))?.classList.toggle("beside", isBeside(curve));
  }

  /** Draws a curve over the others, with a ring where it begins. @param {any} curve */
  function markCurve(curve) {
    const [l, , key] = curve, node = nodes.get(nameOf(curve));
    if (!node) return;
    const ring = put("curves", "named", "circle", { class: "named", cx: layout.at[l] + Math.min(3, layout.wide[l] * 0.1), cy: layout.y[rowOf(key)], r: 8 });
    if (ring !== groups.curves.lastChild || ring.previousSibling !== node) groups.curves.append(node, ring);
  }

  const nameOf = ([l, h, key]) => `curve:${l}.${h}.${key}`;

  /** When the sentence comes to a block, as a share of all the time. */
  const stageOf = (l) => (0.12 + (0.68 * l) / model.blocks.length).toFixed(3);

  function drawStream() {
    const { left, join, mlp, middle, right } = layout, end = width() - right;
    const norms = [model.norm, ...model.blocks.map(({ norm }) => norm)], most = largest(norms), half = (norm) => Math.max(0.75, (THICKEST / 2) * ((norm ?? 0) / most));
    const points = [[left - 4, half(norms[0])]];
    join.forEach((x, l) => points.push([x, half(norms[l])], [mlp[l], half(norms[l + 1])]));
    points.push([end, half(norms.at(-1))]);
    const upper = points.map(([x, h]) => `${x} ${middle - h}`), lower = points.map(([x, h]) => `${x} ${middle + h}`).reverse();
    put("stream", "spine", "path", { class: "spine", d: `M${[...upper, ...lower].join("L")}Z` });
    const last = half(norms.at(-1)) + 3;
    put("stream", "arrow", "path", { class: "spine", d: `M${end - 1} ${middle - last}l${last + 3} ${last}l${-last - 3} ${last}Z` });
    const narrow = width() < NARROW, room = (right - 24) / 9.8, isOpen = Boolean(opened().level), { answer, probability, rank } = model;
    const place = narrow ? { x: width() - 2, "text-anchor": "end", y: middle + 28 } : { x: end + last + 8, "text-anchor": "start", y: middle + 5 };
    put("stream", "answer", "text", { class: "answer", ...place }, fit(answer, narrow ? (isOpen ? Math.max(4, (right - 4) / 9.8) : 10) : Math.max(4, room)));
    put("stream", "share", "text", { class: "answer share", ...place, y: place.y + 17 }, narrow && isStory() ? "" : formatPercent(probability));
    put("stream", "rank", "text", { class: "answer share", ...place, y: place.y - 20 }, narrow || rank === 1 ? "" : _("rank {rank}", { rank }));
  }

  // What is open: a card over the stream, in which the numbers are.

  function drawCard(open) {
    const { card, pattern } = layout;
    if (!open.level) return;
    put("card", "card", "rect", { class: "card", ...boxOf(card), rx: 8 });
    if (!hasCome(open)) return void put("card", "frame", "rect", { class: "frame", ...boxOf(pattern) });
    if (open.level === "block") drawHeads(open);
    else drawPattern(open);
    if (open.level === "cell" && model.open.cell) drawSteps(model.open.cell);
  }

  const boxOf = ({ x, y, w, h }) => ({ x, y, width: Math.max(0, w), height: Math.max(0, h) });

  /** The small pattern that a node shows. @type {WeakMap<SVGElement, number[][]>} */
  const drawnOf = new WeakMap();

  function drawHeads({ layer, head }) {
    const { card } = layout, { patterns } = model.open, grid = replyGrid(patterns.length, card), block = model.blocks[layer], most = largest(model.blocks.flatMap(({ heads }) => heads));
    patterns.forEach((rows, h) => {
      const { x, y, w } = grid.at(h), value = block.heads[h], { sign } = shade(value, most), cell = w / rows.length;
      const node = putItem("card", `head:${layer}.${h}`, {
        kind: h === head ? "pattern here" : "pattern", label: headLabel(layer, h, value, most), box: [x, y, x + w, y + w],
        lights: (curve) => curve[0] === layer && curve[1] === h, act: () => closeUp({ open: "head", layer, head: h }),
      });
      within(node, 0, "rect", { class: "shape", x, y, width: w, height: w, rx: 3 });
      for (let tenth = 1; tenth <= 10; tenth += 1) { // one path for all cells of about a weight, in cells as unit
        within(node, tenth, "path", { class: "weights", transform: `translate(${x} ${y}) scale(${cell})`, "fill-opacity": tenth / 10 });
        if (drawnOf.get(node) !== rows) set(node.children[tenth], { d: cellsOf(rows, tenth) });
      }
      drawnOf.set(node, rows);
      const group = model.key_groups > 1 ? _("{head} · kv {group}", { head: `${layer}.${h}`, group: Math.floor(h / model.key_groups) }) : `${layer}.${h}`;
      within(node, 11, "text", { x, y: y + w + 14 }, w > 96 || model.key_groups === 1 ? group : `${layer}.${h}`);
      within(node, 12, "text", { class: `number ${sign}`, x: x + w, y: y + w + 14, "text-anchor": "end" }, w > 66 ? signed(value) : "");
    });
    const y = Math.min(grid.bottom + 8, card.y + card.h - 44), w = Math.max(0, Math.min(card.w - 20, 240)); // a card that opens begins with no width
    const node = putItem("card", `ffn:${layer}`, {
      kind: "feed-forward", label: _("feed-forward of layer {layer}: {value}; opens its tab", { layer, value: effectText(block.feed_forward, largest(model.blocks.map((one) => one.feed_forward))) }),
      box: [card.x + 10, y, card.x + 10 + w, y + 32], act: () => select({ view: "feed_forward", layer }),
    });
    within(node, 0, "rect", { class: "shape", x: card.x + 10, y, width: w, height: 32, rx: 6 });
    within(node, 1, "text", { class: "title", x: card.x + 20, y: y + 20 }, _("feed-forward"));
    within(node, 2, "text", { class: "number", x: card.x + w - 2, y: y + 20, "text-anchor": "end" }, w > 190 ? `${signed(block.feed_forward)} →` : w > 140 ? signed(block.feed_forward) : "");
  }

  function drawPattern({ layer, head, query, key, level }) {
    const { pattern, card } = layout, rows = model.open.patterns[head], w = pattern.w / rows.length, h = Math.min(layout.tall, pattern.h / rows.length * 1.001);
    const topOf = (i) => pattern.y + (rows.length > 1 ? (i * (pattern.h - h)) / (rows.length - 1) : 0);
    if (pattern.w < 20) return;
    const room = (level === "cell" ? layout.steps.x - pattern.x - pattern.w - 8 : card.x + card.w - pattern.x - pattern.w - 8) / SMALL;
    const weights = rows[rowOf(query)], boxed = level === "head" ? weights.indexOf(Math.max(...weights)) : rowOf(key); // of a head, what its sentence names
    rows.forEach((row, i) => {
      const position = model.rows[i][0];
      row.forEach((p, j) => {
        const [first, last] = model.rows[j], x = pattern.x + j * w, y = topOf(i), isFold = last > first;
        const node = putItem("card", `cell:${position}.${first}`, {
          kind: ["cell", position === query && j === boxed && "here"].filter(Boolean).join(" "),
          label: _("{query} looks at {key}: {weight}", { query: textOf(position), key: isFold ? bare(model.rows[j][2]) : textOf(first), weight: formatPercent(p) }),
          box: [x, y, x + w, y + h], lights: (curve) => curve[0] === layer && curve[1] === head && curve[2] >= first && curve[2] <= last,
          act: () => closeUp({ open: "cell", layer, head, query: position, key: isFold ? Math.min(position, strongest(first, last)) : first }),
        });
        within(node, 0, "rect", { class: "shape", x: x + 0.5, y: y + 0.5, width: Math.max(0, w - 1), height: Math.max(0, h - 1) });
        within(node, 1, "rect", { class: "weights", x: x + 0.5, y: y + 0.5, width: Math.max(0, w - 1), height: Math.max(0, h - 1), "fill-opacity": p ?? 0 });
        within(node, 2, "text", { class: (p ?? 0) > 0.55 ? "on" : "", x: x + w / 2, y: y + h / 2 + 4, "text-anchor": "middle" }, w > 27 && p >= 0.005 ? (100 * p).toFixed(0) : "");
      });
      const letters = room + ((rows.length - i - 1) * w) / SMALL - 1; // beside the diagonal is room for the column's name
      put("card", `column:${position}`, "text", { class: i === boxed ? "name here" : "name", x: pattern.x + (i + 1) * w + 5, y: topOf(i) + h / 2 + 4 }, letters > 3 ? rowText(model.rows[i], letters) : "");
    });
    const row = rowOf(query);
    put("card", "row", "rect", { class: "row", x: pattern.x, y: topOf(row), width: (row + 1) * w, height: h, rx: 2 });
  }

  function drawSteps({ query: q, key: k, steps }) {
    const { x, w } = layout.steps, { card } = layout, isTight = w < 250, strip = Math.min(44, card.h * 0.09);
    if (w < 40) return;
    const strips = [["q", q], ["k", k], ["q × k", q.map((value, i) => value * k[i])]];
    const inner = w - 44, bar = inner / q.length;
    strips.forEach(([name, values], row) => {
      const middle = card.y + 14 + strip * (row + 0.5) + row * 6, most = largest(/** @type {number[]} */ (values));
      const draw = (sign) => /** @type {number[]} */ (values).map((value, i) => (Math.sign(value) === sign ? `M${(x + 42 + (i + 0.5) * bar).toFixed(1)} ${middle}v${((-value / most) * strip * 0.5).toFixed(1)}` : "")).join("");
      put("card", `strip:${row}`, "text", { class: ["soft", "soft of-q", "soft of-k"][row === 2 ? 0 : row + 1], x, y: middle + 4 }, /** @type {string} */ (name));
      put("card", `base:${row}`, "path", { class: "base", d: `M${x + 40} ${middle}h${inner}` });
      for (const sign of [1, -1]) put("card", `bars:${row}:${sign}`, "path", { class: `bars ${row < 2 ? ["plain of-q", "plain of-k"][row] : sign > 0 ? "adds" : "takes"}`, "stroke-width": Math.max(0.8, bar * 0.7), d: draw(sign) });
    });
    const letters = (value, isWrapped) => (isWrapped ? w : w - value.length * 8) / 5.8;
    const top = card.y + 34 + strip * 3 + 12, space = Math.min(42, (card.y + card.h - top - 8) / steps.length);
    const shorter = (kind, name) => (kind === "effect" && !isStory() ? _("logit of {token}", { token: bare(model.answer) }) : name.split(":")[0]); // where it has no room
    steps.forEach(({ kind, name, value }, i) => {
      const y = top + (i + 0.5) * space, isWrapped = isTight && space > 28;
      put("card", `rule:${i}`, "path", { class: "base", d: `M${x} ${y - space / 2}h${w}` });
      put("card", `step:${i}`, "text", { class: "step", x, y: y + (isWrapped ? -3 : 4) }, fit(name.length > letters(value, isWrapped) ? shorter(kind, name) : name, letters(value, isWrapped)));
      put("card", `value:${i}`, "text", { class: `value ${kind}`, x: x + w, y: y + (isWrapped ? 11 : 4), "text-anchor": "end" }, value);
    });
  }

  // The line above, and the sum below.

  function drawLines() {
    const open = opened(), { level, layer, head, query, key } = open, crumbs = [[_("Model"), { open: "" }]];
    if (level) crumbs.push([_("Layer {layer}", { layer }), { open: "block" }]);
    if (level === "head" || level === "cell") crumbs.push([_("Attention"), null], [_("head {head}", { head }), { open: "head" }]);
    if (level === "cell") crumbs.push([`“${textOf(query)}” → “${textOf(key)}”`, null]);
    const written = crumbs.map(([text]) => text).join(" › ");
    if (path.dataset.path !== written) {
      path.dataset.path = written;
      path.replaceChildren(...crumbs.flatMap(([text, change], i) => {
        const isLast = i === crumbs.length - 1;
        const crumb = change && !isLast ? button(text, () => closeUp(change), { className: "crumb" }) : span(isLast ? "crumb last" : "crumb", text);
        if (isLast) crumb.ariaCurrent = "location";
        return i ? [span("into", "›"), crumb] : [crumb];
      }));
    }
    tell(null);
    acts.hidden = level !== "head" && level !== "cell";
    switching.show(open, ablation(open), runEdits());
    sum.replaceChildren(...(isStory() ? legend(level) : summands()));
  }

  /** How the logit comes about. */
  function summands() {
    const { terms, rest, logit, contrast, answer } = model, [count, others] = rest;
    const score = contrast ? _("logit of {token} less that of {other}", { token: bare(answer), other: bare(contrast) }) : _("logit of {token}", { token: bare(answer) });
    const pieces = terms.map(([kind, label, value], i) => {
      const term = span(`summand ${kind}`, make("i"), `${label} `, make("b", {}, i ? signed(value) : (value ?? 0).toFixed(2).replace("-", "−")));
      return term;
    });
    const whole = span("summand all", "= ", make("b", {}, logit === null ? "–" : logit.toFixed(2).replace("-", "−")), " ", span("guessed", score));
    const note = count ? [span("note", ngettext("{count} thinner curve ({effect} together) is not drawn", "{count} thinner curves ({effect} together) are not drawn", count, { effect: signed(others) }))] : [];
    return [...pieces, whole, ...note, span("note", _("percentages: the model’s own")), ...(opened().level ? [span("note", cellKey())] : [])];
  }

  const cellKey = () => _("Each row is a token that looks back; a darker cell takes more of its attention.");
  /** The colours and shapes of the story's drawing. */
  const legend = (level) => [span("reading", level ? cellKey() : _("Each line looks back at a token; a thicker one takes more.")),
    ...[["adds", _("for the answer")], ["takes", _("against the answer")], ["own", _("head")], ["feed_forward", _("feed-forward")]].map(([kind, word]) => span(`summand ${kind}`, make("i"), word))];

  /** Says what an item is, or how to read the drawing. @param {any} item */
  function tell(item) {
    setText(readout, item?.label ?? (isStory() || opened().level ? "" : _("Thicker: longer vector. Blue: for the answer; orange-red: against.")));
    svg.classList.toggle("focused", Boolean(item?.lights));
    for (const curve of model?.curves ?? []) {
      nodes.get(nameOf(curve))?.classList.toggle("lit", Boolean(item?.lights?.(curve)));
    }
  }

  // Motion: from one layout to the next, and the sentence's way through the model after Run.

  const sizeOf = () => {
    const space = drawing.clientWidth, need = TOP + BOTTOM + 44 * Math.max(1, model.rows.length - 1);
    if (element.closest(".presented")) return { width: space, height: drawing.clientHeight }; // what the screen leaves it
    return { width: space, height: Math.max(MIN_HEIGHT, Math.min(parseFloat(getComputedStyle(drawing).getPropertyValue("--tallest")) * innerHeight / 100 - 0, need)) };
  };

  function move() {
    if (!model || !drawing.clientWidth) return;
    const to = drawingLayout(model, opened(), sizeOf()), from = layout;
    cancelAnimationFrame(frame);
    if (!from || still.matches || from.width !== to.width || from.at.length !== to.at.length || JSON.stringify(from) === JSON.stringify(to)) {
      layout = to;
      return finish();
    }
    const began = performance.now();
    drawing.dataset.moving = "true";
    const step = () => {
      const share = Math.min(1, (performance.now() - began) / MOVE);
      layout = share < 1 ? between(from, to, 1 - (1 - share) ** 3) : to;
      draw();
      if (share < 1) frame = requestAnimationFrame(step);
      else finish();
    };
    step();
  }

  function finish() {
    draw();
    delete drawing.dataset.moving;
    countDraw(drawing);
  }

  function flow() {
    if (still.matches) return;
    stopFlow();
    svg.classList.add("flowing");
    flowing = window.setTimeout(stopFlow, FLOW);
  }
  function stopFlow() {
    clearTimeout(flowing);
    svg.classList.remove("flowing");
  }

  async function show(content) {
    model = content;
    hide(element, !model);
    if (!model) return;
    drawLines();
    const now = String(state.prompt), isNew = prompt && prompt !== now;
    if (isNew) layout = null; // another text is not where the one before was: it is drawn at once
    move();
    if (isNew) flow();
    prompt = now;
  }

  function follow() {
    if (!model) return;
    const open = opened(), { level, layer, head, query, key } = open;
    const now = JSON.stringify([state.view, level && open, isGuessing(), isStory(), state[runEdits()]]);
    if (now === followed) return; // each token that is written is another state
    followed = now;
    const target = { block: `head:${layer}.${head}`, head: `cell:${query}.${key}`, cell: `cell:${query}.${key}` }[level] ?? `block:${layer}`;
    if (drawing.dataset.level !== level) [goal, isKept] = [target, isKept || svg.contains(document.activeElement)];
    drawing.dataset.level = level;
    drawLines();
    move();
  }

  /** Leads one level up. Says whether there was one. */
  function leave() {
    const { level } = opened(), up = LEVELS[LEVELS.indexOf(level) - 1];
    if (up !== undefined) closeUp({ open: up });
    return up !== undefined;
  }

  const itemAt = ({ target }) => /** @type {any} */ (target.closest?.(".item, .curve"))?.item;
  svg.addEventListener("pointerover", (event) => tell(itemAt(event)));
  svg.addEventListener("pointerleave", () => tell(null));
  svg.addEventListener("focusin", (event) => {
    const item = itemAt(event);
    if (!item?.name) return;
    current = item.name;
    for (const node of nodes.values()) if (node.item?.name) set(node, { tabindex: node.item.name === current ? 0 : -1 });
    tell(item);
  });
  svg.addEventListener("click", (event) => itemAt(event)?.act?.());
  drawing.addEventListener("keydown", (event) => {
    const item = itemAt(event), step = DIRECTIONS[event.key];
    if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
    if (step) {
      const items = [...nodes.values()].filter((node) => node.item?.name).map((node) => node.item);
      const changeScope = ({ name }) => name.slice(0, name.indexOf(":"));
      const beside = (among) => among[nearestInDirection(among.map(({ box }) => box), among.indexOf(item), step)];
      const same = beside(items.filter((other) => changeScope(other) === changeScope(item))); // its own kind first
      nodes.get((same === item ? beside(items) : same).name).focus();
    } else if (event.key === "Enter" || event.key === " ") item.act?.();
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    const { target, key } = event, isHere = element.contains(/** @type {Node} */ (target)) || target === document.body;
    if (key !== "Escape" || event.defaultPrevented || isKeyForFocus(event) || !isHere || !model || !drawing.clientWidth) return;
    if (leave()) event.preventDefault();
  });
  for (const type of ["pointerdown", "keydown"]) document.addEventListener(type, stopFlow, { capture: true, passive: true });

  showEvidence(element);
  new ResizeObserver(() => { if (model && drawing.clientWidth && (drawing.clientWidth !== layout?.width || (element.closest(".presented") && drawing.clientHeight !== layout.height))) move(); }).observe(drawing);
  listenFor(element, window, "resize", move);
  onState(element, follow);
  onThemeChange(element, () => { if (model) drawLines(), draw(); });
  onFigureContent(element, drawing, (content) => queueDraw(element, () => show(content)));
}
