import { hasErrorCode, type RecordPage, type SessionRef, type WatchFacet } from "@throughline/core";
import { type PageRange, watchBounds, type Watched, WatchHub } from "@throughline/core/store";
import type { Connection } from "./open-connection.ts";
import { readPage, type ReadTarget } from "./read-pages.ts";
import type { Session } from "./statements.ts";
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
  let hasPurged = false;
  const hub = new WatchHub<Followed>({
    pollMs,
    idleMs,
    look: (watched) => {
      const isOwn = hasPurged;
      hasPurged = false;
      return handle.read((connection) => {
        const version = connection.statements.dataVersion.get();
        const isSame = versions.get(connection) === version;
        versions.set(connection, version);
        return isSame && !isOwn ? [] : changed(connection, watched);
      });
    },
  });
  handle.follow((connection, { events, grown }) => {
    if (connection === null) return hub.wakeAll();
    for (const session of grown) hub.wake(String(session));
    if (!events.some(({ name }) => name === "session-removed")) return;
    hasPurged = true;
    hub.lookSoon();
  });
  return { watch: (ref, options) => watchSession(handle, hub, ref, options) };
}

/** Those of which the session has more than they have, or is gone: one statement. */
function changed({ statements }: Connection, watched: readonly Watched<Followed>[]): readonly Watched<Followed>[] {
  const numbers = JSON.stringify([...new Set(watched.map(({ state }) => state.session))]);
  const lastSeqs = new Map(statements.lastSeqs.all(numbers).map(({ session, lastSeq }) => [session, lastSeq]));
  return watched.filter(({ state }) => (lastSeqs.get(state.session) ?? Infinity) > state.reachedSeq);
}

async function* watchSession(
  handle: StoreHandle,
  hub: WatchHub<Followed>,
  ref: SessionRef,
  options: { readonly afterSeq: number; readonly signal: AbortSignal },
): AsyncGenerator<RecordPage> {
  const { afterSeq, signal } = watchBounds(options);
  if (signal.aborted) return;
  const target: ReadTarget = { ref, session: null };
  const pageAfter = (seq: number): Promise<RecordPage> => {
    const range: PageRange = { afterSeq: seq, beforeSeq: Infinity, order: "ascending", left: Infinity };
    return handle.read((connection) => readPage(handle.context, connection, target, range, "record"));
  };
  let bell: ReturnType<typeof hub.follow> | null = null;
  try {
    let page = await pageAfter(afterSeq);
    const state = { session: target.session as Session, reachedSeq: afterSeq };
    bell = hub.follow(String(state.session), state, signal);
    for (let isFirst = true; !signal.aborted; isFirst = false) {
      const last = page.records.at(-1);
      // Nobody was told of what came between the first read and now.
      if (last === undefined && !isFirst) await bell.ring();
      else if (last !== undefined) {
        yield page;
        state.reachedSeq = last.seq;
      }
      if (signal.aborted) return;
      // Before reading, so that a commit in between is not missed.
      bell.reset();
      page = await pageAfter(state.reachedSeq);
    }
  } catch (error) {
    // The signal is how a watch ends.
    if (!signal.aborted || !hasErrorCode(error, "ABORTED")) throw error;
  } finally {
    bell?.end();
  }
}
