// @ts-check
// The page's text: messages in the user's language, numbers and tokens as text, and the next token in words.
import { END_OF_TEXT_TOKENS, LANGUAGES } from "./shared_constants.js";

// Translations. Messages are written in English where they are used, marked by `_` or `ngettext`, and looked up in Python's
// catalogue (explorer/translations).

const cookie = () => /(?:^|; )lang=([^;]*)/.exec(globalThis.document?.cookie ?? "")?.[1];
const urlLanguage = () => new URLSearchParams(globalThis.location?.search).get("lang");

/** Return the first of the page's languages that matches a tag, exactly or by its first part. @param {(string | null | undefined)[]} tags */
function negotiate(tags) {
  const languages = Object.keys(LANGUAGES), first = (tag) => tag.toLowerCase().split("-")[0];
  for (const tag of tags.filter(Boolean)) {
    const match = languages.find((name) => name.toLowerCase() === tag.toLowerCase()) ?? languages.find((name) => first(name) === first(tag));
    if (match) return match;
  }
  return languages[0];
}

/** Page language as a BCP 47 tag: from the URL, the last choice, or the browser. */
export const language = negotiate([urlLanguage(), cookie(), ...(globalThis.navigator?.languages ?? [])]);
/** Message -> its translation; empty for English. @type {Record<string, any>} */
export const MESSAGES = language === "en" ? {} : (await import(`./messages.${language}.js`)).MESSAGES;

/** Store the language for later visits whose URL has no `lang`. A cookie, since Python needs it too (user_messages.py).
 * @param {string} tag */
export const storeLanguage = (tag) => { document.cookie = `lang=${tag}; max-age=31536000; samesite=lax`; };

const PLACEHOLDER = /{(\w+)(?::([^}]+))?}/; // placeholder of a value, with its format as in Python

/** @typedef {string | number} Value */

/**
 * Translate a message and fill in its values. Values are inserted as they are, without looking for placeholders in them.
 * @param {string} message a whole sentence, as a literal, with placeholders in braces; without values they stay
 * @param {Record<string, Value>} [values]
 */
export const _ = (message, values) => fillIn(lookUpMessage(message), values);

/** Mark a literal for translation without translating it. @param {string} message */
export const N_ = (message) => message;

/** Translate a message that was marked by `N_`. @param {string} message @returns {string} */
export const lookUpMessage = (message) => MESSAGES[message] ?? message;

/**
 * Translate a message that depends on a count.
 * @param {string} singular
 * @param {string} plural
 * @param {number} count
 * @param {Record<string, Value>} [values] may replace `count`
 */
export function ngettext(singular, plural, count, values) {
  const forms = MESSAGES[singular], english = count === 1 ? singular : plural;
  const form = forms && MESSAGES[""][count < 200 ? count : 100 + (count % 100)];
  return fillIn(forms ? forms[form] : english, { count, ...values });
}

/**
 * Return a message as text and nodes, in its language's order.
 * @param {string} template result of `_` without values
 * @param {Record<string, Value | Node | Node[]>} values
 * @returns {(string | Node)[]}
 */
export function splitMessage(template, values) {
  const pieces = template.split(PLACEHOLDER).flatMap((piece, i) => (i % 3 === 1 ? values[piece] : i % 3 ? [] : piece));
  return pieces.filter((piece) => piece !== "").map((piece) => (typeof piece === "number" ? String(piece) : piece));
}

function fillIn(message, values) {
  return values ? formatMessage(message, values) : message;
}

/**
 * Fill in values as Python's `str.format`; doubled braces stand for one.
 * @param {string} message
 * @param {Record<string, Value>} values
 */
export const formatMessage = (message, values) => message.replace(BRACES_OR_PLACEHOLDER, (match, name, spec) => (name ? String(formatValue(values[name] ?? "", spec)) : match[0]));
const BRACES_OR_PLACEHOLDER = new RegExp(`{{|}}|${PLACEHOLDER.source}`, "g");

