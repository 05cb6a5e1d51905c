// @ts-check
// The panel of a class: opening, joining and leading a room, its link as a QR code, the teacher's own question, and the replies.
import { make, makeFocusableWhileScrolling, span, button, find, findAll, setText, makeDropdown, isKeyForFocus, makeSvg, set } from "../../static/dom.js";
import { _, ngettext } from "../../static/text.js";
import { askClass, endQuestion, isTeacher, onRoom, ownReplyCounts, replyToClass, room, showRepliesToClass, changeRoom, closeRoom, enterRoom, joinRoom, startLeading, startListening, joinUrl, openRoom, placeRoomLine, formatCode } from "../../static/room_client.js";
import { shownLessonStep, onLessonStep, showAnswer } from "../../static/history.js";

// Counts of a class's replies to a question: as bars, or as a grid.

const MAX_LISTED_REPLIES = 8, PART_SEPARATOR = "_"; // different words listed; separator of the parts of one reply
const BIN_COUNT = 10; // bins of a numeric reply, as in lessons/questions.py

/** @typedef {{ says: string, count: number, isRight: boolean }} ReplyCount */
/** @typedef {{ rows: string[], columns: string[], counts: number[][], right: number[] | null }} ReplyGrid */

/**
 * Render how often each reply was given.
 * @param {Record<string, any> | null} question null if the step has none
 * @param {Record<string, number>} counts
 * @param {number} studentCount
 * @param {{ truth: Record<string, any> } | null} judged null before the answer is shown
 * @param {boolean} isRevealed whether to show more than their number
 * @returns {Node[]}
 */
function renderCounts(question, counts, studentCount, judged, isRevealed) {
  if (!question) return [make("p", { className: "quiet" }, _("This step has no question."))];
  const replyTotal = totalCount(counts), summary = make("p", { className: "of" }, replyCountSentence(counts, studentCount));
  if (!isRevealed) return [summary];
  if (question.kind === "cell" || question.kind === "curve") return [summary, renderGrid(replyGrid(question, counts, judged))];
  return [summary, renderBars(replyCounts(question, counts, judged), replyTotal)];
}

/** @param {Record<string, number>} counts @param {number} studentCount */
function replyCountSentence(counts, studentCount) {
  const replyTotal = totalCount(counts);
  return ngettext("{count} of {people} has replied.", "{count} of {people} have replied.", replyTotal, { people: Math.max(studentCount, replyTotal) });
}

/** @param {Record<string, number>} counts */
export const totalCount = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);

/**
 * Count the replies: of every option, of every bin of a slider, of the most frequent words, or of all texts.
 * @param {Record<string, any>} question
 * @param {Record<string, number>} counts
 * @param {{ truth: Record<string, any> } | null} [judged]
 * @returns {ReplyCount[]}
 */
export function replyCounts(question, counts, judged = null) {
  const { kind } = question, truth = judged?.truth;
  if (kind === "choice") return question.options.map((says, i) => ({ says, count: counts[i + 1] ?? 0, isRight: Boolean(truth?.right.includes(i + 1)) }));
  if (kind === "number") {
    const { lowest, highest } = question, binStart = (i) => lowest + (i * (highest - lowest)) / BIN_COUNT;
    const containsTruth = (i) => truth !== undefined && Math.max(0, Math.min(BIN_COUNT - 1, Math.floor((BIN_COUNT * (truth.truth - lowest)) / (highest - lowest)))) === i;
    return Array.from({ length: BIN_COUNT }, (_bin, i) => ({ says: _("{from} to {to}", { from: formatShort(binStart(i)), to: formatShort(binStart(i + 1)) }), count: counts[i] ?? 0, isRight: containsTruth(i) }));
  }
  const sorted = Object.entries(counts).sort(([, a], [, b]) => b - a);
  if (kind === "text") return sorted.map(([says, count]) => ({ says, count, isRight: false }));
  const isRight = (reply) => (kind === "token" && truth !== undefined ? truth.bars[truth.right]?.token.trim().toLowerCase() === reply : false);
  const rows = sorted.map(([reply, count]) => ({ says: (kind === "blanks" ? reply.replaceAll("-", "−") : reply).replaceAll(PART_SEPARATOR, " · "), count, isRight: isRight(reply) }));
  const others = rows.slice(MAX_LISTED_REPLIES);
  if (!others.length) return rows;
  return [...rows.slice(0, MAX_LISTED_REPLIES), { says: ngettext("{count} other", "{count} others", others.length), count: others.reduce((sum, { count }) => sum + count, 0), isRight: false }];
}

