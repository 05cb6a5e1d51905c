// @ts-check
// The panel of a class: opening, joining and leading a room, the link to it as a QR code, and what the class replies.
import { dropDown, find, findAll, isKeyForFocus, make, makeSvg, focusableWhileScrolling, setText, set, span } from "../../static/dom.js";
import { shownLessonStep, onLessonStep } from "../../static/history.js";
import { _, ngettext } from "../../static/translations.js";
import { changeRoom, closeRoom, enterRoom, isTeacher, joinRoom, startLeading, startListening, linkOf, onRoom, openRoom, placeRoomLine, room, written } from "../../static/room_client.js";

// The bits of a QR code: a text in bytes, and bytes that check them (error correction M), for versions 1 to 10.

const CHECKS = [0, 10, 16, 26, 18, 24, 16, 18, 22, 22, 26], BLOCKS = [0, 1, 1, 1, 2, 2, 4, 4, 4, 5, 5]; // of each version: check bytes a block, blocks
const MOST = 10, COUNT_BITS = (version) => (version < 10 ? 8 : 16);

/** Bytes that a version holds, checks among them. @param {number} version */
function bytesIn(version) {
  const aligned = Math.floor(version / 7) + 2;
  let bits = (16 * version + 128) * version + 64;
  if (version > 1) bits -= (25 * aligned - 10) * aligned - 55;
  if (version > 6) bits -= 36;
  return Math.floor(bits / 8);
}
const dataBytes = (version) => bytesIn(version) - CHECKS[version] * BLOCKS[version];

/** The version that has room for a text, and its bits in their order; null where none has. @param {string} text @returns {{ version: number, bits: boolean[] } | null} */
function codedIn(text) {
  const bytes = Array.from(new TextEncoder().encode(text));
  let version = 1;
  while (version <= MOST && 4 + COUNT_BITS(version) + 8 * bytes.length > 8 * dataBytes(version)) version++;
  return version > MOST ? null : { version, bits: bitsOf(withChecks(padded(bytes, version), version)) };
}

function padded(bytes, version) {
  const length = dataBytes(version), number = (value, bits) => value.toString(2).padStart(bits, "0");
  let text = number(4, 4) + number(bytes.length, COUNT_BITS(version)) + bytes.map((byte) => number(byte, 8)).join("");
  text += "0".repeat(Math.min(4, 8 * length - text.length));
  text += "0".repeat((8 - (text.length % 8)) % 8);
  const data = text.match(/.{8}/g).map((one) => parseInt(one, 2));
  for (let pad = 0xec; data.length < length; pad ^= 0xec ^ 0x11) data.push(pad);
  return data;
}

/** In the field of 256 elements. */
function times(a, b) {
  let product = 0;
  for (let i = 7; i >= 0; i--) product = (product << 1) ^ ((product >>> 7) * 0x11d) ^ (((b >>> i) & 1) * a);
  return product;
}

function checksOf(data, count) {
  const divisor = Array(count).fill(0);
  divisor[count - 1] = 1;
  for (let i = 0, root = 1; i < count; i++, root = times(root, 2))
    for (let j = 0; j < count; j++) divisor[j] = times(divisor[j], root) ^ (divisor[j + 1] ?? 0);
  const rest = Array(count).fill(0);
  for (const byte of data) {
    const factor = byte ^ rest.shift();
    rest.push(0);
    divisor.forEach((each, i) => { rest[i] ^= times(each, factor); });
  }
  return rest;
}

// Blocks of data, the longer ones last, and their checks: byte by byte of each in turn.
function withChecks(data, version) {
  const count = BLOCKS[version], short = count - (data.length % count), length = Math.floor(data.length / count);
  const starts = Array.from({ length: count + 1 }, (_block, i) => i * length + Math.max(0, i - short));
  const blocks = Array.from({ length: count }, (_block, i) => data.slice(starts[i], starts[i + 1]));
  const checks = blocks.map((block) => checksOf(block, CHECKS[version]));
  const drawInTurn = (all, most) => Array.from({ length: most }, (_byte, i) => all.map((one) => one[i])).flat().filter((byte) => byte !== undefined);
  return [...drawInTurn(blocks, length + 1), ...drawInTurn(checks, CHECKS[version])];
}
const bitsOf = (bytes) => bytes.flatMap((byte) => Array.from({ length: 8 }, (_bit, i) => ((byte >>> (7 - i)) & 1) === 1));

// A text as a QR code (ISO/IEC 18004): bytes, error correction M, versions 1 to 10, as no longer link is for a class.