/** Format a number by a Python format: ",", ".2f", ",.0f", ".4g", "g" or ".0%". Text stays as it is. @param {Value} value @param {string} [spec] */
function formatValue(value, spec) {
  const [, comma, digits, kind] = /^(,?)(?:\.(\d+))?([fg%]?)$/.exec(spec ?? "") ?? [], number = +value;
  if (!spec || typeof value === "string") return value;
  if (kind === "%") return `${(100 * number).toFixed(+digits)}%`;
  if (kind === "g") return String(+number.toPrecision(+(digits ?? 6)));
  const numDecimals = kind ? +digits : undefined;
  return comma ? number.toLocaleString("en", { minimumFractionDigits: numDecimals, maximumFractionDigits: numDecimals }) : number.toFixed(numDecimals);
}

// Tokens and numbers as text, as explorer/explain/notation.py and views/style.py write them.

const MINUS = "−";

/** Make a token's spaces, line breaks and control characters visible. @param {string} token */
export const escapeToken = (token) => (END_OF_TEXT_TOKENS.includes(token) ? _("■ end of text") : Array.from(token, escapeCharacter).join("") || "∅");

/** @param {string} character */
function escapeCharacter(character) {
  if (character in MARKS) return MARKS[character];
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Z}]/u.test(character) ? `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩` : character;
}
const MARKS = { " ": "·", "\n": "↵", "\t": "→", "\x7f": "␡" };

/** Quote a token for use in a sentence. @param {string} token */
export const quoteToken = (token) => `“${escapeToken(token)}”`;

/** Quote the token at a position, with the position if the text repeats it. @param {string[]} tokens @param {number} position */
export const quoteTokenInText = (tokens, position) => quoteToken(tokens[position]) + repeatedPosition(tokens, position);

/** Return what to write after a token: its position, if the text repeats it (repeated_position). @param {string[]} tokens @param {number} position */
export const repeatedPosition = (tokens, position) => (tokens.filter((token) => token === tokens[position]).length > 1 ? ` (${position})` : "");

/** Name a token like `quoteTokenInText`, without quotation marks. @param {string[]} tokens @param {number} position */
export const escapeTokenInText = (tokens, position) => escapeToken(tokens[position]) + repeatedPosition(tokens, position);

/** Quote a token as a word, without its leading space. @param {string} token */
export const quoteWord = (token) => token === "\n" ? _("“↵ new line”") : quoteToken(token.startsWith(" ") && token.trim() ? token.slice(1) : token);

/** Shorten a token to `max` characters, and isolate its text direction. @param {string} token @param {number} [max] */
export function shortenToken(token, max = 14) {
  const text = Array.from(escapeToken(token));
  return `\u2068${text.length > max ? `${text.slice(0, max - 1).join("")}…` : text.join("")}\u2069`;
}

/** Format a number with three significant digits, like Python's `format_number`. @param {number} value */
export const formatNumber = (value) => formatDigits(value, 3);

/** Format a number with some significant digits. @param {number} value @param {number} digits */
export function formatDigits(value, digits) {
  if (value === 0 || !Number.isFinite(value)) return formatCellNumber(value);
  const scientific = value.toExponential(digits - 1), exponent = +scientific.split("e")[1];
  const text = exponent >= -4 && exponent < 4 ? value.toFixed(Math.max(0, digits - 1 - exponent)) : scientific.replace(/e([+-])(\d)$/, "e$10$2");
  return text.replaceAll("-", MINUS);
}

/** Format a logit, like Python's `format_logit`. @param {number} value */
export const formatLogit = (value) => (+value.toFixed(2) + 0).toFixed(2).replace("-", MINUS);

/** Format with two decimals and a sign; no sign if it rounds to 0. @param {number} value */
export function formatContribution(value) {
  const text = Math.abs(value).toFixed(2);
  return +text === 0 ? text : `${value < 0 ? MINUS : "+"}${text}`;
}

/** Format with three significant digits and a sign. @param {number} value */
export const formatSigned = (value) => `${value > 0 ? "+" : ""}${formatNumber(value)}`;

/** @param {number} value @param {number} digits */
export const formatFixed = (value, digits) => value.toFixed(digits).replace("-", MINUS);

