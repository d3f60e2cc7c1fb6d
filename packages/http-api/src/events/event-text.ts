import { crc32 } from "node:zlib";
import type { SessionState, SessionStore, StoredRecord } from "@throughline/core";
import { countWaitingCalls, type SourcedRecord } from "@throughline/core/internal";
import { recordText } from "../routes/record-text.ts";

/** Returns the headers of an answer that is a stream of events. */
export function eventHeaders(requestId: string): Readonly<Record<string, string>> {
  return {
    "content-type": "text/event-stream",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    // Without this header nginx buffers the events.
    "x-accel-buffering": "no",
    // Closing the connection marks the end of the stream, because a client that does not read never sees the last
    // event.
    connection: "close",
    "throughline-request-id": requestId,
  };
}

export function eventText(event: string, data: string, id?: string): string {
  return `event: ${event}\n${id === undefined ? "" : `id: ${id}\n`}data: ${data}\n\n`;
}

/**
 * Formats the data of a record event. An imported line may have a carriage return between its members, which would end
 * a line of the event stream. Such a record is serialized again.
 */
export function recordData(record: SourcedRecord): string {
  const text = recordText(record);
  if (!text.includes("\r")) return text;
  return recordText({ ...record, isSourceCanonical: false });
}

/**
 * Adds the stored lines to the records of a watch, which omits them. The line nearly always equals the JSON of the
 * record, and its size and checksum prove that. Only the other records are read from the store.
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

/** Matches the id too, because the key may belong to a new session meanwhile. */
async function readOne(
  store: SessionStore,
  ref: SessionState["ref"],
  { seq, id }: StoredRecord,
): Promise<SourcedRecord | undefined> {
  for await (const { records } of store.read(ref, { afterSeq: seq - 1, limit: 1, payload: "source" }))
    return records.find((record) => record.seq === seq && record.id === id);
  return undefined;
}

export function standing(state: SessionState): string {
  const { ref, sessionId, revision, head } = state;
  const { lastSeq, headId, turn } = head;
  const pendingApprovals = turn === null ? countWaitingCalls(state) : 0;
  return JSON.stringify({
    kind: "standing",
    key: ref.key,
    sessionId,
    lastSeq,
    headId,
    revision,
    turn,
    pendingApprovals,
  });
}
