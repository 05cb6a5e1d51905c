// @ts-check
// Contents of the next token's widgets, as explorer/web/widgets/next_token/ and tokens/ pack them.
import { _ } from "../static/translations.js";
import { drawToken, samplingStages } from "../static/in_browser/transformer_lm.js";
import { formatLogit } from "../widgets/next_token/next_token.js";
import { formatContribution, formatCount, formatGeneral, formatNumber, formatPercent, formatPercents, quoteToken, quoteWord } from "./figures.js";

/** @typedef {{ temperature: number, top_k: number, top_p: number, min_p: number, repetition_penalty: number, seed: number }} Settings */

const NUM_ROWS = 10, MAX_MATCHES = 4, MIN_INTERVAL_WIDTH = 0.003;
const sum = (values) => values.reduce((total, value) => total + value, 0);
/** Softmax in float64. @param {ArrayLike<number>} logits */
export function softmax(logits) {
  const float64Logits = Float64Array.from(logits), max = float64Logits.reduce((a, b) => Math.max(a, b), -Infinity), weights = float64Logits.map((logit) => Math.exp(logit - max)), total = sum(weights);
  return weights.map((weight) => weight / total);
}
/** Entropy in bits. @param {Float64Array} probabilities */
export const entropy = (probabilities) => -sum(probabilities.map((p) => (p > 0 ? p * Math.log2(p) : 0)));

/** Return all ids by value, the largest first; of equal ones the lower id. @param {ArrayLike<number>} values */
export const rankedIds = (values) => Array.from({ length: values.length }, (_none, id) => id).sort((a, b) => values[b] - values[a] || a - b);

/** Compute the distribution of the token after a position.
 * @param {Float32Array} logits (V,) @param {Settings} settings @param {number[]} previousIds ids up to the position @param {number | null} actual next token of the text @param {number} u random number that draws a token */
export function makePrediction(logits, settings, previousIds, actual, u) {
  const stages = samplingStages(logits, settings, previousIds), sampled = new Float64Array(logits.length), plain = softmax(logits);
  Array.from(stages.retained.min_p).forEach((id, i) => { sampled[id] = stages.probabilities[i]; });
  return { logits, settings, stages, sampled, plain, actual, u, drawn: drawToken(stages, u).tokenId };
}
/** @typedef {ReturnType<typeof makePrediction>} Prediction */

/** Compute the numbers of each token at each stage (SamplingTable). @param {Prediction} prediction */
function samplingTable({ stages, logits, settings, sampled, plain }) {
  const scaled = Float64Array.from(stages.penalised, (logit) => logit / (settings.temperature || 1)), order = rankedIds(stages.penalised), rankById = new Map(order.map((id, i) => [id, i]));
  const largest = scaled[order[0]], limits = Object.entries(stages.retained).map(([name, ids]) => [name, new Set(Array.from(ids))]);
  const weight = scaled.map((value) => Math.exp(value - largest)), drawable = rankedIds(sampled), cumulative = new Map(), cumulativeBefore = new Map();
  let cumulativeSum = 0, keptWeight = 0;
  for (const id of drawable) cumulative.set(id, cumulativeSum += sampled[id]);
  const total = sum(Array.from(stages.retained.top_k, (id) => weight[id]));
  for (const id of order) { cumulativeBefore.set(id, keptWeight / total); if (/** @type {Set<number>} */ (limits[0][1]).has(id)) keptWeight += weight[id]; }
  return {
    order, largest, total: 1 / sampled.reduce((a, b) => Math.max(a, b)), cumulative,
    row: (id) => ({
      id, rank: rankById.get(id) + 1, logit: logits[id], penalised: stages.penalised[id], scaled: scaled[id], plain: plain[id], weight: weight[id], ahead: cumulativeBefore.get(id),
      cutBy: limits.find(([, ids]) => !(/** @type {Set<number>} */ (ids)).has(id))?.[0] ?? null, probability: sampled[id], cumulative: cumulative.get(id),
    }),
  };
}

