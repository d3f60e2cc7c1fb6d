import type { AppendedRecord, RecordDraft, SessionRecord, StoredRecord } from "@throughline/core";

/** What reading the draft back would give, without reading it. Size and checksum are not known here. */
export function storedRecord(draft: RecordDraft, place: AppendedRecord): StoredRecord {
  const { seq, id, parentId, side, tsMs, storedAtMs } = place;
  const { type, timestamp } = draft;
  const time = timestamp ?? new Date(tsMs ?? storedAtMs ?? 0).toISOString();
  const record: SessionRecord = { ...draft, type, id, parentId, timestamp: time };
  return { seq, id, parentId, type, side, tsMs, storedAtMs, bytes: 0, crc: null, record };
}