/** Format as Python's "g". @param {number} value @param {number} [digits] */
export function formatGeneral(value, digits = 6) {
  if (!value) return "0";
  const power = +value.toExponential(digits - 1).split("e")[1];
  if (power >= -4 && power < digits) return String(+value.toFixed(Math.max(0, digits - 1 - power)));
  return value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace(/e([+-])(\d)$/, "e$10$2");
}

/** Format with six significant digits and a true minus sign. @param {number} value */
export const formatSixDigits = (value) => (Number.isFinite(value) ? formatGeneral(value).replaceAll("-", MINUS) : formatCellNumber(value));

/** Put a formatted number in brackets if it is negative. @param {string} number */
export const bracketNegative = (number) => (number.startsWith(MINUS) ? `(${number})` : number);

const MAX_CELL_CHARS = 6;
/** Format with three significant digits, or with fewer where three take more than `MAX_CELL_CHARS` (format_cell_number). @param {number} value */
export function formatCellNumber(value) {
  const size = Math.abs(value);
  if (size === Infinity) return value < 0 ? `${MINUS}∞` : "∞";
  const [threeDigits, twoDigits, oneDigit] = [3, 2, 1].map((digits) => String(+value.toPrecision(digits)));
  const text = size >= 999.5 ? value.toFixed(0) : size > 0 && size < 0.0001 ? value.toExponential(0) : size > 0 && size < 0.001 ? oneDigit : threeDigits.length <= MAX_CELL_CHARS ? threeDigits : twoDigits;
  return text.replaceAll("-", MINUS);
}

/** Format a share in percent: "84%", "3.1%", "over 99%". @param {number} share */
export function formatPercent(share) {
  if (share >= 0.995 && share < 1) return _("over 99%");
  if (share >= 0.1 || share === 0) return `${(100 * share).toFixed(0)}%`;
  return share >= 0.0001 ? `${(100 * share).toPrecision(2)}%` : _("less than 0.01%");
}

/** Format a probability in percent like `formatPercent`, but shorter; "–" for null. @param {number | null} share */
export function formatShortPercent(share) {
  if (share === null) return "–";
  if (share >= 0.995 && share < 1) return ">99%";
  if (share >= 0.1 || !share) return `${Math.round(100 * share)}%`;
  return share < 0.0001 ? "<0.01%" : `${(100 * share).toPrecision(2)}%`;
}

/** Format two shares that are compared, with one digit more if rounding changed their difference by a quarter. @param {number} before @param {number} after */
export function formatPercents(before, after) {
  const texts = [before, after].map(formatPercent), [first, second] = texts.map((text) => parseFloat(text) / 100), difference = after - before;
  if (!texts.every((text) => /^\d/.test(text)) || Math.abs(second - first - difference) <= Math.abs(difference) / 4) return texts;
  const longer = [before, after].map((share) => `${share >= 0.1 ? (100 * share).toFixed(1) : (100 * share).toPrecision(3)}%`);
  return longer[0] === longer[1] ? texts : longer;
}

/** Join distinct names: "a, b and c". @param {string[]} names */
export function joinNames(names) {
  const all = [...new Set(names)], last = all.pop() ?? "";
  return all.length ? _("{first} and {last}", { first: all.join(", "), last }) : last;
}

/** Format with thousands separators. @param {number} value */
export const formatCount = (value) => value.toLocaleString("en");

// The next token in words: columns of its table with each number's calculation, and sentences on the distribution, the random
// number, the guess and what interventions changed. Python, or the page without a server, sends the numbers.

/** A token's numbers at each stage (SamplingRow); `before` without interventions, `other` in run B.
 * @typedef {{ token_id: number, token: string, rank: number, logit: number, penalised: number, scaled: number, plain: number, weight: number, ahead: number,
 *   cut_by: string | null, probability: number, cumulative: number, before?: Logit, other?: Logit }} Row */
/** A logit and the model's own probability; null for a token that the run's model lacks. @typedef {{ logit: number, plain: number } | null} Logit */
/** @typedef {{ name: string, title: string, about: string, cell: (row: any) => string, explain: (row: any) => string }} Column */
/** @typedef {{ temperature: number, top_k: number, top_p: number, min_p: number, repetition_penalty: number, seed: number }} Settings */

