import type { Finding } from "@throughline/core";
import type { SourceFormat } from "./import-types.ts";
import { createLineSource, lineBytes, type DatabaseLine } from "./line-source.ts";
import { usableSessionId, type TranscriptSource } from "./transcript-source.ts";

export interface DatabaseSession {
  readonly databasePath: string;
  readonly format: SourceFormat;
  readonly agentId: string | null;
  readonly key: string | null;
  readonly sessionId: string;
  /** Distinguishes the session from the others of the database, even if its current id changes. @default its id */
  readonly place?: string;
  /** Distinguishes sessions with the same id. @default nothing */
  readonly part?: string;
  readonly entry: Readonly<Record<string, unknown>> | null;
  /** Null when the database holds only the entry. */
  readonly lines: (() => Iterable<DatabaseLine>) | null;
  readonly isArchived: boolean;
  /** True while the rows it was copied from still exist. @default false */
  readonly isCopy?: boolean;
  readonly archivedAtMs: number | null;
  readonly findings: readonly Finding[];
}

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
    // The size is measured at each opening, because a database grows while it is read. A source ends where it ended
    // when opened.
    sizeBytes: null,
    open: lines === null ? null : async () => createLineSource(path, await lineBytes(lines()), lines),
    format,
    agentId,
    key,
    sessionId: usableSessionId(session.sessionId, path),
    statesId: true,
    isPlaced: session.place !== undefined,
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

export function definedFields(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));
}

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