/**
 * Count the replies in a grid: the chosen cells of a heatmap, or a curve's bin of values at each point.
 * @param {Record<string, any>} question
 * @param {Record<string, number>} replies
 * @param {{ truth: Record<string, any> } | null} [judged]
 * @returns {ReplyGrid}
 */
export function replyGrid(question, replies, judged = null) {
  if (question.kind === "cell") {
    const { rows, columns } = question, counts = rows.map((_row, i) => columns.map((_column, j) => replies[`${i}${PART_SEPARATOR}${j}`] ?? 0));
    return { rows, columns, counts, right: judged?.truth.right ?? null };
  }
  const { labels, lowest, highest } = question, counts = Array.from({ length: BIN_COUNT }, () => labels.map(() => 0));
  for (const [reply, count] of Object.entries(replies)) reply.split(PART_SEPARATOR).forEach((bin, j) => { counts[BIN_COUNT - 1 - +bin][j] += count; });
  const rows = counts.map((_row, i) => formatShort(highest - (i * (highest - lowest)) / BIN_COUNT));
  return { rows, columns: labels, counts, right: null };
}

const formatShort = (value) => String(+value.toPrecision(3)).replace("-", "−");

/** @param {ReplyCount[]} rows @param {number} replyTotal */
function renderBars(rows, replyTotal) {
  return make("ol", { className: "bars" }, ...rows.map(({ says, count, isRight }) => {
    const filled = make("i", { className: "filled" });
    filled.style.width = `${(100 * count) / Math.max(1, replyTotal)}%`;
    const row = make("li", { className: "row" }, span("says", says), make("span", { className: "bar", ariaHidden: "true" }, filled), span("count", String(count)));
    row.classList.toggle("is-right", isRight);
    if (isRight) row.querySelector(".says").append(span("says-right", ` ${_("✓ right")}`));
    return row;
  }));
}

/** @param {ReplyGrid} grid */
function renderGrid({ rows, columns, counts, right }) {
  const maxCount = Math.max(1, ...counts.flat());
  const cell = (count, i, j) => {
    const node = make("td", {}, count ? String(count) : "");
    node.style.setProperty("--share", String(count / maxCount));
    node.classList.toggle("is-right", right !== null && right[0] === i && right[1] === j);
    return node;
  };
  const head = make("tr", {}, make("td", { className: "none" }), ...columns.map((column) => make("th", { scope: "col" }, make("span", {}, column))));
  return makeFocusableWhileScrolling(make("div", { className: "scrolls" }, make("table", { className: "grid-of-counts" }, head,
    ...rows.map((row, i) => make("tr", {}, make("th", { scope: "row" }, row), ...counts[i].map((count, j) => cell(count, i, j)))))));
}

// A teacher's own question to the class: its form and replies in the panel of the class, and the card on a student's page.

const MAX_REPLY_CHARS = 80; // as rooms.py has it

/** @param {import("../../static/room_client.js").ClassQuestion} question */
const countedQuestion = ({ answers }) => (answers.length ? { kind: "choice", options: answers } : { kind: "text" });

/** @param {Record<string, number>} counts */
const drawBars = (counts) => renderBars(replyCounts(countedQuestion(room.question), counts), totalCount(counts));

/** Show the teacher's own question and its replies on the whole screen, if there is one; a presentation begins with it. */
export function showOwnQuestionLarge() {
  if (isTeacher() && room.question) /** @type {HTMLDialogElement} */ (find(document, "#large-question")).showModal();
}

/**
 * Connect the form in which a teacher asks the class, and show the question's replies while it is open.
 * @param {HTMLElement} panel
 * @param {HTMLElement} notice
 */
