import type { SessionRef, SessionStore, StoredRecord } from "@throughline/core";

/** All records of a session, from a sequence number on. Memory grows with them. */
export async function readRecords(
  store: SessionStore,
  ref: SessionRef,
  signal: AbortSignal,
  afterSeq = 0,
): Promise<readonly StoredRecord[]> {
  const records: StoredRecord[] = [];
  for await (const page of store.read(ref, { signal, afterSeq })) records.push(...page.records);
  return records;
}