const LIMITS = { top_k: _("top-k"), top_p: _("top-p"), min_p: _("min-p") };
const bracketLogit = (value) => bracketNegative(formatLogit(value));

/** Return the columns of the stages that the settings have, in order of application.
 * @param {Settings} settings @param {number} largest scaled logit @param {number} total of the weights @returns {Column[]} */
function stageColumns(settings, largest, total) {
  const { temperature, top_k: k, top_p, min_p, repetition_penalty } = settings, isGreedy = temperature === 0;
  const t = formatGeneral(temperature), p = formatGeneral(top_p), minP = formatGeneral(min_p), penalty = formatGeneral(repetition_penalty);
  const filter = (name, title, about, previousLimits, explain) => ({
    name, title, about,
    cell: ({ cut_by }) => (previousLimits.includes(cut_by) ? "" : cut_by === name ? _("cut") : "✓"),
    explain: (row) => (previousLimits.includes(row.cut_by) ? _("{limit} has cut it already", { limit: LIMITS[row.cut_by] }) : explain(row)),
  });
  return [
    {
      name: "logit", title: _("logit"), about: _("The model’s score for the token: the larger, the likelier."),
      cell: ({ logit }) => formatLogit(logit), explain: ({ logit }) => _("logit {logit}: as the model gave it", { logit: formatLogit(logit) }),
    },
    {
      name: "model", title: _("model"), about: _("The model’s own probability: softmax of the logits, at temperature 1 and with all tokens kept."),
      cell: ({ plain }) => formatNumber(plain), explain: ({ logit, plain }) => _("e^{logit} / Σ e^logits = {probability}", { logit: bracketLogit(logit), probability: formatNumber(plain) }),
    },
    repetition_penalty !== 1 && {
      name: "penalised", title: _("penalty\n{penalty:g}", { penalty }),
      about: _("Repetition penalty: logits of tokens that the text has already are divided by {penalty:g}, or multiplied where they are negative.", { penalty }),
      cell: ({ penalised }) => formatLogit(penalised),
      explain: ({ logit, penalised }) => (logit === penalised ? _("{logit} stays: the token is not in the text so far", { logit: formatLogit(logit) })
        : _("{logit} {sign} {penalty:g} = {penalised}: the token is in the text already", { logit: formatLogit(logit), sign: logit > 0 ? "/" : "×", penalty, penalised: formatLogit(penalised) })),
    },
    isGreedy && {
      name: "argmax", title: _("largest"), about: _("Temperature 0 takes the token with the largest logit and no other (argmax)."),
      cell: ({ cut_by }) => (cut_by ? _("cut") : "✓"),
      explain: ({ cut_by, rank }) => (cut_by ? _("rank {rank:,}: not the largest, cut", { rank }) : _("rank {rank:,}: the largest, taken", { rank })),
    },
    !isGreedy && {
      name: "scaled", title: `÷ ${t}`, about: _("Divided by the temperature, {temperature:g}: below 1 the differences grow, above 1 they shrink.", { temperature: t }),
      cell: ({ scaled }) => formatLogit(scaled), explain: ({ penalised, scaled }) => `${formatLogit(penalised)} / ${t} = ${formatLogit(scaled)}`,
    },
    !isGreedy && k && filter("top_k", _("top-k\n{k:,}", { k }), _("Only the {k:,} likeliest tokens are kept.", { k }), [],
      ({ rank, cut_by }) => (cut_by === "top_k" ? _("rank {rank:,} > top-k {k:,}: cut", { rank, k }) : _("rank {rank:,} ≤ top-k {k:,}: kept", { rank, k }))),
    !isGreedy && top_p < 1 && filter("top_p", _("top-p\n{p:g}", { p }), _("Of the tokens kept so far, the likeliest that together reach probability {p:g} (nucleus).", { p }), ["top_k"], ({ rank, cut_by, ahead }) => {
      if (rank === 1) return _("rank 1: always kept");
      const values = { ahead: formatNumber(ahead), p };
      return cut_by === "top_p" ? _("likelier ones hold {ahead} ≥ top-p {p:g}: cut", values) : _("likelier ones hold {ahead} < top-p {p:g}: kept", values);
    }),
    !isGreedy && min_p && filter("min_p", _("min-p\n{p:g}", { p: minP }), _("Of those kept so far, only tokens at least {p:g} times as likely as the likeliest.", { p: minP }), ["top_k", "top_p"], ({ rank, cut_by, scaled, weight }) => {
      if (rank === 1) return _("rank 1: always kept");
      const values = { power: `e^(${formatLogit(scaled)} − ${bracketLogit(largest)})`, weight: formatNumber(weight), p: minP };
      return cut_by === "min_p" ? _("{power} = {weight} times the likeliest < min-p {p:g}: cut", values) : _("{power} = {weight} times the likeliest ≥ min-p {p:g}: kept", values);
    }),
    {
      name: "probability", title: _("after the\nsettings"),
      about: _("The probability of drawing the token: e^(score − largest), divided by the sum over all tokens kept (softmax). The grey tick is the model’s own."),
      cell: ({ cut_by, probability }) => (cut_by ? "0" : formatNumber(probability)),
      explain: ({ cut_by, scaled, weight, probability }) => {
        if (cut_by) return isGreedy ? _("cut, so never drawn") : _("cut by {limit}, so never drawn", { limit: LIMITS[cut_by] });
        if (isGreedy) return _("the largest, so its probability is 1");
        return `e^(${formatLogit(scaled)} − ${bracketLogit(largest)}) / Σ = ${formatNumber(weight)} / ${formatNumber(total)} = ${formatNumber(probability)}`;
      },
    },
    {
      name: "cumulative", title: _("sum\nso far"), about: _("Cumulative probability: this token and all likelier ones together. Its stretch of the bar below ends there."),
      cell: ({ cut_by, cumulative }) => (cut_by ? "" : formatNumber(cumulative)),
      explain: ({ cut_by, cumulative, probability }) => (cut_by ? _("cut, so no random number falls on it")
        : _("{before} + {probability} = {sum}: drawn where the random number is from {before} to {sum}", { before: formatNumber(Math.max(0, cumulative - probability)), probability: formatNumber(probability), sum: formatNumber(cumulative) })),
    },
  ].filter(Boolean);
}

