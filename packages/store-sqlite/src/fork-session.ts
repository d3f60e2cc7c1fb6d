import type { SessionRef, SessionState } from "@throughline/core";
import { planSave, refused } from "@throughline/core/store";
import { assertNewIds, insertSession, stateNow } from "./session-changes.ts";
import { findSession, foundSession, storeSession, writeEntry } from "./session-rows.ts";
import { spansOf, type SessionSpan } from "./session-spans.ts";
import type { SessionRow, Statements } from "./statements.ts";
import type { WriteContext } from "./store-context.ts";

export interface ForkTarget {
  readonly ref: SessionRef;
  readonly sessionId: string;
  readonly atSeq: number;
}

/** Messages up to a seq, counted beforehand because a long session is counted in slices. */
export interface CountedMessages {
  readonly atSeq: number;
  readonly messages: number;
}

/**
 * A session that shares the records of another up to a seq: one row and one entry, however many they are.
 * @throws {ThroughlineError} SESSION_NOT_FOUND, SESSION_EXISTS, INPUT_INVALID and those of new ids
 */
export function forkSession(
  context: WriteContext,
  from: SessionRef,
  target: ForkTarget,
  messages: number,
): SessionState {
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
      // What a context needed at an earlier record nobody has kept: then it is everything.
      windowSeq: atSeq === origin.last_seq ? origin.window_seq : null,
    },
  };
  const fork = { origin: owner.session, origin_seq: atSeq, message_count: messages, ids_to_seq: atSeq };
  const row = insertSession(context, frame, atSeq === 0 ? {} : fork);
  writeEntry(statements, rows, row, plan.entry);
  storeSession(statements, row);
  context.announce(...plan.events);
  return stateNow(context, row);
}

/** The span that holds a seq: a fork stands on it alone, however often its origin was itself forked. */
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

/** How many rows are counted at a time. */
const countRows = 2000;

/** One slice of counting the messages up to `atSeq`, from the nearer end; a session that does not change is counted once. */
export function countSlice(
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
