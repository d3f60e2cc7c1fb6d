import {
  causeText,
  assertKnownOptions,
  createFinding,
  type Fields,
  isFields,
  optionKinds,
  type OptionTable,
  quote,
} from "@throughline/core/internal";
import type { Finding } from "@throughline/core";

/** Holds the content of a sessions.json by key. */
interface SessionsJson {
  /**
   * Holds the entries by key, in the file's order, with every field. Null when the file cannot be read. A writer must
   * not treat an unreadable index as an empty one.
   */
  readonly entries: ReadonlyMap<string, Fields> | null;
  /** Holds the values that are not entries, so that a writer can write them back. */
  readonly unreadable: ReadonlyMap<string, unknown>;
  /** Lists one finding for each entry that cannot be read, or one for the whole file. */
  readonly findings: readonly Finding[];
}

/** Holds the options of the functions that read an index. */
export interface IndexFileOptions {
  /** States the path that the findings name. @default null */
  readonly path?: string | null;
}

export const indexFileTable: OptionTable<IndexFileOptions> = { path: optionKinds.orNull(optionKinds.text) };

/**
 * Reads the text of a sessions.json.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option; never for the text
 */
export function readSessionsJson(text: string, options: IndexFileOptions = {}): SessionsJson {
  assertKnownOptions<IndexFileOptions>("readSessionsJson", options, indexFileTable);
  const { value, finding } = parseIndex(text, options.path ?? null);
  if (value === null) return { entries: null, unreadable: new Map(), findings: finding === null ? [] : [finding] };
  const entries = new Map<string, Fields>();
  const unreadable = new Map<string, unknown>();
  const findings: Finding[] = [];
  for (const [key, entry] of Object.entries(value)) {
    if (isFields(entry) && typeof entry["sessionId"] === "string" && entry["sessionId"] !== "") {
      entries.set(key, entry);
    } else {
      unreadable.set(key, entry);
      const message = `The entry of ${quote(key)} is not an object with a sessionId.`;
      findings.push(createFinding("ENTRY_UNREADABLE", message, { path: options.path ?? null, key }));
    }
  }
  return { entries, unreadable, findings };
}

/**
 * Yields the text of a sessions.json in pieces, because an index may be too large for memory. The text has OpenClaw's
 * form: two spaces of indentation, the given order, and no line feed at the end.
 */
export function* sessionsJsonPieces(entries: Iterable<readonly [key: string, entry: unknown]>): Generator<string> {
  let isFirst = true;
  // The members are written one by one, because an object would put keys like "12" first and lose the order.
  for (const [key, entry] of entries) {
    const value = JSON.stringify(entry, null, 2).replaceAll("\n", "\n  ");
    yield `${isFirst ? "{" : ","}\n  ${JSON.stringify(key)}: ${value}`;
    isFirst = false;
  }
  yield isFirst ? "{}" : "\n}";
}

/** A `__proto__` member stays an ordinary key, because `JSON.parse` defines it as one. */
export function parseIndex(
  text: string,
  path: string | null,
): { readonly value: Fields | null; readonly finding: Finding | null } {
  let value: unknown;
  let why = "it is not a JSON object";
  try {
    value = JSON.parse(text.startsWith("\uFEFF") ? text.slice(1) : text);
  } catch (error) {
    why = text === "" ? "it is empty" : causeText(error);
  }
  if (isFields(value)) return { value, finding: null };
  return { value: null, finding: createFinding("INDEX_UNREADABLE", `The index cannot be read: ${why}.`, { path }) };
}
