import { crc32 } from "node:zlib";
import { quote, refused } from "@throughline/core/internal";
import type { KeptPayload } from "@throughline/store-kit/internal";
import type { RecordHead } from "@throughline/core/internal";
import { purgedNamespace } from "./rows.ts";
import type { EntryRow, PurgedSourceRow, Session, SessionRow } from "./rows.ts";

/**
 * Lists the columns of a session's row that decide what a reader gets. The columns of keyed appends are not covered.
 */
type CheckedSession = Omit<
  SessionRow,
  "updated_slot" | "keyed_next" | "keyed_rows" | "keyed_sweep_at" | "keyed_horizon_ms" | "crc"
>;

export function sessionChecksum(row: CheckedSession): number {
  const { session, namespace, agent_id: agentId, key, archived, session_id: sessionId, revision } = row;
  const { last_seq: lastSeq, head_id: headId, window_seq: windowSeq, fence, turn, message_count: messages } = row;
  const { created_at_ms: createdAtMs, updated_at_ms: updatedAtMs, ids_to_seq: idsToSeq, origin } = row;
  const { origin_seq: originSeq, source_digest: source } = row;
  const address = [session, namespace, agentId, key, archived, sessionId, createdAtMs, origin, originSeq, source];
  return checksumOf(address.concat(revision, lastSeq, headId, windowSeq, fence, turn, messages, updatedAtMs, idsToSeq));
}

/** The number of the session is part of the checksum, so an entry under another session does not match. */
export function entryChecksum(session: Session, entry: KeptPayload): number {
  return crc32(String(session), crc32(entry));
}

export function purgeChecksum(row: Omit<PurgedSourceRow, "crc">): number {
  return checksumOf([row.namespace, row.agent_id, row.source_digest, row.purged_at_ms]);
}

/** Returns the row if it matches its checksum. @throws {ThroughlineError} STORE_CORRUPT */
export function checkedPurge(row: PurgedSourceRow): PurgedSourceRow {
  if (isIntactPurge(row)) return row;
  throw refused("STORE_CORRUPT", `A purged source of agent ${quote(row.agent_id)} is damaged.`, {
    agentId: row.agent_id,
  });
}

export function isIntactPurge(row: PurgedSourceRow): boolean {
  return row.crc === purgeChecksum(row);
}

/**
 * Returns the checksum of a record's columns beside its content, and of its session. The number of the session can be
 * exchanged alone, because a purge hands records to forks.
 */
export function headChecksum(
  session: Session,
  { seq, id, parentId, type, side, tsMs, storedAtMs, bytes, crc, role = null, toolName = null }: CheckedHead,
): number {
  const own = checksumOf([seq, id, parentId, type, Number(side), tsMs, storedAtMs, bytes, crc, role, toolName]);
  return (own ^ ownerChecksum(session)) >>> 0;
}

/** Holds the columns of a record, as the store or core has them. */
export type CheckedHead = Omit<RecordHead, "side"> & { readonly side: number | boolean };

/** Returns the bits that change in the checksum of a record when another session gets it. */
export function exchangedOwner(from: Session, to: Session): number {
  return (ownerChecksum(from) ^ ownerChecksum(to)) >>> 0;
}

/** Returns the entry if it matches its checksum. @throws {ThroughlineError} STORE_CORRUPT */
export function checkedEntry(row: SessionRow, { entry, crc }: EntryRow): KeptPayload {
  if (isPayload(entry) && crc === entryChecksum(row.session, entry)) return entry;
  const { key, session_id: sessionId } = row;
  throw refused("STORE_CORRUPT", `The entry of ${quote(key)} is damaged.`, { key, sessionId });
}

/**
 * @throws {ThroughlineError} STORE_CORRUPT when the columns of a record beside its content do not match their checksum
 */
export function assertHead(session: Session, row: CheckedHead & { readonly headCrc: number | null }): void {
  if (row.headCrc !== headChecksum(session, row)) throw damagedRecord(row.seq, row.id);
}

/** @throws {ThroughlineError} STORE_CORRUPT when the content of a record does not match its checksum */
export function assertContent(
  { seq, id, crc }: Pick<RecordHead, "seq" | "id" | "crc">,
  text: KeptPayload,
  source: KeptPayload | null,
): void {
  if (crc !== null && crc !== contentChecksum(text, source)) throw damagedRecord(seq, id);
}

/** Returns the same checksum as core: of the text, with the source behind it. Null where a value has none. */
export function contentChecksum(text: KeptPayload, source: KeptPayload | null): number | null {
  if (!isPayload(text) || (source !== null && !isPayload(source))) return null;
  return source === null ? crc32(text) : crc32(source, crc32(text));
}

/** One changed bit in the header of a row turns a text into a number, which no checksum takes. */
function isPayload(kept: unknown): kept is KeptPayload {
  return typeof kept === "string" || kept instanceof Uint8Array;
}

function damagedRecord(seq: number, id: string): Error {
  const message = `Record ${seq} (${quote(id)}) is damaged: it does not match its checksum.`;
  return refused("STORE_CORRUPT", message, { seq, id });
}

function ownerChecksum(session: Session): number {
  return crc32(String(session));
}

/**
 * SQLite returns text as UTF-8 with lone surrogates replaced, and `crc32` encodes it the same way. A text that one
 * changed bit turned into bytes joins as the same text, so such a row gets another prefix.
 */
function checksumOf(values: readonly (string | number | null)[]): number {
  const text = values.join("\n");
  return crc32(values.some((value) => typeof value === "object" && value !== null) ? `bytes ${text}` : text);
}

/** Returns the row if it matches its checksum. @throws {ThroughlineError} STORE_CORRUPT */
export function checkedSession<Row extends SessionRow>(row: Row): Row {
  // The rest of a purged session is no session, so its checksum is not compared.
  if (row.namespace === purgedNamespace || row.crc === sessionChecksum(row)) return row;
  const { key, session_id: sessionId } = row;
  throw refused("STORE_CORRUPT", `The row of session ${quote(key)} is damaged.`, { key, sessionId });
}
