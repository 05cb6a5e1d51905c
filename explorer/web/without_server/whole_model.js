// @ts-check
// The view of the whole model, as in explorer/views/overview/: what each component reads from where, and its contribution to the target's logit.
import { _, lookUpMessage } from "../static/text.js";
import { escapeToken, formatContribution, formatCount, formatFixed, formatNumber, formatPercent, formatSixDigits, quoteToken, quoteTokenInText, quoteWord, quoteWordAt, shortenToken } from "./figures.js";
import { VIEWS } from "./page_data.js";

const MAX_ROWS = 18, MIN_SHARE = 0.06, MAX_CURVES = 200, NUM_LISTED = 20;

/** Input of the view. @typedef {{ config: any, vocabulary: string[], tokens: string[], state: any, position: number, actual: number | null, order: number[], now: number[], rank: number, probability: number, numbers: any, value: (name: string) => Promise<{ data: Float32Array, shape: number[] }> }} Shown
 *   `order` and `now`: ids by logit without interventions and with them; `rank` and `probability`: of the target token in this run; `numbers`: result of the worker's `overview` */

/** Round a number for JSON; null if it is not finite. @param {number} value */
const finite = (value) => (Number.isFinite(value) ? Math.round(value * 1e6) / 1e6 : null);
const sum = (values) => values.reduce((total, value) => total + value, 0);

/** Return the ids of the target and the contrast token; the latter may be null. @param {number[]} order @param {any} state */
export const targetAndContrast = (order, { target, rival }) => ({ tokenId: order[target - 1], contrastId: rival && rival !== target ? order[rival - 1] : null });

/** Return the numbers of all components from the worker. @param {import("./views.js").ViewContext} context */
export const wholeModelNumbers = ({ once, ask, position, tokenId, contrastId }) => once("overview", () => ask("overview", { position, tokenId, contrastId }));

/** Return the view's contents by element id. @param {Shown} input */
export async function packWholeModel(input) {
  const { tokens, position, vocabulary, order, state } = input, ids = targetAndContrast(order, state);
  const context = { ...input, ...ids, best: largestSource(input), token: quoteToken(vocabulary[ids.tokenId]), logit: logitLabel(vocabulary, ids) };
  const cell = state.open === "cell" ? await computeCell(context) : null;
  return {
    "overview-whole": await figure(context, cell),
    "overview-words": ["formula", "code"].includes(state.depth) ? lookUpMessage(VIEWS.overview.description) : sentence(context, cell),
    "overview-formula": [...formula(context), ...(cell ? cellFormula(context, cell) : [])].join("\n"),
    "overview-choosers": packChoosers(input),
    "overview-what-ifs": [],
  };
}

/** Return the view's dropdowns. @param {Shown} input */
export function packChoosers(input) {
  const queries = input.tokens.map((token, i) => [i, `${i}  ${escapeToken(token)}`]), listed = nextTokenOptions(input);
  return { choices: [{ field: "query", title: _("query"), options: queries }, { field: "target", title: _("explain"), options: listed }, { field: "rival", title: _("against"), options: contrastOptions(input) }], all: true };
}

/** Return the options of the contrast token. @param {Parameters<typeof nextTokenOptions>[0]} shown */
export const contrastOptions = (shown) => [[0, _("nothing")], ...nextTokenOptions(shown).filter(([rank]) => rank !== shown.state.target)];

/** @param {string[]} vocabulary @param {{ tokenId: number, contrastId: number | null }} ids */
export function logitLabel(vocabulary, { tokenId, contrastId }, format = quoteToken) {
  const token = format(vocabulary[tokenId]);
  return contrastId === null ? _("the logit of {token}", { token }) : _("the logit of {token} less that of {rival}", { token, rival: format(vocabulary[contrastId]) });
}

/** Return the likeliest next tokens by rank, with the selected ones and the text's own. @param {Pick<Shown, "order" | "now" | "state" | "vocabulary" | "actual">} shown */
export function nextTokenOptions({ order, now, state, vocabulary, actual }) {
  const ranks = new Set([...Array(NUM_LISTED).keys()].map((i) => i + 1).concat(Math.max(1, state.target), Math.max(1, state.rival), actual === null ? [] : order.indexOf(actual) + 1));
  return [...ranks].sort((a, b) => a - b).map((rank) => {
    const token = escapeToken(vocabulary[order[rank - 1]]), current = now.indexOf(order[rank - 1]) + 1;
    return [rank, current === rank ? `${rank}.  ${token}` : _("{rank}.  {token} (now {now:,}.)", { rank, token, now: current })];
  });
}

