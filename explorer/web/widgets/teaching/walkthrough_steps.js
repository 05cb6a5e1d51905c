// @ts-check
// Walkthroughs in words and frames, from their numbers (analysis/walkthroughs.py). Each step has a sentence and frames of a drawing.
import { formatFixed, formatNumber, _ } from "../../static/text.js";

/** @typedef {{ says: string, kind: string, frames: Record<string, any>[] }} Segment */
/** @typedef {{ title: string, segments: Segment[] }} Walkthrough */

/** Return a walkthrough with its title and steps. @param {any} content of `get_walkthrough` @returns {Walkthrough} */
export const describeWalkthrough = (content) => ({ attention, rotation, layers })[content.name](content);

/** Return a number as text, "−∞" for null, and its share of the largest one, from −1 to 1. @param {number | null} value @param {number} largest @param {(value: number) => string} [formatValue] */
const displayNumber = (value, largest, formatValue = formatNumber) => ({ text: value === null ? "−∞" : formatValue(value), share: largest > 0 && value !== null ? Math.max(-1, Math.min(1, value / largest)) : 0 });
const largestSize = (values) => Math.max(0, ...values.map(Math.abs)); // that of null is 0
const formatWeight = (weight) => formatFixed(weight, 4); // so that a column of them can be compared at a glance

/** Describe dot products, scaling, mask, softmax, and the weighted sum of the values. */
function attention({ layer, head, query, d_head: count, divisor, is_whole: isWhole, keys, sum }) {
  const hasLater = keys.at(-1).value === null, titles = ["q·k", _("score"), _("after the mask"), _("weight")];
  const sizes = titles.map((_title, stage) => largestSize(keys.map(({ numbers }) => numbers[stage])));
  function rows(says, numStages, isOneByOne = false) {
    const all = keys.map(({ label, key, chosen, numbers }) => ({ label, key, chosen, cells: numbers.slice(0, numStages).map((value, stage) => displayNumber(value, sizes[stage], stage === 3 ? formatWeight : formatNumber)) }));
    const frames = all.map((_row, i) => ({ columns: titles.slice(0, numStages), rows: all.slice(0, i + 1) }));
    return { says, kind: "rows", frames: isOneByOne ? frames : frames.slice(-1) };
  }
  const products = [_("The query of {query} meets each key: q·k is the sum of the products of their {count} numbers. The better they fit, the larger it is.", { query, count })];
  if (keys.some(({ label, key }) => label.endsWith(` (${key})`))) products.push(_("A number in brackets is the token’s position."));
  if (!isWhole) products.push(hasLater ? _("Shown are the chosen key, those that {query} looks at most, and one after it.", { query }) : _("Shown are the chosen key and those that {query} looks at most.", { query }));
  return { title: _("Attention of head {head} in layer {layer}, from {query}", { head, layer, query }), segments: [
    rows(products.join(" "), 1, true),
    rows(_("Each is divided by {divisor}: the score.", { divisor }), 2),
    rows(hasLater ? _("What comes after {query} must not be seen: −∞ in its place.", { query }) : _("The mask would hide what comes after {query}: here nothing does.", { query }), 3),
    rows(_("Softmax turns the scores into shares of 1: e to the power of each, divided by the sum of all."), 4),
    mixValues(keys.filter(({ value }) => value), sum, count),
  ] };
}

/** Multiply each value by its weight, and add them up to the head's output. @param {any[]} keys @param {number[]} sum @param {number} all number of dimensions */
function mixValues(keys, sum, all) {
  const largest = Math.max(largestSize(sum), ...keys.map(({ value }) => largestSize(value)));
  const strip = (label, vector, weight) => ({ label, weight: formatWeight(weight), opacity: weight, shares: vector.map((value) => displayNumber(value, largest).share), first: formatNumber(vector[0]) });
  const strips = keys.map(({ label, value, numbers }) => strip(label, value, numbers[3]));
  return {
    says: _("Each token’s value, as strong as its weight, is added up: that is what the head fetches. Shown are the first {count} of {all} numbers, and the first of them in digits.", { count: sum.length, all }), kind: "strips",
    frames: [...strips.map((_strip, i) => ({ strips: strips.slice(0, i + 1) })), { strips: [...strips, { ...strip(_("the sum, z"), sum, 1), is_sum: true }] }],
  };
}

