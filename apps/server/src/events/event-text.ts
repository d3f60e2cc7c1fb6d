import { crc32 } from "node:zlib";
import type { SessionState, SessionStore, StoredRecord } from "@throughline/core";
import type { SourcedRecord } from "@throughline/core/internal";
import { recordText } from "../routes/record-text.ts";

/** One event of a stream, as it is written. */
export function eventText(event: string, data: string, id?: string): string {
  return `event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${data}\n\n`;
}

/** The event of a record. A carriage return between the members of an imported line would end a line of the stream. */
export function recordData(record: SourcedRecord): string {
  const text = recordText(record);
  if (!text.includes("\r")) return text;
  return recordText({ ...record, isSourceCanonical: false });
}

/**
 * The records of a watch with the lines they are kept as. A watch gives records without them; for nearly every record the
 * line is the JSON of the record, which its size and checksum prove. The others are read.
 */
export async function withLines(
  store: SessionStore,
  { ref }: Pick<SessionState, "ref">,
  records: readonly StoredRecord[],
): Promise<readonly SourcedRecord[]> {
  const found: SourcedRecord[] = [];
  for (const record of records) {
    const line = JSON.stringify(record.record);
    const isLine = record.crc !== null && Buffer.byteLength(line) === record.bytes && crc32(line) === record.crc;
    if (isLine) found.push({ ...record, source: line, isSourceCanonical: true });
    else found.push((await readOne(store, ref, record)) ?? { ...record, source: line, isSourceCanonical: true });
  }
  return found;
}

/** The record, unless the key has got another session meanwhile. */
async function readOne(
  store: SessionStore,
  ref: SessionState["ref"],
  { seq, id }: StoredRecord,
): Promise<SourcedRecord | undefined> {
  for await (const { records } of store.read(ref, { afterSeq: seq - 1, limit: 1, payload: "source" }))
    return records.find((record) => record.seq === seq && record.id === id);
  return undefined;
}

/** Where a session stands, as `hello` and `state` say it. */
export function standing({ ref, sessionId, revision, head }: SessionState): string {
  const { lastSeq, headId, turn } = head;
  return JSON.stringify({ kind: "standing", key: ref.key, sessionId, lastSeq, headId, revision, turn });
}
