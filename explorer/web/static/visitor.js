// @ts-check
// Who asks: a name made up when the page was opened.

export const visitor = Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
