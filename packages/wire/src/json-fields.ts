import { isFields, type Fields } from "@throughline/core/internal";

/** The object that a text is; null for any other text. */
export function parsedFields(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    return isFields(value) ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

export function textOr<Other>(value: unknown, other: Other): string | Other {
  return typeof value === "string" ? value : other;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}
