/** Of this package; a test compares it with its package.json. */
export const version = "0.1.0";
