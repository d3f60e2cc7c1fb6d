import {
  throughlineKind,
  sessionRef,
  type MoveAction,
  type RedactOptions,
  type RedactResult,
  type SessionEntry,
  type SessionRef,
  type SessionState,
  type StoredRecord,
} from "@throughline/core";
import {
  assertAgentId,
  assertNamespace,
  assertSessionId,
  quote,
  redactionTombstone,
  refused,
  serializeRecord,
} from "@throughline/core/store";
import { firstSweepAt } from "./keyed-appends.ts";
import { catchUpIds } from "./record-ids.ts";
import { contentColumns, recordOf } from "./record-rows.ts";
import {
  entryOf,
  findSession,
  foundSession,
  keptEntry,
  placeOf,
  refOf,
  slotOf,
  stateOf,
  storedEntry,
  storeSession,
  writableSession,
  writeEntry,
} from "./session-rows.ts";
import type { SessionRow } from "./statements.ts";
import type { WriteScene } from "./store-scene.ts";

/** Writes the whole entry, begins a session, or begins the next one of a key. */
export function saveEntry(
  scene: WriteScene,
  ref: SessionRef,
  entry: SessionEntry,
  ifRevision: number | null,
): SessionState {
  const { statements } = scene.connection;
  const current = ref.archiveId === undefined ? findSession(statements, ref) : writableSession(statements, ref);
  const revision = current?.revision ?? null;
  if (revision !== ifRevision)
    throw refused("REVISION_CONFLICT", `The entry is at revision ${revision}.`, { revision });
  if (current?.session_id === entry.sessionId) {
    const written = writeEntry(scene, current, entry);
    storeSession(statements, written);
    return stateNow(scene, written);
  }
  assertNewIds(scene, ref, entry.sessionId);
  if (current !== undefined) archiveSession(scene, current);
  return createSession(scene, ref, entry, revision ?? 0);
}

export function moveSession(scene: WriteScene, ref: SessionRef, action: MoveAction): SessionState {
  const { statements } = scene.connection;
  const row = action.kind === "restore" ? foundSession(statements, ref) : writableSession(statements, ref);
  if (action.kind === "archive") return stateNow(scene, archiveSession(scene, row));
  const owner = { namespace: row.namespace, agentId: row.agent_id };
  const target = action.kind === "rename" ? sessionRef({ ...owner, key: action.key }) : { ...owner, key: row.key };
  const holder = findSession(statements, target);
  if (holder !== undefined && (holder.session !== row.session || action.kind === "restore")) {
    throw refused("SESSION_EXISTS", `A session holds the key ${quote(target.key)}.`, { ...target });
  }
  const entry = entryOf(scene.rows, row, storedEntry(statements, row));
  const moved: SessionRow = { ...row, key: target.key, archived: 0 };
  statements.moveSession.run(moved.key, moved.archived, row.session);
  statements.writeEntry.run(row.session, keptEntry(scene, moved, entry));
  return stateNow(scene, moved);
}

/** Archives, or deletes for good. The records go first: row by row through the foreign key takes several times as long. */
export function removeSession(scene: WriteScene, ref: SessionRef, isPurge: boolean): void {
  const { statements } = scene.connection;
  const row = foundSession(statements, ref);
  if (!isPurge) {
    archiveSession(scene, row);
    return;
  }
  statements.deleteRecords.run(row.session);
  statements.deleteSession.run(row.session);
  scene.announce({ name: "session-removed", ref: refOf(row), sessionId: row.session_id });
}

export function redactSession(
  scene: WriteScene,
  ref: SessionRef,
  ids: readonly string[],
  { reason }: RedactOptions,
): RedactResult {
  const { statements } = scene.connection;
  const row = foundSession(statements, ref);
  catchUpIds(statements, row);
  const seqs = ids.map((id) => {
    const found = statements.findId.get(row.session, id);
    if (found === undefined) throw refused("RECORD_NOT_FOUND", `The session holds no record ${quote(id)}.`, { id });
    return found.seq;
  });
  const inOrder = [...new Set(seqs)].toSorted((one, other) => one - other);
  const info = { reason, redactedAtMs: scene.clock.nowMs() };
  const messages = inOrder.filter((seq) => redactRecord(scene, row, seq, info)).length;
  storeSession(statements, { ...row, ids_to_seq: row.last_seq, message_count: row.message_count - messages });
  scene.announce({ name: "records-redacted", ref: refOf(row), seqs: inOrder });
  return { seqs: inOrder };
}

