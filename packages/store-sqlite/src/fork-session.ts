import type { ForkFacet, SessionRef, SessionState } from "@throughline/core";
import type { SharedRecords, SourcedRecord } from "@throughline/core/internal";
import { forkBound, planSave } from "@throughline/store-kit/internal";
import { isErasedPayload, refused, serializeRecord } from "@throughline/core/internal";
import type { PayloadPlace, RecordRow, RowCoder } from "@throughline/store-kit/internal";
import type { Connection } from "./connection.ts";
import { shareReferences } from "./file-references.ts";
import { dropPayloads, recordOf, replaceRecord, rowOf } from "./record-rows.ts";
import { assertNewIds, insertSession, stateNow } from "./session-changes.ts";
import { placeOf, refOf, purgedNamespace } from "./rows.ts";
import { findSession, foundSession, sealSession, storeSession, writeEntry } from "./session-rows.ts";
import { exchangedOwner } from "./row-checksums.ts";
import { spansOf } from "./session-spans.ts";
import type { SessionSpan } from "./session-spans.ts";
import type { RecordContentRow, Session, SessionRow } from "./rows.ts";
import type { Statements } from "./statements.ts";
import type { WriteContext } from "./store-context.ts";
import { noteGivenRecords } from "./vector-rows.ts";
import type { StoreHandle } from "./store-handle.ts";

interface ForkTarget {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly atSeq: number;
}

/** Counts messages up to a seq. The count is made before the fork, because a long session is counted in slices. */
interface CountedMessages {
  readonly atSeq: number;
  readonly messages: number;
}

/**
 * Creates a session that shares the records of another one up to a seq. It writes one row and one entry, however many
 * records are shared.
 * @throws {ThroughlineError} SESSION_NOT_FOUND, SESSION_EXISTS, INPUT_INVALID and those of new ids
 */
function forkSession(context: WriteContext, from: SessionRef, target: ForkTarget, messages: number): SessionState {
  const { connection, clock, rows } = context;
  const { statements } = connection;
  const origin = foundSession(statements, from);
  const { atSeq, sessionId } = target;
  const forkedFrom = { agentId: origin.agent_id, key: origin.key, sessionId: origin.session_id, atSeq };
  const holder = findSession(statements, target.ref);
  if (holder !== undefined) throw refused("SESSION_EXISTS", "A session holds the key of the fork.", { ...target.ref });
  const plan = planSave(null, target.ref, { sessionId, forkedFrom }, { ifRevision: null, nowMs: clock.nowMs() });
  assertNewIds(context, plan.frame);
  const { owner } = spanAt(spansOf(statements, origin), atSeq);
  const frame = {
    ...plan.frame,
    head: {
      ...plan.frame.head,
      lastSeq: atSeq,
      headId: atSeq === origin.last_seq ? origin.head_id : lastMain(statements, origin, atSeq),
      // The window at an earlier record is not known, so the context begins with the first record.
      windowSeq: atSeq === origin.last_seq ? origin.window_seq : null,
    },
  };
  const fork = { origin: owner.session, origin_seq: atSeq, message_count: messages, ids_to_seq: atSeq };
  const row = writeEntry(statements, rows, insertSession(context, frame, atSeq === 0 ? {} : fork), plan.entry);
  storeSession(statements, row);
  shareReferences(connection, origin.session, row.session, atSeq);
  context.announce(...plan.events);
  return stateNow(context, row);
}

/**
 * Returns the span that holds a seq. A fork refers to that owner directly, however often its origin was itself forked.
 */
function spanAt(spans: readonly SessionSpan[], seq: number): SessionSpan {
  const found = spans.findLast(({ afterSeq }) => afterSeq < seq) ?? spans[0];
  if (found === undefined) throw refused("INTERNAL", "A session has no span.");
  return found;
}

function lastMain(statements: Statements, session: SessionRow, atSeq: number): string | null {
  for (const { owner, afterSeq, toSeq } of spansOf(statements, session).toReversed()) {
    const found = statements.lastMainRecord.get(owner.session, afterSeq, Math.min(toSeq, atSeq));
    if (found !== undefined) return found.id;
  }
  return null;
}

