import type { LinkedRecord } from "./prepare-drafts.ts";
import type { SessionRecord } from "./record.ts";
import type { SessionRef } from "./session-ref.ts";
import type { AppendedRecord, AppendOptions, AppendResult, SessionStore } from "./session-store.ts";
import type { StoredRecord } from "./stored-records.ts";

/**
 * Adds the stored records to the result of an append when the caller asked for them. The result of an earlier append
 * lacks the records, so they are read from the store.
 */
export async function withStored(
  store: SessionStore,
  ref: SessionRef,
  result: AppendResult,
  options: Pick<AppendOptions, "return" | "signal">,
): Promise<AppendResult> {
  if (options.return !== "stored" || result.stored !== undefined) return result;
  return { ...result, stored: await readAppended(store, ref, result) };
}

async function readAppended(
  store: SessionStore,
  ref: SessionRef,
  { records }: AppendResult,
): Promise<readonly StoredRecord[]> {
  const [first] = records;
  if (first === undefined) return [];
  const stored: StoredRecord[] = [];
  const range = { afterSeq: first.seq - 1, beforeSeq: first.seq + records.length };
  for await (const page of store.read(ref, range)) stored.push(...page.records);
  return stored;
}

/**
 * Returns a record that was just written in the form that a read returns. The record is parsed from the stored text, so
 * it shares nothing with the caller's draft. `bytes` and `crc` are the values that the store keeps beside the record.
 */
export function storedRecord(
  { record: { type }, text }: Pick<LinkedRecord, "record" | "text">,
  { seq, id, parentId, side, tsMs, storedAtMs }: AppendedRecord,
  { bytes, crc }: { readonly bytes: number; readonly crc: number | null },
): StoredRecord {
  const record = JSON.parse(text) as SessionRecord;
  return { seq, id, parentId, type, side, tsMs, storedAtMs, bytes, crc, record };
}
