import type { MoveAction, SaveOptions, SessionEntry, SessionRef, SessionState } from "@throughline/core";
import { assertIdsFree, planArchive, planMove, planSave, type SessionFrame } from "@throughline/store-kit/internal";
import { firstSweepAt } from "./keyed-appends.ts";
import {
  entryOf,
  findSession,
  foundSession,
  frameOf,
  sealSession,
  slotOf,
  stateOf,
  storedEntry,
  storeSession,
  withFrame,
  writeEntry,
} from "./session-rows.ts";
import type { SessionRow } from "./rows.ts";
import type { WriteContext } from "./store-context.ts";

/** Writes the whole entry, creates a session, or creates the next session of a key. */
export function saveEntry(
  context: WriteContext,
  ref: SessionRef,
  entry: SessionEntry,
  options: Pick<SaveOptions, "ifRevision" | "createdAtMs">,
): SessionState {
  const { connection, rows, clock } = context;
  const { statements } = connection;
  const current = findSession(statements, ref);
  const frame = current === undefined ? null : frameOf(current);
  const plan = planSave(frame, ref, entry, { ...options, nowMs: clock.nowMs() });
  if (plan.isNew) assertNewIds(context, plan.frame);
  if (plan.archived !== null && current !== undefined) place(context, current, plan.archived);
  const placed =
    plan.isNew || current === undefined ? insertSession(context, plan.frame, {}) : withFrame(current, plan.frame);
  const row = writeEntry(statements, rows, placed, plan.entry);
  storeSession(statements, row);
  context.announce(...plan.events);
  return stateNow(context, row);
}

export function moveSession(context: WriteContext, ref: SessionRef, action: MoveAction): SessionState {
  const { connection, rows } = context;
  const { statements } = connection;
  const row = foundSession(statements, ref);
  const plan = planMove(frameOf(row), action, (at) => findSession(statements, at)?.session_id);
  const moved = place(context, row, plan.frame);
  // A codec binds the entry to its key, so the entry is coded again.
  if (moved.key !== row.key) writeEntry(statements, rows, moved, entryOf(statements, rows, row));
  context.announce(...plan.events);
  return stateNow(context, moved);
}

/** Moves the session into the archive. An archived session stays as it is. */
export function archiveSession(context: WriteContext, ref: SessionRef): void {
  const row = foundSession(context.connection.statements, ref);
  const plan = planArchive(frameOf(row));
  place(context, row, plan.frame);
  context.announce(...plan.events);
}

export function insertSession(
  { connection: { statements } }: WriteContext,
  frame: SessionFrame,
  fork: Partial<Pick<SessionRow, "origin" | "origin_seq" | "message_count" | "ids_to_seq">>,
): SessionRow {
  const { ref, sessionId, createdAtMs, updatedAtMs } = frame;
  const empty: Omit<SessionRow, "session"> = {
    namespace: ref.namespace,
    agent_id: ref.agentId,
    key: ref.key,
    archived: 0,
    session_id: sessionId,
    revision: 0,
    last_seq: 0,
    head_id: null,
    window_seq: null,
    fence: 0,
    turn: null,
    message_count: 0,
    created_at_ms: createdAtMs,
    updated_at_ms: updatedAtMs,
    updated_slot: slotOf(updatedAtMs),
    ids_to_seq: 0,
    keyed_next: 1,
    keyed_rows: 0,
    keyed_sweep_at: firstSweepAt(0),
    keyed_horizon_ms: -1,
    origin: null,
    origin_seq: null,
    source_digest: null,
    crc: null,
    ...fork,
  };
  const session = Number(statements.insertSession.run(empty).lastInsertRowid);
  return withFrame({ ...empty, session }, frame);
}

/** @throws {ThroughlineError} NAMESPACE_INVALID, AGENT_ID_INVALID, SESSION_ID_INVALID, SESSION_EXISTS, ID_CASE_COLLISION */
export function assertNewIds(
  { connection: { statements } }: WriteContext,
  frame: Pick<SessionFrame, "ref" | "sessionId">,
): void {
  const { namespace, agentId } = frame.ref;
  assertIdsFree(frame, {
    agentId: statements.findAgent.get(namespace, agentId)?.agent_id,
    sessionId: statements.findIds.get(namespace, agentId, frame.sessionId)?.session_id,
  });
}

function place({ connection, partials }: WriteContext, row: SessionRow, { ref }: SessionFrame): SessionRow {
  const { statements } = connection;
  const placed = { ...row, key: ref.key, archived: ref.archiveId === undefined ? 0 : 1 };
  if (placed.archived === 1) partials.drop(connection, row.session);
  if (placed.key !== row.key || placed.archived !== row.archived) {
    statements.moveSession.run(placed.key, placed.archived, row.session);
    sealSession(statements, row.session);
  }
  return placed;
}

export function stateNow(context: WriteContext, row: SessionRow): SessionState {
  return stateOf(context.rows, row, storedEntry(context.connection.statements, row));
}
