// @ts-check
// The prediction view, as in explorer/views/prediction/: the logit lens, and the contributions to the prediction.
import { _, lookUpMessage } from "../../static/text.js";
import { ATTENTION, EMBEDDING, FEED_FORWARD, NORM, RESIDUAL, SELECTED, argmax, cellFrame, columnBand, columnFrame, tokenLabel, median, numberedAxis, positionLabels, range, sum, tokenAxis, formatContribution, formatNumber, formatSixDigits, quoteToken } from "../figures.js";
import { CHOICES } from "../page_data.js";
import { logitLabel, wholeModelNumbers } from "../whole_model.js";

/** @typedef {import("../views.js").ViewContext} ViewContext */

const MAX_POSITIONS = 16, MAX_WHOLE_POSITIONS = 24, MIN_POSITIONS = 4, MAX_CLICK_MACS = 4e9, MAX_ROW_CHARS = 110, MIN_DRAWN_PROBABILITY = 1e-9;

/** @param {ViewContext} context */
async function formula(context) {
  const { config, tokens, vocabulary, position, tokenId, contrastId, rank, probability } = context, { token, positions, heads, biases, feed_forward, shift, logit } = await attribution(context);
  const parts = /** @type {[string, number][]} */ ([[_("embedding"), token], config.position === "sinusoidal" && [_("position"), positions], [_("attention"), sum(heads) + sum(biases)], [_("feed-forward"), sum(feed_forward)], config.norm === "layernorm" && [_("β of the norms"), shift]].filter(Boolean));
  const total = sum(parts.map(([, value]) => value)), lines = [
    _("after {query} ({position}): the model’s probability of {token} = e^logit / Σ e^logits = {probability}, rank {rank:,}", { query: quoteToken(tokens[position]), position, token: quoteToken(vocabulary[tokenId]), probability: formatNumber(probability), rank }),
    `${logitLabel(vocabulary, { tokenId, contrastId })} = ${parts.map(([name, value]) => `${name} ${formatSixDigits(value)}`).join(" + ")} = ${formatSixDigits(total)}`,
    _("captured {captured}, off by {error}; {norms}", { captured: formatSixDigits(logit), error: formatNumber(Math.abs(total - logit)), norms: await normTreatment(context) }),
  ];
  if (config.tie_embeddings) lines.push(_("embedding and unembedding are one table here, so that before the first block most tokens predict themselves"));
  return lines.join("\n");
}

/** @param {ViewContext} context */
async function normTreatment({ config, position, ask }) {
  const { divisor } = await ask("normScale", { name: `blocks.${config.num_layers - 1}.resid_post`, position }), scale = formatNumber(divisor);
  return config.norm === "layernorm" ? _("each part goes through the final norm, divided by the whole’s √(var x + ε) = {scale}", { scale }) : _("each part goes through the final norm, divided by the whole’s √(mean x² + ε) = {scale}", { scale });
}

/** Return the attribution, requested once for all figures. @param {ViewContext} context */
export const attribution = (context) => context.once("attribution", () => context.ask("attribution", { position: context.position, tokenId: context.tokenId, contrastId: context.contrastId }));

/** @param {ViewContext["config"]} config */
export const depthNames = ({ num_layers }) => [_("embedding"), ...range(num_layers).flatMap((layer) => [_("{layer} attention", { layer }), _("{layer} feed-forward", { layer })])];
/** @param {ViewContext["config"]} config */
const depthLabels = ({ num_layers }) => [_("at the embedding"), ...range(num_layers).flatMap((layer) => [_("after the attention of layer {layer}", { layer }), _("after the feed-forward of layer {layer}", { layer })])];

/** Return the page of positions that contains the query. The last page is full. @param {ViewContext} context */
function visiblePositions({ config, tokens, position }) {
  const macs = (2 * config.num_layers + 1) * config.vocab_size * config.d_model;
  if (tokens.length <= MAX_WHOLE_POSITIONS && tokens.length * macs <= MAX_CLICK_MACS) return range(tokens.length);
  let size = MIN_POSITIONS;
  while (size < MAX_POSITIONS && 2 * size * macs <= MAX_CLICK_MACS) size *= 2;
  const start = Math.max(0, Math.min(Math.floor(position / size) * size, tokens.length - size));
  return range(start, Math.min(tokens.length, start + size));
}

