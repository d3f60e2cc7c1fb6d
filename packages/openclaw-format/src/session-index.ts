import { assertKnownOptions, createFinding, type Fields, isFields, quote } from "@throughline/core/internal";
import type { Finding } from "@throughline/core";
import { readTimeMs } from "./read-time.ts";
import { indexFileTable, parseIndex, type IndexFileOptions } from "./sessions-json.ts";

/** Describes one session as an index states it. */
export interface IndexedSession {
  /** States the session's key; null when the index lists sessions by id only. */
  readonly key: string | null;
  /** States the session's id as the index has it. The id may be unsafe as a file name. */
  readonly sessionId: string;
  /** States the transcript's path as the index has it, or null. The path may belong to another machine. */
  readonly file: string | null;
  /** Holds the entry with every field of the index, plus `sessionId` and `updatedAt` in UTC milliseconds. */
  readonly entry: Fields & {
    /** States the session's id. The name of this field is the same for every shape of index. */
    readonly sessionId: string;
  };
}

/**
 * Names the shape of an index. `openclaw` is by key, `claw0-keyed` is by key in snake case, and `claw0-by-id` is by
 * session id.
 */
type SessionIndexShape = "openclaw" | "claw0-keyed" | "claw0-by-id";

/** Holds the sessions of an index, and the problems of reading it. */
interface SessionIndex {
  /** Names the shape of the index; null when the index cannot be read or is empty. */
  readonly shape: SessionIndexShape | null;
  /** Lists the sessions in the order of the index. */
  readonly sessions: readonly IndexedSession[];
  /** Lists the keys whose value is not a session. */
  readonly unreadableKeys: readonly string[];
  /** Lists the findings: an index or an entry that cannot be read. */
  readonly findings: readonly Finding[];
}

/**
 * Reads an index for an import, in OpenClaw's shape or either tutorial's.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option; never for the text
 */
export function readSessionIndex(text: string, options: IndexFileOptions = {}): SessionIndex {
  assertKnownOptions<IndexFileOptions>("readSessionIndex", options, indexFileTable);
  const path = options.path ?? null;
  const { value, finding } = parseIndex(text, path);
  if (value === null)
    return { shape: null, sessions: [], unreadableKeys: [], findings: finding === null ? [] : [finding] };
  const sessions: IndexedSession[] = [];
  const unreadableKeys: string[] = [];
  const findings: Finding[] = [];
  let shape: SessionIndexShape | null = null;
  for (const [key, fields] of Object.entries(value)) {
    const found = isFields(fields) ? readIndexed(key, fields) : null;
    if (found === null) {
      unreadableKeys.push(key);
      findings.push(createFinding("ENTRY_UNREADABLE", `The entry of ${quote(key)} names no session.`, { path, key }));
    } else {
      shape ??= found.shape;
      sessions.push(found.session);
    }
  }
  return { shape, sessions, unreadableKeys, findings };
}

/** Null means that the member describes no session. */
export function readIndexed(
  name: string,
  fields: Fields,
): { readonly shape: SessionIndexShape; readonly session: IndexedSession } | null {
  const { sessionId, session_id, session_key, transcript_file, sessionFile } = fields;
  if (isName(sessionId)) {
    return {
      shape: "openclaw",
      session: { key: name, sessionId, file: textOrNull(sessionFile), entry: { ...fields, sessionId } },
    };
  }
  if (isName(session_id)) {
    const key = isName(session_key) ? session_key : name;
    return {
      shape: "claw0-keyed",
      session: { key, sessionId: session_id, file: textOrNull(transcript_file), entry: withTimes(fields, session_id) },
    };
  }
  const isById = ["last_active", "created_at", "message_count"].some((field) => fields[field] !== undefined);
  if (!isById || name === "") return null;
  return { shape: "claw0-by-id", session: { key: null, sessionId: name, file: null, entry: withTimes(fields, name) } };
}

function withTimes(fields: Fields, sessionId: string): Fields & { readonly sessionId: string } {
  const updatedAt = readTimeMs(fields["updated_at"] ?? fields["last_active"] ?? fields["created_at"]);
  return { ...fields, sessionId, ...(updatedAt === null ? {} : { updatedAt }) };
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function textOrNull(value: unknown): string | null {
  return isName(value) ? value : null;
}
