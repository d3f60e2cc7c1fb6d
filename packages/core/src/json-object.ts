/** A JSON object of which nothing else is known. */
export type Fields = Readonly<Record<string, unknown>>;

/** Whether a value is an object with fields: no array, and not null. */
export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object that a JSON text is; null for any other text. */
export function parsedFields(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    return isFields(value) ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