const LIMITS = { top_k: "top-k", top_p: "top-p", min_p: "min-p" };
const bracketLogit = (value) => (value < 0 ? `(${formatLogit(value)})` : formatLogit(value));

/** Return the columns for these settings: name, title, description, and functions for a row's text and its explanation.
 * @param {ReturnType<typeof samplingTable>} table @param {ArrayLike<number> | null} unchangedLogits @param {Float64Array | null} unchangedProbabilities without interventions @param {Settings} settings */
function stageColumns(table, unchangedLogits, unchangedProbabilities, { temperature, top_k, top_p, min_p, repetition_penalty }) {
  const cutoff = (name, title, about, previousLimits, explain) => [name, title, about,
    (row) => (previousLimits.includes(row.cutBy) ? "" : row.cutBy === name ? _("cut") : "✓"),
    (row) => (previousLimits.includes(row.cutBy) ? _("{limit} has cut it already", { limit: LIMITS[row.cutBy] }) : explain(row))];
  const logitChange = ({ id, logit }) => { const change = logit - unchangedLogits[id]; return `${+change.toFixed(2) > 0 ? "+" : ""}${formatLogit(change)}`; };
  const isGreedy = temperature === 0, t = formatGeneral(temperature), p = formatGeneral(top_p), k = formatCount(top_k), minP = formatGeneral(min_p), penalty = formatGeneral(repetition_penalty);
  return [
    unchangedLogits && ["logit_before", _("logit\nbefore"), _("The token’s logit without the changes."), ({ id }) => formatLogit(unchangedLogits[id]), ({ id }) => _("logit {logit}: without the changes", { logit: formatLogit(unchangedLogits[id]) })],
    ["logit", unchangedLogits ? _("logit\nnow") : _("logit"), _("The model’s score for the token: the larger, the likelier."), ({ logit }) => formatLogit(logit), ({ logit }) => _("logit {logit}: as the model gave it", { logit: formatLogit(logit) })],
    unchangedLogits && ["logit_change", _("Δ\nlogit"), _("What the changes did to the token’s logit: now − before."), logitChange,
      (row) => `${formatLogit(row.logit)} − ${bracketLogit(unchangedLogits[row.id])} = ${logitChange(row)}`],
    unchangedProbabilities && ["before", _("p\nbefore"), _("What the model gives the token without the changes, before temperature and filters."), ({ id }) => formatNumber(unchangedProbabilities[id]),
      ({ id, plain }) => _("without the changes {before}, with them {after}: {points} percentage points", { before: formatNumber(unchangedProbabilities[id]), after: formatNumber(plain), points: formatContribution(100 * (plain - unchangedProbabilities[id])) })],
    ["model", unchangedProbabilities ? _("p\nnow") : _("model"), _("The model’s own probability: softmax of the logits, at temperature 1 and with all tokens kept."), ({ plain }) => formatNumber(plain), ({ logit, plain }) => _("e^{logit} / Σ e^logits = {probability}", { logit: bracketLogit(logit), probability: formatNumber(plain) })],
    repetition_penalty !== 1 && ["penalised", _("penalty\n{penalty:g}", { penalty }), _("Repetition penalty: logits of tokens that the text has already are divided by {penalty:g}, or multiplied where they are negative.", { penalty }),
      ({ penalised }) => formatLogit(penalised), ({ logit, penalised }) => (logit === penalised ? _("{logit} stays: the token is not in the text so far", { logit: formatLogit(logit) })
        : _("{logit} {sign} {penalty:g} = {penalised}: the token is in the text already", { logit: formatLogit(logit), sign: logit > 0 ? "/" : "×", penalty, penalised: formatLogit(penalised) }))],
    isGreedy && ["argmax", _("largest"), _("Temperature 0 takes the token with the largest logit and no other (argmax)."), ({ cutBy }) => (cutBy ? _("cut") : "✓"),
      ({ cutBy, rank }) => (cutBy ? _("rank {rank:,}: not the largest, cut", { rank: formatCount(rank) }) : _("rank {rank:,}: the largest, taken", { rank: formatCount(rank) }))],
    !isGreedy && ["scaled", `÷ ${t}`, _("Divided by the temperature, {temperature:g}: below 1 the differences grow, above 1 they shrink.", { temperature: t }),
      ({ scaled }) => formatLogit(scaled), ({ penalised, scaled }) => `${formatLogit(penalised)} / ${t} = ${formatLogit(scaled)}`],
    !isGreedy && top_k && cutoff("top_k", _("top-k\n{k:,}", { k }), _("Only the {k:,} likeliest tokens are kept.", { k }), [],
      ({ rank, cutBy }) => (cutBy === "top_k" ? _("rank {rank:,} > top-k {k:,}: cut", { rank: formatCount(rank), k }) : _("rank {rank:,} ≤ top-k {k:,}: kept", { rank: formatCount(rank), k }))),
    !isGreedy && top_p < 1 && cutoff("top_p", _("top-p\n{p:g}", { p }), _("Of the tokens kept so far, the likeliest that together reach probability {p:g} (nucleus).", { p }), ["top_k"], ({ rank, cutBy, ahead: cumulativeBefore }) => {
      if (rank === 1) return _("rank 1: always kept");
      return cutBy === "top_p" ? _("likelier ones hold {ahead} ≥ top-p {p:g}: cut", { ahead: formatNumber(cumulativeBefore), p }) : _("likelier ones hold {ahead} < top-p {p:g}: kept", { ahead: formatNumber(cumulativeBefore), p });
    }),
    !isGreedy && min_p && cutoff("min_p", _("min-p\n{p:g}", { p: minP }), _("Of those kept so far, only tokens at least {p:g} times as likely as the likeliest.", { p: minP }), ["top_k", "top_p"], ({ rank, cutBy, scaled, weight }) => {
      if (rank === 1) return _("rank 1: always kept");
      const values = { power: `e^(${formatLogit(scaled)} − ${bracketLogit(table.largest)})`, weight: formatNumber(weight), p: minP };
      return cutBy === "min_p" ? _("{power} = {weight} times the likeliest < min-p {p:g}: cut", values) : _("{power} = {weight} times the likeliest ≥ min-p {p:g}: kept", values);
    }),
    ["probability", _("after the\nsettings"), _("The probability of drawing the token: e^(score − largest), divided by the sum over all tokens kept (softmax). The grey tick is the model’s own."),
      ({ cutBy, probability }) => (cutBy ? "0" : formatNumber(probability)), ({ cutBy, scaled, weight, probability }) => {
        if (cutBy) return isGreedy ? _("cut, so never drawn") : _("cut by {limit}, so never drawn", { limit: LIMITS[cutBy] });
        if (isGreedy) return _("the largest, so its probability is 1");
        return `e^(${formatLogit(scaled)} − ${bracketLogit(table.largest)}) / Σ = ${formatNumber(weight)} / ${formatNumber(table.total)} = ${formatNumber(probability)}`;
      }],
    ["cumulative", _("sum\nso far"), _("Cumulative probability: this token and all likelier ones together. Its stretch of the bar below ends there."),
      ({ cutBy, cumulative }) => (cutBy ? "" : formatNumber(cumulative)), ({ cutBy, cumulative, probability }) => (cutBy ? _("cut, so no random number falls on it")
        : _("{before} + {probability} = {sum}: drawn where the random number is from {before} to {sum}", { before: formatNumber(Math.max(0, cumulative - probability)), probability: formatNumber(probability), sum: formatNumber(cumulative) }))],
  ].filter(Boolean);
}

