/**
 * Converts a value to text. An object becomes an empty text, because a hostile `toString` field would make a conversion
 * throw.
 */
export function asText(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? value.toString() : "";
}
