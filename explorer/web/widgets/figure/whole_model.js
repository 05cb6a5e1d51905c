// @ts-check
// The whole model as one drawing, whose parts open in place. Rows are tokens and columns are blocks; the residual stream
// of the selected token runs through the blocks, and a curve is what one head adds to it from an earlier token.
import { interventions, makeHeadSwitch, select } from "../../static/page_actions.js";
import { showEvidence, queueDraw, onFigureContent } from "../../static/widget_contents.js";
import { button, countDraw, DIRECTIONS, find, setHidden, isKeyForFocus, make, makeSvg, nearestInDirection, onThemeChange, setText, set, span } from "../../static/dom.js";
import { _, ngettext, formatShortPercent } from "../../static/text.js";
import { changeInA, onState, stateInRun, shownRun, state } from "../../static/page_state.js";

// Layout, as numbers alone, so that one layout can be interpolated to another.
const TOP_MARGIN = 60, BOTTOM_MARGIN = 58, MIN_HEIGHT = 340; // pixels above the first row and below the last; height of the drawing
const LETTER_WIDTH = 7.3, SMALL_LETTER_WIDTH = 6.7; // pixels per letter at font sizes of 12 and 11 pixels
const PHONE_WIDTH = 560; // narrower drawings have less space beside the blocks
const MAX_STREAM_WIDTH = 14, MAX_CURVE_WIDTH = 12, MAX_STARTS_HEIGHT = 14, ENDS_SHARE = 0.46; // pixels: the stream at its largest norm, the widest curve, the starts of a token's curves; share of a block's width for the ends of its curves

/** The part that is open, from the whole model to one cell. */
const LEVELS = ["", "block", "head", "cell"];

/**
 * Return the positions and sizes of the drawing's parts.
 * @param {any} model
 * @param {{ level: string, layer: number, head: number }} open
 * @param {{ width: number, height: number }} size
 */
export function drawingLayout(model, { level, layer, head }, { width, height }) {
  const isNarrow = width < PHONE_WIDTH, rows = model.rows.length, layers = model.blocks.length;
  const maxLetters = Math.min(Math.max(...model.rows.map(([, , text]) => text.length), 6), isNarrow ? 8 : 13);
  const left = Math.max(isNarrow ? 0 : 72, maxLetters * (isNarrow ? SMALL_LETTER_WIDTH : LETTER_WIDTH) + 14), right = isNarrow ? answerRoom(model.answer, width) || Math.min(60, 14 + 9.8 * model.answer.length) : Math.min(130, 44 + 9.8 * model.answer.length);
  const blocksWidth = width - left - right, isOpen = level !== "";
  const openShare = layers === 1 ? 1 : isNarrow ? 0.86 : { block: 0.58, head: 0.64, cell: 0.8 }[level] ?? 0;
  const closedWidth = isOpen ? (blocksWidth * (1 - openShare)) / Math.max(1, layers - 1) : blocksWidth / layers;
  const blockWidths = model.blocks.map((_block, l) => (isOpen && l === layer ? blocksWidth * openShare : closedWidth));
  const blockLefts = blockWidths.map((_width, l) => left + blockWidths.slice(0, l).reduce((total, blockWidth) => total + blockWidth, 0));
  const streamWidths = blockWidths.map((blockWidth, l) => (isOpen && l === layer ? Math.min(level === "cell" ? 116 : 150, blockWidth * (isNarrow ? 0.2 : 0.28)) : blockWidth));
  const lastRowY = height - BOTTOM_MARGIN - (isNarrow ? 14 : 0), rowPitch = rows > 1 ? (lastRowY - TOP_MARGIN) / (rows - 1) : 40;
  const rowYs = model.rows.map((_row, i) => (rows > 1 ? TOP_MARGIN + i * rowPitch : lastRowY));
  const streamY = rowYs[model.rows.findIndex(([first]) => first === model.query)];
  const headsX = blockLefts.map((x, l) => x + streamWidths[l] * 0.46), feedForwardX = blockLefts.map((x, l) => x + streamWidths[l] * 0.72);
  const gap = Math.min(10, closedWidth * 0.12);
  const cellHeight = Math.min(rowPitch, 46), cardTop = Math.max(34, rowYs[0] - cellHeight / 2 - 6);
  const card = isOpen ? { x: blockLefts[layer] + streamWidths[layer], y: cardTop, w: blockWidths[layer] - streamWidths[layer] - gap - 8, h: height - 10 - cardTop } : { x: headsX[layer], y: streamY, w: 0, h: 0 };
  const grid = headGridLayout(model.blocks[0].heads.length, card);
  const smallPattern = grid.at(head), cellWidth = Math.min(rowPitch, 44, (level === "cell" ? (isNarrow ? 0 : 0.36) : 1) * Math.max(0, card.w - (isNarrow ? 4 : 84)) / rows);
  const pattern = !isOpen ? { x: headsX[layer], y: streamY, w: 0, h: 0 }
    : level === "block" ? { x: smallPattern.x, y: smallPattern.y, w: smallPattern.w, h: smallPattern.w }
      : { x: card.x + (isNarrow ? 2 : 10), y: rowYs[0] - cellHeight / 2, w: cellWidth * rows, h: rowYs[rows - 1] - rowYs[0] + cellHeight };
  const steps = { x: pattern.x + pattern.w + (isNarrow ? 6 : 72), w: Math.max(0, card.x + card.w - pattern.x - pattern.w - (isNarrow ? 14 : 80)) };
  return { width, height, left, right, blockLefts, blockWidths, streamWidths, headsX, feedForwardX, gap, rowYs, rowPitch, cellHeight, maxCurveWidth: Math.min(MAX_CURVE_WIDTH, Math.max(3, (0.22 * blocksWidth) / layers)), streamY, card, pattern, steps };
}

/** Return the pixels that a short answer takes at the end of a narrow drawing's stream; 0 for one that stands below it. @param {string} answer @param {number} width */
const answerRoom = (answer, width, room = 20 + 10.2 * Math.max(3.5, plainText(answer).length)) => (room <= 0.24 * width ? room : 0);