const countRows = 2000;

/**
 * Counts one slice of the messages up to `atSeq`, from the nearer end. A session that does not change is counted once.
 */
function countSlice(
  statements: Statements,
  session: SessionRow,
  atSeq: number,
  counted: CountedMessages,
): CountedMessages {
  const isUpwards = counted.atSeq < atSeq;
  const next = isUpwards ? Math.min(atSeq, counted.atSeq + countRows) : Math.max(atSeq, counted.atSeq - countRows);
  const [after, to] = isUpwards ? [counted.atSeq, next] : [next, counted.atSeq];
  let found = 0;
  for (const { owner, afterSeq, toSeq } of spansOf(statements, session))
    found += statements.countMessages.get(owner.session, Math.max(after, afterSeq), Math.min(to, toSeq)) ?? 0;
  return { atSeq: next, messages: counted.messages + (isUpwards ? found : -found) };
}

/**
 * Gives the forks of a session what they share of its own records, before a purge. The oldest fork gets the records
 * that it needs, and each later fork those beyond. Returns the last seq that any fork needs.
 */
export function copyToForks(context: WriteContext, session: SessionRow): number {
  const { statements } = context.connection;
  let covered = session.origin_seq ?? 0;
  const holders: { readonly session: number | null; readonly toSeq: number }[] = [
    { session: session.origin, toSeq: covered },
  ];
  for (const fork of statements.forksOf.all(session.session)) {
    const toSeq = fork.origin_seq ?? 0;
    const holder = holders.find((each) => each.toSeq >= toSeq);
    if (holder !== undefined) {
      statements.setOrigin.run(holder.session, toSeq, fork.session);
      sealSession(statements, fork.session);
      continue;
    }
    const below = holders.at(-1);
    give(context, session, fork, { afterSeq: covered, toSeq });
    const isFirst = below === undefined || below.session === null;
    statements.setOrigin.run(isFirst ? null : below.session, isFirst ? null : covered, fork.session);
    sealSession(statements, fork.session);
    holders.push({ session: fork.session, toSeq });
    covered = toSeq;
  }
  return covered;
}

/** A codec binds each payload to its session, so the records are coded again for their new session. */
function give(
  { connection, rows, isCoded }: WriteContext,
  from: SessionRow,
  to: SessionRow,
  { afterSeq, toSeq }: { readonly afterSeq: number; readonly toSeq: number },
): void {
  const { statements } = connection;
  const [before, after] = [placeOf(from), placeOf(to)];
  for (let at = afterSeq; isCoded && at < toSeq;) {
    const found = statements.readRecords.ascending.all(from.session, at, toSeq + 1, 100);
    const last = found.at(-1);
    if (last === undefined) break;
    for (const each of found) recode(statements, rows, { before, after }, from.session, each);
    at = last.seq;
  }
  if (from.ids_to_seq < toSeq)
    storeSession(statements, { ...to, ids_to_seq: Math.min(to.ids_to_seq, from.ids_to_seq) });
  statements.giveIds.run(to.session, from.session, afterSeq, toSeq);
  statements.giveChildren.run(to.session, from.session, afterSeq, toSeq);
  noteGivenRecords(connection, to.session, afterSeq, toSeq);
  const exchanged = exchangedOwner(from.session, to.session);
  statements.giveRecords.run(to.session, exchanged, exchanged, from.session, afterSeq, toSeq);
}

function recode(
  statements: Statements,
  rows: RowCoder,
  { before, after }: { readonly before: PayloadPlace; readonly after: PayloadPlace },
  session: Session,
  found: RecordContentRow,
): void {
  const stored = decoded(rows, before, rowOf(statements, session, found));
  if (stored === null) return;
  const { record, source, isSourceCanonical, side, tsMs } = stored;
  const text = isSourceCanonical && typeof source === "string" ? source : serializeRecord(record);
  const item = { record, text, side, tsMs, source: isSourceCanonical ? null : source, isSourceCanonical };
  replaceRecord(statements, session, rows.encodeRecord(after, item, stored));
  dropPayloads(statements, [found]);
}

