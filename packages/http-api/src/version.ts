/** Is a constant; a test compares it with the version in package.json. */
export const version = "0.1.0";
