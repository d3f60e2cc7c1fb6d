/** A value of a message as text. An object has none: one that names its own `toString` would throw. */
export function asText(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? value.toString() : "";
}
