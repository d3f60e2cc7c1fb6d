import { ThroughlineError } from "../throughline-error.ts";
import type { RecordHead } from "../stored-records.ts";
import type { SessionRef } from "../session-ref.ts";
import type { SessionStore } from "../session-store.ts";

/**
 * Finds the record that a RECORD argument names by its id, or by its number with or without `#`.
 * @throws {ThroughlineError} RECORD_NOT_FOUND
 */
export async function findRecord(
  store: SessionStore,
  ref: SessionRef,
  text: string,
  signal?: AbortSignal,
): Promise<RecordHead> {
  const waiting = signal === undefined ? {} : { signal };
  const seq = /^#?(\d{1,15})$/.exec(text)?.[1];
  for await (const { records } of store.read(ref, { payload: "head", ...waiting })) {
    const found = records.find((record) => record.id === text);
    if (found !== undefined) return found;
  }
  // An id may consist of digits only, so the text is compared with ids before it is read as a number.
  if (seq !== undefined) {
    const afterSeq = Number(seq) - 1;
    for await (const { records } of store.read(ref, { payload: "head", afterSeq, limit: 1, ...waiting })) {
      if (records[0] !== undefined && records[0].seq === Number(seq)) return records[0];
    }
  }
  throw new ThroughlineError(
    "RECORD_NOT_FOUND",
    `${JSON.stringify(ref.key)} holds no record ${JSON.stringify(text)}.`,
    {
      outcome: "not-applied",
      details: { ...ref, record: text },
    },
  );
}
