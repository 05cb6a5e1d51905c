// What static_page.py writes to docs/try/page_data.js.
export const FIRST_PROMPT: string;
/** Name of a model -> its checkpoints, by their steps of training. */
export const MODELS: Record<string, string[]>;
/** Generation setting -> its smallest and largest value. */
export const RANGES: Record<string, [number, number]>;
/** View -> its markup, without content. */
export const MARKUP: Record<string, string>;
