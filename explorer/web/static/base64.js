// @ts-check
// Bytes as text. Browsers since 2025 do it themselves, thirty times as fast and more.

/** @param {string} text base64 @returns {Uint8Array<ArrayBuffer>} */
export const bytesOf = (text) => /** @type {any} */ (Uint8Array).fromBase64?.(text) ?? Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/** @param {Uint8Array} bytes @returns {string} */
export function base64Of(bytes) {
  if ("toBase64" in bytes) return /** @type {any} */ (bytes).toBase64();
  let text = "";
  for (let i = 0; i < bytes.length; i += 1 << 15) text += String.fromCharCode(...bytes.subarray(i, i + (1 << 15)));
  return btoa(text);
}
