/** Types a JSON object whose fields are still unchecked. */
export type WireFields = Readonly<Record<string, unknown>>;

export function isWireFields(value: unknown): value is WireFields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function wireList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function wireText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function wireRole(message: unknown): string {
  return isWireFields(message) ? wireText(message["role"]) : "";
}

export function isBlank(text: string): boolean {
  return text.trim() === "";
}

/** Checks whether JSON of the value would be rejected because of half a surrogate pair. */
export function hasLoneSurrogate(value: unknown): boolean {
  if (typeof value === "string") return !value.isWellFormed();
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([key, field]) => !key.isWellFormed() || hasLoneSurrogate(field));
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

export const surrogateText = "The request body is not valid JSON: no low surrogate in string";

/**
 * Removes the type that records add to a part. Gemini and Bedrock identify a part by its only field, and a record
 * repeats that name as the type.
 */
export function withoutTypeOfOurs(block: WireFields): WireFields {
  const { type, ...part } = block;
  return typeof type === "string" && Object.hasOwn(part, type) ? part : block;
}