const LIKE_FINDERS = ["00001011101", "10111010000"], PENALTY = { run: 3, square: 3, finder: 40, share: 10 };
const MASKS = [
  (x, y) => (x + y) % 2, (x, y) => y % 2, (x) => x % 3, (x, y) => (x + y) % 3,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2, (x, y) => ((x * y) % 2) + ((x * y) % 3),
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2, (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2,
];

/**
 * Rows of modules, true for dark; null for a text that is too long.
 * @param {string} text
 * @param {number} [mask] by its number; the one that is read best where none is given
 * @returns {boolean[][] | null}
 */
export function qrCodeModules(text, mask) {
  const coded = codedIn(text);
  if (!coded) return null;
  const { size, set, rows, isFixed } = frame(coded.version), placed = place(coded.bits, size, isFixed);
  const masked = (number) => {
    for (const [x, y, bit] of placed) set(x, y, bit !== (MASKS[number](x, y) === 0));
    drawFormat(number, size, set);
    return rows.map((row) => [...row]);
  };
  if (mask !== undefined) return masked(mask);
  const all = MASKS.map((_mask, number) => masked(number)), penalties = all.map(penaltyOf);
  return all[penalties.indexOf(Math.min(...penalties))];
}

/** What is dark or light whatever the text. @param {number} version */
function frame(version) {
  const size = 17 + 4 * version, rows = Array.from({ length: size }, () => Array(size).fill(false));
  const fixed = Array.from({ length: size }, () => Array(size).fill(false)), isFixed = (x, y) => fixed[y][x];
  const set = (x, y, dark) => { rows[y][x] = dark; }, fix = (x, y, dark) => { set(x, y, dark); fixed[y][x] = true; };
  const within = (at) => at >= 0 && at < size;
  for (let i = 0; i < size; i++) { fix(6, i, i % 2 === 0); fix(i, 6, i % 2 === 0); }
  for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]])
    for (let i = -4; i <= 4; i++)
      for (let j = -4; j <= 4; j++) {
        const far = Math.max(Math.abs(i), Math.abs(j));
        if (within(x + i) && within(y + j)) fix(x + i, y + j, far !== 2 && far !== 4);
      }
  const places = aligned(version, size), last = places.length - 1;
  places.forEach((x, i) => places.forEach((y, j) => {
    if ((i === 0 && j === 0) || (i === 0 && j === last) || (i === last && j === 0)) return;
    for (let a = -2; a <= 2; a++) for (let b = -2; b <= 2; b++) fix(x + a, y + b, Math.max(Math.abs(a), Math.abs(b)) !== 1);
  }));
  drawFormat(0, size, fix);
  if (version > 6) drawVersion(version, size, fix);
  return { size, rows, set, isFixed };
}

function aligned(version, size) {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2, step = Math.ceil((version * 4 + 4) / (count * 2 - 2)) * 2;
  return [6, ...Array.from({ length: count - 1 }, (_place, i) => size - 7 - (count - 2 - i) * step)];
}

function withRest(value, bits, divisor) {
  let rest = value;
  for (let i = 0; i < bits; i++) rest = (rest << 1) ^ ((rest >>> (bits - 1)) * divisor);
  return (value << bits) | rest;
}

function drawFormat(mask, size, set) {
  const format = withRest(mask, 10, 0x537) ^ 0x5412, bit = (i) => ((format >>> i) & 1) === 1; // M is 0
  for (let i = 0; i < 15; i++) {
    const down = i < 6 ? i : i < 8 ? i + 1 : size - 15 + i, along = i < 8 ? size - 1 - i : i === 8 ? 7 : 14 - i;
    set(8, down, bit(i));
    set(along, 8, bit(i));
  }
  set(8, size - 8, true);
}

function drawVersion(version, size, set) {
  const bits = withRest(version, 12, 0x1f25);
  for (let i = 0; i < 18; i++) {
    const a = size - 11 + (i % 3), b = Math.floor(i / 3), dark = ((bits >>> i) & 1) === 1;
    set(a, b, dark);
    set(b, a, dark);
  }
}

// In columns of two, up and down, from the right.
function place(bits, size, isFixed) {
  const placed = [];
  for (let right = size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < size; step++)
      for (const x of [right, right - 1]) {
        const y = ((right + 1) & 2) === 0 ? size - 1 - step : step;
        if (!isFixed(x, y)) placed.push([x, y, bits[placed.length] ?? false]);
      }
  }
  return placed;
}

