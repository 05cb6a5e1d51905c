// @ts-check
// A text as a QR code (ISO/IEC 18004): bytes, error correction M, versions 1 to 10, as no longer link is for a class.
import { codedIn } from "./qr_bytes.js";

const LIKE_FINDERS = ["00001011101", "10111010000"], PENALTY = { run: 3, square: 3, finder: 40, share: 10 };
const MASKS = [
  (x, y) => (x + y) % 2, (x, y) => y % 2, (x) => x % 3, (x, y) => (x + y) % 3,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2, (x, y) => ((x * y) % 2) + ((x * y) % 3),
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2, (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2,
];

/**
 * Rows of modules, true for dark; null for a text that is too long.
 * @param {string} text
 * @param {number} [mask] by its number; the one that is read best where none is given
 * @returns {boolean[][] | null}
 */
export function qrOf(text, mask) {
  const coded = codedIn(text);
  if (!coded) return null;
  const { size, set, rows, isFixed } = frame(coded.version), placed = place(coded.bits, size, isFixed);
  const masked = (number) => {
    for (const [x, y, bit] of placed) set(x, y, bit !== (MASKS[number](x, y) === 0));
    drawFormat(number, size, set);
    return rows.map((row) => [...row]);
  };
  if (mask !== undefined) return masked(mask);
  const all = MASKS.map((_mask, number) => masked(number)), penalties = all.map(penaltyOf);
  return all[penalties.indexOf(Math.min(...penalties))];
}

/** What is dark or light whatever the text. @param {number} version */
function frame(version) {
  const size = 17 + 4 * version, rows = Array.from({ length: size }, () => Array(size).fill(false));
  const fixed = Array.from({ length: size }, () => Array(size).fill(false)), isFixed = (x, y) => fixed[y][x];
  const set = (x, y, dark) => { rows[y][x] = dark; }, fix = (x, y, dark) => { set(x, y, dark); fixed[y][x] = true; };
  const within = (at) => at >= 0 && at < size;
  for (let i = 0; i < size; i++) { fix(6, i, i % 2 === 0); fix(i, 6, i % 2 === 0); }
  for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]])
    for (let i = -4; i <= 4; i++)
      for (let j = -4; j <= 4; j++) {
        const far = Math.max(Math.abs(i), Math.abs(j));
        if (within(x + i) && within(y + j)) fix(x + i, y + j, far !== 2 && far !== 4);
      }
  const places = aligned(version, size), last = places.length - 1;
  places.forEach((x, i) => places.forEach((y, j) => {
    if ((i === 0 && j === 0) || (i === 0 && j === last) || (i === last && j === 0)) return;
    for (let a = -2; a <= 2; a++) for (let b = -2; b <= 2; b++) fix(x + a, y + b, Math.max(Math.abs(a), Math.abs(b)) !== 1);
  }));
  drawFormat(0, size, fix);
  if (version > 6) drawVersion(version, size, fix);
  return { size, rows, set, isFixed };
}

function aligned(version, size) {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2, step = Math.ceil((version * 4 + 4) / (count * 2 - 2)) * 2;
  return [6, ...Array.from({ length: count - 1 }, (_place, i) => size - 7 - (count - 2 - i) * step)];
}

function withRest(value, bits, divisor) {
  let rest = value;
  for (let i = 0; i < bits; i++) rest = (rest << 1) ^ ((rest >>> (bits - 1)) * divisor);
  return (value << bits) | rest;
}

function drawFormat(mask, size, set) {
  const format = withRest(mask, 10, 0x537) ^ 0x5412, bit = (i) => ((format >>> i) & 1) === 1; // M is 0
  for (let i = 0; i < 15; i++) {
    const down = i < 6 ? i : i < 8 ? i + 1 : size - 15 + i, along = i < 8 ? size - 1 - i : i === 8 ? 7 : 14 - i;
    set(8, down, bit(i));
    set(along, 8, bit(i));
  }
  set(8, size - 8, true);
}

function drawVersion(version, size, set) {
  const bits = withRest(version, 12, 0x1f25);
  for (let i = 0; i < 18; i++) {
    const a = size - 11 + (i % 3), b = Math.floor(i / 3), dark = ((bits >>> i) & 1) === 1;
    set(a, b, dark);
    set(b, a, dark);
  }
}

// In columns of two, up and down, from the right.
function place(bits, size, isFixed) {
  const placed = [];
  for (let right = size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < size; step++)
      for (const x of [right, right - 1]) {
        const y = ((right + 1) & 2) === 0 ? size - 1 - step : step;
        if (!isFixed(x, y)) placed.push([x, y, bits[placed.length] ?? false]);
      }
  }
  return placed;
}

function penaltyOf(rows) {
  const lines = [...rows, ...rows.map((_row, x) => rows.map((row) => row[x]))].map((line) => line.map(Number).join(""));
  let penalty = 0;
  for (const line of lines) {
    for (const [run] of line.matchAll(/0{5,}|1{5,}/g)) penalty += PENALTY.run + run.length - 5;
    for (let at = 0; at + 11 <= line.length; at++) if (LIKE_FINDERS.includes(line.slice(at, at + 11))) penalty += PENALTY.finder;
  }
  for (let y = 1; y < rows.length; y++)
    for (let x = 1; x < rows.length; x++) if (new Set([rows[y][x], rows[y - 1][x], rows[y][x - 1], rows[y - 1][x - 1]]).size === 1) penalty += PENALTY.square;
  const dark = rows.flat().filter(Boolean).length / rows.length ** 2;
  return penalty + PENALTY.share * Math.floor(Math.abs(dark - 0.5) * 20);
}
