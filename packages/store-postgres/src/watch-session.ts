import { hasErrorCode, type RecordPage, type SessionRef } from "@throughline/core";
import { type Watched, WatchHub } from "@throughline/core/store";
import { fetchPage, pageOf } from "./read-pages.ts";
import type { DatabaseRow } from "./row-values.ts";
import type { SessionSignals } from "./session-signals.ts";
import type { StoreContext } from "./store-context.ts";

export interface WatchOptions {
  readonly afterSeq: number;
  readonly signal: AbortSignal;
}

/** What a follower has of a session; its number is the key. */
export interface Followed {
  reachedSeq: number;
}

export interface WatchContext {
  readonly context: StoreContext;
  readonly signals: SessionSignals | null;
  readonly hub: WatchHub<Followed>;
  /** @throws {ThroughlineError} STORE_CLOSED */
  check(): void;
}

/**
 * One statement for all sessions that are followed, whatever their number, once in `pollMs`: it finds what a lost signal
 * did not tell. `ready` opens the store.
 */
export function createWatchHub(context: StoreContext, pollMs: number, ready: () => Promise<void>): WatchHub<Followed> {
  return new WatchHub<Followed>({
    pollMs,
    look: async (watched) => {
      await ready();
      const numbers = [...new Set(watched.map(({ key }) => key))];
      const rows = await context.pool.run(
        `SELECT session_no, last_seq FROM ${context.schema}.sessions WHERE session_no = ANY ($1::bigint[])`,
        [numbers],
        { isRead: true, isFrequent: true },
      );
      return grown(watched, rows);
    },
  });
}

/** Those of which the session has more than they have, or is gone. */
function grown(watched: readonly Watched<Followed>[], rows: readonly DatabaseRow[]): readonly Watched<Followed>[] {
  const lastSeqs = new Map(rows.map((row) => [String(row["session_no"]), Number(row["last_seq"])]));
  return watched.filter(({ key, state }) => (lastSeqs.get(key) ?? Infinity) > state.reachedSeq);
}

/**
 * Follows a session from a seq on. A signal only means that there may be new records. The watch reads on from its last
 * seq, so a lost, repeated or early signal leaves no gap and repeats nothing.
 */
export async function* watchSession(
  { context, signals, hub, check }: WatchContext,
  ref: SessionRef,
  { afterSeq, signal }: WatchOptions,
): AsyncGenerator<RecordPage> {
  const state: Followed = { reachedSeq: afterSeq };
  let sessionNo: string | null = null;
  let stop = (): void => undefined;
  let bell: ReturnType<typeof hub.follow> | null = null;
  try {
    while (!signal.aborted) {
      check();
      const position = {
        sessionNo,
        afterSeq: state.reachedSeq,
        beforeSeq: Number.MAX_SAFE_INTEGER,
        left: Infinity,
      };
      bell?.reset();
      const rows = await fetchPage(context, ref, position, { signal }, false);
      const page = pageOf(context, ref, rows, "record");
      const isFollowed = bell !== null;
      if (bell === null) {
        const key = String(rows[0]?.["session_no"]);
        sessionNo = key;
        bell = hub.follow(key, state, signal);
        stop = signals?.add(key, { wake: () => hub.wake(key) }) ?? stop;
      }
      if (page === null) {
        // Nobody was told of what came between the first read and now.
        if (isFollowed) await bell.ring();
        continue;
      }
      if (signal.aborted) return;
      yield page;
      state.reachedSeq = page.records.at(-1)?.seq ?? state.reachedSeq;
    }
  } catch (error) {
    // The signal is how a watch ends.
    if (!signal.aborted || !hasErrorCode(error, "ABORTED")) throw error;
  } finally {
    bell?.end();
    stop();
  }
}
