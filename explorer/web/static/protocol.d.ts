// What Python calls things (protocol.py), of which assets.py makes a module.
export const ABOUT: string[];
export const COACH: string;
export const FORMULA: string;
export const MARK: string;
export const NEXT_TOKEN: string;
export const PROBLEM: string;
export const WHY: string;