/** Return the positions of an open block's heads: as large as fit into the card, above the feed-forward. @param {number} heads @param {{ x: number, y: number, w: number, h: number }} card */
function headGridLayout(heads, card) {
  const gap = 10, label = 20, height = card.h - 58;
  let best = { columns: 1, size: 0 };
  for (let columns = 1; columns <= heads; columns += 1) {
    const rows = Math.ceil(heads / columns), size = Math.min((card.w - 12 - gap * (columns - 1)) / columns, height / rows - label);
    if (size > best.size + 0.01) best = { columns, size };
  }
  const { columns, size } = best, firstX = card.x + 10;
  const positionOf = (head) => ({ x: firstX + (head % columns) * (size + gap), y: card.y + 6 + Math.floor(head / columns) * (size + label), w: size });
  return { at: positionOf, size, bottom: card.y + 6 + Math.ceil(heads / columns) * (size + label) };
}

/** Interpolate between two layouts. */
function interpolate(from, to, share) {
  if (typeof to === "number") return typeof from === "number" ? from + (to - from) * share : to;
  if (Array.isArray(to)) return Array.isArray(from) && from.length === to.length ? to.map((value, i) => interpolate(from[i], value, share)) : to;
  return Object.fromEntries(Object.entries(to).map(([name, value]) => [name, interpolate(from?.[name], value, share)]));
}

// Numbers and texts.
const formatSigned = (value) => (value === null ? "–" : `${value < -0.004 ? "−" : value > 0.004 ? "+" : ""}${Math.abs(value).toFixed(2)}`);
const plainText = (text) => text.replace(/[\u2068\u2069]/g, "").replace(document.body?.dataset.depth === "story" ? /^·(?=[^·])/ : /^$/, ""); // the story shows words without the · of their space
/** Truncate a text. @param {string} text @param {number} maxLetters */
const truncate = (text, maxLetters) => (plainText(text).length > maxLetters ? `${plainText(text).slice(0, Math.max(0, Math.floor(maxLetters) - 1))}…` : plainText(text));
/** Truncate a row's text; for folded tokens show at least their number. @param {[number, number, string]} row @param {number} maxLetters */
const rowText = ([first, last, text], maxLetters) => (last > first && plainText(text).length > maxLetters ? `… ${last - first + 1}` : truncate(text, maxLetters));
const largestMagnitude = (values) => Math.max(1e-9, ...values.map((value) => Math.abs(value ?? 0)));
/** Return the colour and opacity of an effect, relative to the largest one. */
const effectStyle = (value, max) => {
  const share = Math.abs(value ?? 0) / max;
  return share < 0.04 ? { sign: "neutral", opacity: 0.3 } : { sign: value < 0 ? "takes" : "adds", opacity: +(0.25 + 0.75 * Math.min(1, share)).toFixed(3) };
};

/** Return the width of a curve. @param {number} norm @param {number} maxNorm @param {number} maxWidth at the largest norm */
export const curveWidth = (norm, maxNorm, maxWidth) => Math.max(0.75, +((maxWidth * norm) / maxNorm).toFixed(2));

/** Return the path of the cells whose weight rounds up to a number of tenths. @param {number[][]} rows @param {number} tenth */
const cellsPath = (rows, tenth) => rows.map((row, i) => row.map((p, j) => (Math.ceil((p ?? 0) * 10 - 0.1) === tenth ? `M${j} ${i}h1v1h-1z` : "")).join("")).join("");
const MOVE_MS = 170, FLOW_MS = 1800; // opening a part; the animation of a sentence through the model