/** Returns null for a record whose key was destroyed. It stays as it is, and is reported as erased in its new place too. */
function decoded(rows: RowCoder, place: PayloadPlace, row: RecordRow): SourcedRecord | null {
  try {
    return recordOf(rows, place, row, "source");
  } catch (error) {
    if (isErasedPayload(error)) return null;
    throw error;
  }
}

interface ForkOptions {
  readonly atSeq?: number | undefined;
  readonly sessionId: string;
}

export function createFork(handle: StoreHandle): ForkFacet {
  return {
    recodesOnPurge: true,
    fork: (ref, target, options) => fork(handle, ref, target, options),
    sharers: (ref, seqs) => handle.read(({ statements }) => sharersOf(statements, foundSession(statements, ref), seqs)),
  };
}

async function fork(
  handle: StoreHandle,
  ref: SessionRef,
  target: SessionRef,
  options: ForkOptions,
): Promise<SessionState> {
  const atSeq = forkBound(ref, target, options);
  const { sessionId } = options;
  for (;;) {
    // A fork that ends before its origin needs a count of its messages.
    const counted = await countedMessages(handle, ref, atSeq);
    const state = await handle.write(
      (context) => {
        const origin = foundSession(context.connection.statements, ref);
        const messages = messagesUpTo(context.connection, origin, atSeq, counted);
        if (messages === null) return null;
        return forkSession(context, ref, { ref: target, sessionId, atSeq: Math.min(atSeq, origin.last_seq) }, messages);
      },
      { durability: "disk" },
    );
    if (state !== null) return state;
  }
}

/** Returns the other sessions that show the rows of these records. A purged origin shows nothing. */
function sharersOf(statements: Statements, session: SessionRow, seqs: readonly number[]): readonly SharedRecords[] {
  const found = new Map<number, { readonly ref: SessionRef; readonly sessionId: string; readonly seqs: number[] }>();
  const spans = spansOf(statements, session);
  for (const seq of seqs) {
    const owner = spans.find(({ afterSeq, toSeq }) => seq > afterSeq && seq <= toSeq)?.owner;
    if (owner === undefined || seq > session.last_seq) continue;
    for (const row of statements.sharersOf.all(owner.session, seq)) {
      if (row.session === session.session || row.namespace === purgedNamespace) continue;
      const known = found.get(row.session) ?? { ref: refOf(row), sessionId: row.session_id, seqs: [] };
      found.set(row.session, known);
      known.seqs.push(seq);
    }
  }
  return [...found.values()];
}

interface Counted {
  readonly origin: SessionRow;
  readonly found: CountedMessages;
}

/** Counts in slices, so that other work does not wait for a long session. */
async function countedMessages(handle: StoreHandle, ref: SessionRef, atSeq: number): Promise<Counted> {
  const origin = await handle.read(({ statements }) => foundSession(statements, ref));
  const { last_seq: lastSeq, message_count: messages } = origin;
  const toSeq = Math.min(atSeq, lastSeq);
  let found: CountedMessages = toSeq > lastSeq / 2 ? { atSeq: lastSeq, messages } : { atSeq: 0, messages: 0 };
  while (found.atSeq !== toSeq) {
    const before = found;
    found = await handle.read(({ statements }) => countSlice(statements, origin, toSeq, before));
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { origin, found };
}

/** Returns null when a redaction came in between or the session is another one. The caller then counts again. */
function messagesUpTo(
  { statements }: Connection,
  origin: SessionRow,
  atSeq: number,
  { origin: before, found }: Counted,
): number | null {
  if (origin.session !== before.session) return null;
  if (atSeq >= origin.last_seq) return origin.message_count;
  const since = statements.countMessages.get(origin.session, before.last_seq, origin.last_seq) ?? 0;
  if (origin.message_count - since !== before.message_count) return null;
  // Records that were appended meanwhile may have moved the end of the fork.
  return Math.min(atSeq, origin.last_seq) === found.atSeq ? found.messages : null;
}