/** Describe the selected token's residual stream, layer by layer. */
function layers({ token, largest, stages }) {
  const parts = { attn: _("attention"), ffn: _("feed-forward") }, floors = stages.map(({ label, norm }) => ({ label, length: displayNumber(norm, largest) }));
  const segments = stages.map(({ norm, updates, guesses }, i) => {
    const writes = updates.map(({ layer, sublayer, norm: length }) => _("In layer {layer} {part} writes a vector of length {length}.", { layer, part: parts[sublayer], length: formatNumber(length) }));
    const sentences = [...(i ? writes : [_("The way begins with the embedding of {token}.", { token })]), _("Now the stream is {length} long.", { length: formatNumber(norm) })];
    return { says: sentences.join(" "), kind: "tower", frames: [{ floors: floors.slice(0, i + 1), guesses: guesses.map(({ token: guess, probability }) => ({ token: guess, ...displayNumber(probability, 1) })) }] };
  });
  return { title: _("{token} on its way up the layers", { token }), segments };
}

const MAX_FRAMES = 24; // positions shown, evenly spaced

/** Describe the rotation of a pair of dimensions: the query's pair by position, then the key's, then both with their angle. */
function rotation({ pair, scale, changes, q, k, divisor, dot, adds }) {
  const largest = Math.max(...[q, k].flatMap(({ before, after }) => [Math.hypot(...before), Math.hypot(...after)])) || 1;
  const hand = (name, [a, b]) => ({ name, x: a / largest, y: b / largest, text: `(${formatNumber(a)}, ${formatNumber(b)})` });
  function frames(name, { position, angle: endAngle, before, after }) {
    const [a, b] = before.map((value) => scale * value), count = Math.min(position + 1, MAX_FRAMES);
    const positions = changes ? [] : Array.from({ length: count - 1 }, (_none, i) => Math.round((i * position) / (count - 1)));
    const points = positions.map((p) => [p, (endAngle * p) / position]).map(([p, angle]) => [p, angle, [a * Math.cos(angle) - b * Math.sin(angle), a * Math.sin(angle) + b * Math.cos(angle)]]);
    return [...points, [position, endAngle, after]].map(([p, angle, point]) => ({ hands: [hand(name, point), { ...hand(name, before), is_before: true }], position: p, angle: formatNumber(angle) }));
  }
  const { position } = q, key = { key: k.token, position: k.position }, product = { divisor, dot: formatNumber(dot), adds: formatNumber(adds) };
  const turning = changes ? _("At position {position} it would be rotated, but the rotation is changed in this run: {changes}.", { position, changes })
    : scale === 1 ? _("Each position rotates it by the same angle, up to position {position}. Its length stays.", { position })
    : _("Each position rotates it by the same angle, up to position {position}. Its length is multiplied by {scale}.", { position, scale: formatNumber(scale) });
  return { title: _("How position rotates pair {pair}: {query} at {at}, {key} at {other}", { pair, query: q.token, at: position, key: k.token, other: k.position }), segments: [
    { says: _("Pair {pair} of the query of {query}: two of its numbers, drawn as the hand of a clock, before its position is known.", { pair, query: q.token }), kind: "hands", frames: [{ hands: [hand("q", q.before)] }] },
    { says: turning, kind: "hands", frames: frames("q", q) },
    { says: changes ? _("The same pair of the key of {key}, at position {position}, with the same change.", key) : _("The same pair of the key of {key} is rotated to its own position, {position}.", key), kind: "hands", frames: frames("k", k) },
    { says: changes ? _("The score sees both as they are now. This pair adds q·k ÷ {divisor} = {dot} ÷ {divisor} = {adds} to it.", product)
      : _("The score sees both rotated. This pair adds q·k ÷ {divisor} = {dot} ÷ {divisor} = {adds} to it. If both moved by equally many positions, their angle and the score would stay.", product),
    kind: "hands", frames: [{ hands: [hand("q", q.after), hand("k", k.after)], angle: formatNumber(q.angle - k.angle) }] },
  ] };
}
