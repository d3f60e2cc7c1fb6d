import { isFields } from "@throughline/core/internal";

/**
 * Returns what a program stores where it usually stores a text. Another value becomes its JSON, so that a reader and a
 * model see it. Nothing gives an empty text.
 */
export function shownText(value: unknown): string {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "" : (JSON.stringify(value) ?? "");
}

/** Returns the part of a message with a text. A text of another form would be left out without a word. */
export function withShownText<Part>(part: Part): Part {
  const isOdd = isFields(part) && part["text"] !== undefined && typeof part["text"] !== "string";
  return isOdd ? { ...part, text: shownText(part["text"]) } : part;
}

/** An object gives an empty text: `String` would throw for an object whose `toString` is not a function. */
export function asText(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? value.toString() : "";
}
