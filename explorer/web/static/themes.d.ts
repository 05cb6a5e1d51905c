// Colours of the page and of every figure (style.py), of which assets.py makes a module.
export type Theme = { sequential: string[]; diverging: string[]; template: any };
export const THEMES: { light: Theme; dark: Theme };
