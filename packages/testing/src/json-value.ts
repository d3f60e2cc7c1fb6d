export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function objectsOf(value: unknown): readonly JsonObject[] {
  return listOf(value).filter(isObject);
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function isInteger(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value);
}

/** Returns the first key of `object` that is not in `allowed`, or undefined when all keys are allowed. */
export function unknownKey(object: JsonObject, allowed: ReadonlySet<string>): string | undefined {
  return Object.keys(object).find((key) => !allowed.has(key));
}

/** Returns the repeated occurrences in order; the first occurrence of a value is not included. */
export function repeated(values: readonly string[]): readonly string[] {
  return values.filter((value, index) => values.indexOf(value) !== index);
}

/** Wraps the parsed value, because JSON null must differ from invalid JSON. Returns undefined for invalid JSON. */
export function parseJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
