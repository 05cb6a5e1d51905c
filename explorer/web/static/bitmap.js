// @ts-check
// Small pictures of a byte a pixel, as bitmap files of 256 colours: the pixels are the bytes as Python sent them, so that
// nothing is computed for each of them here, and another theme is other colours alone.

/** @typedef {import("./colour.js").Channels} Channels */

const START = 1080; // of the pixels: a multiple of 3, so that what is before and what follows are each base64 of their own

/** Bytes of a row, which a bitmap has filled up to a multiple of 4. @param {number} width pixels */
export const rowBytes = (width) => Math.ceil(width / 4) * 4;

/**
 * The beginning of a data URL, which the base64 of a picture's bytes ends: row by row from the top, `rowBytes` each.
 * @param {Channels[]} colours of the bytes 0 to 255
 * @param {number} width pixels
 * @param {number} height pixels
 */
export function bitmapBefore(colours, width, height) {
  const file = new DataView(new ArrayBuffer(START)), size = rowBytes(width) * height;
  const little = (at, ...numbers) => numbers.forEach((number, i) => file.setInt32(at + 4 * i, number, true));
  file.setUint16(0, 0x424d); // "BM"
  little(2, START + size, 0, START);
  little(14, 40, width, -height); // from the top
  file.setUint16(26, 1, true); // one plane
  file.setUint16(28, 8, true); // bits a pixel
  little(34, size, 0, 0, 256);
  colours.forEach(([red, green, blue], i) => [blue, green, red].forEach((channel, j) => file.setUint8(54 + 4 * i + j, Math.round(channel))));
  return `data:image/bmp;base64,${btoa(String.fromCharCode(...new Uint8Array(file.buffer)))}`;
}
