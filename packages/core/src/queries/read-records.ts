import { setImmediate as pause } from "node:timers/promises";
import { withinMemory } from "./memory-budget.ts";
import type { SessionRef } from "../session-ref.ts";
import type { SessionStore } from "../session-store.ts";
import type { StoredRecord } from "../stored-records.ts";

/**
 * Reads all records of a session after a sequence number. Memory grows with the number of records.
 * @throws {ThroughlineError} MEMORY_SHORT
 */
export async function readRecords(
  store: SessionStore,
  ref: SessionRef,
  signal: AbortSignal,
  afterSeq = 0,
): Promise<readonly StoredRecord[]> {
  const records: StoredRecord[] = [];
  for await (const page of withinMemory(store).read(ref, { signal, afterSeq })) {
    records.push(...page.records);
    // A store that answers without waiting would block interrupts until every page is read.
    await pause();
  }
  return records;
}