/** The drawing of the whole model. @param {HTMLElement} element */
export function wholeModel(element) {
  const figure = find(element, ".whole"), breadcrumbs = find(figure, ".path"), readout = find(figure, ".readout");
  const drawing = find(figure, ".drawing"), sum = find(figure, ".sum"), reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
  const names = ["blocks", "wires", "curves", "stream", "parts", "tokens", "card"];
  const groups = Object.fromEntries(names.map((name) => [name, makeSvg("g", `group-${name}`)])), svg = makeSvg("svg", "", ...Object.values(groups));
  /** @type {any} */
  let model = null;
  /** @type {any} */
  let layout = null;
  let frame = 0, drawnPrompt = "", drawnState = "", flowTimer = 0, drawCount = 0;
  let focusedName = "", nextFocusName = ""; // the item with the tab stop; the one to get it once it is drawn, or "marked": the cell that an opened head's sentence names
  let keepsFocus = false; // whether to focus that item, as the focused one is being replaced
  /** Nodes by name. @type {Map<string, SVGElement & { drawCount?: number, item?: any }>} */
  const nodes = new Map();

  // Actions on the open head.
  const interventionsField = () => (shownRun(element) === "b" ? "b.edits" : "edits"), ablation = ({ layer, head }) => `blocks.${layer}.attn.z.${head}*zero`;
  const actions = find(figure, ".acts");
  const headSwitch = makeHeadSwitch();
  actions.append(...headSwitch.nodes);

  set(svg, { role: "group", "aria-description": _("Arrow keys go from part to part, Enter opens one, Escape leads back.") });
  drawing.append(svg);

  const isGuessing = () => document.body.classList.contains("guessing"), isStory = () => document.body.dataset.depth === "story";
  /** Return the open part, clamped to the model; its data may not have arrived yet. */
  function openPart() {
    const { open = "", layer, head, query, key } = stateInRun(shownRun(element)), last = model.rows.at(-1)[1]; // of the drawn text, which the selection may be ahead of
    return { level: LEVELS.includes(open) ? open : "", layer: Math.min(layer, model.blocks.length - 1), head: Math.min(head, model.blocks[0].heads.length - 1), query: Math.min(query, last), key: Math.min(key, last) };
  }
  /** Return whether the data of the open part have arrived. */
  const hasOpenData = ({ level, layer }) => Boolean(level) && model.open?.layer === layer;

  /** Create or update a node; draw() removes nodes that were not put again. */
  function putNode(group, name, tag, attributes, text) {
    let node = nodes.get(name);
    if (!node) {
      node = makeSvg(tag);
      nodes.set(name, node);
      groups[group].append(node);
    }
    node.drawCount = drawCount;
    set(node, attributes);
    if (text !== undefined) setText(node, text);
    return node;
  }

  /**
   * Put an item, which can be hovered, focused and clicked.
   * @param {string} group @param {string} name
   * @param {{ kind: string, label: string, box: number[], act?: () => void, isRelated?: (curve: any) => boolean }} item
   */
  function putItem(group, name, { kind, label, box, act, isRelated }) {
    const existing = nodes.get(name), elementKind = kind.split(" ")[0];
    if (existing && existing.item.elementKind !== elementKind) existing.remove(), nodes.delete(name); // a head can be a dot, a pattern or a switch
    const node = putNode(group, name, "g", { class: `item ${kind}`, role: "button", tabindex: name === focusedName ? 0 : -1, "aria-label": label });
    node.item = { name, elementKind, label, box, act, isRelated };
    return node;
  }

  /** Create or update a child of an item, which is removed with it. */
  function putChild(node, index, tag, attributes, text) {
    while (node.children.length <= index) node.append(makeSvg(tag));
    set(node.children[index], attributes);
    if (text !== undefined) setText(node.children[index], text);
  }

  function draw() {
    if (!model || !layout) return;
    drawCount += 1;
    const { width, height } = layout, open = openPart();
    set(svg, { viewBox: `0 0 ${width} ${height}`, width, height, "aria-label": isGuessing() ? _("The whole model; its guess is covered.") : model.alt });
    svg.classList.toggle("open", Boolean(open.level));
    drawBlocks(open);
    drawTokens();
    drawCurves(open);
    drawStream();
    drawCard(open);
    for (const [name, node] of nodes) if (node.drawCount !== drawCount) node.remove(), nodes.delete(name);
    const next = (nextFocusName === "marked" ? /** @type {any} */ (svg.querySelector(".cell.here")) : nodes.get(nextFocusName))?.item;
    if (next) [focusedName, nextFocusName] = [next.name, ""];
    if (!nodes.get(focusedName)?.item) focusedName = `token:${model.query}`;
    for (const node of nodes.values()) if (node.item?.name) set(node, { tabindex: node.item.name === focusedName ? 0 : -1 });
    if (keepsFocus && !nextFocusName) nodes.get(focusedName).focus({ preventScroll: true }), keepsFocus = false;
  }

  const navigate = (change) => select(changeInA(change, shownRun(element)));

  function drawBlocks(open) {
    const { blockLefts, blockWidths, gap, height } = layout, maxEffect = largestMagnitude(model.blocks.flatMap(({ heads }) => heads));
    const narrowest = Math.min(...blockWidths), numberInterval = Math.max(1, Math.ceil(20 / narrowest));
    const guessInterval = Math.max(1, Math.ceil(Math.min(60, SMALL_LETTER_WIDTH * Math.max(...model.blocks.map(({ guess }) => plainText(guess).length)) + 10) / narrowest)); // every so many blocks a best guess fits
    model.blocks.forEach((block, l) => {
      const isOpen = open.level && l === open.layer, x = blockLefts[l], w = blockWidths[l] - gap, { guess, probability } = block;
      const guessText = isGuessing() ? "" : _("best guess {guess} {percent}", { guess: plainText(guess), percent: formatShortPercent(probability) });
      const headsEffect = block.heads.reduce((total, effect) => total + (effect ?? 0), 0);
      const effectTexts = isStory() ? [] : [_("heads {value}", { value: formatSigned(headsEffect) }), _("feed-forward {value}", { value: formatSigned(block.feed_forward) })];
      const label = [_("Layer {layer}", { layer: l }), ...effectTexts, guessText].filter(Boolean).join(", ");
      const node = putItem("blocks", `block:${l}`, {
        kind: isOpen ? "block opened" : "block", label, box: [x, 4, x + w, 24], isRelated: (curve) => curve[0] === l,
        act: () => navigate(isOpen ? { open: "" } : { open: "block", layer: l }),
      });
      set(node, { "aria-expanded": Boolean(isOpen) });
      putChild(node, 0, "rect", { class: "shape", x, y: 4, width: Math.max(0, w), height: height - 6, rx: Math.min(10, w / 3) });
      const title = w > 62 ? _("Layer {layer}", { layer: l }) : l % numberInterval === 0 || isOpen ? `${l}` : "";
      putChild(node, 1, "text", { class: "title", x: w > 62 ? x + 10 : x + w / 2, y: 22, "text-anchor": w > 62 ? "start" : "middle" }, title);
      const guessSpan = isOpen ? 1 : (model.blocks.length - 1 - l) % guessInterval === 0 ? guessInterval : 0, letters = (isOpen ? layout.streamWidths[l] + 40 : narrowest * guessSpan - 10) / SMALL_LETTER_WIDTH;
      const alignsRight = guessInterval > 1 && !isOpen, position = { x: alignsRight ? x + w : x + (isOpen ? layout.streamWidths[l] / 2 : w / 2), "text-anchor": alignsRight ? "end" : "middle" };
      const isHidden = !guessSpan || (open.level && !isOpen && (letters < 4 || width() < PHONE_WIDTH)) || (isOpen && layout.streamWidths[l] < 60);
      putNode("tokens", `guess:${l}`, "text", { class: "guess", "aria-hidden": true, y: height - 27, ...position, "fill-opacity": 0.55 + 0.45 * (probability ?? 0) }, isHidden ? "" : truncate(guess, letters));
      putNode("tokens", `share:${l}`, "text", { class: "guess share", "aria-hidden": true, y: height - 12, ...position }, isHidden || letters < 3 ? "" : formatShortPercent(probability));
      if (!open.level) drawHeadDots(block.heads, l, x, w, maxEffect);
      else if (isOpen && open.level !== "block") drawHeadSwitches(block.heads, l, open, maxEffect);
    });
    const isNarrow = width() < PHONE_WIDTH, layersText = !open.level && narrowest - gap <= 62 ? _("layer") : ""; // once, before titles that are numbers
    for (const [group, name, y, text] of /** @type {[string, string, number, string][]} */ ([["parts", "layers", 22, layersText], ["tokens", "best", height - 27, isNarrow ? _("guess") : _("best guess")], ["tokens", "so-far", height - 12, isNarrow ? "" : _("so far")]]))
      putNode(group, name, "text", { class: "soft", x: layout.left - 12, y, "text-anchor": "end" }, text);
  }

  const width = () => layout.width;
  /** Format an effect: as words in the story, else in logits. @param {number | null} value @param {number} max the largest effect @param {boolean} [isShort] whether it has the space of a number */
  const effectText = (value, max, isShort = false) => (isStory() ? { adds: isShort ? _("supports") : _("for the answer"), takes: isShort ? _("opposes") : _("against the answer"), neutral: isShort ? "" : _("of little effect on the answer") }[effectStyle(value, max).sign] : formatSigned(value));
  const headLabel = (l, h, value, max) => _("layer {layer} head {head}: {value}", { layer: l, head: h, value: effectText(value, max) });

  function drawHeadDots(heads, l, x, availableWidth, maxEffect) {
    const space = Math.min(13, (availableWidth - 14) / heads.length), radius = Math.min(4.5, space * 0.38);
    if (space < 6.5) return;
    heads.forEach((value, h) => {
      const cx = x + 14 + h * space, { sign, opacity } = effectStyle(value, maxEffect);
      const node = putItem("parts", `head:${l}.${h}`, {
        kind: "head", label: headLabel(l, h, value, maxEffect), box: [cx - space / 2, 30, cx + space / 2, 46], isRelated: (curve) => curve[0] === l && curve[1] === h,
        act: () => navigate({ open: "head", layer: l, head: h }),
      });
      putChild(node, 0, "rect", { class: "reach", x: cx - space / 2, y: 28, width: space, height: 20 });
      putChild(node, 1, "circle", { class: `shape ${sign}`, cx, cy: 38, r: radius, "fill-opacity": opacity });
    });
  }

  /** Draw the heads of the open block as a row of switches while one head or cell is open. */
  function drawHeadSwitches(heads, l, open, maxEffect) {
    const { card, blockLefts } = layout, first = blockLefts[l] + 66, space = Math.min(34, (card.x + card.w - first) / heads.length);
    heads.forEach((value, h) => {
      const x = first + h * space, { sign, opacity } = effectStyle(value, maxEffect), isSelected = h === open.head, isOff = interventions(interventionsField()).includes(ablation({ layer: l, head: h }));
      const node = putItem("card", `head:${l}.${h}`, {
        kind: isSelected ? "switch here" : "switch", label: headLabel(l, h, value, maxEffect), box: [x, 8, x + space, 30], isRelated: (curve) => curve[0] === l && curve[1] === h,
        act: () => navigate({ open: "head", layer: l, head: h }),
      });
      set(node, { "aria-pressed": isSelected });
      putChild(node, 0, "rect", { class: `shape ${sign}`, x: x + 1, y: 8, width: Math.max(0, space - 3), height: 22, rx: 4, "fill-opacity": opacity * 0.6 });
      putChild(node, 1, "text", { x: x + space / 2 - 0.5, y: 23, "text-anchor": "middle", class: isOff ? "off" : "" }, space > 11 ? `${h}` : "");
    });
  }

  function drawTokens() {
    const { left, rowYs, rowPitch, blockLefts, blockWidths, gap } = layout, end = blockLefts.at(-1) + blockWidths.at(-1) - gap, selectedPosition = stateInRun(shownRun(element)).query;
    const letters = (left - 14) / (width() < PHONE_WIDTH ? SMALL_LETTER_WIDTH : LETTER_WIDTH);
    model.rows.forEach(([first, last, text], i) => {
      const isFold = last > first, isLater = first > model.query;
      const label = isFold ? _("tokens {first} to {last}, folded", { first, last }) : _("token {position}: {text}", { position: first, text: plainText(text) });
      const visibleText = rowText([first, last, text], letters), letterWidth = width() < PHONE_WIDTH ? SMALL_LETTER_WIDTH : LETTER_WIDTH;
      const node = putItem("tokens", `token:${first}`, {
        kind: ["token", isFold && "folded", isLater && "later", first === selectedPosition && "chosen"].filter(Boolean).join(" "), label,
        box: [0, rowYs[i] - 8, left - 8, rowYs[i] + 8], isRelated: ([, , key]) => key >= first && key <= last,
        act: () => (isFold ? navigate({ key: Math.min(model.query, strongestKey(first, last)) }) : navigate({ query: first })),
      });
      if (!isFold) set(node, { "aria-pressed": first === selectedPosition });
      const top = rowYs[i] - Math.min(22, rowPitch) / 2, h = Math.min(22, rowPitch);
      putChild(node, 0, "rect", { class: "reach", x: 0, y: top, width: left - 6, height: h });
      putChild(node, 1, "rect", { class: "shape", x: left - 18 - visibleText.length * letterWidth, y: top, width: 12 + visibleText.length * letterWidth, height: h, rx: 5 });
      putChild(node, 2, "text", { x: left - 12, y: rowYs[i] + 4, "text-anchor": "end" }, visibleText);
      putNode("wires", `wire:${first}`, "path", { class: isLater ? "wire later" : "wire", d: `M${left - 4} ${rowYs[i]}H${end}` });
    });
  }

  /** Return the folded token with the largest sum of curve norms. */
  function strongestKey(first, last) {
    const sums = new Map();
    for (const [, , key, norm] of model.curves) if (key >= first && key <= last) sums.set(key, (sums.get(key) ?? 0) + norm);
    return [...sums].sort((a, b) => b[1] - a[1])[0]?.[0] ?? first;
  }

  const rowIndex = (position) => model.rows.findIndex(([first, last]) => first <= position && position <= last);
  const tokenText = (position) => {
    const [first, last, text] = model.rows[rowIndex(position)];
    return first === last ? plainText(text) : _("token {position}", { position });
  };

  function drawCurves(open) {
    const { blockLefts, blockWidths, streamWidths, headsX, rowYs, rowPitch, streamY, feedForwardX, maxCurveWidth } = layout, maxNorm = Math.max(1e-9, model.largest_norm), layerNorms = model.blocks.map((_block, l) => Math.max(...model.curves.map((curve) => (curve[0] === l ? curve[3] ?? 0 : 0))));
    const sortedCurves = [...model.curves].sort((a, b) => Math.abs(a[4] ?? 0) - Math.abs(b[4] ?? 0)), maxEffect = Math.max(1e-9, model.largest_effect);
    const namedCurve = open.level ? undefined : sortedCurves.findLast(([, , , , effect]) => effect > 0); // the one in the sentence above
    for (const [l, h, key, norm, effect, weight] of sortedCurves) {
      if (blockWidths[l] < 8) continue;
      const row = rowIndex(key), headShare = (h + 0.5) / model.blocks[l].heads.length, x = blockLefts[l] + Math.min(3, blockWidths[l] * 0.1), startY = rowYs[row] + (headShare - 0.5) * Math.min(MAX_STARTS_HEIGHT, rowPitch * 0.4);
      const end = headsX[l] + streamWidths[l] * ENDS_SHARE * (0.26 - (row + headShare) / rowYs.length), bend = (end - x) * 0.55, { sign, opacity } = effectStyle(effect, maxEffect);
      const node = putNode("curves", curveName([l, h, key]), "path", {
        class: `curve ${sign}`, d: `M${x} ${startY}C${x + bend} ${startY} ${end - bend * 0.5} ${startY + (streamY - startY) * 0.35} ${end} ${streamY}`,
        "stroke-width": curveWidth(norm ?? 0, maxNorm, maxCurveWidth), "stroke-opacity": opacity, pathLength: 1, "data-head": `${l}.${h}`, "data-key": key,
      });
      const label = isStory()
        ? _("layer {layer} head {head} looks at {token} ({weight}): {effect}", { layer: l, head: h, token: tokenText(key), weight: formatShortPercent(weight), effect: effectText(effect, maxEffect) })
        : _("layer {layer} head {head} takes from {token}: weight {weight}, norm {norm}, {effect} to the answer", { layer: l, head: h, token: tokenText(key), weight: formatShortPercent(weight), norm: (norm ?? 0).toFixed(2), effect: formatSigned(effect) });
      node.item = { name: "", label, start: { cx: x, cy: startY }, isRelated: (other) => other[0] === l && other[1] === h, act: () => navigate({ open: "cell", layer: l, head: h, key }) };
      node.classList.toggle("strongest", norm === layerNorms[l]), node.style.setProperty("--at", flowDelay(l).toFixed(3));
    }
    if (namedCurve) markCurve(namedCurve);
    const maxFeedForward = largestMagnitude(model.blocks.map(({ feed_forward: value }) => value));
    model.blocks.forEach(({ feed_forward: value }, l) => {
      const size = Math.max(5, Math.min(layout.rowPitch - 2, blockWidths[l] * 0.5, 22) * Math.sqrt(Math.abs(value ?? 0) / maxFeedForward));
      putNode("parts", `ffn-mark:${l}`, "rect", { class: value < 0 ? "ffn less" : "ffn", x: feedForwardX[l] - size / 2, y: streamY - size / 2, width: size, height: size, rx: 3 }).style.setProperty("--at", (flowDelay(l) + 0.08).toFixed(3));
    });
    const isOutsideOpenPart = ([l, h, key]) => (open.level !== "" && l !== open.layer) || ((open.level === "head" || open.level === "cell") && h !== open.head) || (open.level === "cell" && key !== open.key);
    for (const curve of sortedCurves) nodes.get(curveName(curve))?.classList.toggle("beside", isOutsideOpenPart(curve));
  }

  /** Draw a curve above the others, with a ring at its start. @param {any} curve */
  function markCurve(curve) {
    const node = nodes.get(curveName(curve)), ring = node && putNode("curves", "named", "circle", { class: "named", ...node.item.start, r: 8 });
    if (ring && (ring !== groups.curves.lastChild || ring.previousSibling !== node)) groups.curves.append(node, ring);
  }

  const curveName = ([l, h, key]) => `curve:${l}.${h}.${key}`;
  /** Return when the animated sentence reaches a block, as a share of the duration. */
  const flowDelay = (l) => 0.12 + (0.68 * l) / model.blocks.length;

  function drawStream() {
    const { left, headsX, feedForwardX, streamY, right } = layout, end = width() - right;
    const norms = [model.norm, ...model.blocks.map(({ norm }) => norm)], maxNorm = largestMagnitude(norms), halfWidth = (norm) => Math.max(0.75, (MAX_STREAM_WIDTH / 2) * ((norm ?? 0) / maxNorm));
    const points = [[left - 4, halfWidth(norms[0])]];
    headsX.forEach((x, l) => points.push([x, halfWidth(norms[l])], [feedForwardX[l], halfWidth(norms[l + 1])]));
    points.push([end, halfWidth(norms.at(-1))]);
    const upper = points.map(([x, h]) => `${x} ${streamY - h}`), lower = points.map(([x, h]) => `${x} ${streamY + h}`).reverse();
    putNode("stream", "spine", "path", { class: "spine", d: `M${[...upper, ...lower].join("L")}Z` });
    const arrowHalf = halfWidth(norms.at(-1)) + 3;
    putNode("stream", "arrow", "path", { class: "spine", d: `M${end - 1} ${streamY - arrowHalf}l${arrowHalf + 3} ${arrowHalf}l${-arrowHalf - 3} ${arrowHalf}Z` });
    const isNarrow = width() < PHONE_WIDTH, maxLetters = (right - 24) / 9.8, isOpen = Boolean(openPart().level), { answer, probability, rank } = model;
    const isBelow = isNarrow && !answerRoom(answer, width());
    const position = isBelow ? { x: width() - 2, "text-anchor": "end", y: streamY + 28 } : { x: end + arrowHalf + 8, "text-anchor": "start", y: streamY + 5 };
    putNode("stream", "answer", "text", { class: "answer", ...position }, truncate(answer, isBelow ? (isOpen ? Math.max(4, (right - 4) / 9.8) : 10) : Math.max(isNarrow ? answer.length : 4, maxLetters)));
    const share = isNarrow && isStory() ? "" : formatShortPercent(probability), isLong = isNarrow && share.length > 5; // "over 99%"
    putNode("stream", "share", "text", { class: "answer share", ...position, ...(isLong && { x: width() - 2, "text-anchor": "end" }), y: position.y + 17 }, share);
    putNode("stream", "rank", "text", { class: "answer share", ...position, y: position.y - 20 }, isNarrow || rank === 1 ? "" : _("rank {rank}", { rank }));
  }

  // The open part: a card over the stream, with numbers.

  function drawCard(open) {
    const { card, pattern } = layout;
    if (!open.level) return;
    putNode("card", "card", "rect", { class: "card", ...rectAttributes(card), rx: 8 });
    if (!hasOpenData(open)) return void putNode("card", "frame", "rect", { class: "frame", ...rectAttributes(pattern) });
    if (open.level === "block") drawHeads(open);
    else drawPattern(open);
    if (open.level === "cell" && model.open.cell) drawSteps(model.open.cell);
  }

  const rectAttributes = ({ x, y, w, h }) => ({ x, y, width: Math.max(0, w), height: Math.max(0, h) });
  /** Node -> the pattern drawn in it. @type {WeakMap<SVGElement, number[][]>} */
  const drawnPatterns = new WeakMap();

  function drawHeads({ layer, head }) {
    const { card } = layout, { patterns } = model.open, grid = headGridLayout(patterns.length, card), block = model.blocks[layer], maxEffect = largestMagnitude(model.blocks.flatMap(({ heads }) => heads));
    patterns.forEach((rows, h) => {
      const { x, y, w } = grid.at(h), value = block.heads[h], { sign } = effectStyle(value, maxEffect), cell = w / rows.length;
      const node = putItem("card", `head:${layer}.${h}`, {
        kind: h === head && !isStory() ? "pattern here" : "pattern", label: headLabel(layer, h, value, maxEffect), box: [x, y, x + w, y + w],
        isRelated: (curve) => curve[0] === layer && curve[1] === h, act: () => navigate({ open: "head", layer, head: h }),
      });
      putChild(node, 0, "rect", { class: "shape", x, y, width: w, height: w, rx: 3 });
      for (let tenth = 1; tenth <= 10; tenth += 1) { // one path for all cells of similar weight, in units of a cell
        putChild(node, tenth, "path", { class: "weights", transform: `translate(${x} ${y}) scale(${cell})`, "fill-opacity": tenth / 10 });
        if (drawnPatterns.get(node) !== rows) set(node.children[tenth], { d: cellsPath(rows, tenth) });
      }
      drawnPatterns.set(node, rows);
      const group = model.key_groups > 1 ? _("{head} · kv {group}", { head: `${layer}.${h}`, group: Math.floor(h / model.key_groups) }) : `${layer}.${h}`;
      const effect = w > (isStory() ? 90 : 66) ? effectText(value, maxEffect, true) : ""; // if it does not fit, the name has its colour
      putChild(node, 11, "text", { class: effect ? "" : sign, x, y: y + w + 14 }, isStory() ? _("head {head}", { head: h }) : w > 96 || model.key_groups === 1 ? group : `${layer}.${h}`);
      putChild(node, 12, "text", { class: `number ${sign}`, x: x + w, y: y + w + 14, "text-anchor": "end" }, effect);
    });
    const y = Math.min(grid.bottom + 8, card.y + card.h - 44), w = Math.max(0, Math.min(card.w - 20, 240)), maxFeedForward = largestMagnitude(model.blocks.map((other) => other.feed_forward)), feedForwardText = effectText(block.feed_forward, maxFeedForward, true); // an opening card starts with no width
    const values = { layer, value: effectText(block.feed_forward, maxFeedForward) };
    const node = putItem("card", `ffn:${layer}`, {
      kind: "feed-forward", label: isStory() ? _("feed-forward of layer {layer}: {value}; it works on each token alone", values) : _("feed-forward of layer {layer}: {value}; opens its tab", values),
      box: [card.x + 10, y, card.x + 10 + w, y + 32], act: () => (isStory() ? describe(node.item) : select({ view: "feed_forward", layer })), // its tab is none of the story's
    });
    putChild(node, 0, "rect", { class: "shape", x: card.x + 10, y, width: w, height: 32, rx: 6 });
    putChild(node, 1, "text", { class: "title", x: card.x + 20, y: y + 20 }, _("feed-forward"));
    putChild(node, 2, "text", { class: "number", x: card.x + w - 2, y: y + 20, "text-anchor": "end" }, isStory() ? (w > 170 ? feedForwardText : "") : w > 190 ? `${feedForwardText} →` : w > 140 ? feedForwardText : "");
  }

  function drawPattern({ layer, head, query, key, level }) {
    const { pattern, card } = layout, rows = model.open.patterns[head], w = pattern.w / rows.length, h = Math.min(layout.cellHeight, pattern.h / rows.length * 1.001);
    const rowTop = (i) => pattern.y + (rows.length > 1 ? (i * (pattern.h - h)) / (rows.length - 1) : 0);
    if (pattern.w < 20) return;
    const maxLetters = (level === "cell" ? layout.steps.x - pattern.x - pattern.w - 8 : card.x + card.w - pattern.x - pattern.w - 8) / SMALL_LETTER_WIDTH;
    const weights = rows[rowIndex(query)], markedColumn = level === "head" ? weights.indexOf(Math.max(...weights)) : rowIndex(key); // for a head, the column that its sentence names
    rows.forEach((row, i) => {
      const position = model.rows[i][0];
      row.forEach((p, j) => {
        const [first, last] = model.rows[j], x = pattern.x + j * w, y = rowTop(i), isFold = last > first;
        const node = putItem("card", `cell:${position}.${first}`, {
          kind: ["cell", position === query && j === markedColumn && "here"].filter(Boolean).join(" "),
          label: _("{query} looks at {key}: {weight}", { query: tokenText(position), key: isFold ? plainText(model.rows[j][2]) : tokenText(first), weight: formatShortPercent(p) }),
          box: [x, y, x + w, y + h], isRelated: (curve) => curve[0] === layer && curve[1] === head && curve[2] >= first && curve[2] <= last,
          act: () => navigate({ open: "cell", layer, head, query: position, key: isFold ? Math.min(position, strongestKey(first, last)) : first }),
        });
        putChild(node, 0, "rect", { class: "shape", x: x + 0.5, y: y + 0.5, width: Math.max(0, w - 1), height: Math.max(0, h - 1) });
        putChild(node, 1, "rect", { class: "weights", x: x + 0.5, y: y + 0.5, width: Math.max(0, w - 1), height: Math.max(0, h - 1), "fill-opacity": p ?? 0 });
        putChild(node, 2, "text", { class: (p ?? 0) > 0.55 ? "on" : "", x: x + w / 2, y: y + h / 2 + 4, "text-anchor": "middle" }, w > 27 && p >= 0.005 ? (100 * p).toFixed(0) : "");
      });
      const letters = maxLetters + ((rows.length - i - 1) * w) / SMALL_LETTER_WIDTH - 1; // the space beside the diagonal has the column's name
      putNode("card", `column:${position}`, "text", { class: i === markedColumn ? "name here" : "name", x: pattern.x + (i + 1) * w + 5, y: rowTop(i) + h / 2 + 4 }, letters > 3 ? rowText(model.rows[i], letters) : "");
    });
    const row = rowIndex(query);
    putNode("card", "row", "rect", { class: "row", x: pattern.x, y: rowTop(row), width: (row + 1) * w, height: h, rx: 2 });
  }

  function drawSteps({ query: q, key: k, steps }) {
    const { x, w } = layout.steps, { card } = layout, isTight = w < 250, stripHeight = Math.min(44, card.h * 0.09);
    if (w < 40) return;
    const strips = [["q", q], ["k", k], ["q × k", q.map((value, i) => value * k[i])]];
    const barsWidth = w - 44, bar = barsWidth / q.length;
    strips.forEach(([name, values], row) => {
      const middle = card.y + 14 + stripHeight * (row + 0.5) + row * 6, maxValue = largestMagnitude(/** @type {number[]} */ (values));
      const barsPath = (sign) => /** @type {number[]} */ (values).map((value, i) => (Math.sign(value) === sign ? `M${(x + 42 + (i + 0.5) * bar).toFixed(1)} ${middle}v${((-value / maxValue) * stripHeight * 0.5).toFixed(1)}` : "")).join("");
      putNode("card", `strip:${row}`, "text", { class: ["soft", "soft of-q", "soft of-k"][row === 2 ? 0 : row + 1], x, y: middle + 4 }, /** @type {string} */ (name));
      putNode("card", `base:${row}`, "path", { class: "base", d: `M${x + 40} ${middle}h${barsWidth}` });
      for (const sign of [1, -1]) putNode("card", `bars:${row}:${sign}`, "path", { class: `bars ${row < 2 ? ["plain of-q", "plain of-k"][row] : sign > 0 ? "adds" : "takes"}`, "stroke-width": Math.max(0.8, bar * 0.7), d: barsPath(sign) });
    });
    const maxLetters = (value, isWrapped) => (isWrapped ? w : w - value.length * 8) / 5.8;
    const top = card.y + 34 + stripHeight * 3 + 12, space = Math.min(42, (card.y + card.h - top - 8) / steps.length);
    const shortName = (kind, name) => (kind === "effect" && !isStory() ? _("logit of {token}", { token: plainText(model.answer) }) : name.split(":")[0]); // if the full name does not fit
    steps.forEach(({ kind, name, value }, i) => {
      const y = top + (i + 0.5) * space, isWrapped = isTight && space > 28;
      putNode("card", `rule:${i}`, "path", { class: "base", d: `M${x} ${y - space / 2}h${w}` });
      putNode("card", `step:${i}`, "text", { class: "step", x, y: y + (isWrapped ? -3 : 4) }, truncate(name.length > maxLetters(value, isWrapped) ? shortName(kind, name) : name, maxLetters(value, isWrapped)));
      putNode("card", `value:${i}`, "text", { class: `value ${kind}`, x: x + w, y: y + (isWrapped ? 11 : 4), "text-anchor": "end" }, value);
    });
  }

  // The breadcrumbs above, and the sum of logit terms below.

  function drawLines() {
    const open = openPart(), { level, layer, head, query, key } = open, crumbs = [[_("Model"), { open: "" }]];
    if (level) crumbs.push([_("Layer {layer}", { layer }), { open: "block" }]);
    if (level === "head" || level === "cell") crumbs.push([_("Attention"), null], [_("head {head}", { head }), { open: "head" }]);
    if (level === "cell") crumbs.push([`“${tokenText(query)}” → “${tokenText(key)}”`, null]);
    const pathText = crumbs.map(([text]) => text).join(" › ");
    if (breadcrumbs.dataset.path !== pathText) {
      breadcrumbs.dataset.path = pathText;
      breadcrumbs.replaceChildren(...crumbs.flatMap(([text, change], i) => {
        const isLast = i === crumbs.length - 1;
        const crumb = change && !isLast ? button(text, () => navigate(change), { className: "crumb" }) : span(isLast ? "crumb last" : "crumb", text);
        if (isLast) crumb.ariaCurrent = "location";
        return i ? [span("into", "›"), crumb] : [crumb];
      }));
    }
    describe(null);
    actions.hidden = level !== "head" && level !== "cell";
    headSwitch.show(open, ablation(open), interventionsField());
    sum.classList.toggle("legend", isStory());
    sum.replaceChildren(...(isStory() ? legend(level) : logitTerms()));
  }

  /** Return the terms of the logit. */
  function logitTerms() {
    const { terms, rest, logit, contrast, answer } = model, [count, omittedEffect] = rest;
    const logitLabel = contrast ? _("logit of {token} less that of {other}", { token: plainText(answer), other: plainText(contrast) }) : _("logit of {token}", { token: plainText(answer) });
    const pieces = terms.map(([kind, label, value], i) => span(`summand ${kind}`, make("i"), `${label} `, make("b", {}, i ? formatSigned(value) : (value ?? 0).toFixed(2).replace("-", "−"))));
    const total = span("summand all", "= ", make("b", {}, logit === null ? "–" : logit.toFixed(2).replace("-", "−")), " ", span("guessed", logitLabel));
    const note = count ? [span("note", ngettext("{count} thinner curve ({effect} together) is not drawn", "{count} thinner curves ({effect} together) are not drawn", count, { effect: formatSigned(omittedEffect) }))] : [];
    return [...pieces, total, ...note, span("note", _("percentages: the model’s own")), ...(openPart().level ? [span("note", patternHint())] : [])];
  }

  const patternHint = () => _("Each row is a token that looks back; a darker cell takes more of its attention.");
  const legend = (level) => [span("reading", isGuessing() ? _("Inside the model: each line looks back at an earlier word.") : level === "block" ? _("Each square is a head: a row is a token that looks back, a darker cell takes more.") : level ? patternHint() : _("Each line looks back at a token; a thicker one takes more. Choose a line: how it comes about.")),
    ...[["adds", _("for the answer")], ["takes", _("against the answer")], ["neutral", _("little either way")], ["own", _("head")], ["feed_forward", _("feed-forward")], ["feed_forward less", _("feed-forward, against")]].map(([kind, word]) => span(`summand ${kind}`, make("i"), word))];

  /** Show an item's description, or how to read the drawing; highlight its curves. @param {any} item */
  function describe(item) {
    setText(readout, item?.label ?? (isStory() || openPart().level ? "" : _("Thicker: longer vector. Blue: for the answer; orange-red: against; grey: little.")));
    svg.classList.toggle("focused", Boolean(item?.isRelated));
    for (const curve of model?.curves ?? []) nodes.get(curveName(curve))?.classList.toggle("lit", Boolean(item?.isRelated?.(curve)));
  }

  // Animations: from one layout to the next, and of the sentence through the model after Run.
  const drawingSize = () => {
    const space = drawing.clientWidth, neededHeight = TOP_MARGIN + BOTTOM_MARGIN + 60 * Math.max(1, model.rows.length - 1);
    if (element.closest(".presented")) return { width: space, height: drawing.clientHeight }; // all available space
    return { width: space, height: Math.max(MIN_HEIGHT, Math.min(parseFloat(getComputedStyle(drawing).getPropertyValue("--tallest")) * innerHeight / 100, neededHeight)) };
  };

  function move() {
    if (!model || !drawing.clientWidth) return;
    const target = drawingLayout(model, openPart(), drawingSize()), start = layout;
    cancelAnimationFrame(frame);
    if (!start || reducedMotion.matches || start.width !== target.width || start.blockLefts.length !== target.blockLefts.length || JSON.stringify(start) === JSON.stringify(target)) {
      layout = target;
      return finish();
    }
    const startedAt = performance.now();
    drawing.dataset.moving = "true";
    const step = () => {
      const share = Math.min(1, (performance.now() - startedAt) / MOVE_MS);
      layout = share < 1 ? interpolate(start, target, 1 - (1 - share) ** 3) : target;
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

  function startFlow() {
    if (reducedMotion.matches) return;
    stopFlow();
    svg.classList.add("flowing");
    flowTimer = window.setTimeout(stopFlow, FLOW_MS);
  }
  function stopFlow() {
    clearTimeout(flowTimer);
    svg.classList.remove("flowing");
  }

  async function show(content) {
    model = content;
    setHidden(element, !model);
    if (!model) return;
    drawing.dataset.level ??= openPart().level;
    drawLines();
    const newPrompt = String(state.prompt), isNew = drawnPrompt && drawnPrompt !== newPrompt;
    if (isNew) layout = null; // a new text is drawn without an animation
    move();
    if (isNew) startFlow();
    drawnPrompt = newPrompt;
  }

  function update() {
    if (!model) return;
    const open = openPart(), { level, layer, head, query, key } = open;
    const stateKey = JSON.stringify([state.view, level && open, isGuessing(), isStory(), state[interventionsField()]]);
    if (stateKey === drawnState) return; // the state changes with each generated token
    drawnState = stateKey;
    const before = drawing.dataset.level, cell = `cell:${query}.${key}`, target = { block: `head:${layer}.${head}`, head: before === "cell" ? cell : "marked", cell }[level] ?? `block:${layer}`;
    if (before !== level) [nextFocusName, keepsFocus] = [target, keepsFocus || svg.contains(document.activeElement)];
    drawing.dataset.level = level;
    drawLines();
    move();
    if (level && before !== level && !element.closest(".presented")) breadcrumbs.scrollIntoView({ block: "nearest" }); // what opened, and the way back
  }

  /** Go one level up, and return whether there was one. */
  function leaveLevel() {
    const { level } = openPart(), outer = LEVELS[LEVELS.indexOf(level) - 1];
    if (outer !== undefined) navigate({ open: outer });
    return outer !== undefined;
  }

  const itemAt = ({ target }) => /** @type {any} */ (target.closest?.(".item, .curve"))?.item;
  svg.addEventListener("pointerover", (event) => describe(itemAt(event)));
  svg.addEventListener("pointerleave", () => describe(null));
  drawing.addEventListener("focusin", (event) => { // not on the SVG, which Chromium would treat as focusable
    const item = itemAt(event);
    if (!item?.name) return;
    focusedName = item.name;
    for (const node of nodes.values()) if (node.item?.name) set(node, { tabindex: node.item.name === focusedName ? 0 : -1 });
    describe(item);
  });
  svg.addEventListener("click", (event) => {
    const item = itemAt(event);
    keepsFocus ||= item?.name === ""; // a curve cannot be focused, but what it opens can
    item?.act?.();
  });
  drawing.addEventListener("keydown", (event) => {
    const item = itemAt(event), step = DIRECTIONS[event.key];
    if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
    if (step) {
      const items = [...nodes.values()].filter((node) => node.item?.name).map((node) => node.item);
      const itemKind = ({ name }) => name.slice(0, name.indexOf(":"));
      const nearestOf = (candidates) => candidates[nearestInDirection(candidates.map(({ box }) => box), candidates.indexOf(item), step)];
      const sameKind = nearestOf(items.filter((other) => itemKind(other) === itemKind(item))); // prefer an item of the same kind
      nodes.get((sameKind === item ? nearestOf(items) : sameKind).name).focus();
    } else if (event.key === "Enter" || event.key === " ") item.act?.();
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    const { target, key } = event, isHere = element.contains(/** @type {Node} */ (target)) || target === document.body;
    if (key !== "Escape" || event.defaultPrevented || isKeyForFocus(event) || !isHere || !model || !drawing.clientWidth) return;
    if (leaveLevel()) event.preventDefault();
  });
  for (const type of ["pointerdown", "keydown"]) document.addEventListener(type, stopFlow, { capture: true, passive: true });

  showEvidence(element);
  new ResizeObserver(() => { if (model && drawing.clientWidth && (drawing.clientWidth !== layout?.width || (element.closest(".presented") && drawing.clientHeight !== layout.height))) move(); }).observe(drawing);
  window.addEventListener("resize", move);
  onState(update);
  onThemeChange(() => { if (model) drawLines(), draw(); });
  onFigureContent(element, drawing, (content) => queueDraw(element, () => show(content)));
}