function penaltyOf(rows) {
  const lines = [...rows, ...rows.map((_row, x) => rows.map((row) => row[x]))].map((line) => line.map(Number).join(""));
  let penalty = 0;
  for (const line of lines) {
    for (const [run] of line.matchAll(/0{5,}|1{5,}/g)) penalty += PENALTY.run + run.length - 5;
    for (let at = 0; at + 11 <= line.length; at++) if (LIKE_FINDERS.includes(line.slice(at, at + 11))) penalty += PENALTY.finder;
  }
  for (let y = 1; y < rows.length; y++)
    for (let x = 1; x < rows.length; x++) if (new Set([rows[y][x], rows[y - 1][x], rows[y][x - 1], rows[y - 1][x - 1]]).size === 1) penalty += PENALTY.square;
  const dark = rows.flat().filter(Boolean).length / rows.length ** 2;
  return penalty + PENALTY.share * Math.floor(Math.abs(dark - 0.5) * 20);
}

// How many of a class replied what: counts alone, beside the question that they are of.

const SHOWN = 8, BETWEEN = "_"; // different replies in words; between the parts of one
const BINS = 10; // in which numbers are counted (lessons/questions.py)

/** @typedef {{ says: string, count: number, isRight: boolean }} Row */
/** @typedef {{ rows: string[], columns: string[], counts: number[][], right: number[] | null }} Grid */

/**
 * @param {Record<string, any> | null} question null where nothing is asked
 * @param {Record<string, number>} counts
 * @param {number} people
 * @param {{ truth: Record<string, any> } | null} judged once the truth is told
 * @returns {Node[]}
 */
function countsNodes(question, counts, people, judged) {
  if (!question) return [make("p", { className: "quiet" }, _("This step asks nothing."))];
  const all = total(counts), of = make("p", { className: "of" }, repliedSentence(counts, people));
  if (question.kind === "cell" || question.kind === "curve") return [of, table(replyGrid(question, counts, judged))];
  return [of, bars(replyCounts(question, counts, judged), all)];
}

/** @param {Record<string, number>} counts @param {number} people */
function repliedSentence(counts, people) {
  const all = total(counts);
  return ngettext("{count} of {people} has replied.", "{count} of {people} have replied.", all, { people: Math.max(people, all) });
}

/** The shown step's question and what the class has replied to it; null where this page asks no class. */
function classReplies() {
  const step = shownLessonStep();
  if (!isTeacher() || !step?.question || step.question.is_example || step.name !== room.lesson || step.step !== room.step) return null;
  return { question: step.question, counts: room.counts, people: room.people, judged: step.judged ?? null };
}

/** Whether some of the class have not replied to the shown question yet, whose answer is not shown. */
export function awaitsReplies() {
  const replies = classReplies();
  return Boolean(replies) && !replies.judged && total(replies.counts) < replies.people;
}

/** How many of the class have replied to the shown question, as a sentence; "" where no class is asked. */
export function repliedNow() {
  const replies = classReplies();
  return replies ? repliedSentence(replies.counts, replies.people) : "";
}

/** The replies for the presenter's own window, in lines of text. @returns {Node[]} */
export function replyLines() {
  const replies = classReplies();
  if (!replies) return [];
  const { question, counts, judged } = replies, isGrid = question.kind === "cell" || question.kind === "curve";
  const rows = isGrid ? [] : replyCounts(question, counts, judged).filter(({ count, isRight }) => count || isRight);
  return [make("p", { className: "replied" }, repliedNow()), ...rows.map(({ says, count, isRight }) => make("div", {}, `${count} · ${says}${isRight ? ` ${_("✓ right")}` : ""}`))];
}

/** @param {Record<string, number>} counts */
export const total = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);

/**
 * What was replied, and how often: every option, every part of a slider, or the most frequent words.
 * @param {Record<string, any>} question
 * @param {Record<string, number>} counts
 * @param {{ truth: Record<string, any> } | null} [judged]
 * @returns {Row[]}
 */
export function replyCounts(question, counts, judged = null) {
  const { kind } = question, truth = judged?.truth;
  if (kind === "choice") return question.options.map((says, i) => ({ says, count: counts[i + 1] ?? 0, isRight: Boolean(truth?.right.includes(i + 1)) }));
  if (kind === "number") {
    const { lowest, highest } = question, at = (i) => lowest + (i * (highest - lowest)) / BINS;
    const isIn = (i) => truth !== undefined && Math.max(0, Math.min(BINS - 1, Math.floor((BINS * (truth.truth - lowest)) / (highest - lowest)))) === i;
    return Array.from({ length: BINS }, (_bin, i) => ({ says: _("{from} to {to}", { from: short(at(i)), to: short(at(i + 1)) }), count: counts[i] ?? 0, isRight: isIn(i) }));
  }
  const isRight = (reply) => (kind === "token" && truth !== undefined ? truth.bars[truth.right]?.token.trim().toLowerCase() === reply : false);
  const found = Object.entries(counts).sort(([, a], [, b]) => b - a).map(([reply, count]) => ({ says: reply.replaceAll(BETWEEN, " · "), count, isRight: isRight(reply) }));
  const rest = found.slice(SHOWN);
  if (!rest.length) return found;
  return [...found.slice(0, SHOWN), { says: ngettext("{count} other", "{count} others", rest.length), count: rest.reduce((sum, { count }) => sum + count, 0), isRight: false }];
}

