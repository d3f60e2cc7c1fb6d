import { hasErrorCode, type RecordPage, type SessionRef, type WatchFacet } from "@throughline/core";
import {
  assertRef,
  type PageRange,
  refused,
  sessionNotFound,
  watchBounds,
  type Watched,
  WatchHub,
  type WatchStart,
} from "@throughline/core/store";
import type { Connection } from "./open-connection.ts";
import { readPage, type ReadTarget } from "./read-pages.ts";
import { purgedNamespace, type Session } from "./statements.ts";
import type { StoreHandle } from "./store-handle.ts";

/** So often SQLite is asked whether another process has committed. */
const pollMs = 50;
/** When nothing happens: at most two statements a second, however many sessions are followed. */
const idleMs = 500;

/** What a follower has of a session. */
interface Followed {
  readonly session: Session;
  reachedSeq: number;
}

/** Follows sessions: told at once of what this handle commits, within a moment of what others do. One poll for all of them. */
export function createWatch(handle: StoreHandle): WatchFacet {
  const versions = new WeakMap<Connection, unknown>();
  // Of what this handle commits SQLite does not tell its own connection.
  let mustAsk = false;
  const hub = new WatchHub<Followed>({
    clock: handle.context.clock,
    pollMs,
    idleMs,
    look: (watched) =>
      handle.read((connection) => {
        const version = connection.statements.dataVersion.get();
        if (!mustAsk && versions.get(connection) === version) return [];
        const found = changed(connection, watched);
        // Only now: a look that fails is repeated.
        versions.set(connection, version);
        mustAsk = false;
        return found;
      }),
    start: (refs) => handle.read((connection) => startsOf(connection, refs)),
  });
  const lookSoon = (): void => {
    mustAsk = true;
    hub.lookSoon();
  };
  handle.follow((connection, { events, grown }) => {
    if (connection === null) return hub.end(refused("STORE_CLOSED", "The store handle was closed."));
    for (const session of grown) hub.wake(String(session));
    if (events.some(({ name }) => name === "session-removed")) lookSoon();
  });
  return { watch: (ref, options) => watchSession({ handle, hub, lookSoon }, ref, options) };
}

/** Those of which the session has more than they have, or is gone: one statement. */
function changed({ statements }: Connection, watched: readonly Watched<Followed>[]): readonly Watched<Followed>[] {
  const numbers = JSON.stringify([...new Set(watched.map(({ state }) => state.session))]);
  const lastSeqs = new Map(statements.lastSeqs.all(numbers).map(({ session, lastSeq }) => [session, lastSeq]));
  return watched.filter(({ state }) => (lastSeqs.get(state.session) ?? Infinity) > state.reachedSeq);
}

/** Where the sessions stand: one statement. */
function startsOf({ statements }: Connection, refs: readonly SessionRef[]): readonly (WatchStart | null)[] {
  const addresses = refs.map(({ namespace, agentId, key, archiveId = null }) => [namespace, agentId, key, archiveId]);
  const starts = new Map<number, WatchStart>();
  for (const { place, session, lastSeq } of statements.watchStarts.all(JSON.stringify(addresses)))
    starts.set(place, { key: String(session), lastSeq });
  return refs.map((_, index) => starts.get(index) ?? null);
}

interface WatchContext {
  readonly handle: StoreHandle;
  readonly hub: WatchHub<Followed>;
  readonly lookSoon: () => void;
}

async function* watchSession(
  { handle, hub, lookSoon }: WatchContext,
  ref: SessionRef,
  options: { readonly afterSeq: number; readonly signal: AbortSignal },
): AsyncGenerator<RecordPage> {
  const { afterSeq, signal } = watchBounds(options);
  if (signal.aborted) return;
  handle.life.begin();
  // Refused for itself, not with all that begin at this time.
  assertRef(ref);
  if (ref.namespace === purgedNamespace) throw sessionNotFound(ref);
  const target: ReadTarget = { ref, session: null };
  const pageAfter = (seq: number): Promise<RecordPage> => {
    const range: PageRange = { afterSeq: seq, beforeSeq: Infinity, order: "ascending", left: Infinity };
    return hub.read(() => {
      // When its turn has come, and before reading, so that a commit in between is not missed.
      bell?.reset();
      return handle.read((connection) => readPage(handle.context, connection, target, range, "record"));
    }, signal);
  };
  let bell: ReturnType<typeof hub.follow> | null = null;
  try {
    let page = hub.isFree ? await pageAfter(afterSeq) : null;
    const start = page === null ? await hub.begin(ref, signal) : null;
    if (page === null && start === null) throw sessionNotFound(ref);
    if (start !== null) target.session = Number(start.key);
    const state = { session: target.session as Session, reachedSeq: afterSeq };
    bell = hub.follow(String(state.session), state, signal);
    // Nobody was told of what came since: one look for all that begin together, one more read for a single one.
    if (start !== null) lookSoon();
    let isFirst = page !== null;
    let isDue = isFirst || (start !== null && start.lastSeq > afterSeq);
    while (!signal.aborted) {
      handle.life.begin();
      if (isDue) {
        page ??= await pageAfter(state.reachedSeq);
        if (signal.aborted) return;
        const found = page;
        page = null;
        const last = found.records.at(-1);
        state.reachedSeq = last?.seq ?? state.reachedSeq;
        isDue = isFirst || (last !== undefined && found.lastSeq > last.seq);
        isFirst = false;
        if (last !== undefined) yield found;
        if (isDue || last !== undefined) continue;
      }
      await bell.ring();
      isDue = true;
    }
  } catch (error) {
    // The signal is how a watch ends.
    if (!signal.aborted || !hasErrorCode(error, "ABORTED")) throw error;
  } finally {
    bell?.end();
  }
}
