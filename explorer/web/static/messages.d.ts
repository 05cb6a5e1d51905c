// The catalogue of Python's language (explorer/language: `for_script`), of which assets.py makes a module; {} in English.
export const MESSAGES: Record<string, any>;