function connectQuestionForm(panel, notice) {
  const writing = /** @type {HTMLDetailsElement} */ (find(panel, ".ask")), form = /** @type {HTMLFormElement} */ (find(writing, "form")), asked = find(panel, ".asked");
  const boxes = /** @type {HTMLInputElement[]} */ (findAll(form, "input")), replies = find(asked, ".own-counts"), showButton = find(asked, ".show"), endButton = find(asked, ".end-question");
  let drawn = "", revealedNumber = 0; // the question whose replies the teacher has seen before the class
  const toggleReplies = () => {
    revealedNumber = revealedNumber === room.question.number ? 0 : room.question.number;
    update();
  };
  const revealButton = button("", toggleReplies, { className: "quiet-button" }), largeReveal = button("", toggleReplies);
  replies.after(revealButton);
  find(asked, ".buttons").append(button(_("Show it large"), showOwnQuestionLarge));
  const largeView = /** @type {HTMLDialogElement} */ (make("dialog", { id: "large-question", ariaLabel: _("Ask the class") })), largeTitle = make("h2"), largeReplies = make("div");
  largeView.append(largeTitle, largeReplies, make("div", { className: "buttons" }, largeReveal, button(_("Close"), () => largeView.close())));
  largeView.addEventListener("keydown", (event) => event.stopPropagation()); // a presentation below it has the same keys
  find(document, "#room-line").after(largeView);

  function update() {
    if (!isTeacher()) return largeView.close();
    const { question, people } = room, counts = ownReplyCounts() ?? {}, isRevealed = question?.shows_replies || revealedNumber === question?.number;
    const data = JSON.stringify([question, counts, people, isRevealed]);
    if (data === drawn) return;
    drawn = data;
    [writing.hidden, asked.hidden] = [Boolean(question), !question];
    if (!question) return largeView.close();
    for (const title of [find(asked, "h2"), largeTitle]) setText(title, question.text);
    setText(showButton, question.shows_replies ? _("Hide from the students’ pages") : _("Show on the students’ pages"));
    for (const node of [revealButton, largeReveal]) [node.textContent, node.hidden] = [isRevealed ? _("Hide its replies here") : _("Show its replies here"), question.shows_replies]; // a lesson’s question may have its own above
    const repliesSentence = () => make("p", { className: "of" }, replyCountSentence(counts, people)), answers = question.answers.map((answer) => make("li", {}, answer));
    replies.replaceChildren(repliesSentence(), ...(isRevealed ? [drawBars(counts)] : []));
    largeReplies.replaceChildren(isRevealed ? drawBars(counts) : make("ul", {}, ...answers), repliesSentence());
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const [text, ...answers] = boxes.map((box) => box.value.trim()), chosen = answers.filter(Boolean);
    if (!text) return boxes[0].focus();
    if (chosen.length === 1 || new Set(chosen).size < chosen.length) return setText(notice, _("Write two to four different answers, or none."));
    setText(notice, "");
    /** @type {HTMLDetailsElement} */ (find(panel, ".invite")).open = false; // the replies take its place
    askClass(text, chosen);
    showButton.focus();
  });
  showButton.addEventListener("click", () => showRepliesToClass(!room.question.shows_replies));
  endButton.addEventListener("click", () => {
    endQuestion();
    form.reset();
    writing.open = true;
    boxes[0].focus();
  });
  onRoom(update);
  update();
}

/** Add the card with the teacher's question to a student's page: below the line of the class, over whatever the page shows. */
function placeQuestionCard() {
  const card = /** @type {HTMLDetailsElement} */ (make("details", { id: "class-question", open: true, hidden: true })), heading = make("summary"), body = make("div"), status = make("p", { role: "status" });
  card.append(heading, body, status);
  find(document, "#room-line").after(card);
  let drawn = "", drawnNumber = 0;
  onRoom(() => {
    const question = room?.student ? room.question : null, counts = ownReplyCounts();
    card.hidden = !question;
    if (!question) return;
    const reply = room.ownReply?.number === question.number ? room.ownReply.reply : "", data = JSON.stringify([question, counts, reply]);
    if (data === drawn) return;
    const typed = drawnNumber === question.number ? body.querySelector("input")?.value : "", hadFocus = body.contains(document.activeElement);
    if (drawnNumber !== question.number || counts) card.open = true;
    [drawn, drawnNumber] = [data, question.number];
    setText(heading, question.text);
    body.replaceChildren(counts ? drawBars(counts) : question.answers.length ? answerButtons(question.answers, reply) : replyForm(typed || reply));
    setText(status, counts ? ownReplySentence(question, reply) : reply ? _("Your reply is sent. You can change it.") : "");
    if (hadFocus) /** @type {HTMLElement | null} */ (body.querySelector("[aria-pressed=true], input") ?? heading).focus();
  });
}

