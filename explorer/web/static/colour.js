// @ts-check
// Colours as channels: red, green and blue from 0 to 255.

/** @typedef {number[]} Channels */

/** Channels of "#rrggbb". @param {string} hex @returns {Channels} */
export const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

/**
 * The colour at a share of the way along a scale, 0 to 1.
 * @param {[number, Channels][]} stops places, the first 0 and the last 1, and their colours
 * @param {number} share
 * @returns {Channels}
 */
export function along(stops, share) {
  const at = Math.max(0, Math.min(1, share)), i = Math.max(1, stops.findIndex(([stop]) => stop >= at));
  const [[from, first], [to, last]] = [stops[i - 1], stops[i]];
  return first.map((channel, j) => channel + ((last[j] - channel) * (at - from)) / (to - from));
}

/** A scale of 256 colours. @param {string[]} hexes @returns {Channels[]} */
export function palette(hexes) {
  const stops = hexes.map((hex, i) => /** @type {[number, Channels]} */ ([i / (hexes.length - 1), channels(hex)]));
  return Array.from({ length: 256 }, (_nothing, i) => along(stops, i / 255));
}

/** Relative luminance (WCAG 2.2), 0 to 1. @param {Channels} colour */
function luminance(colour) {
  const [r, g, b] = colour.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Of black and white the one that is read better on a colour; its contrast is 4.58 or more. @param {Channels} colour */
export const legibleOn = (colour) => ((luminance(colour) + 0.05) ** 2 > 1.05 * 0.05 ? "black" : "white");
