import type { RecordPage, SessionRecord, SessionRef, SessionStore } from "@throughline/core";
import { isFields, messageRole, refused } from "@throughline/core/internal";

type Payload = "source" | "head";
type Found = RecordPage<Payload>["records"][number];

interface RecordChoice {
  readonly payload: Payload;
  readonly limit: number;
  readonly afterSeq?: number;
  readonly beforeSeq?: number;
  readonly order?: "ascending" | "descending";
  readonly signal: AbortSignal;
}

export interface ChosenRecords {
  readonly records: readonly Found[];
  readonly nextSeq: number | null;
}

/** Limits the records that one page scans, so that the answer arrives in time even when few records match. */
const mostLookedAt = 20_000;
const pageBytes = 2 * 1024 * 1024;

/**
 * Returns the records with these ids, or the messages of a role.
 * @throws {ThroughlineError} RECORD_NOT_FOUND for an id that the session does not have
 */
export function chosenRecords(
  store: SessionStore,
  ref: SessionRef,
  {
    ids,
    role = "",
    ...options
  }: RecordChoice &
    ({ readonly ids: readonly string[]; readonly role?: never } | { readonly role: string; readonly ids?: never }),
): Promise<ChosenRecords> {
  return ids === undefined ? ofRole(store, ref, role, options) : named(store, ref, ids, options);
}

async function named(
  store: SessionStore,
  ref: SessionRef,
  ids: readonly string[],
  { payload, signal }: RecordChoice,
): Promise<ChosenRecords> {
  const wanted = new Set(ids);
  const seqs: number[] = [];
  for await (const page of store.read(ref, { order: "descending", payload: "head", signal })) {
    for (const { id, seq } of page.records) if (wanted.delete(id)) seqs.push(seq);
    if (wanted.size === 0) break;
  }
  if (wanted.size > 0)
    throw refused("RECORD_NOT_FOUND", "The session does not have every one of these records.", { ids: [...wanted] });
  const records: Found[] = [];
  let bytes = 0;
  for (const [at, seq] of seqs.toReversed().entries()) {
    for await (const page of store.read(ref, { afterSeq: seq - 1, limit: 1, payload, signal }))
      for (const record of page.records) {
        records.push(record);
        bytes += record.bytes;
      }
    // A page has a size limit. The client asks again for the missing records.
    if (bytes >= pageBytes && payload !== "head") return { records, nextSeq: at + 1 < seqs.length ? seq : null };
  }
  return { records, nextSeq: null };
}

async function ofRole(
  store: SessionStore,
  ref: SessionRef,
  role: string,
  { payload, limit, ...options }: RecordChoice,
): Promise<ChosenRecords> {
  const records: Found[] = [];
  let bytes = 0;
  let lookedAt = 0;
  // The role is part of the content. With a codec, a head does not contain it, so the whole record is read.
  for await (const page of store.read(ref, { ...options, payload: "source" })) {
    for (const record of page.records) {
      if (records.length >= limit || lookedAt >= mostLookedAt || bytes >= pageBytes)
        return { records, nextSeq: next(record.seq, options) };
      lookedAt += 1;
      if (messageRole(record.record) !== role) continue;
      records.push(payload === "head" ? { ...record, role, toolName: toolNameOf(record.record) } : record);
      bytes += record.bytes;
    }
  }
  return { records, nextSeq: null };
}

/** Returns a bound just past the next record, because `afterSeq` and `beforeSeq` are exclusive. */
function next(seq: number, { order }: Pick<RecordChoice, "order">): number {
  return order === "descending" ? seq + 1 : seq - 1;
}

const mostNameCharacters = 256;

/** Returns the tool of a result as a head names it. */
function toolNameOf({ message }: SessionRecord): string | null {
  const name = isFields(message) ? message["toolName"] : null;
  return typeof name === "string" && name.length <= mostNameCharacters ? name : null;
}
