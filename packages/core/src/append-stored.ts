import type { LinkedRecord } from "./prepare-drafts.ts";
import type { SessionRecord } from "./record.ts";
import type { SessionRef } from "./session-ref.ts";
import type { AppendedRecord, AppendOptions, AppendResult, SessionStore } from "./session-store.ts";
import type { StoredRecord } from "./stored-records.ts";

/** The result with the records, where the caller asked for them. They are read where an earlier append is answered. */
export async function withStored(
  store: SessionStore,
  ref: SessionRef,
  result: AppendResult,
  options: Pick<AppendOptions, "return" | "signal">,
): Promise<AppendResult> {
  if (options.return !== "stored" || result.stored !== undefined) return result;
  return { ...result, stored: await readAppended(store, ref, result) };
}

/** The records of an append, as a read gives them. */
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
 * A record that was just written, as a read will give it, made of the text that is kept: nothing in it is shared with the
 * caller's draft. `bytes` and `crc`: what the store has put beside it.
 */
export function storedRecord(
  { record: { type }, text }: Pick<LinkedRecord, "record" | "text">,
  { seq, id, parentId, side, tsMs, storedAtMs }: AppendedRecord,
  { bytes, crc }: { readonly bytes: number; readonly crc: number | null },
): StoredRecord {
  const record = JSON.parse(text) as SessionRecord;
  return { seq, id, parentId, type, side, tsMs, storedAtMs, bytes, crc, record };
}
