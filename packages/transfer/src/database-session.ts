import type { Finding } from "@throughline/core";
import { parsedFields } from "@throughline/core/internal";
import { createLineSource, lineBytes, type DatabaseLine } from "./line-source.ts";
import { transcriptSource, usableSessionId, type TranscriptSource } from "./transcript-source.ts";

type EntryFields = Readonly<Record<string, unknown>>;

export interface DatabaseSession {
  readonly databasePath: string;
  readonly sessionId: string;
  /** Distinguishes the session from the others of the database, even if its current id changes. @default its id */
  readonly place?: string;
  /** Distinguishes sessions with the same id. @default nothing */
  readonly part?: string;
  readonly entry: EntryFields | null;
  /** Null when the database holds only the entry. */
  readonly lines: (() => Iterable<DatabaseLine>) | null;
  /** @default null */
  readonly archivedAtMs?: number | null;
  readonly findings: readonly Finding[];
}

type DatabaseFacts = Pick<TranscriptSource, "format"> &
  Partial<Pick<TranscriptSource, "agentId" | "key" | "foreign" | "spawnedBy" | "isArchived" | "isCopy">>;

export function databaseSource({
  databasePath,
  sessionId,
  place,
  part,
  lines,
  archivedAtMs = null,
  ...facts
}: DatabaseSession & DatabaseFacts): TranscriptSource {
  const path = `${databasePath}#${place ?? sessionId}${part === undefined ? "" : `.${part}`}`;
  return transcriptSource({
    ...facts,
    path,
    // The size is measured at each opening, because a database grows while it is read. A source ends where it ended
    // when opened.
    sizeBytes: null,
    open: lines === null ? null : async () => createLineSource(path, await lineBytes(lines()), lines),
    sessionId: usableSessionId(sessionId, path),
    statesId: true,
    isPlaced: place !== undefined,
    archivedAt: archivedAtMs === null ? null : new Date(archivedAtMs).toISOString(),
  });
}

export function definedFields(fields: EntryFields): EntryFields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));
}

export function readJsonObject(text: unknown): EntryFields | null {
  return typeof text === "string" ? parsedFields(text) : null;
}