/** Return the columns of a changed model, with its logits and probabilities without the changes. @param {Column[]} columns @returns {Column[]} */
function changedColumns([logit, model, ...rest]) {
  const formatChange = (row) => { const change = row.logit - row.before.logit; return `${+change.toFixed(2) > 0 ? "+" : ""}${formatLogit(change)}`; };
  return [
    {
      name: "logit_before", title: _("logit\nbefore"), about: _("The token’s logit without the changes."),
      cell: ({ before }) => formatLogit(before.logit), explain: ({ before }) => _("logit {logit}: without the changes", { logit: formatLogit(before.logit) }),
    },
    { ...logit, title: _("logit\nnow") },
    {
      name: "logit_change", title: _("Δ\nlogit"), about: _("What the changes did to the token’s logit: now − before."),
      cell: formatChange, explain: (row) => `${formatLogit(row.logit)} − ${bracketLogit(row.before.logit)} = ${formatChange(row)}`,
    },
    {
      name: "before", title: _("p\nbefore"), about: _("What the model gives the token without the changes, before temperature and filters."),
      cell: ({ before }) => formatNumber(before.plain),
      explain: ({ before, plain }) => _("without the changes {before}, with them {after}: {points} percentage points", { before: formatNumber(before.plain), after: formatNumber(plain), points: formatContribution(100 * (plain - before.plain)) }),
    },
    { ...model, title: _("p\nnow") },
    ...rest,
  ];
}