/** Return the lens on that page, by depth (S) and position (n): the likeliest tokens, and the target and the contrast token. @param {ViewContext} context */
export const lensNumbers = (context) => context.once("lens", async () => {
  const visibleRange = visiblePositions(context), ids = [context.tokenId, context.contrastId].filter((id) => id !== null);
  return { page: visibleRange, ids, ...(await context.ask("lens", { start: visibleRange[0], stop: visibleRange.at(-1) + 1, tokenIds: ids })) };
});

/** @param {ViewContext} context */
async function lens(context) {
  const { config, tokens, vocabulary, position, state } = context, { page, top, topProbabilities, entropy, probabilities: [target], ranks: [rank] } = await lensNumbers(context);
  const names = depthNames(config), labels = depthLabels(config), V = config.vocab_size, lastGuess = top.at(-1)[position - page[0]][0], after = positionLabels(tokens), colour = lookUpMessage(CHOICES.lens.options.find(([value]) => value === state.lens)[1]);
  const title = page.length < tokens.length ? _("after this token ({first} to {last} of {total}: choose another token above for the others)", { first: page[0], last: page.at(-1), total: tokens.length }) : _("after this token");
  const targetLine = (depth, column) => {
    const values = { token: tokenLabel(vocabulary[context.tokenId]), probability: formatNumber(target[depth][column]) };
    return _("explained: {token}  {probability}, rank {rank:,}", { ...values, rank: rank[depth][column] });
  };
  const hover = (depth, column) => [
    _("after {token}, {depth}", { token: after[page[column]], depth: labels[depth] }), ...top[depth][column].map((id, i) => `${i + 1}. ${tokenLabel(vocabulary[id])}  ${topProbabilities[depth][column][i].toFixed(3)}`),
    _("entropy {bits:.2f} bits", { bits: entropy[depth][column] }), targetLine(depth, column),
  ].join("<br>");
  const bar = { title: { text: colour, side: "right" } }, powersOfTen = range(String(V).length).map((power) => 10 ** power);
  const colours = {
    rank: () => ({ numbers: rank, shades: rank.map((row) => row.map((index) => Math.log(V / index))), most: Math.log(V), colorbar: { ...bar, tickvals: powersOfTen.map((index) => Math.log(V / index)), ticktext: powersOfTen.map((index) => index.toLocaleString("en")) } }),
    entropy: () => ({ shades: entropy, most: Math.log2(V), colorbar: bar }),
    target: () => ({ shades: target, most: 1, colorbar: bar }),
    probability: () => ({ shades: topProbabilities.map((row) => row.map(([first]) => first)), most: 1, colorbar: bar }),
  }[state.lens]();
  return {
    numbers: colours.shades, ...colours, meta: { numbers: "customdata" }, page, names, likeliest: top.map((row) => row.map(([id]) => tokenLabel(vocabulary[id], Math.floor(MAX_ROW_CHARS / page.length)))), hover: names.map((_name, depth) => page.map((_at, column) => hover(depth, column))),
    depths: names.length, positions: page.length, colour, token: quoteToken(tokens[position]), last: quoteToken(vocabulary[lastGuess]),
    tokens: numberedAxis(tokens, title, page), range: [page[0] - 0.5, page.at(-1) + 0.5], frame: columnFrame(position, names.length),
  };
}

/** Describe from which depth on the final prediction is the likeliest token (lens_sentence). @param {ViewContext} context */
async function sentence(context) {
  const { tokens, vocabulary, position } = context, { page, top } = await lensNumbers(context), likeliest = top.map((row) => row[position - page[0]][0]), id = likeliest.at(-1);
  const lastOther = likeliest.findLastIndex((own) => own !== id), values = { query: quoteToken(tokens[position]), token: quoteToken(vocabulary[id]), layer: lastOther >> 1 };
  const start = lastOther < 0 ? _("After {query}, the likeliest is {token}, at every depth.", values)
    : lastOther % 2 ? _("After {query}, the likeliest is {token}, from the feed-forward of layer {layer} on.", values) : _("After {query}, the likeliest is {token}, from the attention of layer {layer} on.", values);
  return `${start} ${_("Each cell: the likeliest next token there, after the final norm (logit lens).")}`;
}