/** Return layer, head and key of the largest contribution from an earlier token; null if none is positive. */
function largestSource({ config: { num_heads: H }, tokens: { length: T }, position, numbers: { sources: { effects } } }) {
  let best = -1;
  effects.forEach((effect, i) => { if (i % T < position && effect > (best < 0 ? 0 : effects[best])) best = i; });
  return best < 0 ? null : { layer: Math.floor(best / T / H), head: Math.floor(best / T) % H, key: best % T, effect: effects[best] };
}

/** Return rows [first, last] that cover a text in order: single rows for the most important tokens, as far as there is room, and folds of the others.
 * @param {Float64Array} importance (T,) @param {number[]} required @returns {[number, number][]} */
function foldTokens(importance, required) {
  const total = importance.length, singleRows = new Set(required);
  const rows = (/** @type {Set<number>} */ shownPositions) => {
    const foldedRows = [];
    let start = 0;
    for (const position of [...[...shownPositions].sort((a, b) => a - b), total]) {
      if (start < position) foldedRows.push([start, position - 1]);
      if (position < total) foldedRows.push([position, position]);
      start = position + 1;
    }
    return foldedRows;
  };
  if (total <= MAX_ROWS) return Array.from(importance, (_none, i) => [i, i]);
  for (const position of [...importance.keys()].sort((a, b) => importance[b] - importance[a] || a - b)) {
    if (!singleRows.has(position) && rows(new Set([...singleRows, position])).length <= MAX_ROWS) singleRows.add(position);
  }
  return rows(singleRows);
}

async function figure(context, cell) {
  const { config, tokens, position, vocabulary, tokenId, contrastId, numbers: { attribution, sources, guesses, norms }, state, rank, probability, best, token, logit } = context, { num_layers: L, num_heads: H } = config, T = tokens.length;
  const key = Math.min(state.key, position), importance = Float64Array.from(tokens, (_none, i) => -1e-9 * Math.abs(i - position)); // nearer tokens first among equals
  sources.norms.forEach((norm, i) => { importance[i % T] += norm; });
  const rows = foldTokens(importance, [position, key]), { curves, rest } = selectCurves(context);
  const alt = [_("The model at {token}: {layers} blocks, the token’s residual stream through them, and what {heads} heads in each take from earlier tokens.", { token: quoteToken(tokens[position]), layers: L, heads: H })];
  if (best) alt.push(_("The most for {logit} comes from {key} through layer {layer} head {head}: {effect}.", { logit, key: quoteTokenInText(tokens, best.key), layer: best.layer, head: best.head, effect: formatContribution(best.effect) }));
  return {
    alt: alt.join(" "), query: position, key: state.key, answer: shortenToken(vocabulary[tokenId]), rank, probability: finite(probability),
    contrast: contrastId === null ? "" : shortenToken(vocabulary[contrastId]), logit: finite(attribution.logit), norm: finite(norms[0]),
    rows: rows.map(([first, last]) => [first, last, first === last ? shortenToken(tokens[first], 13) : _("… {count} tokens", { count: last - first + 1 })]),
    blocks: guesses.map(({ id, probability: share }, layer) => ({
      guess: shortenToken(vocabulary[id] ?? ""), probability: finite(share), norm: finite(norms[layer + 1]),
      heads: Array.from(attribution.heads.subarray(layer * H, (layer + 1) * H), (value) => finite(value)), feed_forward: finite(attribution.feed_forward[layer]),
    })),
    curves, largest_norm: Math.max(0, ...curves.map(([, , , norm]) => norm)), largest_effect: Math.max(0, ...curves.map(([, , , , effect]) => Math.abs(effect))), rest,
    terms: terms(context).map(([kind, label, value]) => [kind, label, finite(value)]), key_groups: 1, open: state.open ? await openPart(context, rows, cell) : null,
  };
}

/** Return the curves to draw, the widest first, as [layer, head, key, norm, effect, weight], and number and total effect of the others. */
function selectCurves({ config: { num_heads: H }, tokens: { length: T }, position, numbers: { sources: { effects, norms }, weights } }) {
  const earlierIndices = [...norms.keys()].filter((i) => i % T < position), largest = (values) => earlierIndices.reduce((max, i) => Math.max(max, Math.abs(values[i])), 0);
  const [widest, strongest] = [largest(norms), largest(effects)], isWideOrStrong = (i) => norms[i] > 0 && (norms[i] >= MIN_SHARE * widest || Math.abs(effects[i]) >= MIN_SHARE * strongest);
  const selected = earlierIndices.filter(isWideOrStrong).sort((a, b) => norms[b] - norms[a] || a - b).slice(0, MAX_CURVES), isSelected = new Set(selected);
  const others = earlierIndices.filter((i) => norms[i] > 0 && !isSelected.has(i));
  return {
    curves: selected.map((i) => [Math.floor(i / T / H), Math.floor(i / T) % H, i % T, finite(norms[i]), finite(effects[i]), finite(weights[i])]),
    rest: [others.length, finite(sum(others.map((i) => effects[i])))],
  };
}