/** Return the table of the next token, and its bar of probability (NextTokenTable.pack).
 * @param {Prediction} prediction @param {string[]} vocabulary @param {string} find @param {ArrayLike<number> | null} unchanged logits without interventions @param {string} guess */
export function packTable(prediction, vocabulary, find, unchanged = null, guess = "") {
  const { settings, actual, drawn, u, sampled } = prediction, table = samplingTable(prediction), before = unchanged && softmax(unchanged), columns = stageColumns(table, unchanged, before, settings);
  const fixedIds = new Set([drawn, ...(actual === null ? [] : [actual]), ...(unchanged ? [rankedIds(unchanged)[0]] : [])]), matchingIds = findTokens(vocabulary, find, table.order);
  const guessMatch = guess && matchGuess(prediction, vocabulary, guess), guessId = guessMatch && guessMatch.isExact ? guessMatch.id : null, shownIds = new Set([...fixedIds, ...(guessId === null ? [] : [guessId])]);
  const bestIds = table.order.slice(0, NUM_ROWS).filter((id) => !shownIds.has(id)).slice(0, Math.max(0, NUM_ROWS - shownIds.size));
  const rows = [...new Set([...shownIds, ...bestIds, ...matchingIds])].map(table.row).sort((a, b) => a.rank - b.rank);
  const intervals = [...vocabulary.keys()].filter((id) => sampled[id] >= MIN_INTERVAL_WIDTH || (fixedIds.has(id) && sampled[id] > 0))
    .map((id) => ({ id, token: vocabulary[id], start: Math.max(0, table.cumulative.get(id) - sampled[id]), end: table.cumulative.get(id) })).sort((a, b) => a.start - b.start);
  return {
    columns: columns.map(([name, title, about]) => ({ name, title, about })),
    rows: rows.map((row) => ({
      id: row.id, token: vocabulary[row.id], rank: row.rank,
      about: _("{token}: token {id}, rank {rank:,} of {size:,}", { token: quoteToken(vocabulary[row.id]), id: row.id, rank: formatCount(row.rank), size: formatCount(vocabulary.length) }),
      cells: columns.map(([, , , cell]) => /** @type {Function} */ (cell)(row)), notes: columns.map(([, , , , words]) => /** @type {Function} */ (words)(row)),
      probability: row.probability, plain: row.plain, cut: row.cutBy !== null, found: matchingIds.includes(row.id), guessed: row.id === guessId,
    })),
    run: "",
    settings: Object.fromEntries(["temperature", "top_k", "top_p", "min_p"].map((name) => [name, settings[name]])),
    cut: _("cut"), actual, drawn, find, found: matchingIds.length, u, words: describeRandomDraw(prediction, vocabulary),
    stretches: intervals.map((stretch) => ({ ...stretch, note: _("{token} is drawn where the random number is from {start} to {end}", { token: quoteToken(stretch.token), start: formatNumber(stretch.start), end: formatNumber(stretch.end) }) })),
  };
}

