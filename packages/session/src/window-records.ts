import { readWindow, type StoredRecord } from "@throughline/core";
import type { SessionLog } from "./session-log.ts";

/** The records are read from the store again, because a log keeps no records. */
export async function readWindowRecords(log: SessionLog): Promise<readonly StoredRecord[]> {
  const { records } = await readWindow(log.store, log.ref);
  return records;
}
