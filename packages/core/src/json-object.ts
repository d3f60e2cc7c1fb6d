/** Types a JSON object whose members are not checked yet. */
export type Fields = Readonly<Record<string, unknown>>;

/** Arrays and null are objects in JavaScript, but have no fields here. */
export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function parsedFields(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    return isFields(value) ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
