import { isFields, type Fields } from "@throughline/core/internal";
import type { FormatMatch, FormatSample } from "./foreign-format.ts";

/** The most lines that are looked at: programs begin with notes of their own. */
const mostLines = 20;

/** How sure a format is of a file of lines, by what it says of each of the first: one that is certain decides. */
export function matchOfLines(sample: FormatSample, matchOf: (line: Fields) => FormatMatch | null): FormatMatch | null {
  const matches = firstObjects(sample).map(matchOf);
  return matches.find((match) => match === "certain") ?? matches.find((match) => match !== null) ?? null;
}

/** The JSON objects among a file's first lines, one a line. */
export function firstObjects({ head }: FormatSample): readonly Fields[] {
  const text = new TextDecoder().decode(head);
  const found: Fields[] = [];
  for (const line of text.split("\n", mostLines)) {
    const value = parsed(line.trim());
    if (isFields(value)) found.push(value);
  }
  return found;
}

/** The JSON object that a text is; an empty one for any other text. */
export function objectIn(text: string): Fields {
  const value = parsed(text.trim());
  return isFields(value) ? value : {};
}

/** The objects of the JSON list that a text is; none for any other text. */
export function listIn(text: string): readonly Fields[] {
  const value = parsed(text.trim());
  return Array.isArray(value) ? (value as readonly unknown[]).filter(isFields) : [];
}

function parsed(text: string): unknown {
  if (!text.startsWith("{") && !text.startsWith("[")) return null;
  try {
    return JSON.parse(text);
  } catch {
    // Cut off by the end of the sample, or no JSON: another line may tell.
    return null;
  }
}
