import type { Finding } from "@throughline/core";
import type { SourceFormat } from "./import-types.ts";
import { createLineSource, lineBytes, type DatabaseLine } from "./line-source.ts";
import { usableSessionId, type TranscriptSource } from "./transcript-source.ts";

/** One session of a database, and how to read its lines. */
export interface DatabaseSession {
  readonly databasePath: string;
  readonly format: SourceFormat;
  readonly agentId: string | null;
  readonly key: string | null;
  readonly sessionId: string;
  /** What distinguishes it from the others of the database, whatever its current id is. @default its id */
  readonly place?: string;
  /** Distinguishes sessions with the same id. @default nothing */
  readonly part?: string;
  readonly entry: Readonly<Record<string, unknown>> | null;
  /** Null when only the entry is there. */
  readonly lines: (() => Iterable<DatabaseLine>) | null;
  readonly isArchived: boolean;
  /** Whether the rows it was made of are still there. @default false */
  readonly isCopy?: boolean;
  readonly archivedAtMs: number | null;
  readonly findings: readonly Finding[];
}

/** A session of a database as an import takes it. */
export function databaseSource(session: DatabaseSession): TranscriptSource {
  const {
    databasePath,
    format,
    agentId,
    key,
    entry,
    lines,
    isArchived,
    isCopy = false,
    archivedAtMs,
    findings,
  } = session;
  const path = `${databasePath}#${session.place ?? session.sessionId}${session.part === undefined ? "" : `.${session.part}`}`;
  return {
    kind: "transcript",
    path,
    // Measured at each opening: a database grows while it is read, a source ends where it ended when it was opened.
    sizeBytes: null,
    open: lines === null ? null : async () => createLineSource(path, await lineBytes(lines()), lines),
    format,
    agentId,
    key,
    sessionId: usableSessionId(session.sessionId, path),
    statesId: true,
    nameSessionId: null,
    header: null,
    entry,
    own: null,
    isArchived,
    isCopy,
    archivedAt: archivedAtMs === null ? null : new Date(archivedAtMs).toISOString(),
    findings,
  };
}

/** The fields that have a value. */
export function definedFields(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));
}

/** A JSON object; null when it is none. */
export function readJsonObject(text: unknown): Readonly<Record<string, unknown>> | null {
  if (typeof text !== "string") return null;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : null;
  } catch {
    return null;
  }
}
