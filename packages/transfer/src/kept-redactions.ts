import {
  type RecordDraft,
  redactRecords,
  type SessionRecord,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import { isSideRecord, isTombstone, redactionTombstone } from "@throughline/core/internal";
import { decodeLine } from "@throughline/openclaw-format";
import { createSourceReader, type SourceLine } from "./source-reader.ts";
import type { SourceUnit } from "./source-units.ts";
import { placeOf, type TranscriptSource } from "./transcript-source.ts";

/** Maps record ids to the tombstones of records that were redacted in an earlier import of the source. */
export type Redactions = ReadonlyMap<string, SessionRecord>;

/** Reads all records of the sessions, so callers use it only when a source is imported beside them. */
export async function redactionsIn(store: SessionStore, sessions: readonly SessionState[]): Promise<Redactions> {
  const found = new Map<string, SessionRecord>();
  for (const { ref } of sessions) {
    for await (const page of store.read(ref)) {
      for (const { record } of page.records) if (isTombstone(record)) found.set(record.id, record);
    }
  }
  return found;
}

/** Returns the tombstone if the record was redacted; null otherwise. */
async function redactionOf(store: SessionStore, ref: SessionRef, id: string): Promise<SessionRecord | null> {
  for await (const page of store.read(ref, { order: "descending" })) {
    const found = page.records.find(({ record }) => record.id === id);
    if (found !== undefined) return isTombstone(found.record) ? found.record : null;
  }
  return null;
}

/**
 * Builds tombstones for all records of a line, because the derived records hold the same content as the redacted one.
 */
export function withheldDrafts(
  { record, derived = [] }: SourceLine,
  redaction: SessionRecord,
  sizeBytes: number,
): readonly RecordDraft[] {
  return [record, ...derived].map((withheld) => withheldDraft(withheld, redaction, sizeBytes));
}

function withheldDraft(withheld: SessionRecord, redaction: SessionRecord, sizeBytes: number): RecordDraft {
  const { reason, redactedAtMs } = redaction["data"] as { readonly reason?: unknown; readonly redactedAtMs?: unknown };
  return redactionTombstone(withheld, {
    side: isSideRecord(withheld),
    bytes: sizeBytes,
    reason: String(reason),
    redactedAtMs: Number(redactedAtMs),
  });
}

/** Redacts repetitions of the redacted records, and summaries based on them, in the new session as well. */
export async function redactCopies(store: SessionStore, ref: SessionRef, redactions: Redactions): Promise<void> {
  // A source that was overwritten may lack some of the records.
  const there: SessionRecord[] = [];
  for await (const page of store.read(ref))
    for (const { id } of page.records) there.push(...[redactions.get(id)].filter((one) => one !== undefined));
  const byReason = Map.groupBy(there, ({ data }) => String((data as { reason?: unknown }).reason));
  for (const [reason, records] of byReason) {
    await redactRecords(
      store,
      ref,
      records.map(({ id }) => id),
      { reason },
    );
  }
}

/** Extends a redaction to the whole of a line that grew after its beginning was redacted; null without a redaction. */
export async function redactionsOfWhole(
  store: SessionStore,
  ref: SessionRef,
  beginningId: string,
  { source, split, line }: { readonly source: TranscriptSource; readonly split: SourceUnit; readonly line: number },
): Promise<Redactions | null> {
  const redaction = await redactionOf(store, ref, beginningId);
  if (redaction === null) return null;
  const { record, derived = [] } = createSourceReader(source).push(decodeLine(split.bytes), placeOf(split, line));
  return new Map([record, ...derived].map(({ id }) => [id, redaction]));
}