/** Return the ids of the tokens that match a text best, or of the one whose id it is. @param {string[]} vocabulary @param {string} find @param {number[]} order */
function findTokens(vocabulary, find, order) {
  const text = find.replaceAll("·", " ").toLowerCase(), isId = /^\d{1,9}$/.test(text) && +text < vocabulary.length;
  if (!text) return [];
  const containing = order.filter((id) => vocabulary[id].toLowerCase().includes(text) && !(isId && id === +text));
  const isExact = (id) => vocabulary[id].toLowerCase().trim() === text.trim();
  return [...(isId ? [+text] : []), ...containing.filter(isExact), ...containing.filter((id) => !isExact(id))].slice(0, MAX_MATCHES);
}

/** Describe which token the random number draws. @param {Prediction} prediction @param {string[]} vocabulary */
function describeRandomDraw({ settings, u, drawn, actual }, vocabulary) {
  const values = { seed: settings.seed, u: formatNumber(u), token: quoteToken(vocabulary[drawn]) };
  if (actual === null) return _("Seed {seed} gives the random number u = {u} here. It selects {token}, which Step would write.", values);
  if (actual === drawn) return _("Seed {seed} gives the random number u = {u} here. It selects {token}, as in the text.", values);
  return _("Seed {seed} gives the random number u = {u} here. It selects {token}; the text has {other}.", { ...values, other: quoteToken(vocabulary[actual]) });
}

