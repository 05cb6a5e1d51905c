// @ts-check
// The next token in words: columns of its table with each number's calculation, and sentences on the distribution, the random
// number, the guess and what interventions changed. Python, or the page without a server, sends the numbers.
import { bracketNegative, formatContribution, formatGeneral, formatLogit, formatNumber, formatPercent, formatPercents, formatSigned, quoteToken, quoteWord } from "../../static/notation.js";
import { _ } from "../../static/translations.js";

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
