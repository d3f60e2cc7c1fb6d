/** A test compares this version with package.json, which a bundle does not contain. */
export const version: string = "0.1.0";
