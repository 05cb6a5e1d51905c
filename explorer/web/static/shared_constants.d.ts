// What Python calls things (shared_constants.py), and colours of the page and of every figure (style.py): of both assets.py makes a
// module.
export type Theme = { sequential: string[]; diverging: string[]; template: any };
export const THEMES: { light: Theme; dark: Theme };
export const ADDRESS_DEFAULTS: Record<string, string | number>;
export const ABOUT: string[];
export const COMPARING: string[];
/** A step of the story -> the views that tell more of it. */
export const DEEPER_VIEWS: Record<string, string[]>;
export const END_OF_TEXT_TOKENS: string[];
export const FULL_TABS: string[];
/** Whether figures are drawn by Plotly, which the page without a server lacks. */
export const PLOTLY_URL: string;
export const SELECTABLE: string[];
export const SIMPLE_TABS: string[];
export const STORY_TABS: string[];
export const LANGUAGES: Record<string, string>;
export const WHOLE: string[];

/** The page for scripts (page.js). */
type Explorer = {
  readonly state: Record<string, any>;
  select(change: Record<string, any>): Promise<void>;
  settled(): Promise<void>;
};
declare global { interface Window { explorer: Explorer } }
