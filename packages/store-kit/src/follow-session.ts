import { sessionNotFound } from "@throughline/core/internal";
import { checkedPage } from "./read-pages.ts";
import type { RecordPage, SessionRef } from "@throughline/core";
import { hasErrorCode } from "@throughline/core";
import type { WatchHub } from "./watch-hub.ts";

/** The watch has delivered every record up to `reachedSeq`. */
export interface Reached {
  reachedSeq: number;
}

/** The hub identifies the session by `key`, so each page carries it. */
interface FollowedPage extends RecordPage {
  readonly key: string;
}

export interface FollowWork {
  /**
   * Reads the records after a seq; the page is empty without new records. `key` is null until the session was found.
   * @throws {ThroughlineError} SESSION_NOT_FOUND
   */
  read(key: string | null, afterSeq: number): Promise<FollowedPage>;
  /** Requests one refresh for all watches that started together. */
  lookSoon(): void;
  /** Listens for changes of the session, and returns the function that stops it. @default only the hub reports them */
  listen?(key: string): () => void;
  /** @throws {ThroughlineError} STORE_CLOSED */
  check(): void;
}

/**
 * Follows a session from a seq on. A ring only means that new records may exist. The watch continues from its last seq,
 * so a lost, repeated or early ring causes no gap and no repetition. One statement finds the start of all watches that
 * start together, unless a watch may read at once.
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
      // The bell is reset when the read gets its turn and before it reads, so that a commit in between is not missed.
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
    // No ring reported the commits since the start. One refresh covers all watches that start together; a watch that
    // read at once reads once more instead.
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
    // A watch ends by its signal, so this abort is not an error.
    if (!signal.aborted || !hasErrorCode(error, "ABORTED")) throw error;
  } finally {
    bell?.end();
    stop();
  }
}
