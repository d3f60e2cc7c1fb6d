import { isFields, parsedFields, type Fields } from "@throughline/core/internal";

export function textOr<Otherwise extends string | null>(value: unknown, otherwise: Otherwise): string | Otherwise {
  return typeof value === "string" ? value : otherwise;
}

export function fieldsOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

/**
 * Parses a JSON object. Returns null for any other JSON or invalid text. An empty text counts as an object without
 * fields.
 */
export function parseFields(json: string): Fields | null {
  return json.trim() === "" ? {} : parsedFields(json);
}
