import { crc32 } from "node:zlib";
import { quote, refused } from "@throughline/core/internal";
import type { KeptPayload } from "@throughline/store-kit/internal";
import type { RecordHead } from "@throughline/core/internal";
import { purgedNamespace } from "./rows.ts";
import type { EntryRow, Session, SessionRow } from "./rows.ts";

/** The columns of a session's row that decide what is read of it; those of keyed appends only decide what is remembered. */
type CheckedSession = Omit<
  SessionRow,
  "updated_slot" | "keyed_next" | "keyed_rows" | "keyed_sweep_at" | "keyed_horizon_ms" | "crc"
>;

/** CRC-32 of a session's row. */
export function sessionChecksum(row: CheckedSession): number {
  const { session, namespace, agent_id: agentId, key, archived, session_id: sessionId, revision } = row;
  const { last_seq: lastSeq, head_id: headId, window_seq: windowSeq, fence, turn, message_count: messages } = row;
  const { created_at_ms: createdAtMs, updated_at_ms: updatedAtMs, ids_to_seq: idsToSeq, origin } = row;
  const address = [session, namespace, agentId, key, archived, sessionId, createdAtMs, origin, row.origin_seq];
  return checksumOf(address.concat(revision, lastSeq, headId, windowSeq, fence, turn, messages, updatedAtMs, idsToSeq));
}

/** CRC-32 of an entry with the number of its session behind it. */
export function entryChecksum(session: Session, entry: KeptPayload): number {
  return crc32(String(session), crc32(entry));
}

/**
 * The checksum of a record's columns beside its content, and of its session. The session's number can be exchanged by itself:
 * purging a session hands its records to its forks.
 */
export function headChecksum(
  session: Session,
  { seq, id, parentId, type, side, tsMs, storedAtMs, bytes, crc, role = null, toolName = null }: CheckedHead,
): number {
  const own = checksumOf([seq, id, parentId, type, Number(side), tsMs, storedAtMs, bytes, crc, role, toolName]);
  return (own ^ ownerChecksum(session)) >>> 0;
}

/** The columns of a record, as the store or core has them. */
export type CheckedHead = Omit<RecordHead, "side"> & { readonly side: number | boolean };

/** The bits to exchange in the checksum of a record that another session gets. */
export function exchangedOwner(from: Session, to: Session): number {
  return (ownerChecksum(from) ^ ownerChecksum(to)) >>> 0;
}

/** The entry, when it is what was written. @throws {ThroughlineError} STORE_CORRUPT */
export function checkedEntry(row: SessionRow, { entry, crc }: EntryRow): KeptPayload {
  if (crc === entryChecksum(row.session, entry)) return entry;
  const { key, session_id: sessionId } = row;
  throw refused("STORE_CORRUPT", `The entry of ${quote(key)} is damaged.`, { key, sessionId });
}

/** @throws {ThroughlineError} STORE_CORRUPT when the columns of a record beside its content are not what was written */
export function assertHead(session: Session, row: CheckedHead & { readonly headCrc: number | null }): void {
  if (row.headCrc !== headChecksum(session, row)) throw damagedRecord(row.seq, row.id);
}

/** @throws {ThroughlineError} STORE_CORRUPT when the content of a record is not what was written */
export function assertContent(
  { seq, id, crc }: Pick<RecordHead, "seq" | "id" | "crc">,
  text: KeptPayload,
  source: KeptPayload | null,
): void {
  if (crc !== null && crc !== contentChecksum(text, source)) throw damagedRecord(seq, id);
}

/** The checksum as core makes it: of the text with the source behind it. */
export function contentChecksum(text: KeptPayload, source: KeptPayload | null): number {
  return source === null ? crc32(text) : crc32(source, crc32(text));
}

function damagedRecord(seq: number, id: string): Error {
  const message = `Record ${seq} (${quote(id)}) is damaged: it does not match its checksum.`;
  return refused("STORE_CORRUPT", message, { seq, id });
}

function ownerChecksum(session: Session): number {
  return crc32(String(session));
}

/**
 * Texts are read back as UTF-8 with half characters replaced, and `crc32` encodes them so. A text that one changed bit made
 * bytes joins as the same text, and has another checksum all the same.
 */
function checksumOf(values: readonly (string | number | null)[]): number {
  const text = values.join("\n");
  return crc32(values.some((value) => typeof value === "object" && value !== null) ? `bytes ${text}` : text);
}

/** The row, when it is what was written. @throws {ThroughlineError} STORE_CORRUPT */
export function checkedSession<Row extends SessionRow>(row: Row): Row {
  // The rest of a purged session is no session: its checksum is not compared.
  if (row.namespace === purgedNamespace || row.crc === sessionChecksum(row)) return row;
  const { key, session_id: sessionId } = row;
  throw refused("STORE_CORRUPT", `The row of session ${quote(key)} is damaged.`, { key, sessionId });
}
