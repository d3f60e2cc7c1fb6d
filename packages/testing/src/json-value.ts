/** A parsed JSON object of which nothing is known yet. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** True for an object that is neither null nor a list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The list, or an empty one for anything else; for reading what was checked before. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The objects of a list; other members are left out. */
export function objectsOf(value: unknown): readonly JsonObject[] {
  return listOf(value).filter(isObject);
}

/** The string, or an empty one for anything else. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** True for a whole number. */
export function isInteger(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value);
}

/** The first key of `object` that is not among `allowed`; undefined when all are. */
export function unknownKey(object: JsonObject, allowed: ReadonlySet<string>): string | undefined {
  return Object.keys(object).find((key) => !allowed.has(key));
}

/** The values that occur a second time, in order. */
export function repeated(values: readonly string[]): readonly string[] {
  return values.filter((value, index) => values.indexOf(value) !== index);
}

/** The value parsed, or undefined when it is no JSON. */
export function parseJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
