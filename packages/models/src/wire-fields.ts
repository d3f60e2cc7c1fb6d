/** A JSON object of which nothing is known yet. */
export type WireFields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is WireFields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The text, or null for anything else. */
export function textOr<Otherwise extends string | null>(value: unknown, otherwise: Otherwise): string | Otherwise {
  return typeof value === "string" ? value : otherwise;
}

/** The objects of a list; none of anything else. */
export function fieldsOf(value: unknown): readonly WireFields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

/** The object a JSON text stands for; null when it stands for none. No text at all is an object without fields. */
export function parseFields(json: string): WireFields | null {
  if (json.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(json);
    return isFields(value) ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