/** @param {import("../../static/room_client.js").ClassQuestion} question @param {string} reply */
const ownReplySentence = ({ answers }, reply) => (reply ? _("Your reply: {reply}", { reply: answers[Number(reply) - 1] ?? reply }) : "");

/** @param {string[]} answers @param {string} reply */
const answerButtons = (answers, reply) => make("div", { className: "answers" }, ...answers.map((answer, i) => {
  const isChosen = reply === String(i + 1), node = button("", () => replyToClass(String(i + 1)), { ariaPressed: String(isChosen) });
  node.append(span("says", answer), isChosen ? "✓" : "");
  return node;
}));

/** @param {string} words */
function replyForm(words) {
  const box = make("input", { type: "text", maxLength: MAX_REPLY_CHARS, value: words, ariaLabel: _("your reply"), autocomplete: "off" });
  const form = make("form", {}, box, make("button", { type: "submit" }, _("Send")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (box.value.trim()) replyToClass(box.value.trim());
  });
  return form;
}

// The data of a QR code (ISO/IEC 18004): the text's bytes and their error correction, for the levels and versions that the
// link of a class needs: level M, versions 1 to 6.

const DATA_BYTES = [0, 16, 28, 44, 64, 86, 108], CORRECTION_BYTES = [0, 10, 16, 26, 18, 24, 16], BLOCK_COUNTS = [0, 1, 1, 1, 2, 2, 4]; // by version; CORRECTION_BYTES per block

/** Return a text's bytes with their mode and number in front, padded to a length. @param {Uint8Array} bytes @param {number} length @returns {number[]} */
function padData(bytes, length) {
  const toHex = (byte) => byte.toString(16).padStart(2, "0");
  const data = `4${[bytes.length, ...bytes].map(toHex).join("")}0`.match(/../g).map((digits) => parseInt(digits, 16));
  for (let pad = 0xec; data.length < length; pad ^= 0xec ^ 0x11) data.push(pad);
  return data;
}

/** Multiply in GF(256). */
function multiplyInField(a, b) {
  let product = 0;
  for (let i = 7; i >= 0; i--) product = (product << 1) ^ ((product >>> 7) * 0x11d) ^ (((b >>> i) & 1) * a);
  return product;
}

/** Return the Reed–Solomon bytes of a block. */
function correctionBytes(data, count) {
  const divisor = Array(count).fill(0);
  divisor[count - 1] = 1;
  for (let i = 0, root = 1; i < count; i++, root = multiplyInField(root, 2))
    for (let j = 0; j < count; j++) divisor[j] = multiplyInField(divisor[j], root) ^ (divisor[j + 1] ?? 0);
  const remainder = Array(count).fill(0);
  for (const byte of data) {
    const factor = byte ^ remainder.shift();
    remainder.push(0);
    divisor.forEach((coefficient, i) => { remainder[i] ^= multiplyInField(coefficient, factor); });
  }
  return remainder;
}

// Split data into blocks and interleave their bytes, then their error-correction bytes.
function interleaveBlocks(data, version) {
  const length = data.length / BLOCK_COUNTS[version], blocks = Array.from({ length: BLOCK_COUNTS[version] }, (_block, i) => data.slice(i * length, (i + 1) * length));
  const interleave = (lists) => lists[0].flatMap((_byte, i) => lists.map((bytes) => bytes[i]));
  return [...interleave(blocks), ...interleave(blocks.map((block) => correctionBytes(block, CORRECTION_BYTES[version])))];
}
const bitsOf = (bytes) => bytes.flatMap((byte) => Array.from({ length: 8 }, (_bit, i) => ((byte >>> (7 - i)) & 1) === 1));

