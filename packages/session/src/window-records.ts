import { readWindow, type StoredRecord } from "@throughline/core";
import type { SessionLog } from "./session-log.ts";

/** The records of the window as they are in the store. */
export async function readWindowRecords(log: SessionLog): Promise<readonly StoredRecord[]> {
  const { records } = await readWindow(log.store, log.ref);
  return records;
}