/** True when a message became a tombstone. A tombstone stays as it is. */
function redactRecord(
  scene: WriteScene,
  session: SessionRow,
  seq: number,
  info: { readonly reason: string; readonly redactedAtMs: number },
): boolean {
  const { statements } = scene.connection;
  const place = placeOf(session);
  const [row] = statements.readRecords.ascending.all(session.session, seq - 1, seq + 1, 1);
  if (row === undefined)
    throw refused("STORE_CORRUPT", `Record ${seq} of ${quote(session.session_id)} is missing.`, { seq });
  const { record, side, bytes, type } = recordOf(scene.rows, place, row, "record") as StoredRecord;
  if (throughlineKind(record) === "redaction") return false;
  const tombstone = redactionTombstone(record, { ...info, side, bytes });
  const text = serializeRecord(tombstone);
  const columns = contentColumns(scene.rows, place, { record: tombstone, text, source: null });
  statements.replaceRecord.run(
    tombstone.type,
    Buffer.byteLength(text),
    columns.crc,
    columns.text,
    session.session,
    seq,
  );
  return type === "message";
}

function archiveSession(scene: WriteScene, row: SessionRow): SessionRow {
  if (row.archived === 1) return row;
  const archived = { ...row, archived: 1 };
  scene.connection.statements.moveSession.run(row.key, 1, row.session);
  scene.announce({ name: "session-archived", ref: refOf(archived), sessionId: row.session_id });
  return archived;
}

function createSession(
  scene: WriteScene,
  { namespace, agentId, key }: SessionRef,
  entry: SessionEntry,
  revision: number,
): SessionState {
  const nowMs = scene.clock.nowMs();
  const { statements } = scene.connection;
  const updatedAtMs = typeof entry.updatedAt === "number" ? 0 : nowMs;
  const empty: Omit<SessionRow, "session"> = {
    namespace,
    agent_id: agentId,
    key,
    archived: 0,
    session_id: entry.sessionId,
    revision,
    last_seq: 0,
    head_id: null,
    window_seq: null,
    fence: 0,
    turn: null,
    message_count: 0,
    created_at_ms: nowMs,
    updated_at_ms: updatedAtMs,
    updated_slot: slotOf(updatedAtMs),
    ids_to_seq: 0,
    keyed_next: 1,
    keyed_rows: 0,
    keyed_sweep_at: firstSweepAt(0),
    keyed_horizon_ms: -1,
  };
  const session = Number(statements.insertSession.run(empty).lastInsertRowid);
  const written = writeEntry(scene, { ...empty, session }, entry);
  storeSession(statements, written);
  scene.announce({ name: "session-created", ref: refOf(written), sessionId: entry.sessionId });
  return stateNow(scene, written);
}

/** @throws {ThroughlineError} NAMESPACE_INVALID, AGENT_ID_INVALID, SESSION_ID_INVALID, SESSION_EXISTS, ID_CASE_COLLISION */
function assertNewIds(
  { connection: { statements } }: WriteScene,
  { namespace, agentId }: SessionRef,
  sessionId: string,
): void {
  assertNamespace(namespace);
  assertAgentId(agentId);
  assertSessionId(sessionId);
  const agent = statements.findAgent.get(namespace, agentId)?.agent_id;
  if (agent !== undefined && agent !== agentId) throw collision(agentId, agent);
  const holder = statements.findIds.get(namespace, agentId, sessionId)?.session_id;
  if (holder === undefined) return;
  if (holder !== sessionId) throw collision(sessionId, holder);
  throw refused("SESSION_EXISTS", `The session id ${quote(sessionId)} is in use.`, { id: sessionId, holder });
}

function collision(id: string, holder: string): Error {
  return refused("ID_CASE_COLLISION", `The id ${quote(id)} meets ${quote(holder)}.`, { id, holder });
}

function stateNow(scene: WriteScene, row: SessionRow): SessionState {
  return stateOf(scene.rows, row, storedEntry(scene.connection.statements, row));
}
