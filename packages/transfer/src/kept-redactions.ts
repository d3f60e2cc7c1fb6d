import {
  type RecordDraft,
  redactRecords,
  type SessionRecord,
  type SessionRef,
  type SessionState,
  type SessionStore,
} from "@throughline/core";
import { redactionTombstone, throughlineKind } from "@throughline/core/internal";
import { createTranscriptReader, decodeLine, type SplitLine, type TranscriptLine } from "@throughline/openclaw-format";

/** Records of a source that were redacted in a session it was imported into, by their ids. */
export type Redactions = ReadonlyMap<string, SessionRecord>;

/** What was redacted in these sessions. Reads all of their records: only for sources that are imported beside them. */
export async function redactionsIn(store: SessionStore, sessions: readonly SessionState[]): Promise<Redactions> {
  const found = new Map<string, SessionRecord>();
  for (const { ref } of sessions) {
    for await (const page of store.read(ref)) {
      for (const { record } of page.records) if (throughlineKind(record) === "redaction") found.set(record.id, record);
    }
  }
  return found;
}

/** Whether a record lies there no more because it was redacted. */
async function redactionOf(store: SessionStore, ref: SessionRef, id: string): Promise<SessionRecord | null> {
  for await (const page of store.read(ref, { order: "descending" })) {
    const found = page.records.find(({ record }) => record.id === id);
    if (found !== undefined) return throughlineKind(found.record) === "redaction" ? found.record : null;
  }
  return null;
}

/** The tombstone that stands for a line, as for the record that was redacted. */
export function withheldDraft(line: TranscriptLine, redaction: SessionRecord, sizeBytes: number): RecordDraft {
  const { reason, redactedAtMs } = redaction["data"] as { readonly reason?: unknown; readonly redactedAtMs?: unknown };
  return redactionTombstone(line.record, {
    side: line.side,
    bytes: sizeBytes,
    reason: String(reason),
    redactedAtMs: Number(redactedAtMs),
  });
}

/** What repeats the records, and summaries made of them, are out of use in the new session too. */
export async function redactCopies(store: SessionStore, ref: SessionRef, redactions: Redactions): Promise<void> {
  const byReason = Map.groupBy(redactions.values(), ({ data }) => String((data as { reason?: unknown }).reason));
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
  split: SplitLine,
  line: number,
): Promise<Redactions | null> {
  const redaction = await redactionOf(store, ref, beginningId);
  if (redaction === null) return null;
  const whole = createTranscriptReader().push(decodeLine(split.bytes), { line, byteOffset: 0 });
  return new Map([[whole.record.id, redaction]]);
}
