export const MESSAGES = {};
