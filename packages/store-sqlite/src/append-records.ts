import type { AppendOptions, AppendResult, Durability, SessionRef, StoreLimits } from "@throughline/core";
import { patchEntry } from "@throughline/core";
import {
  assertBatchSize,
  headAfterAppend,
  type LinkedRecord,
  linkRecords,
  type PreparedRecord,
  quote,
  refused,
} from "@throughline/core/store";
import { earlierResult, rememberResult, type AppendKey } from "./keyed-appends.ts";
import { catchUpIds } from "./record-ids.ts";
import { recordColumns } from "./record-rows.ts";
import {
  entryOf,
  headOf,
  placeOf,
  refOf,
  storedEntry,
  storeSession,
  withHead,
  writableSession,
  writeEntry,
} from "./session-rows.ts";
import type { SessionRow } from "./statements.ts";
import type { WriteScene } from "./store-scene.ts";

/** An append with everything done that can be done before the lock. */
export interface PreparedAppend {
  readonly ref: SessionRef;
  readonly prepared: readonly PreparedRecord[];
  readonly options: AppendOptions;
  readonly key: AppendKey | null;
  readonly durability: Durability;
}

/** The append itself, inside the transaction that makes it whole. */
export function appendRecords(scene: WriteScene, append: PreparedAppend): AppendResult {
  const { prepared, options, key, durability } = append;
  const { statements } = scene.connection;
  const session = writableSession(statements, append.ref);
  const before = headOf(session);
  const linked = linkRecords(prepared, before.headId);
  assertSizes(linked, scene.limits);
  const nowMs = scene.clock.nowMs();
  const earlier = key === null ? null : earlierResult(statements, session, key, nowMs);
  if (earlier !== null) return earlier;
  const head = headAfterAppend(before, linked, options, nowMs);
  const idsToSeq = claimIds(scene, session, prepared);
  const records = insertRecords(scene, session, linked, nowMs);
  const messages = linked.filter(({ record }) => record.type === "message").length;
  let row: SessionRow = {
    ...withHead(session, head),
    ids_to_seq: idsToSeq,
    message_count: session.message_count + messages,
  };
  if (options.entry !== undefined)
    row = writeEntry(scene, row, patchEntry(entryOf(scene.rows, row, storedEntry(statements, row)), options.entry));
  if (records.length > 0 && options.entry?.["updatedAt"] === undefined)
    row = { ...row, updated_at_ms: Math.max(row.updated_at_ms, nowMs) };
  const result: AppendResult = { records, head, revision: row.revision, durability, replayed: false };
  if (key !== null) rememberResult(statements, row, key, result, nowMs);
  storeSession(statements, row);
  const fromSeq = records[0]?.seq;
  if (fromSeq !== undefined)
    scene.announce({ name: "records-appended", ref: refOf(row), fromSeq, toSeq: head.lastSeq });
  return result;
}

/** Counts bytes only where characters leave it open: no character of UTF-16 takes more than three bytes of UTF-8. */
function assertSizes(linked: readonly LinkedRecord[], limits: StoreLimits): void {
  let most = 0;
  for (const { source, text } of linked) most += 3 * (source ?? text).length;
  if (most > Math.min(limits.recordBytes, limits.batchBytes)) assertBatchSize(linked, limits);
}

function insertRecords(
  scene: WriteScene,
  session: SessionRow,
  linked: readonly LinkedRecord[],
  storedAtMs: number,
): AppendResult["records"] {
  const place = placeOf(session);
  const { insertRecord } = scene.connection.statements;
  return linked.map((item, index) => {
    const seq = session.last_seq + index + 1;
    insertRecord.run(...recordColumns(scene.rows, place, item, { session: session.session, seq, storedAtMs }));
    const { id, parentId } = item.record;
    return { seq, id, parentId, side: item.side, tsMs: item.tsMs, storedAtMs };
  });
}

/**
 * Enters the ids of a batch of which at least one was chosen by the caller, after those before it. Ids this store made
 * need no look-up, so a session that holds no others has no index of ids and does not pay for one.
 * @throws {ThroughlineError} RECORD_ID_TAKEN
 */
function claimIds(scene: WriteScene, session: SessionRow, prepared: readonly PreparedRecord[]): number {
  if (!prepared.some(({ isIdGiven }) => isIdGiven)) return session.ids_to_seq;
  const { statements } = scene.connection;
  catchUpIds(statements, session);
  for (const [index, { id, isIdGiven }] of prepared.entries()) {
    const { changes } = statements.insertId.run(session.session, id, session.last_seq + index + 1);
    if (changes === 0 && isIdGiven)
      throw refused("RECORD_ID_TAKEN", `The session holds a record ${quote(id)}.`, { id });
  }
  return session.last_seq + prepared.length;
}