/** Return the terms of the target's logit: kind, label and value. @returns {[string, string, number][]} */
function terms({ config, tokens: { length: T }, position, numbers: { attribution, sources } }) {
  const sumEffects = (isOwn) => sources.effects.reduce((total, effect, i) => total + ((i % T === position) === isOwn ? effect : 0), 0), changedTotal = sum(sources.changed), biases = sum(attribution.biases);
  return /** @type {[string, string, number][]} */ ([
    ["embedding", _("embedding"), attribution.token],
    config.position === "sinusoidal" && ["embedding", _("position"), attribution.positions],
    position && ["sources", _("heads, from earlier tokens"), sumEffects(false)],
    ["own", _("heads, from the token itself"), sumEffects(true)],
    sources.changed.some(Boolean) && ["rest", _("changed heads"), changedTotal],
    attribution.biases.some(Boolean) && ["rest", _("biases of W_O"), biases],
    ["feed_forward", _("feed-forward"), sum(attribution.feed_forward)],
    config.norm === "layernorm" && ["rest", _("β of the norms"), attribution.shift],
  ].filter(Boolean));
}

/** Return the open block: for each head and row the weights of the rows up to it. */
async function openPart({ config: { num_heads: H }, tokens: { length: T }, state: { open, layer, head }, value }, rows, cell) {
  const { data } = await value(`blocks.${layer}.attn.pattern`); // (H, T, T)
  const patterns = Array.from({ length: H }, (_none, h) => rows.map(([first, last], row) => (first < last ? [] : rows.slice(0, row + 1).map(([from, to]) => finite(sum(data.subarray((h * T + first) * T + from, (h * T + first) * T + to + 1)))))));
  return { level: open, layer, head, patterns, cell: cell && cell.content };
}

/** Compute one cell: the head's query and key by dimension, and the steps from their product to a contribution. */
async function computeCell(context) {
  const { config: { position: kind, num_heads: H }, tokens: { length: T }, position, state: { layer, head, key, depth }, value, numbers: { sources, dHead, weights }, vocabulary, tokenId, contrastId } = context, attn = `blocks.${layer}.attn`, suffix = kind === "rope" ? "_rot" : "";
  const [qs, ks, { data: values }, { data: scores }] = await Promise.all([`q${suffix}`, `k${suffix}`, "v", "scores"].map((name) => value(`${attn}.${name}`)));
  const vector = (data, tokenIndex) => data.subarray((head * T + tokenIndex) * dHead, (head * T + tokenIndex + 1) * dHead), q = vector(qs.data, position), k = vector(ks.data, key), v = vector(values, key);
  const dots = Float64Array.from({ length: position + 1 }, (_none, tokenIndex) => q.reduce((total, x, i) => total + x * vector(ks.data, tokenIndex)[i], 0)), largest = Math.max(...dots) / Math.sqrt(dHead);
  const exps = dots.map((dot) => Math.exp(dot / Math.sqrt(dHead) - largest)), index = (layer * H + head) * T + key, weight = weights[index], norm = sources.norms[index], effect = sources.effects[index], changed = sources.changed[layer * H + head];
  const rank = 1 + dots.filter((dot) => dot > dots[key]).length, count = position + 1;
  const target = shortenToken(vocabulary[tokenId]) + (contrastId === null ? "" : ` − ${shortenToken(vocabulary[contrastId])}`), steps = (depth === "story" ? [
    ["score", _("score of q and k"), formatNumber(scores[(head * T + position) * T + key])],
    ["rank", _("place of this score"), _("{rank} of {count}", { rank, count })],
    ["weight", _("share of its attention"), formatPercent(weight)],
    ...(changed ? [] : [["effect", +effect.toFixed(2) === 0 ? _("of little effect on the answer") : effect > 0 ? _("for the answer") : _("against the answer"), formatContribution(effect)]]),
  ] : [
    ["dot", kind === "rope" ? _("q·k after RoPE: sum of the products") : _("q·k: sum of the products"), formatNumber(dots[key])],
    ["score", _("÷ {divisor}: score before mask and softmax", { divisor: `√${dHead}` }), formatNumber(scores[(head * T + position) * T + key])],
    ["mask", _("+ mask: this key is"), weight === 0 ? _("hidden") : _("visible")],
    ["weight", _("softmax: share of the row"), formatNumber(weight)],
    ...(changed ? [["effect", _("a change of the run replaces what this head adds"), formatContribution(changed)]] : [
      ["value", _("× v: norm of the vector"), formatNumber(weight * Math.hypot(...v))],
      ["norm", _("× W_O: norm that it writes"), formatNumber(norm)],
      ["effect", _("adds to the logit of {token}", { token: target }), formatContribution(effect)],
    ]),
  ]).map(([step, name, text]) => ({ kind: step, name, value: text }));
  return { rank, count, dot: dots[key], score: dots[key] / Math.sqrt(dHead), part: exps[key], total: sum(exps), norm, effect, content: { query: Array.from(q, (x) => finite(x)), key: Array.from(k, (x) => finite(x)), steps } };
}

