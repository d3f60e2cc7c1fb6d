import {
  hasErrorCode,
  type SessionEntry,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import { emptyReceipt, readReceipt, type ImportReceipt } from "./import-receipt.ts";
import type { TranscriptSource } from "./transcript-source.ts";

/** More sessions that want the same id are a mistake and not an import. */
const maxSuffix = 1000;

/** The receipt a source begins with. */
export function firstReceipt(
  source: TranscriptSource,
  refusedKey: string | null,
  askedKey: string | undefined,
): ImportReceipt {
  const { path, format, sessionId, key, entry, archivedAt } = source;
  const sessionFile = entry?.["sessionFile"];
  const earlier = readReceipt(entry?.["importedFrom"]);
  return emptyReceipt({
    path,
    format,
    sessionId,
    ...(typeof sessionFile === "string" ? { sessionFile } : {}),
    ...(refusedKey === null ? {} : { key: refusedKey }),
    ...(key === null ? {} : { sourceKey: key }),
    ...(askedKey === undefined ? {} : { askedKey }),
    ...(archivedAt === null ? {} : { archivedAt }),
    ...(earlier === null ? {} : { earlier }),
  });
}

/**
 * Creates the session of a source with these fields of its entry. The path of the transcript goes into the receipt: in the
 * entry it would name a file that is not this store's.
 */
export async function createImportedSession(
  store: SessionStore,
  ref: SessionRef,
  source: TranscriptSource,
  entryFields: Readonly<Record<string, unknown>>,
  receipt: ImportReceipt,
): Promise<SessionState> {
  const { sessionFile: _moved, importedFrom: _earlier, ...fields } = entryFields;
  const startedAtMs = Date.parse(source.header?.timestamp ?? "");
  const updatedAt = fields["updatedAt"] === undefined && Number.isFinite(startedAtMs) ? { updatedAt: startedAtMs } : {};
  for (let suffix = 1; ; suffix++) {
    const sessionId = suffix === 1 ? source.sessionId : `${source.sessionId.slice(0, 120)}-${suffix}`;
    const entry: SessionEntry = { ...fields, ...updatedAt, sessionId, importedFrom: receipt };
    try {
      return await store.save(ref, entry, { ifRevision: null });
    } catch (error) {
      // Another session has the id: the same file under another key, or a topic of the same conversation.
      if (!hasErrorCode(error, "SESSION_EXISTS", "ID_CASE_COLLISION") || suffix >= maxSuffix) throw error;
    }
  }
}
