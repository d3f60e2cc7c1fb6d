import { ThroughlineError } from "@throughline/core";
import type { SessionRef, SessionStore, StoredRecord } from "@throughline/core";
import { quote } from "@throughline/core/internal";
import type { CommandContext } from "./command.ts";
import { showRecord } from "./show-record.ts";

/** Limits the records shown on each side of the requested one. */
const neighbors = 5;

interface Place {
  readonly seq: number;
  /** True if side records count as neighbors. The requested record itself may be one. */
  readonly hasSideRecords: boolean;
  readonly isRaw: boolean;
}

/**
 * Shows a record and its neighbors in log order, and returns their number.
 * @throws {ThroughlineError} RECORD_NOT_FOUND
 */
export async function showPlace(
  context: Pick<CommandContext, "output" | "signal">,
  store: SessionStore,
  ref: SessionRef,
  { seq, hasSideRecords, isRaw }: Place,
): Promise<number> {
  const { signal } = context;
  const isShown = ({ side }: StoredRecord): boolean => hasSideRecords || !side;
  const before = await first(store.read(ref, { order: "descending", beforeSeq: seq, signal }), isShown);
  const [place, ...rest] = await first(
    store.read(ref, { afterSeq: seq - 1, signal }),
    (record) => record.seq === seq || isShown(record),
    neighbors + 1,
  );
  if (place?.seq !== seq) throw await noSuchRecord(store, ref, seq);
  const records = [...before.toReversed(), place, ...rest];
  for (const record of records) await showRecord(context, record, isRaw, record.seq === seq ? "place" : "neighbor");
  return records.length;
}

/** Reads no more pages than it needs for `limit` shown records. */
async function first(
  pages: ReturnType<SessionStore["read"]>,
  isShown: (record: StoredRecord) => boolean,
  limit = neighbors,
): Promise<readonly StoredRecord[]> {
  const found: StoredRecord[] = [];
  for await (const { records } of pages) {
    found.push(...(records as readonly StoredRecord[]).filter(isShown));
    if (found.length >= limit) break;
  }
  return found.slice(0, limit);
}

/** @throws {ThroughlineError} RECORD_NOT_FOUND for a number that no record of the session has */
export async function assertRecord(store: SessionStore, ref: SessionRef, seq: number): Promise<void> {
  for await (const { records } of store.read(ref, { afterSeq: seq - 1, beforeSeq: seq + 1, payload: "head" }))
    if (records.length > 0) return;
  throw await noSuchRecord(store, ref, seq);
}

async function noSuchRecord(store: SessionStore, ref: SessionRef, seq: number): Promise<ThroughlineError> {
  const lastSeq = (await store.load(ref))?.head.lastSeq ?? 0;
  const range = lastSeq === 0 ? "it has no records" : `its records are #1 to #${lastSeq}`;
  return new ThroughlineError("RECORD_NOT_FOUND", `${quote(ref.key)} has no record #${seq}: ${range}.`, {
    outcome: "not-applied",
    details: { ...ref, seq, lastSeq },
  });
}