// Drawing a QR code. Readers accept any of the eight masks, so it is always the first: a chessboard.

const FORMAT = 0x5412; // level M and that mask, with its error correction

/** Return a QR code's rows of modules, true for dark; null if the text is too long. @param {string} text @returns {boolean[][] | null} */
export function qrCodeModules(text) {
  const bytes = new TextEncoder().encode(text), version = DATA_BYTES.findIndex((length) => length >= bytes.length + 2);
  if (version < 0) return null;
  const rows = drawFunctionPatterns(version);
  placeBits(bitsOf(interleaveBlocks(padData(bytes, DATA_BYTES[version]), version)), rows);
  return rows;
}

/** Draw what does not depend on the text: timing, finder and alignment patterns, and the format. The other modules are null. @param {number} version */
function drawFunctionPatterns(version) {
  const size = 17 + 4 * version, rows = Array.from({ length: size }, () => Array(size).fill(null));
  const set = (x, y, dark) => { if (rows[y]?.[x] !== undefined) rows[y][x] = dark; };
  const drawSquares = (x, y, radius, lightRadii) => {
    for (let i = -radius; i <= radius; i++)
      for (let j = -radius; j <= radius; j++) set(x + i, y + j, !lightRadii.includes(Math.max(Math.abs(i), Math.abs(j))));
  };
  for (let i = 0; i < size; i++) { set(6, i, i % 2 === 0); set(i, 6, i % 2 === 0); }
  for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]]) drawSquares(x, y, 4, [2, 4]);
  if (version > 1) drawSquares(size - 7, size - 7, 2, [1]);
  for (let i = 0; i < 15; i++) {
    const row = i < 6 ? i : i < 8 ? i + 1 : size - 15 + i, column = i < 8 ? size - 1 - i : i === 8 ? 7 : 14 - i, dark = ((FORMAT >>> i) & 1) === 1;
    set(8, row, dark);
    set(column, 8, dark);
  }
  set(8, size - 8, true);
  return rows;
}

// Place masked bits in columns of two modules, from the right, alternately upwards and downwards.
function placeBits(bits, rows) {
  const size = rows.length;
  let count = 0;
  for (let right = size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < size; step++)
      for (const x of [right, right - 1]) {
        const y = ((right + 1) & 2) === 0 ? size - 1 - step : step;
        if (rows[y][x] === null) rows[y][x] = (bits[count++] ?? false) !== ((x + y) % 2 === 0);
      }
  }
}

// Replies of the class to the question that this page shows.

/** Return the shown question and the class's replies; null if this page leads no class or the step has no question. */
function classReplies() {
  const step = shownLessonStep();
  if (!isTeacher() || !step?.question || step.question.is_example || step.name !== room.lesson || step.step !== room.step) return null;
  return { question: step.question, counts: room.counts, people: room.people, judged: step.judged ?? null };
}

/** Return whether some students have yet to reply to the shown question, and its answer is not shown. */
export function isAwaitingReplies() {
  const replies = classReplies();
  return Boolean(replies) && !replies.judged && totalCount(replies.counts) < replies.people;
}

/** Return how many students have replied to the shown question, as a sentence; "" without a class. */
export function replyCountText() {
  const replies = classReplies();
  return replies ? replyCountSentence(replies.counts, replies.people) : "";
}

/** Return the reply counts as lines of text, for the presenter's notes. @returns {Node[]} */
export function replyLines() {
  const replies = classReplies();
  if (!replies) return [];
  const { question, counts, judged } = replies, isGrid = question.kind === "cell" || question.kind === "curve";
  const rows = isGrid ? [] : replyCounts(question, counts, judged).filter(({ count, isRight }) => count || isRight);
  return [make("p", { className: "replied" }, replyCountText()), ...rows.map(({ says, count, isRight }) => make("div", {}, `${count} · ${says}${isRight ? ` ${_("✓ right")}` : ""}`))];
}

const QUIET_ZONE_MODULES = 4, ANNOUNCE_INTERVAL_MS = 6000; // margin of a QR code; interval between announcements to a screen reader