/** Return the columns of A with B's logits and probabilities. The sum so far has no room beside them. @param {Column[]} columns @returns {Column[]} */
function comparedColumns([logit, model, ...rest]) {
  const describe = (/** @type {Row} */ { other }) => _("B: logit {logit}, probability {probability}, before temperature and filters", { logit: formatLogit(other.logit), probability: formatNumber(other.plain) });
  const otherColumn = (name, title, about, cell, explain = describe) => ({
    name, title, about, cell: (row) => (row.other ? cell(row) : "–"), explain: (row) => (row.other ? explain(row) : _("the model of B has no such token")),
  });
  return [
    { ...logit, title: `${logit.title} A` },
    otherColumn("other_logit", `${logit.title} B`, _("The token’s logit in the other run."), ({ other }) => formatLogit(other.logit)),
    { ...model, title: "p A" },
    otherColumn("other", "p B", _("What the other run’s model gives the token, before temperature and filters."), ({ other }) => formatNumber(other.plain)),
    otherColumn("other_difference", "p A − B", _("The model’s own probability in A less that in B."), ({ plain, other }) => formatThousandths(plain - other.plain),
      ({ plain, other }) => `A ${formatNumber(plain)} − B ${formatNumber(other.plain)} = ${formatNumber(plain - other.plain)}`),
    ...rest.slice(0, -1),
  ];
}

/** Format a difference of probabilities with three decimals and its sign, as the column is narrow. @param {number} difference */
function formatThousandths(difference) {
  if (Math.abs(difference) < 0.0005) return difference ? "≈ 0" : "0";
  return `${difference < 0 ? "−" : "+"}${Math.abs(difference).toFixed(3)}`;
}

/** Return the columns of A − B: of logits, the models' own probabilities, and those after the settings. @returns {Column[]} */
function differenceColumns() {
  const column = (name, title, about, format, formatDifference) => ({
    name, title, about,
    cell: ({ a, b }) => (b ? formatDifference(a[name] - b[name]) : "–"),
    explain: ({ a, b }) => (b ? `A ${format(a[name])} − B ${bracketNegative(format(b[name]))} = ${formatDifference(a[name] - b[name])}` : _("the model of B has no such token")),
  });
  return [
    column("logit", `${_("logit")}\nA − B`, _("The token’s logit in A less that in B."), formatLogit, formatContribution),
    column("model", _("p A − B,\nmodel"), _("The model’s own probability in A less that in B."), formatNumber, formatSigned),
    column("probability", _("p A − B, after\nthe settings"), _("The probability after temperature and filters in A less that in B."), formatNumber, formatSigned),
  ];
}

/** Return a table with its words: the columns, what a row tells of its token and of each number, and the sentences below.
 * @param {any} content of `NextTokenTable.pack` */
export function wordTable(content) {
  const { run, settings, size, rows, largest, total } = content, isDifference = run === "difference";
  const stages = isDifference ? differenceColumns() : stageColumns(settings, largest, total);
  const columns = run === "a" ? comparedColumns(stages) : rows[0].before ? changedColumns(stages) : stages;
  const nameToken = ({ token_id: id, token, rank }) => (isDifference ? _("{token}: token {id}", { token: quoteToken(token), id }) : _("{token}: token {id}, rank {rank:,} of {size:,}", { token: quoteToken(token), id, rank, size }));
  return {
    ...content,
    columns,
    rows: rows.map((row) => ({ ...row, ...(isDifference && { probability: row.b ? row.a.probability - row.b.probability : 0, plain: 0 }), about: nameToken(row), cells: columns.map(({ cell }) => cell(row)), notes: columns.map(({ explain }) => explain(row)) })),
    stretches: content.stretches.map((stretch) => ({
      ...stretch, note: _("{token} is drawn where the random number is from {start} to {end}", { token: quoteToken(stretch.token), start: formatNumber(stretch.start), end: formatNumber(stretch.end) }),
    })),
    words: [run && run !== "a" ? "" : describeRandomDraw(content), content.other ? describeOtherRun(content.other) : ""].filter(Boolean).join(" "),
  };
}

/** Describe which token the random number draws; "" if a moved slider made it one without a row. */
function describeRandomDraw({ settings, rows, u, drawn, actual }) {
  const [token, other] = [drawn, actual].map((id) => rows.find(({ token_id }) => token_id === id)?.token);
  if (token === undefined) return "";
  const values = { seed: settings.seed, u: formatNumber(u), token: quoteToken(token), other: quoteToken(other ?? "") };
  if (actual === null) return _("Seed {seed} gives the random number u = {u} here. It selects {token}, which Step would write.", values);
  if (actual === drawn) return _("Seed {seed} gives the random number u = {u} here. It selects {token}, as in the text.", values);
  return _("Seed {seed} gives the random number u = {u} here. It selects {token}; the text has {other}.", values);
}

