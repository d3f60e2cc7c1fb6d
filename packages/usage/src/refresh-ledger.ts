import type { ListQuery, SessionState, SessionStore } from "@throughline/core";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import { listSessions, sha256Hex } from "@throughline/core/internal";
import { CallCounter, nothingCounted } from "./count-calls.ts";
import type { LedgerPosition, UsageLedger } from "./ledger.ts";

/** Describes a session whose usage is counted. */
export interface ListedSession {
  readonly id: string;
  readonly state: SessionState;
}

interface UnreadSession {
  readonly agentId: string;
  readonly key: string;
  readonly error: ThroughlineError;
}

/** Holds the sessions of a namespace, and what counting them took. */
export interface RefreshedLedger {
  readonly sessions: readonly ListedSession[];
  readonly recordsRead: number;
  /** Lists the sessions of which some record cannot be read. */
  readonly unread: readonly UnreadSession[];
}

const pageSessions = 1000;

/** Calls may move to a session that was created earlier. Its copies are then counted again, which takes a round more. */
const mostRounds = 8;

/** Counts the records that the ledger lacks. Only sessions that have changed are read, from where they were counted. */
export async function refreshLedger(
  store: SessionStore,
  ledger: UsageLedger,
  query: Pick<ListQuery, "namespace" | "sinceMs" | "signal">,
): Promise<RefreshedLedger> {
  const scope = scopeOf(query);
  const sessions = await sessionsByAge(store, query);
  const unread: UnreadSession[] = [];
  const isWhole = query.sinceMs === undefined;
  const ids = isWhole ? null : sessions.map(({ id }) => id);
  const left = new Set<string>();
  let recordsRead = 0;
  for (let round = 0; round < mostRounds; round++) {
    const positions = ledger.positions(scope, ids);
    if (isWhole && round === 0 && forgetOthers(ledger, positions, sessions)) continue;
    const due = sessions.filter(({ id, state }) => !left.has(id) && !isCounted(state, positions.get(id)));
    if (due.length === 0) break;
    for (const session of due) {
      try {
        recordsRead += await countSession(
          store,
          ledger,
          { scope, session, position: positions.get(session.id) },
          query,
        );
      } catch (error) {
        if (!ThroughlineError.isInstance(error) || query.signal?.aborted === true) throw error;
        left.add(session.id);
        // A session that was purged meanwhile has no usage.
        if (!hasErrorCode(error, "SESSION_NOT_FOUND")) {
          const { agentId, key } = session.state.ref;
          unread.push({ agentId, key, error });
        }
      }
    }
  }
  return { sessions, recordsRead, unread };
}

export function scopeOf({ namespace = "" }: Pick<ListQuery, "namespace">): string {
  return sha256Hex(namespace).slice(0, 16);
}

/** Returns all sessions, the oldest first, because a call counts in the session that had it first. */
async function sessionsByAge(
  store: SessionStore,
  { namespace, sinceMs, signal }: Pick<ListQuery, "namespace" | "sinceMs" | "signal">,
): Promise<readonly ListedSession[]> {
  const sessions: ListedSession[] = [];
  const listed = listSessions(store, {
    state: "any",
    sort: sinceMs === undefined ? "key" : "updated",
    limit: pageSessions,
    ...(namespace === undefined ? {} : { namespace }),
    ...(sinceMs === undefined ? {} : { sinceMs }),
    ...(signal === undefined ? {} : { signal }),
  });
  for await (const state of listed) sessions.push({ id: idOf(state), state });
  return sessions.toSorted((one, other) => one.state.createdAtMs - other.state.createdAtMs);
}

function idOf({ ref, sessionId }: SessionState): string {
  return sha256Hex(JSON.stringify([ref.namespace, ref.agentId, sessionId])).slice(0, 32);
}

/** Forgets purged sessions. Returns whether there were any: others may have copies of their calls. */
function forgetOthers(
  ledger: UsageLedger,
  positions: ReadonlyMap<string, LedgerPosition>,
  sessions: readonly ListedSession[],
): boolean {
  const listed = new Set(sessions.map(({ id }) => id));
  const others = [...positions.keys()].filter((id) => !listed.has(id));
  for (const id of others) ledger.forget(id);
  return others.length > 0;
}

function isCounted(state: SessionState, position: LedgerPosition | undefined): boolean {
  return position?.lastSeq === state.head.lastSeq && isUnchanged(state, position);
}

/** Returns whether what was counted still holds: the session is the same, and none of its messages was redacted. */
function isUnchanged(state: SessionState, { createdAtMs, messages, lastSeq }: LedgerPosition): boolean {
  const isSame = createdAtMs === state.createdAtMs && lastSeq >= 0 && lastSeq <= state.head.lastSeq;
  return isSame && (lastSeq < state.head.lastSeq ? messages <= state.messageCount : messages === state.messageCount);
}

interface DueSession {
  readonly scope: string;
  readonly session: ListedSession;
  readonly position: LedgerPosition | undefined;
}

/** Returns the number of records that were read. */
async function countSession(
  store: SessionStore,
  ledger: UsageLedger,
  { scope, session, position }: DueSession,
  query: Pick<ListQuery, "signal">,
): Promise<number> {
  const { signal } = query;
  const { id, state } = session;
  const { lastSeq } = state.head;
  const isContinued = position !== undefined && isUnchanged(state, position);
  const fromSeq = isContinued ? position.lastSeq : 0;
  const counter = new CallCounter((isContinued ? ledger.state(id) : null) ?? nothingCounted);
  let recordsRead = 0;
  for await (const { records } of store.read(state.ref, {
    afterSeq: fromSeq,
    beforeSeq: lastSeq + 1,
    ...(signal === undefined ? {} : { signal }),
  })) {
    for (const record of records) counter.add(record);
    recordsRead += records.length;
  }
  // Fewer messages than the records have: one that was counted before has been redacted.
  if (isContinued && position.messages + counter.messages !== state.messageCount)
    return recordsRead + (await countSession(store, ledger, { scope, session, position: undefined }, query));
  const { createdAtMs, messageCount: messages } = state;
  const counted = { id, createdAtMs, lastSeq, messages, state: counter.state, activity: counter.activity.counts() };
  ledger.add(scope, counted, fromSeq, counter.calls);
  return recordsRead;
}
