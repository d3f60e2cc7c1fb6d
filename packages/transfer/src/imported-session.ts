import {
  hasErrorCode,
  type SessionEntry,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import { emptyReceipt, readReceipt } from "./import-receipt.ts";
import { sourceIdsOf } from "./imported-from.ts";
import type { ImportReceipt } from "./receipt-types.ts";
import type { SourceFile } from "./node/source-files.ts";
import { firstTimeMs, type TranscriptSource } from "./transcript-source.ts";

/** More sessions with the same id point to a mistake, so the search for a free id stops here. */
const maxSuffix = 1000;

export function firstReceipt(
  source: TranscriptSource,
  refusedKey: string | null,
  askedKey: string | undefined,
): ImportReceipt {
  const { path, format, sessionId, key, entry, archivedAt } = source;
  const [sourceId] = sourceIdsOf(source);
  const sessionFile = entry?.["sessionFile"];
  const earlier = readReceipt(entry?.["importedFrom"]);
  return emptyReceipt({
    path,
    format,
    sessionId,
    ...(sourceId.toLowerCase() === sessionId.toLowerCase() ? {} : { sourceId }),
    ...(typeof sessionFile === "string" ? { sessionFile } : {}),
    ...(refusedKey === null ? {} : { key: refusedKey }),
    ...(key === null ? {} : { sourceKey: key }),
    ...(askedKey === undefined ? {} : { askedKey }),
    ...(archivedAt === null ? {} : { archivedAt }),
    ...(earlier === null ? {} : { earlier }),
  });
}

interface BegunImport {
  readonly entryFields: Readonly<Record<string, unknown>>;
  readonly receipt: ImportReceipt;
  /** Null when the index names a transcript that does not exist. */
  readonly file: SourceFile | null;
}

function headerTimeMs({ header }: TranscriptSource): number | null {
  const timeMs = Date.parse(header?.timestamp ?? "");
  return Number.isFinite(timeMs) ? timeMs : null;
}

/** Reads the start time from the header, the first lines or the entry; null when none states it. */
async function startOf(source: TranscriptSource, file: SourceFile | null): Promise<number | null> {
  const statedMs = headerTimeMs(source) ?? (file === null ? null : await firstTimeMs(source, file));
  const given = statedMs ?? source.entry?.["sessionStartedAt"];
  return typeof given === "number" && Number.isSafeInteger(given) && given > 0 ? given : null;
}

/**
 * Creates the session of a source with these entry fields. The transcript's path goes into the receipt, because in the
 * entry it would name a file of another store.
 */
export async function createImportedSession(
  store: SessionStore,
  ref: SessionRef,
  source: TranscriptSource,
  { entryFields, receipt, file }: BegunImport,
): Promise<SessionState> {
  const createdAtMs = await startOf(source, file);
  const { sessionFile: _moved, importedFrom: _earlier, ...fields } = entryFields;
  const startedAtMs = headerTimeMs(source) ?? (source.foreign === undefined ? null : createdAtMs);
  const updatedAt = fields["updatedAt"] === undefined && startedAtMs !== null ? { updatedAt: startedAtMs } : {};
  for (let suffix = 1; ; suffix++) {
    const sessionId = suffix === 1 ? source.sessionId : `${source.sessionId.slice(0, 120)}-${suffix}`;
    const entry: SessionEntry = { ...fields, ...updatedAt, sessionId, importedFrom: receipt };
    try {
      return await store.save(ref, entry, { ifRevision: null, ...(createdAtMs === null ? {} : { createdAtMs }) });
    } catch (error) {
      // Another session has the id: the same file under another key, or a topic of the same conversation.
      if (!hasErrorCode(error, "SESSION_EXISTS", "ID_CASE_COLLISION") || suffix >= maxSuffix) throw error;
    }
  }
}
