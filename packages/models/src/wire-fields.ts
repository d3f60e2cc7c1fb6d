import { isFields, parsedFields, type Fields } from "@throughline/core/internal";

/** The text, or null for anything else. */
export function textOr<Otherwise extends string | null>(value: unknown, otherwise: Otherwise): string | Otherwise {
  return typeof value === "string" ? value : otherwise;
}

/** The objects of a list; none of anything else. */
export function fieldsOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

/** The object a JSON text stands for; null when it stands for none. No text at all is an object without fields. */
export function parseFields(json: string): Fields | null {
  return json.trim() === "" ? {} : parsedFields(json);
}