/** Describe in a sentence what the figure shows: the whole model, or the open part. */
function sentence({ config: { num_heads: H }, tokens, position, state: { open, layer, head, key, depth }, rank, best, tokenId, vocabulary, contrastId, numbers: { attribution, sources, weights } }, cell) {
  const T = tokens.length, quote = depth === "story" ? quoteWord : quoteToken, after = quote(tokens[position]), token = quote(vocabulary[tokenId]), start = (layer * H + head) * T;
  if (open === "block" && depth === "story") return blockSentence(sum(attribution.heads.subarray(layer * H, (layer + 1) * H)), attribution.feed_forward[layer], token);
  if (open === "block") return _("Layer {layer}: its heads add {heads} to the logit of {token}, its feed-forward {feed_forward}.", { layer, heads: formatContribution(sum(attribution.heads.subarray(layer * H, (layer + 1) * H))), token, feed_forward: formatContribution(attribution.feed_forward[layer]) });
  if (cell && depth === "story") {
    const values = { query: after, key: quote(tokens[key]), percent: formatPercent(weights[start + key]), count: cell.count, better: cell.rank - 1 };
    if (cell.count === 1) return _("{query} sees only itself here, so all its attention stays there.", values);
    return cell.rank === 1 ? _("{query} gives {key} {percent} of its attention: of {count} keys (k), this one fits its question (q) best.", values) : _("{query} gives {key} {percent} of its attention: {better} of {count} keys (k) fit its question (q) better.", values);
  }
  if (open) {
    const row = weights.subarray(start, start + position + 1), keyIndex = open === "head" ? row.indexOf(Math.max(...row)) : key;
    const values = { layer, head, query: after, key: (depth === "story" ? quoteWordAt : quoteTokenInText)(tokens, keyIndex), percent: formatPercent(row[keyIndex]), effect: formatContribution(sources.effects[start + keyIndex]), token };
    if (open === "head" && depth === "story") return headSentence(effectSign(sources.effects, start + keyIndex), effectSign(attribution.heads, layer * H + head), !sources.changedMask[layer * H + head] ? "" : attribution.heads[layer * H + head] ? "changed" : "off", values);
    return open === "head" ? _("Layer {layer} head {head}: {query} looks most at {key} ({percent}), which adds {effect} to the logit of {token}.", values) : _("Layer {layer} head {head}: {query} looks at {key} with {percent}, which adds {effect} to the logit of {token}.", values);
  }
  const opening = rank === 1 ? _("After {after} the model expects {token}", { after, token }) : _("After {after} the model has {token} in place {rank:,}", { after, token, rank: formatCount(rank) }), score = formatFixed(attribution.logit, 2);
  if (!best) return _("{start}: no earlier token adds to its logit, {score}.", { start: opening, score });
  const values = { start: opening, layer: best.layer, head: best.head, key: quoteTokenInText(tokens, best.key), effect: formatContribution(best.effect), score };
  if (depth === "story" && contrastId === null) return _("{start}. The look back that adds most to its score is at {key}.", { ...values, key: quoteWordAt(tokens, best.key) });
  return contrastId === null ? _("{start}. The look back that adds most: layer {layer} head {head} at {key} ({effect} of logit {score}).", values) : _("{start}: layer {layer} head {head} looks back at {key} ({effect} of the logit difference, {score}).", values);
}