/** @param {ViewContext} context */
async function path(context) {
  const { config, tokens, vocabulary, position } = context, { page, ids, probabilities, ranks } = await lensNumbers(context), names = depthNames(config), labels = depthLabels(config), column = position - page[0], V = config.vocab_size;
  const chances = ids.map((_id, i) => probabilities[i].map((row) => row[column])), isClipped = Math.min(...chances.flat()) < MIN_DRAWN_PROBABILITY;
  return {
    meta: { numbers: "customdata" }, depths: range(names.length), names, ends: [0, names.length - 1], uniform: [1 / V, 1 / V], size: V,
    lines: ids.map((id, i) => ({
      drawn: chances[i].map((chance) => Math.max(chance, MIN_DRAWN_PROBABILITY)), numbers: chances[i], line: i ? { color: RESIDUAL, dash: "dash" } : { color: SELECTED, dash: "solid" }, name: `“${tokenLabel(vocabulary[id])}”`,
      hover: labels.map((depth, index) => _("{depth}<br>probability {probability}, rank {rank:,}", { depth, probability: formatNumber(chances[i][index]), rank: ranks[i][index][column] })),
    })),
    title: isClipped ? _("probability<br>(what is less is drawn at 10⁻⁹)") : _("probability"), token: quoteToken(vocabulary[ids[0]]), query: quoteToken(tokens[position]), first: formatNumber(chances[0][0]), last: formatNumber(chances[0].at(-1)),
  };
}

/** @param {ViewContext} context */
async function rollout({ tokens, position, key, ask }) {
  const weights = (await ask("rollout", { position })).subarray(0, position + 1), strongest = argmax(weights), visibleTokens = tokens.slice(0, position + 1);
  return {
    labels: positionLabels(visibleTokens), weights, colors: visibleTokens.map((_token, i) => (i === key ? SELECTED : RESIDUAL)), token: quoteToken(tokens[position]), position, share: formatNumber(weights[strongest]),
    origin: quoteToken(tokens[strongest]), strongest, tokens: tokenAxis(visibleTokens, { maxLabels: 32 }),
  };
}

/** Return each bar's axis label, value, colour, description and layer (component_bar_data). @param {ViewContext} context @returns {Promise<[string, number, string, string, number | null][]>} */
async function componentBars(context) {
  const { config } = context, { token, positions, heads, biases, feed_forward, shift } = await attribution(context), { num_layers, num_heads: H } = config;
  return /** @type {any} */ ([
    [_("embedding"), token, EMBEDDING, _("the token’s embedding"), null],
    config.position === "sinusoidal" && [_("position"), positions, EMBEDDING, _("the position added to it"), null],
    ...range(num_layers).flatMap((layer) => [
      [_("{layer} attention", { layer }), sum(heads.subarray(layer * H, (layer + 1) * H)), ATTENTION, _("the {count} heads of layer {layer}", { count: H, layer }), layer],
      config.bias && [_("{layer} bias", { layer }), biases[layer], ATTENTION, _("the bias of W_O of layer {layer}", { layer }), layer],
      [_("{layer} feed-forward", { layer }), feed_forward[layer], FEED_FORWARD, _("the feed-forward of layer {layer}", { layer }), layer],
    ]),
    config.norm === "layernorm" && ["β", shift, NORM, _("the shift β of all norms"), null],
  ].filter(Boolean));
}

/** Format a contribution as a phrase. @param {number} value @param {(size: number) => string} [format] */
const phrase = (value, format = formatNumber) => (value >= 0 ? _("adds {value}", { value: format(value) }) : _("takes {value}", { value: format(-value) }));

/** @param {ViewContext} context */
async function parts(context) {
  const { config, tokens, vocabulary, position, layer, tokenId, contrastId } = context, bars = await componentBars(context), { logit } = await attribution(context);
  const values = bars.map(([, value]) => value), most = argmax(values, Math.abs), total = sum(values);
  const names = [[EMBEDDING, config.position === "sinusoidal" ? _("embedding and position") : _("embedding")], [ATTENTION, _("attention")], [FEED_FORWARD, _("feed-forward")], ...(config.norm === "layernorm" ? [[NORM, _("β of the norms")]] : [])];
  return {
    bars: range(bars.length), values, colours: bars.map(([, , colour]) => colour), hover: bars.map(([, value, , description]) => `${description}<br>${phrase(value, formatSixDigits)}`), layers: bars.map(([, , , , own]) => own ?? layer), names: bars.map(([name]) => name),
    written: values.map(formatContribution), largest: formatContribution(values[most]), colours_named: names.map(([colour, name]) => `<span style="color:${colour}">■</span> ${name}`).join("  "), count: bars.length, logit: logitLabel(vocabulary, { tokenId, contrastId }), token: quoteToken(tokens[position]),
    value: formatNumber(logit), part: bars[most][3], adds: phrase(values[most]), total: formatContribution(total).replace("+", ""), label: logitLabel(vocabulary, { tokenId, contrastId }, tokenLabel),
  };
}

