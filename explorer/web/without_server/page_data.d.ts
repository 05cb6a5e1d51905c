// What static_page.py writes to docs/try/page_data.js.
export const FIRST_PROMPT: string;
/** Name of a model -> its checkpoints, by their steps of training. */
export const MODELS: Record<string, string[]>;
/** Generation setting -> its smallest and largest value. */
export const RANGES: Record<string, [number, number]>;
/** View -> its markup, without content. */
export const MARKUP: Record<string, string>;
/** View that this page draws -> its description, the fields of its lists, and its panels. */
export const VIEWS: Record<string, { description: string, controls: string[], panels: Panel[] }>;
/** A figure: its title, or that of what is chosen, and kind, how its mark is made, and the captured value of a cell, where that is declared. */
export type Panel = { name: string, width: "half" | "whole", title: string, heading: string, kind: string, height: number, verify?: { kind: "captured" | "derived", names: Record<string, string[]>, against?: string }, inspect?: { template: string, axes: string[] } };
/** Element id -> the declaration of its figure (explorer/views/figure_template.py). */
export const FIGURES: Record<string, { alt: any, traces: any[], layout: any }>;
/** Field of the selection -> the title of its list and, where they are always the same, its options. */
export const CHOICES: Record<string, { title: string, options: [string, string][] }>;
/** Colours and fonts of figures by their names in explorer/views/style.py. */
export const COLOURS: Record<string, string>;
/** Name of a model -> name of a captured value -> its formula: its class in explorer/explain/captured/, its attributes and its line of code. */
export const FORMULAS: Record<string, Record<string, Record<string, any>>>;
/** Name of a model -> view -> the model's code that it shows. */
export const CODE: Record<string, Record<string, string>>;
/** Last part of a captured value's name -> what an element of it is. */
export const ELEMENT_NAMES: Record<string, string>;
/** The texts of derivations, by what they are of. */
export const FORMULA_TEXTS: Record<string, any>;
/** What rounding explains, as a fraction of the size of a number's terms. */
export const TOLERANCE: number;