/** Describe the distribution in a sentence or two. @param {Prediction} prediction @param {string[]} vocabulary @param {string} after @param {number} position */
export function summariseDistribution({ sampled, plain, actual }, vocabulary, after, position) {
  const text = _("After {token} (position {position}), {kept:,} of {size:,} tokens can be sampled. Entropy {entropy} bits; {own} bits before temperature and filters.", {
    token: quoteToken(after), position, kept: formatCount(sampled.filter((p) => p > 0).length), size: formatCount(sampled.length), entropy: formatNumber(Math.max(0, entropy(sampled))), own: formatNumber(Math.max(0, entropy(plain))),
  });
  if (actual === null) return text;
  const rank = 1 + plain.filter((p) => p > plain[actual]).length;
  return `${text} ${_("The text continues with {token}: rank {rank:,}, {probability} before temperature.", { token: quoteToken(vocabulary[actual]), rank: formatCount(rank), probability: formatPercent(plain[actual]) })}`;
}

/** Describe how interventions changed the probability of the likeliest token. @param {Prediction} prediction @param {Prediction} before without them @param {string[]} vocabulary @param {boolean} [isStory] */
export function describeChangeEffect({ sampled: after, plain: ownAfter, logits: logitsAfter }, { sampled: before, plain: ownBefore, logits: logitsBefore }, vocabulary, isStory = false) {
  const [[previousBest], [currentBest]] = (isStory ? [before, after] : [ownBefore, ownAfter]).map(rankedIds), quote = isStory ? quoteWord : quoteToken;
  const percentsOf = ([first, second]) => formatPercents(first[previousBest], second[previousBest]), own = percentsOf([ownBefore, ownAfter]), sampled = percentsOf([before, after]);
  const nameProbability = (id) => { const percent = formatPercent(ownAfter[id]); return percent === formatPercent(after[id]) ? percent : _("{percent} before temperature", { percent }); };
  const values = { token: quote(vocabulary[previousBest]), before: sampled[0], after: sampled[1], own_before: own[0], own_after: own[1], logit_before: formatLogit(logitsBefore[previousBest]), logit_after: formatLogit(logitsAfter[previousBest]) };
  const isSame = own.join() === sampled.join(), ownChances = own.join(" → "), chances = sampled.join(" → ");
  let words = _("The chance that {token} is picked: {before} before, {after} now.", values);
  if (!isStory) words = isSame ? _("Probability of {token}: {own_before} → {own_after}, logit {logit_before} → {logit_after}.", values)
    : _("Probability of {token} before temperature: {own_before} → {own_after}, logit {logit_before} → {logit_after}. After temperature and filters: {before} → {after}.", values);
  const logitChange = logitsAfter[previousBest] - logitsBefore[previousBest], rises = [isStory ? [before, after] : [ownBefore, ownAfter], [ownBefore, ownAfter]].map(([first, second]) => second[previousBest] > first[previousBest]);
  const shown = isStory ? sampled : own;
  if (shown[0] !== shown[1] && values.logit_before !== values.logit_after && rises.every((isUp) => isUp === logitChange < 0)) {
    if (isStory) words += ` ${logitChange < 0 ? _("Its score fell, but the others’ together fell more.") : _("Its score rose, but the others’ together rose more.")}`;
    else words += ` ${logitChange < 0 ? _("Its logit fell, but the others’ together (ln Σ e^logit) fell more.") : _("Its logit rose, but the others’ together (ln Σ e^logit) rose more.")}`;
  }
  if (currentBest !== previousBest) words += ` ${_("{other} is likeliest now: {share}.", { other: quote(vocabulary[currentBest]), share: isStory ? formatPercent(after[currentBest]) : nameProbability(currentBest) })}`;
  if (isStory) return { words, chances: `${values.token} ${isSame ? ownChances : _("{percent} before temperature", { percent: ownChances })}` };
  return { words, chances: isSame ? chances : _("{chances} after temperature and filters", { chances }) };
}

/** Return the choices and the verdict of a guess (NextTokenGuess.pack).
 * @param {Prediction} prediction @param {string[]} vocabulary @param {string} after @param {string} guess @param {[string, Prediction] | null} written the token before a generated one, and its prediction @param {boolean} isChanged whether the run has interventions */