/** @param {ViewContext} context */
async function heads(context) {
  const { config: { num_layers, num_heads: H }, tokens, vocabulary, position, layer, head, tokenId, contrastId } = context, { heads: allHeads } = await attribution(context), values = range(num_layers).map((i) => allHeads.subarray(i * H, (i + 1) * H)), best = argmax(allHeads, Math.abs), most = Math.abs(allHeads[best]) || 1;
  return {
    values, least: -most, most, numbers: values.map((row) => Array.from(row, formatContribution)), written: H <= 12 ? "%{text}" : undefined, heads: allHeads.length, logit: logitLabel(vocabulary, { tokenId, contrastId }), token: quoteToken(tokens[position]),
    scale: contrastId === null ? _("adds to the logit") : _("adds to the logit difference"), adds: phrase(allHeads[best]), layer: Math.floor(best / H), head: best % H, frames: [cellFrame(layer, head)],
  };
}

/** Return each token's contribution to the logit through all heads, and the rest of the logit (token_contributions.py). @param {ViewContext} context */
export async function sourceTotals(context) {
  const { tokens: { length: T }, position } = context, { sources: { effects, changed } } = await wholeModelNumbers(context), { token, positions, biases, feed_forward, shift } = await attribution(context);
  return { values: range(position + 1).map((key) => sum(effects.filter((_effect, i) => i % T === key))), rest: token + positions + sum(biases) + sum(feed_forward) + sum(changed) + shift };
}

/** @param {ViewContext} context */
async function by_source(context) {
  const { tokens, vocabulary, position, key, tokenId, contrastId } = context, { values, rest } = await sourceTotals(context), names = positionLabels(tokens).slice(0, position + 1), best = argmax(values, Math.abs), total = formatNumber(sum(values) + rest);
  return {
    names, values, rest: [rest], count: position + 1, logit: logitLabel(vocabulary, { tokenId, contrastId }), label: logitLabel(vocabulary, { tokenId, contrastId }, tokenLabel), token: quoteToken(tokens[position]), adds: phrase(values[best]), source: names[best], total,
    tokens: tokenAxis(tokens, { visible: range(position + 1) }), range: [-0.5, position + 0.5], frame: { ...columnBand(key), yref: "paper" },
  };
}

/** Return probability and rank of the text's next token after each position. @param {ViewContext} context */
async function actual(context) {
  const { config, tokens, vocabulary, position, measures: { surprisal, rank }, ask } = context, T = tokens.length, probabilities = range(1, T).map((index) => 2 ** -surprisal[index]), ranks = rank.slice(1), labels = positionLabels(tokens), likeliest = await ask("likeliest", {});
  const hover = probabilities.map((probability, index) => [
    _("after {token} comes {next}:<br>probability {probability}, rank {rank:,.0f}<br>the likeliest:", { token: labels[index], next: tokenLabel(tokens[index + 1]), probability: formatNumber(probability), rank: ranks[index] }),
    ...likeliest[index].map(([id, share], i) => `${i + 1}. ${tokenLabel(vocabulary[id])}  ${share.toFixed(3)}`),
  ].join("<br>"));
  const alt = () => _("Probability and rank of the token that comes next after each of {positions} positions: {first} times the model’s likeliest, median probability {median}.", { positions: hover.length, first: ranks.filter((index) => index === 1).length, median: formatNumber(median(probabilities)) });
  return {
    labels: labels.slice(0, -1), probabilities, ranks, hover, alt: hover.length ? alt() : _("Only one token: nothing follows yet."), tokens: tokenAxis(tokens), range: [-0.5, T - 0.5], rank_range: [Math.log10(config.vocab_size), -0.3],
    frames: [{ ...columnBand(position), yref: "paper" }], notes: position === T - 1 ? [{ x: position, y: 0.5, text: _("nothing follows yet"), textangle: -90, font: { size: 11 }, showarrow: false }] : [],
  };
}

export default { formula, sentence, panels: { lens, path, rollout, parts, heads, by_source, actual } };
