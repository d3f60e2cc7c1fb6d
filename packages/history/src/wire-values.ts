/** A JSON object of which nothing is known yet. */
export type WireFields = Readonly<Record<string, unknown>>;

export function isWireFields(value: unknown): value is WireFields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The list, or an empty one for anything else. */
export function wireList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The string, or an empty one for anything else. */
export function wireText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function wireRole(message: unknown): string {
  return isWireFields(message) ? wireText(message["role"]) : "";
}

export function isBlank(text: string): boolean {
  return text.trim() === "";
}

/** Whether a JSON text of the value would be refused for half a surrogate pair. */
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

/** A part that is named by its one field, as Gemini and Bedrock write it: a record has that name as its type, too. */
export function withoutTypeOfOurs(block: WireFields): WireFields {
  const { type, ...part } = block;
  return typeof type === "string" && Object.hasOwn(part, type) ? part : block;
}