export function packGuess(prediction, vocabulary, after, guess, written, isChanged) {
  const { sampled, plain } = prediction, best = rankedIds(sampled)[0];
  const texts = rankedIds(plain).slice(0, 10).map((id) => vocabulary[id]).filter((text) => /^\p{L}+$/u.test(text.trim()));
  const wordStarts = texts.filter((text) => text.startsWith(" ")), fullWords = wordStarts.filter((text) => text.trim().length >= 3);
  const words = [...new Set((fullWords.length < 3 ? texts : [wordStarts[0], ...fullWords]).map((text) => text.trim()))];
  return {
    choices: words.length < 3 ? [] : [words[0], words[Math.floor(words.length / 2)], words.at(-1)].sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1)),
    says: _("After {after} the likeliest next token is {token}: {percent} with these settings.", { after: quoteWord(after), token: quoteWord(vocabulary[best]), percent: formatPercent(sampled[best]) }),
    told: guess.trim() ? describeGuess(prediction, vocabulary, guess.trim()) : "",
    wrote: written ? describeGeneratedToken(written, vocabulary, isChanged) : "",
  };
}

/** @param {[string, Prediction]} written @param {string[]} vocabulary @param {boolean} isChanged */
function describeGeneratedToken([after, { plain, actual }], vocabulary, isChanged) {
  const rank = 1 + plain.filter((p) => p > plain[actual]).length, values = { after: quoteWord(after), token: quoteWord(vocabulary[actual]), percent: formatPercent(plain[actual]), rank: formatCount(rank) };
  return isChanged ? _("The changed model’s own chance for {token} after {after} is {percent}: number {rank:,} on its list.", values) : _("The model’s own chance for {token} after {after} was {percent}: number {rank:,} on its list.", values);
}

/** @param {Prediction} prediction @param {string[]} vocabulary @param {string} guess */
function matchGuess({ sampled, plain }, vocabulary, guess) {
  const word = guess.toLowerCase(), texts = vocabulary.map((text) => text.trim().toLowerCase()), ids = [...texts.keys()];
  const exact = ids.filter((id) => texts[id] === word), candidates = exact.length ? exact : ids.filter((id) => texts[id] && word.startsWith(texts[id]));
  if (!candidates.length) return null;
  const isInCase = (id) => guess.startsWith(vocabulary[id].trim());
  const [id] = candidates.sort((a, b) => texts[b].length - texts[a].length || sampled[b] - sampled[a] || +isInCase(b) - +isInCase(a) || plain[b] - plain[a]);
  return { id, isExact: exact.length > 0 };
}

/** @param {Prediction} prediction @param {string[]} vocabulary @param {string} guess */
function describeGuess(prediction, vocabulary, guess) {
  const { sampled, plain } = prediction, match = matchGuess(prediction, vocabulary, guess);
  const likeliest = rankedIds(sampled)[0], likelier = _("The likeliest now is {first} ({share}).", { first: quoteWord(vocabulary[likeliest]), share: formatPercent(sampled[likeliest]) });
  if (!match) return `${likelier} ${_("The model has no token that your guess {guess} could begin with.", { guess: quoteToken(guess) })}`;
  const { id: matchId, isExact } = match;
  const distribution = sampled[matchId] > 0 ? sampled : plain, rank = 1 + distribution.filter((p) => p > distribution[matchId]).length;
  const values = { guess: quoteToken(guess), token: quoteWord(vocabulary[matchId]), percent: formatPercent(sampled[matchId]), rank: formatCount(rank) };
  if (isExact && rank === 1) return _("Right: {token} is the likeliest now, with {percent}.", values);
  const verdict = isExact ? (sampled[matchId] ? _("Your {token} is number {rank:,} on its list ({percent}).", values) : _("Your {token} is number {rank:,} on its list: the settings leave it out.", values))
    : sampled[matchId] ? _("{guess} is more than one token. It could begin with {token}: number {rank:,} on its list ({percent}).", values) : _("{guess} is more than one token. It could begin with {token}, which the settings leave out.", values);
  return rank === 1 ? verdict : `${likelier} ${verdict}`;
}
