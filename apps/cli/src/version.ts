/** The version of this package; a test holds it equal to package.json, which a bundle does not carry. */
export const version: string = "0.1.0";
