import type { RecordPage, SessionRef, WatchFacet } from "@throughline/core";
import {
  assertRef,
  followSession,
  type PageRange,
  type Reached,
  watchBounds,
  type Watched,
  type WatchStart,
} from "@throughline/store-kit/internal";
import { refused, sessionNotFound } from "@throughline/core/internal";
import { WatchHub } from "@throughline/store-kit";
import type { Connection } from "./connection.ts";
import { readPage, type ReadTarget } from "./read-pages.ts";
import { purgedNamespace } from "./rows.ts";
import type { StoreHandle } from "./store-handle.ts";

/** SQLite is asked in this interval whether another process has committed. */
const pollMs = 50;
/** While nothing happens, this interval leaves at most two statements a second, however many sessions are followed. */
const idleMs = 500;

/**
 * Follows sessions with one poll for all of them. Commits of this handle arrive at once, and those of other processes
 * after at most one interval.
 */
export function createWatch(handle: StoreHandle): WatchFacet {
  const versions = new WeakMap<Connection, unknown>();
  // SQLite does not tell a connection about its own commits.
  let mustAsk = false;
  const hub = new WatchHub<Reached>({
    clock: handle.context.clock,
    pollMs,
    idleMs,
    look: (watched) =>
      handle.read((connection) => {
        const version = connection.statements.dataVersion.get();
        if (!mustAsk && versions.get(connection) === version) return [];
        const found = changed(connection, watched);
        // The version is stored after the reads, so that a failed poll is repeated.
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

/** Returns the watched sessions that have more records or are gone, in one statement. */
function changed({ statements }: Connection, watched: readonly Watched<Reached>[]): readonly Watched<Reached>[] {
  const numbers = JSON.stringify([...new Set(watched.map(({ key }) => Number(key)))]);
  const lastSeqs = new Map(statements.lastSeqs.all(numbers).map(({ session, lastSeq }) => [session, lastSeq]));
  return watched.filter(({ key, state }) => (lastSeqs.get(Number(key)) ?? Infinity) > state.reachedSeq);
}

/** Returns the last seqs of the sessions, in one statement. */
function startsOf({ statements }: Connection, refs: readonly SessionRef[]): readonly (WatchStart | null)[] {
  const addresses = refs.map(({ namespace, agentId, key, archiveId = null }) => [namespace, agentId, key, archiveId]);
  const starts = new Map<number, WatchStart>();
  for (const { place, session, lastSeq } of statements.watchStarts.all(JSON.stringify(addresses)))
    starts.set(place, { key: String(session), lastSeq });
  return refs.map((_, index) => starts.get(index) ?? null);
}

interface WatchContext {
  readonly handle: StoreHandle;
  readonly hub: WatchHub<Reached>;
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
  // This watch is refused alone, without the others that begin at the same time.
  assertRef(ref);
  if (ref.namespace === purgedNamespace) throw sessionNotFound(ref);
  yield* followSession(
    hub,
    ref,
    { afterSeq, signal },
    {
      read: async (key, reachedSeq) => {
        const target: ReadTarget = { ref, session: key === null ? null : Number(key) };
        const range: PageRange = { afterSeq: reachedSeq, beforeSeq: Infinity, order: "ascending", left: Infinity };
        const page = await handle.read((connection) => readPage(handle.context, connection, target, range, "record"));
        return { ...page, key: String(target.session) };
      },
      lookSoon,
      check: () => handle.life.begin(),
    },
  );
}
