import {
  hasErrorCode,
  type OpenTurn,
  type SessionEntry,
  type SessionRef,
  type SessionState,
  type ThroughlineError,
} from "@throughline/core";
import { assertRef, type SessionFrame, sessionState } from "@throughline/store-kit/internal";
import { entrySourceDigest, quote, refused, sessionNotFound } from "@throughline/core/internal";
import type { KeptPayload, RowCoder } from "@throughline/store-kit/internal";
import { checkedEntry, checkedSession, entryChecksum, sessionChecksum } from "./row-checksums.ts";
import { placeOf, purgedNamespace, refOf, type Session, type SessionRow } from "./rows.ts";
import { changingColumns, type Statements } from "./statements.ts";

/** @throws {ThroughlineError} SESSION_NOT_FOUND */
export function foundSession(statements: Statements, ref: SessionRef): SessionRow {
  const row = findSession(statements, ref);
  if (row === undefined) throw sessionNotFound(ref);
  return row;
}

export function findSession(statements: Statements, ref: SessionRef): SessionRow | undefined {
  assertRef(ref);
  const { namespace, agentId, key, archiveId } = ref;
  if (namespace === purgedNamespace) return undefined;
  const found =
    archiveId === undefined
      ? statements.findCurrent.get(namespace, agentId, key)
      : statements.findArchived.get(namespace, agentId, key, archiveId);
  const hidden = (): unknown =>
    archiveId === undefined
      ? statements.hiddenCurrent.get(namespace, agentId, key)
      : statements.hiddenArchived.get(namespace, agentId, key, archiveId);
  const isElsewhere =
    found === undefined
      ? hidden() !== undefined
      : found.namespace !== namespace || found.agent_id !== agentId || found.key !== key;
  if (!isElsewhere) return found;
  throw refused("STORE_CORRUPT", `The index of the sessions is damaged: it leads past ${quote(key)}.`, { ...ref });
}

export function frameOf(row: SessionRow): SessionFrame {
  return {
    ref: refOf(row),
    sessionId: row.session_id,
    revision: row.revision,
    head: {
      sessionId: row.session_id,
      lastSeq: row.last_seq,
      headId: row.head_id,
      windowSeq: row.window_seq,
      fence: row.fence,
      turn: row.turn === null ? null : openTurn(row, row.turn),
    },
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
  };
}

/** @throws {ThroughlineError} STORE_CORRUPT */
function openTurn({ key, session_id: sessionId }: SessionRow, kept: string): OpenTurn {
  try {
    return JSON.parse(kept) as OpenTurn;
  } catch (cause) {
    throw refused("STORE_CORRUPT", `The open turn of ${quote(key)} is damaged.`, { key, sessionId }, cause);
  }
}

/** Returns the row after a plan. The address and the listing minute are written only when they change. */
export function withFrame(row: SessionRow, { revision, head, updatedAtMs }: SessionFrame): SessionRow {
  return {
    ...row,
    revision,
    last_seq: head.lastSeq,
    head_id: head.headId,
    window_seq: head.windowSeq,
    fence: head.fence,
    turn: head.turn === null ? null : JSON.stringify(head.turn),
    updated_at_ms: updatedAtMs,
  };
}

export function stateOf(coder: RowCoder, row: SessionRow, kept: KeptPayload): SessionState {
  return sessionState(frameOf(row), decodedEntry(coder, row, kept), row.message_count);
}

export function entryOf(statements: Statements, coder: RowCoder, row: SessionRow): SessionEntry {
  return decodedEntry(coder, row, storedEntry(statements, row));
}

/**
 * @throws {ThroughlineError} CODEC_FAILED, or STORE_CORRUPT because an entry without a codec was JSON when it was
 * written
 */
function decodedEntry(coder: RowCoder, row: SessionRow, kept: KeptPayload): SessionEntry {
  try {
    return coder.decodeEntry(placeOf(row), kept);
  } catch (cause) {
    if (typeof kept !== "string" || !hasErrorCode(cause, "CODEC_FAILED")) throw cause;
    const { key, session_id: sessionId } = row;
    throw refused("STORE_CORRUPT", `The entry of ${quote(key)} is damaged.`, { key, sessionId }, cause);
  }
}

/**
 * Writes the entry, bound to the key of its session. Returns the row with the source that the entry states. The caller
 * stores the row, and with it its checksum.
 */
export function writeEntry(statements: Statements, coder: RowCoder, row: SessionRow, entry: SessionEntry): SessionRow {
  storeEntry(statements, row.session, coder.encodeEntry(placeOf(row), entry));
  return placeInSource(statements, row, entry);
}

/** Writes the source that an entry states, if it is another one. Returns the row with it. */
export function placeInSource(statements: Statements, row: SessionRow, entry: SessionEntry): SessionRow {
  const digest = entrySourceDigest(entry);
  if (digest === row.source_digest) return row;
  statements.setSource.run(digest, row.session);
  return { ...row, source_digest: digest };
}

export function storeEntry(statements: Statements, session: Session, kept: KeptPayload): void {
  statements.writeEntry.run(session, kept, entryChecksum(session, kept));
}

const slotMs = 60_000;

export function slotOf(timeMs: number): number {
  return Math.floor(timeMs / slotMs);
}

/**
 * Returns the row if it matches its checksum and its listing minute, which the checksum leaves out.
 * @throws {ThroughlineError} STORE_CORRUPT
 */
export function listedSession<Row extends SessionRow>(row: Row): Row {
  checkedSession(row);
  if (row.updated_slot === slotOf(row.updated_at_ms)) return row;
  const { key, session_id: sessionId } = row;
  throw refused("STORE_CORRUPT", `The row of session ${quote(key)} is damaged.`, { key, sessionId });
}

/** Writes the row of a session. The listing minute is written only when it has changed. Returns the row as stored. */
export function storeSession(statements: Statements, row: SessionRow): SessionRow {
  statements.updateSession.run(...changingColumns.map((column) => row[column]), sessionChecksum(row), row.session);
  return placeInList(statements, row);
}

/** Writes the row after an append, which mostly changes few columns. */
export function advanceSession(statements: Statements, before: SessionRow, row: SessionRow): SessionRow {
  const isPlain =
    row.revision === before.revision &&
    row.window_seq === before.window_seq &&
    row.fence === before.fence &&
    row.turn === before.turn &&
    row.ids_to_seq === before.ids_to_seq;
  if (!isPlain) return storeSession(statements, row);
  statements.advanceSession.run(
    row.last_seq,
    row.head_id,
    row.message_count,
    row.updated_at_ms,
    sessionChecksum(row),
    row.session,
  );
  return placeInList(statements, row);
}

/** Updates the checksum of a session's row after single columns were changed. */
export function sealSession(statements: Statements, session: Session): void {
  const row = statements.rawSession.get(session);
  if (row !== undefined) statements.sealSession.run(sessionChecksum(row), session);
}

function placeInList(statements: Statements, row: SessionRow): SessionRow {
  const slot = slotOf(row.updated_at_ms);
  if (slot === row.updated_slot) return row;
  statements.placeSession.run(slot, row.session);
  return { ...row, updated_slot: slot };
}

export function storedEntry(statements: Statements, row: SessionRow): KeptPayload {
  const found = statements.findEntry.get(row.session);
  if (found === undefined) throw lostEntry(row);
  return checkedEntry(row, found);
}

export function lostEntry({ session_id: sessionId }: SessionRow): ThroughlineError {
  return refused("STORE_CORRUPT", `The session ${quote(sessionId)} has no entry.`, { sessionId });
}