/** Describe which token the same random number draws in B, and the divergence of the distributions. */
function describeOtherRun({ after, position, token, divergences }) {
  const drawn = _("In B, after {after} (position {position}), the same random number falls on {token}.", { after: quoteToken(after), position, token: quoteToken(token) });
  if (!divergences) return _("{drawn} The models have different tokens: no divergence.", { drawn });
  const [there, back] = divergences.map((bits) => formatNumber(bits ?? Infinity));
  return _("{drawn} Divergence of the models’ probabilities: KL(A‖B) = {there} bits, KL(B‖A) = {back} bits.", { drawn, there, back });
}

/** Describe the distribution in a sentence or two, or the largest difference of two. @param {any} content of `NextTokenSummary.pack` or `pack_difference` */
export function summarisePrediction(content) {
  if (content.run === "difference") return summariseDifference(content);
  const { run, after, position, kept, size, entropy, plain_entropy, actual } = content;
  const sentences = [_("After {token} (position {position}), {kept:,} of {size:,} tokens can be sampled. Entropy {entropy} bits; {own} bits before temperature and filters.", {
    token: quoteToken(after), position, kept, size, entropy: formatNumber(entropy), own: formatNumber(plain_entropy),
  })];
  if (actual) sentences.push(_("The text continues with {token}: rank {rank:,}, {probability} before temperature.", { token: quoteToken(actual.token), rank: actual.rank, probability: formatPercent(actual.plain) }));
  const summary = sentences.join(" ");
  return run === "b" ? _("B: {summary}", { summary }) : summary;
}

function summariseDifference({ token, a, b, is_own: isOwn }) {
  if (token === null) return _("A and B have no token in common, so their probabilities have no difference.");
  const values = { token: quoteToken(token), a: formatNumber(100 * a), b: formatNumber(100 * b), points: formatSigned(100 * (a - b)) };
  if (isOwn) return _("The settings leave no difference. In the models’ own probabilities {token} differs most: A {a}%, B {b}%, {points} percentage points.", values);
  return _("A − B, after temperature and filters: {token} differs most: A {a}%, B {b}%, {points} percentage points.", values);
}

/** Describe what interventions did to the likeliest token: as "words", sentences, and as "chances" both chances to be picked; in the
 * story the model's own, which no setting hides, with the token.
 * @param {any} content of `pack_change_effect`; null for no interventions */
export function describeChangeEffect(content) {
  if (!content) return { words: "", chances: "" };
  const { is_story: isStory, first, now } = content, quote = isStory ? quoteWord : quoteToken;
  const [own, sampled] = [first.plain, first.sampled].map(([before, after]) => formatPercents(before, after)), isSame = own.join() === sampled.join();
  const [logitBefore, logitAfter] = first.logits.map(formatLogit), token = quote(first.token);
  const values = { token, before: sampled[0], after: sampled[1], own_before: own[0], own_after: own[1], logit_before: logitBefore, logit_after: logitAfter };
  const sentences = [
    isStory ? _("The chance that {token} is picked: {before} before, {after} now.", values)
    : isSame ? _("Probability of {token}: {own_before} → {own_after}, logit {logit_before} → {logit_after}.", values)
    : _("Probability of {token} before temperature: {own_before} → {own_after}, logit {logit_before} → {logit_after}. After temperature and filters: {before} → {after}.", values),
  ];
  const [before, after] = isStory ? sampled : own, hasFallen = first.logits[1] < first.logits[0];
  const isAgainstLogit = [first.plain, isStory ? first.sampled : first.plain].every(([start, end]) => end > start === hasFallen);
  if (before !== after && logitBefore !== logitAfter && isAgainstLogit) sentences.push(describeOpposition(hasFallen, isStory));
  if (now) sentences.push(_("{other} is likeliest now: {share}.", { other: quote(now.token), share: isStory ? formatPercent(now.sampled[1]) : nameProbability(now.plain[1], now.sampled[1]) }));
  const words = sentences.join(" "), percent = own.join(" → "), chances = sampled.join(" → ");
  if (isStory) return { words, chances: [token, isSame ? percent : _("{percent} before temperature", { percent })].join(" ") };
  return { words, chances: isSame ? chances : _("{chances} after temperature and filters", { chances }) };
}

