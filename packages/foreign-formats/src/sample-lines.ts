import { isFields, type Fields } from "@throughline/core/internal";
import type { FormatMatch, FormatSample } from "./foreign-format.ts";

/** Programs may start a file with lines of other types, so several lines are read. */
const mostLines = 20;

/** One certain line decides; otherwise the first likely line does. */
export function matchOfLines(sample: FormatSample, matchOf: (line: Fields) => FormatMatch | null): FormatMatch | null {
  const matches = firstObjects(sample).map(matchOf);
  return matches.find((match) => match === "certain") ?? matches.find((match) => match !== null) ?? null;
}

export function firstObjects({ head }: FormatSample): readonly Fields[] {
  const text = new TextDecoder().decode(head);
  const found: Fields[] = [];
  for (const line of text.split("\n", mostLines)) {
    const value = parsed(line.trim());
    if (isFields(value)) found.push(value);
  }
  return found;
}

/** Any other text gives an empty object, so that callers can read fields without a check. */
export function objectIn(text: string): Fields {
  const value = parsed(text.trim());
  return isFields(value) ? value : {};
}

/** Any other text gives an empty list. */
export function listIn(text: string): readonly Fields[] {
  const value = parsed(text.trim());
  return Array.isArray(value) ? (value as readonly unknown[]).filter(isFields) : [];
}

function parsed(text: string): unknown {
  if (!text.startsWith("{") && !text.startsWith("[")) return null;
  try {
    return JSON.parse(text);
  } catch {
    // The line was cut off by the end of the sample or is not JSON. Another line may still identify the format.
    return null;
  }
}
