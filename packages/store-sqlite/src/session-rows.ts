import {
  patchEntry,
  type OpenTurn,
  type SessionEntry,
  type SessionHead,
  type SessionRef,
  type SessionState,
} from "@throughline/core";
import { nextUpdatedAtMs, quote, refused, sessionNotFound } from "@throughline/core/store";
import { decodedText, type PayloadPlace, type RowCoder } from "./record-rows.ts";
import { changingColumns, type KeptPayload, type SessionRow, type Statements } from "./statements.ts";
import type { WriteScene } from "./store-scene.ts";

/** @throws {ThroughlineError} SESSION_NOT_FOUND */
export function foundSession(statements: Statements, ref: SessionRef): SessionRow {
  const row = findSession(statements, ref);
  if (row === undefined) throw sessionNotFound(ref);
  return row;
}

export function findSession(
  statements: Statements,
  { namespace, agentId, key, archiveId }: SessionRef,
): SessionRow | undefined {
  if (archiveId === undefined) return statements.findCurrent.get(namespace, agentId, key);
  return statements.findArchived.get(namespace, agentId, key, archiveId);
}

/** @throws {ThroughlineError} SESSION_NOT_FOUND, SESSION_ARCHIVED */
export function writableSession(statements: Statements, ref: SessionRef): SessionRow {
  const row = foundSession(statements, ref);
  if (row.archived === 1)
    throw refused("SESSION_ARCHIVED", `The session ${quote(ref.key)} is archived and takes no writes.`, { ...ref });
  return row;
}

export function refOf(row: Pick<SessionRow, "namespace" | "agent_id" | "key" | "archived" | "session_id">): SessionRef {
  const ref = { namespace: row.namespace, agentId: row.agent_id, key: row.key };
  return row.archived === 1 ? { ...ref, archiveId: row.session_id } : ref;
}

export function placeOf(row: SessionRow): PayloadPlace {
  return { ref: refOf(row), sessionId: row.session_id };
}

export function headOf(row: SessionRow): SessionHead {
  return {
    sessionId: row.session_id,
    lastSeq: row.last_seq,
    headId: row.head_id,
    windowSeq: row.window_seq,
    fence: row.fence,
    turn: row.turn === null ? null : (JSON.parse(row.turn) as OpenTurn),
  };
}

/** The row after an append has moved the head. */
export function withHead(row: SessionRow, head: SessionHead): SessionRow {
  const turn = head.turn === null ? null : JSON.stringify(head.turn);
  return { ...row, last_seq: head.lastSeq, head_id: head.headId, window_seq: head.windowSeq, fence: head.fence, turn };
}

export function stateOf(rows: RowCoder, row: SessionRow, entry: KeptPayload): SessionState {
  return {
    ref: refOf(row),
    sessionId: row.session_id,
    archived: row.archived === 1,
    entry: entryOf(rows, row, entry),
    revision: row.revision,
    head: headOf(row),
    messageCount: row.message_count,
    createdAtMs: row.created_at_ms,
    updatedAtMs: row.updated_at_ms,
  };
}

export function entryOf(rows: RowCoder, row: SessionRow, kept: KeptPayload): SessionEntry {
  return JSON.parse(decodedText(rows, placeOf(row), row.key, kept, "entry")) as SessionEntry;
}

/** The entry as it is kept, bound to the key it is kept under. */
export function keptEntry({ rows: { coder, isCoded } }: WriteScene, row: SessionRow, entry: SessionEntry): KeptPayload {
  const text = JSON.stringify(entry);
  return isCoded ? coder.encode(text, { ...placeOf(row), id: row.key, part: "entry" }) : text;
}

/** Writes the entry and gives the row with its new revision and time; the row itself is for the caller to write. */
export function writeEntry(scene: WriteScene, row: SessionRow, entry: SessionEntry): SessionRow {
  if (entry.sessionId !== row.session_id) {
    throw refused("INPUT_INVALID", "An append cannot change the sessionId of the entry.", {
      sessionId: row.session_id,
    });
  }
  const { updatedAtMs, wasClamped } = nextUpdatedAtMs(row.updated_at_ms, entry.updatedAt, scene.clock.nowMs());
  const kept = wasClamped ? patchEntry(entry, { updatedAt: updatedAtMs }) : entry;
  scene.connection.statements.writeEntry.run(row.session, keptEntry(scene, row, kept));
  if (wasClamped) {
    scene.announce({
      name: "updated-at-clamped",
      ref: refOf(row),
      claimedMs: Number(entry.updatedAt),
      storedMs: updatedAtMs,
    });
  }
  return { ...row, revision: row.revision + 1, updated_at_ms: updatedAtMs };
}

const slotMs = 60_000;

/** The minute a session is listed under. */
export function slotOf(timeMs: number): number {
  return Math.floor(timeMs / slotMs);
}

/** Writes a session's row. Its place in the list is written only when the minute has changed. */
export function storeSession(statements: Statements, row: SessionRow): void {
  statements.updateSession.run(...changingColumns.map((column) => row[column]), row.session);
  const slot = slotOf(row.updated_at_ms);
  if (slot !== row.updated_slot) statements.placeSession.run(slot, row.session);
}

export function storedEntry(statements: Statements, row: SessionRow): KeptPayload {
  const found = statements.findEntry.get(row.session);
  if (found === undefined)
    throw refused("STORE_CORRUPT", `The session ${quote(row.session_id)} has no entry.`, { sessionId: row.session_id });
  return found.entry;
}
