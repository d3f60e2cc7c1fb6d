/** An object gives an empty text: `String` would throw for an object whose `toString` is not a function. */
export function asText(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? value.toString() : "";
}