/**
 * Of a heatmap the cells that were chosen; of a curve, at each point the parts of the axis that it was drawn through.
 * @param {Record<string, any>} question
 * @param {Record<string, number>} given
 * @param {{ truth: Record<string, any> } | null} [judged]
 * @returns {Grid}
 */
export function replyGrid(question, given, judged = null) {
  if (question.kind === "cell") {
    const { rows, columns } = question, counts = rows.map((_row, i) => columns.map((_column, j) => given[`${i}${BETWEEN}${j}`] ?? 0));
    return { rows, columns, counts, right: judged?.truth.right ?? null };
  }
  const { labels, lowest, highest } = question, counts = Array.from({ length: BINS }, () => labels.map(() => 0));
  for (const [reply, count] of Object.entries(given)) reply.split(BETWEEN).forEach((bin, j) => { counts[BINS - 1 - +bin][j] += count; });
  const rows = counts.map((_row, i) => short(highest - (i * (highest - lowest)) / BINS));
  return { rows, columns: labels, counts, right: null };
}

const short = (value) => String(+value.toPrecision(3)).replace("-", "−");

/** @param {Row[]} rows @param {number} all */
function bars(rows, all) {
  return make("ol", { className: "bars" }, ...rows.map(({ says, count, isRight }) => {
    const filled = make("i", { className: "filled" });
    filled.style.width = `${(100 * count) / Math.max(1, all)}%`;
    const row = make("li", { className: "row" }, span("says", says), make("span", { className: "bar", ariaHidden: "true" }, filled), span("count", String(count)));
    row.classList.toggle("is-right", isRight);
    if (isRight) row.querySelector(".says").append(span("says-right", ` ${_("✓ right")}`));
    return row;
  }));
}

/** @param {Grid} grid */
function table({ rows, columns, counts, right }) {
  const most = Math.max(1, ...counts.flat());
  const cell = (count, i, j) => {
    const made = make("td", {}, count ? String(count) : "");
    made.style.setProperty("--share", String(count / most));
    made.classList.toggle("is-right", right !== null && right[0] === i && right[1] === j);
    return made;
  };
  const head = make("tr", {}, make("td", { className: "none" }), ...columns.map((column) => make("th", { scope: "col" }, make("span", {}, column))));
  return focusableWhileScrolling(make("div", { className: "scrolls" }, make("table", { className: "grid-of-counts" }, head,
    ...rows.map((row, i) => make("tr", {}, make("th", { scope: "row" }, row), ...counts[i].map((count, j) => cell(count, i, j)))))));
}

const QUIET = 4, SPOKEN_EVERY = 6000; // modules around a QR code; milliseconds between two sentences for who listens