/** Explain why a probability rose though its logit fell, or the other way round. @param {boolean} hasFallen whether the logit fell @param {boolean} isStory */
function describeOpposition(hasFallen, isStory) {
  if (isStory) return hasFallen ? _("Its score fell, but the others’ together fell more.") : _("Its score rose, but the others’ together rose more.");
  return hasFallen ? _("Its logit fell, but the others’ together (ln Σ e^logit) fell more.") : _("Its logit rose, but the others’ together (ln Σ e^logit) rose more.");
}

/** Return a token's probability before temperature; it says so where the settings change it. @param {number} plain @param {number} sampled */
function nameProbability(plain, sampled) {
  const percent = formatPercent(plain);
  return percent === formatPercent(sampled) ? percent : _("{percent} before temperature", { percent });
}

/** Return the likeliest word and two others of the likeliest tokens in alphabetical order; [] if there are too few.
 *
 * The order says nothing of their probabilities. Tokens that begin no word, or are short, serve where others lack.
 * @param {string[]} tokens the likeliest first */
export function guessChoices(tokens) {
  const texts = tokens.filter((text) => /^\p{L}+$/u.test(text.trim()));
  const begun = texts.filter((text) => text.startsWith(" ")), whole = begun.filter((text) => text.trim().length >= MIN_LETTERS);
  const words = [...new Set((whole.length < NUM_CHOICES ? texts : [begun[0], ...whole]).map((text) => text.trim()))];
  if (words.length < NUM_CHOICES) return [];
  return [words[0], words[Math.floor(words.length / 2)], words.at(-1)].sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1));
}
const NUM_CHOICES = 3, MIN_LETTERS = 3; // what is shorter is often a fragment

/** Say which token is likeliest, or what is told instead: of the guess, or of a generated token.
 * @param {any} content of `NextTokenGuessForm.pack` @param {boolean} hasGuess whether the user has guessed */
export function describeGuess({ after, likeliest, guess, written }, hasGuess) {
  if (hasGuess && guess) return describeVerdict(guess, likeliest);
  if (written) return describeGeneratedToken(written);
  return _("After {after} the likeliest next token is {token}: {percent} with these settings.", { after: quoteWord(after), token: quoteWord(likeliest.token), percent: formatPercent(likeliest.sampled) });
}

/** Tell the chance of a generated token in the run as it is now, whose interventions may be newer than the token; the settings that
 * sampled it are not known later. */
function describeGeneratedToken({ after, token, plain, rank, is_changed: isChanged }) {
  const values = { after: quoteWord(after), token: quoteWord(token), percent: formatPercent(plain), rank };
  return isChanged ? _("The changed model’s own chance for {token} after {after} is {percent}: number {rank:,} on its list.", values)
    : _("The model’s own chance for {token} after {after} was {percent}: number {rank:,} on its list.", values);
}

/** Name the likeliest token, unless the guess is or begins with it, and the guess's place. */
function describeVerdict({ text, token, is_exact: isExact, sampled, rank }, likeliest) {
  const guess = quoteToken(text), likelier = _("The likeliest now is {first} ({share}).", { first: quoteWord(likeliest.token), share: formatPercent(likeliest.sampled) });
  if (token === null) return [likelier, _("The model has no token that your guess {guess} could begin with.", { guess })].join(" ");
  const values = { guess, token: quoteWord(token), percent: formatPercent(sampled), rank };
  if (isExact && rank === 1) return _("Right: {token} is the likeliest now, with {percent}.", values);
  const verdict = isExact ? (sampled ? _("Your {token} is number {rank:,} on its list ({percent}).", values) : _("Your {token} is number {rank:,} on its list: the settings leave it out.", values))
    : sampled ? _("{guess} is more than one token. It could begin with {token}: number {rank:,} on its list ({percent}).", values)
    : _("{guess} is more than one token. It could begin with {token}, which the settings leave out.", values);
  return rank === 1 ? verdict : `${likelier} ${verdict}`;
}
