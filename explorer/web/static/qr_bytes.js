// @ts-check
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
export function codedIn(text) {
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
  const inTurn = (all, most) => Array.from({ length: most }, (_byte, i) => all.map((one) => one[i])).flat().filter((byte) => byte !== undefined);
  return [...inTurn(blocks, length + 1), ...inTurn(checks, CHECKS[version])];
}
const bitsOf = (bytes) => bytes.flatMap((byte) => Array.from({ length: 8 }, (_bit, i) => ((byte >>> (7 - i)) & 1) === 1));