/** Describe whether an open block's two parts add to the token's logit. @param {number} heads @param {number} feedForward @param {string} token */
function blockSentence(heads, feedForward, token) {
  if (heads > 0 && feedForward > 0) return _("Taken together, the heads of this layer speak for {token}, and so does its feed-forward.", { token });
  if (heads > 0) return _("Taken together, the heads of this layer speak for {token}; its feed-forward speaks against it.", { token });
  return feedForward > 0 ? _("Taken together, the heads of this layer speak against {token}; its feed-forward speaks for it.", { token }) : _("Taken together, the heads of this layer speak against {token}, and so does its feed-forward.", { token });
}

const NEUTRAL_SHARE = 0.04; // of the largest effect: less is drawn grey

/** Return the sign of one of some effects, 0 for a small one. @param {ArrayLike<number>} effects @param {number} index */
const effectSign = (effects, index) => (Math.abs(effects[index]) < NEUTRAL_SHARE * Array.prototype.reduce.call(effects, (max, effect) => Math.max(max, Math.abs(effect)), 0) ? 0 : Math.sign(effects[index]));

/** Describe where an open head looks most, and what that and the whole head add to the token's logit. @param {number} look sign of its effect @param {number} whole sign of the head's @param {"off" | "changed" | ""} change @param {Record<string, any>} values */
function headSentence(look, whole, change, values) {
  const opening = _("In this head, {query} looks most at {key} ({percent}).", values);
  if (change) return [opening, change === "off" ? _("The head is off and adds nothing.") : _("A change replaces what this head adds.")].join(" ");
  const says = look === 0 ? _("This look says little about {token}.", values) : look > 0 ? _("This look speaks for {token}.", values) : _("This look speaks against {token}.", values);
  const ofHead = whole === 0 ? _("The head as a whole does little.") : whole > 0 ? _("The head as a whole speaks for it.") : _("The head as a whole speaks against it.");
  return [opening, says, ...(whole === look ? [] : [ofHead])].join(" ");
}

/** Return the sum of contributions to the target's logit, in numbers. */
function formula({ config, tokens, position, token, logit, rank, probability, numbers: { attribution, norms } }) {
  const hasPositions = config.position === "sinusoidal", layers = config.num_layers;
  const summands = hasPositions ? _("embedding + position + attention + feed-forward of {layers} layers in turn", { layers }) : _("embedding + attention + feed-forward of {layers} layers in turn", { layers });
  const groups = /** @type {[string, number][]} */ ([[_("embedding"), attribution.token], hasPositions && [_("position"), attribution.positions], [_("attention"), sum(attribution.heads) + sum(attribution.biases)], [_("feed-forward"), sum(attribution.feed_forward)], config.norm === "layernorm" && [_("β of the norms"), attribution.shift]].filter(Boolean));
  const total = sum(groups.map(([, value]) => value));
  return [
    _("residual stream x at {token} ({position}): {added}; ‖x‖₂ = {first} → {last}", { token: quoteToken(tokens[position]), position, added: summands, first: formatNumber(norms[0]), last: formatNumber(norms.at(-1)) }),
    _("{logit} = {parts} = {total}   captured {captured}, off by {error}", { logit, parts: groups.map(([name, value]) => `${name} ${formatSixDigits(value)}`).join(" + "), total: formatSixDigits(total), captured: formatSixDigits(attribution.logit), error: formatNumber(Math.abs(total - attribution.logit)) }),
    _("the model’s probability of {token} = e^logit / Σ e^logits = {probability}, rank {rank:,}", { token, probability: formatNumber(probability), rank: formatCount(rank) }),
  ];
}

/** Return the computation of the open cell, in numbers. */
function cellFormula({ numbers: { dHead, weights }, config: { num_heads: H, position: kind }, tokens: { length: T }, state: { layer, head, key }, logit }, { dot, score, part, total, norm, effect }) {
  return [
    _("score = q·k / {divisor} = {dot} / {number} = {score}, of {vectors}", { vectors: kind === "rope" ? _("the rotated q and k") : _("q and k"), divisor: "√d", dot: formatSixDigits(dot), number: `√${dHead}`, score: formatSixDigits(score) }),
    _("weight = e^(score − largest) / Σ e^(score − largest) = {part} / {total} = {weight}", { part: formatSixDigits(part), total: formatSixDigits(total), weight: formatSixDigits(weights[(layer * H + head) * T + key]) }),
    _("‖weight · W_O v‖₂ = {norm}; its product with {logit}: {effect}", { norm: formatNumber(norm), logit, effect: formatContribution(effect) }),
  ];
}
