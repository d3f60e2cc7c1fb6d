import { sessionNotFound } from "@throughline/core/internal";
import { checkedPage } from "./read-pages.ts";
import type { RecordPage, SessionRef } from "@throughline/core";
import { hasErrorCode } from "@throughline/core";
import type { WatchHub } from "./watch-hub.ts";

/** What a watch has of a session: everything up to a seq. */
export interface Reached {
  reachedSeq: number;
}

/** A page of a session with the name that the hub knows the session by. */
export interface FollowedPage extends RecordPage {
  readonly key: string;
}

/** What a store does for one watch. */
export interface FollowWork {
  /**
   * Reads what is behind a seq; the page is empty when there is nothing. `key` is null until the session was found.
   * @throws {ThroughlineError} SESSION_NOT_FOUND
   */
  read(key: string | null, afterSeq: number): Promise<FollowedPage>;
  /** Has the hub look at all that began together. */
  lookSoon(): void;
  /** Hears of changes of the session; gives what ends that. @default only the hub reports them */
  listen?(key: string): () => void;
  /** @throws {ThroughlineError} STORE_CLOSED */
  check(): void;
}

/**
 * Follows a session from a seq on. A ring only means that there may be new records. The watch reads on from its last seq, so a
 * lost, repeated or early ring leaves no gap and repeats nothing. It reads only what is there: where it begins is found in one
 * statement with all others that begin, unless it may read at once.
 */
export async function* followSession(
  hub: WatchHub<Reached>,
  ref: SessionRef,
  { afterSeq, signal }: { readonly afterSeq: number; readonly signal: AbortSignal },
  work: FollowWork,
): AsyncGenerator<RecordPage> {
  const state: Reached = { reachedSeq: afterSeq };
  let bell: ReturnType<typeof hub.follow> | null = null;
  let stop = (): void => undefined;
  const readNext = (key: string | null): Promise<FollowedPage> =>
    hub.read(async () => {
      // When its turn has come, and before reading, so that a commit in between is not missed.
      bell?.reset();
      const afterSeq = state.reachedSeq;
      return checkedPage(await work.read(key, afterSeq), { afterSeq, beforeSeq: Infinity, order: "ascending" });
    }, signal);
  try {
    if (signal.aborted) return;
    let page = hub.isFree ? await readNext(null) : null;
    const start = page === null ? await hub.begin(ref, signal) : null;
    const key = page?.key ?? start?.key;
    if (key === undefined) throw sessionNotFound(ref);
    bell = hub.follow(key, state, signal);
    stop = work.listen?.(key) ?? stop;
    // Nobody was told of what came since: one look for all that begin together, one more read for a single one.
    if (start !== null) work.lookSoon();
    let isFirst = page !== null;
    let isDue = isFirst || (start !== null && start.lastSeq > afterSeq);
    while (!signal.aborted) {
      work.check();
      if (isDue) {
        const { records, lastSeq } = page ?? (await readNext(key));
        page = null;
        if (signal.aborted) return;
        const last = records.at(-1);
        state.reachedSeq = last?.seq ?? state.reachedSeq;
        isDue = isFirst || (last !== undefined && lastSeq > last.seq);
        isFirst = false;
        if (last !== undefined) yield { records, lastSeq };
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
    stop();
  }
}
