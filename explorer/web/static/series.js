// @ts-check
// Checkpoints of one training, by their names (state/series.py).

/** The name of the model, which all checkpoints of its training share. @param {string} [checkpoint] */
export const modelOf = (checkpoint = "") => checkpoint.replace(/\/step-\d{1,9}$/, "");
