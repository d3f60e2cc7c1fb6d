/**
 * What becomes a column of its own must be the same text in every store: no control characters (a NUL is an error in
 * some databases), no half characters (they are changed in silence on the way).
 */
export function isColumnText(value: unknown, maxLength: number): value is string {
  return typeof value === "string" && value !== "" && value.length <= maxLength && !/\p{Cc}|\p{Cs}/u.test(value);
}
