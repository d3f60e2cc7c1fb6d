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

/** Records of a source that were redacted in a session it was imported into, by their ids. */
export type Redactions = ReadonlyMap<string, SessionRecord>;

/** What was redacted in these sessions. Reads all of their records: only for sources that are imported beside them. */
export async function redactionsIn(store: SessionStore, sessions: readonly SessionState[]): Promise<Redactions> {
  const found = new Map<string, SessionRecord>();
  for (const { ref } of sessions) {
    for await (const page of store.read(ref)) {
      for (const { record } of page.records) if (isTombstone(record)) found.set(record.id, record);
    }
  }
  return found;
}

/** Whether a record lies there no more because it was redacted. */
async function redactionOf(store: SessionStore, ref: SessionRef, id: string): Promise<SessionRecord | null> {
  for await (const page of store.read(ref, { order: "descending" })) {
    const found = page.records.find(({ record }) => record.id === id);
    if (found !== undefined) return isTombstone(found.record) ? found.record : null;
  }
  return null;
}

/** The tombstones that stand for the records of a line, as for the record that was redacted. */
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

/** What repeats the records, and summaries made of them, are out of use in the new session too. */
export async function redactCopies(store: SessionStore, ref: SessionRef, redactions: Redactions): Promise<void> {
  // A source that was written over may have lost some of them.
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

/** The redaction of a line that has gone on since its beginning was redacted, for the whole of it; null when it was not. */
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