/** The panel of a class. @param {HTMLElement} element */
export function roomMenu(element) {
  const open = find(element, ".open"), list = find(element, ".list"), outside = find(list, ".outside"), leading = find(list, ".leading");
  const notice = find(list, ".told"), leadsBox = /** @type {HTMLInputElement} */ (find(leading, ".leads input")), holdsBox = /** @type {HTMLInputElement} */ (find(leading, ".holds input"));
  const link = /** @type {HTMLAnchorElement} */ (find(leading, ".link")), codeBox = /** @type {HTMLInputElement} */ (find(outside, ".typed"));
  const largeView = /** @type {HTMLDialogElement} */ (find(leading, ".large-code"));
  let code = "", drawnCounts = "", drawnOnLesson = "", announcedAt = 0, revealedStep = ""; // the step whose replies are shown before its answer
  const stepName = () => `${room?.lesson} ${room?.step}`;
  // Before the answer the replies are only a number until they are revealed, as students may see the screen.
  const isRevealed = () => Boolean(classReplies()?.judged) || revealedStep === stepName();
  const makeRevealButton = (className) => {
    const node = button("", () => {
      revealedStep = revealedStep === stepName() ? "" : stepName();
      update();
      node.focus();
    }, { className });
    return node;
  };
  const lessonButton = makeRevealButton(""), panelButton = makeRevealButton("quiet-button"), answerButton = button(_("Show the answer"), showAnswer);
  find(leading, ".counts").after(panelButton);

  const { show, hide } = makeDropdown(open, list, {
    fill() {
      setText(notice, "");
      update();
    },
    first: () => find(list, isTeacher() ? ".leads input" : ".typed"), // most who open it join
    left: ({ left, right }) => (isTeacher() ? left : right - list.offsetWidth),
    stays: isTeacher, // a teacher works on the page meanwhile
  });

  function update() {
    const isLeading = isTeacher();
    setText(open, buttonText());
    updateLessonReplies();
    [outside.hidden, leading.hidden] = [isLeading, !isLeading];
    for (const control of findAll(outside, ":is(button,input)")) /** @type {HTMLButtonElement} */ (control).disabled = Boolean(room);
    if (!isLeading) return;
    updateInvitation();
    [leadsBox.checked, holdsBox.checked] = [room.leads, room.holds];
    setText(find(leading, ".people"), room.isReached ? ngettext("{count} student is there", "{count} students are there", room.people) : _("The server does not answer."));
    if (room.problem) setText(notice, room.problem);
    updateCounts();
  }

  function buttonText() {
    if (!isTeacher()) return _("Class");
    const replyCount = classReplies() ? totalCount(room.counts) : null;
    if (replyCount === null) return _("Class · {people}", { people: room.people });
    return _("Class · {count} of {people} replied", { count: replyCount, people: Math.max(room.people, replyCount) });
  }

  // Show the replies below the lesson's question.
  function updateLessonReplies() {
    const box = find(document, "#lesson .class-replies"), replies = classReplies();
    if (!box) return;
    const data = JSON.stringify([replies, isRevealed()]);
    if (data === drawnOnLesson) return;
    drawnOnLesson = data;
    setText(lessonButton, revealText());
    const counts = replies ? renderCounts(replies.question, replies.counts, replies.people, replies.judged, isRevealed()) : [];
    box.replaceChildren(...counts, ...(replies && !replies.judged ? [span("buttons", lessonButton, answerButton)] : []));
  }

  const revealText = () => (isRevealed() ? _("Hide the replies here") : _("Show the replies here"));

  // Draw the code, the link and its QR code, once per room.
  function updateInvitation() {
    if (code === room.code) return;
    code = room.code;
    setText(find(leading, ".code"), formatCode(code));
    link.href = joinUrl(code, location.href);
    setText(link, link.href.replace(/^https?:\/\//, ""));
    find(leading, ".local").hidden = !/^(localhost|127\.|\[::1\])/.test(location.hostname);
    const rows = qrCodeModules(link.href), box = find(leading, ".qr");
    box.replaceChildren(...(rows ? [qrImage(rows)] : []));
    largeView.replaceChildren(make("strong", {}, formatCode(code)), ...(rows ? [qrImage(rows)] : []), make("p", {}, link.textContent), button(_("Close"), () => largeView.close()));
  }

  function updateCounts() {
    const { question = null, judged = null } = classReplies() ?? {}, data = JSON.stringify([question, room.counts, room.people, judged?.truth, isRevealed()]);
    find(leading, ".replies").hidden = !room.lesson; // also after a step without a question, whose data are equal
    if (data === drawnCounts) return;
    drawnCounts = data;
    find(leading, ".counts").replaceChildren(...renderCounts(question, room.counts, room.people, judged, isRevealed()));
    setText(panelButton, revealText());
    panelButton.hidden = !question || Boolean(judged);
    announceCount();
  }

  // Announce the number of replies to a screen reader, at intervals rather than for each reply.
  function announceCount() {
    const now = Date.now(), remaining = announcedAt + ANNOUNCE_INTERVAL_MS - now;
    if (remaining > 0) return void setTimeout(() => { if (isTeacher() && Date.now() >= announcedAt + ANNOUNCE_INTERVAL_MS) announceCount(); }, remaining);
    announcedAt = now;
    const count = Object.values(room.counts).reduce((sum, other) => sum + other, 0);
    setText(find(leading, ".spoken"), count ? ngettext("{count} reply", "{count} replies", count) : "");
  }

  /** @param {() => Promise<void>} request */
  async function tryRequest(request) {
    setText(notice, "");
    try { await request(); } catch (error) { setText(notice, "status" in error ? error.message : _("The server does not answer: try again in a while.")); }
  }

  async function copyLink() {
    try { await navigator.clipboard.writeText(link.href); } catch { return void prompt(_("Copy this link:"), link.href); }
    setText(notice, _("The link is copied."));
  }

  // Asked in place, as a presenter's browser may suppress dialogs.
  const endButton = find(leading, ".end"), keepButton = button(_("Keep it open"), () => askToEnd(false));
  const endQuestion = make("p", { className: "end", hidden: true }, _("Close the room? It ends for every student, and their replies are deleted."), make("br"), button(_("Close"), endRoom), " ", keepButton);
  endButton.after(endQuestion);

  /** @param {boolean} asks */
  function askToEnd(asks) {
    [endButton.hidden, endQuestion.hidden] = [asks, !asks];
    (asks ? keepButton : endButton).focus();
  }

  async function endRoom() {
    await tryRequest(closeRoom);
    askToEnd(false);
    if (!room) find(outside, ".begin").focus();
  }

  find(outside, ".begin").addEventListener("click", () => tryRequest(openRoom).then(() => { if (isTeacher()) show(); }));
  find(outside, "form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!codeBox.value.trim()) return codeBox.focus();
    joinRoom(codeBox.value.trim());
    hide();
  });
  find(leading, ".copy").addEventListener("click", copyLink);
  find(leading, ".enlarge").addEventListener("click", () => largeView.showModal());
  leadsBox.addEventListener("change", () => changeRoom({ leads: leadsBox.checked }));
  holdsBox.addEventListener("change", () => changeRoom({ holds: holdsBox.checked }));
  endButton.addEventListener("click", () => askToEnd(true));
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "c" || event.repeat || isKeyForFocus(event) || !isTeacher()) return;
    if (list.hidden) show(); else hide();
  });
  onRoom(update);
  onLessonStep(() => { if (isTeacher()) update(); });
  placeRoomLine();
  connectQuestionForm(leading, notice);
  update();
  placeQuestionCard();
  startListening();
  startLeading();
  enterRoom();
}

/** Draw a QR code, dark on light in either theme, as cameras need it. @param {boolean[][]} rows */
function qrImage(rows) {
  const size = rows.length + 2 * QUIET_ZONE_MODULES, svg = makeSvg("svg"), background = makeSvg("rect"), modules = makeSvg("path");
  set(svg, { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": _("the link as a QR code"), "shape-rendering": "crispEdges" });
  set(background, { width: size, height: size, fill: "#fff" });
  set(modules, { fill: "#000", d: rows.map((row, y) => row.map((isDark, x) => (isDark ? `M${x + QUIET_ZONE_MODULES} ${y + QUIET_ZONE_MODULES}h1v1h-1z` : "")).join("")).join("") });
  svg.append(background, modules);
  return svg;
}