/** @param {HTMLElement} element */
export function roomMenu(element) {
  const open = find(element, ".open"), list = find(element, ".list"), outside = find(list, ".outside"), leading = find(list, ".leading");
  const told = find(list, ".told"), leads = /** @type {HTMLInputElement} */ (find(leading, ".leads input"));
  const link = /** @type {HTMLAnchorElement} */ (find(leading, ".link")), typed = /** @type {HTMLInputElement} */ (find(outside, ".typed"));
  let code = "", drawn = "", onLesson = "", spokenAt = 0;

  const { show, hide } = dropDown(open, list, {
    fill() {
      setText(told, "");
      follow();
    },
    first: () => find(list, isTeacher() ? ".leads input" : ".begin"),
    left: ({ right }) => (isTeacher() ? innerWidth : right - list.offsetWidth), // whoever leads a class has the page's beginning in sight
    stays: isTeacher, // they work on the page meanwhile
  });

  function follow() {
    const isLeading = isTeacher();
    setText(open, nameOfButton());
    drawOnLesson();
    [outside.hidden, leading.hidden] = [isLeading, !isLeading];
    for (const control of findAll(outside, ":is(button,input)")) /** @type {HTMLButtonElement} */ (control).disabled = Boolean(room);
    if (!isLeading) return;
    invite();
    leads.checked = room.leads;
    setText(find(leading, ".people"), room.isReached ? ngettext("{count} student is there", "{count} students are there", room.people) : _("The server does not answer."));
    if (room.problem) setText(told, room.problem);
    drawCounts();
  }

  function nameOfButton() {
    if (!isTeacher()) return _("Class");
    const count = classReplies() ? total(room.counts) : null;
    if (count === null) return _("Class · {people}", { people: room.people });
    return _("Class · {count} of {people} replied", { count, people: Math.max(room.people, count) });
  }

  // Beside the question, where a teacher looks; what was replied only with the truth, as students may see the screen.
  function drawOnLesson() {
    const box = find(document, "#lesson .class-replies"), replies = classReplies();
    if (!box) return;
    const data = JSON.stringify(replies);
    if (data === onLesson) return;
    onLesson = data;
    box.replaceChildren(...(!replies ? [] : replies.judged ? countsNodes(replies.question, replies.counts, replies.people, replies.judged) : [make("p", { className: "of" }, repliedNow())]));
  }

  // The code, the link and its image, once a room.
  function invite() {
    if (code === room.code) return;
    code = room.code;
    setText(find(leading, ".code"), written(code));
    link.href = linkOf(code, location.href);
    setText(link, link.href.replace(/^https?:\/\//, ""));
    find(leading, ".local").hidden = !/^(localhost|127\.|\[::1\])/.test(location.hostname);
    const rows = qrCodeModules(link.href), box = find(leading, ".qr");
    box.replaceChildren(...(rows ? [qrImage(rows)] : []));
  }

  function drawCounts() {
    const { question = null, judged = null } = classReplies() ?? {}, data = JSON.stringify([question, room.counts, room.people, judged?.truth]);
    if (data === drawn) return;
    drawn = data;
    find(leading, ".counts").replaceChildren(...countsNodes(question, room.counts, room.people, judged));
    find(leading, ".replies").hidden = !room.lesson;
    speak();
  }

  // Whoever listens is told how many there are, and not each of them.
  function speak() {
    const now = Date.now(), left = spokenAt + SPOKEN_EVERY - now;
    if (left > 0) return void setTimeout(() => { if (isTeacher() && Date.now() >= spokenAt + SPOKEN_EVERY) speak(); }, left);
    spokenAt = now;
    const count = Object.values(room.counts).reduce((sum, one) => sum + one, 0);
    setText(find(leading, ".spoken"), count ? ngettext("{count} reply", "{count} replies", count) : "");
  }

  /** @param {() => Promise<void>} act */
  async function tried(act) {
    setText(told, "");
    try { await act(); } catch (error) { setText(told, "status" in error ? error.message : _("The server does not answer: try again in a while.")); }
  }

  async function copy() {
    try { await navigator.clipboard.writeText(link.href); } catch { return void prompt(_("Copy this link:"), link.href); }
    setText(told, _("The link is copied."));
  }

  find(outside, ".begin").addEventListener("click", () => tried(openRoom).then(() => { if (isTeacher()) show(); }));
  find(outside, "form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!typed.value.trim()) return typed.focus();
    joinRoom(typed.value.trim());
    hide();
  });
  find(leading, ".copy").addEventListener("click", copy);
  leads.addEventListener("change", () => changeRoom({ leads: leads.checked }));
  find(leading, ".end").addEventListener("click", () => confirm(_("Close the room? It ends for every student, and their replies are deleted.")) && tried(closeRoom).then(() => { if (!room) find(outside, ".begin").focus(); }));
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "c" || event.repeat || isKeyForFocus(event) || !isTeacher()) return;
    if (list.hidden) show(); else hide();
  });
  onRoom(follow);
  onLessonStep(() => { if (isTeacher()) follow(); });
  follow();
  placeRoomLine();
  startListening();
  startLeading();
  enterRoom();
}

/** Dark on light in either theme, as cameras want it. @param {boolean[][]} rows */
function qrImage(rows) {
  const size = rows.length + 2 * QUIET, svg = makeSvg("svg"), back = makeSvg("rect"), dark = makeSvg("path");
  set(svg, { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": _("the link as a QR code"), "shape-rendering": "crispEdges" });
  set(back, { width: size, height: size, fill: "#fff" });
  set(dark, { fill: "#000", d: rows.map((row, y) => row.map((is, x) => (is ? `M${x + QUIET} ${y + QUIET}h1v1h-1z` : "")).join("")).join("") });
  svg.append(back, dark);
  return svg;
}
