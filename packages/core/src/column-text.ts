/**
 * A text with a column of its own must be the same in every store. It has no control characters, because a NUL is an
 * error in some databases. It has no lone surrogates, because drivers replace them silently.
 */
export function isColumnText(value: unknown, maxLength: number): value is string {
  return typeof value === "string" && value !== "" && value.length <= maxLength && !/\p{Cc}|\p{Cs}/u.test(value);
}
