import { hasErrorCode, type RecordPage, type SessionRef } from "@throughline/core";
import { fetchPage, pageOf } from "./read-pages.ts";
import { textOrNull } from "./row-values.ts";
import type { SessionSignals } from "./session-signals.ts";
import type { StoreContext } from "./store-context.ts";

export interface WatchOptions {
  readonly afterSeq: number;
  readonly signal: AbortSignal;
}

/**
 * Follows a session from a seq on. A signal only means that there may be new records. The watch reads on from its last
 * seq, so a lost, repeated or early signal leaves no gap and repeats nothing.
 */
export async function* watchSession(
  context: StoreContext,
  signals: SessionSignals | null,
  ref: SessionRef,
  { afterSeq, signal, pollMs, check }: WatchOptions & { readonly pollMs: number; readonly check: () => void },
): AsyncGenerator<RecordPage> {
  let reached = afterSeq;
  let sessionNo: string | null = null;
  let stop = (): void => undefined;
  const bell = createBell();
  const onAbort = (): void => bell.wake();
  signal.addEventListener("abort", onAbort);
  try {
    while (!signal.aborted) {
      check();
      const position = { sessionNo, afterSeq: reached, beforeSeq: Number.MAX_SAFE_INTEGER, left: Infinity };
      bell.reset();
      const rows = await fetchPage(context, ref, position, { signal }, false);
      if (sessionNo === null) {
        sessionNo = textOrNull(rows[0]?.["session_no"]);
        if (sessionNo !== null && signals !== null) stop = signals.add(sessionNo, bell);
      }
      const page = pageOf(context, ref, rows, "record");
      if (page === null) {
        await bell.ring(pollMs);
        continue;
      }
      if (signal.aborted) return;
      yield page;
      reached = page.records.at(-1)?.seq ?? reached;
    }
  } catch (error) {
    // The signal is how a watch ends.
    if (!signal.aborted || !hasErrorCode(error, "ABORTED")) throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
    stop();
  }
}

interface Bell {
  wake(): void;
  /** What was rung before does not count. */
  reset(): void;
  /** Resolves when it is rung, at once if it was since the reset, or after the time. */
  ring(timeoutMs: number): Promise<void>;
}

function createBell(): Bell {
  let wasRung = false;
  let resolve: (() => void) | null = null;
  return {
    wake() {
      wasRung = true;
      resolve?.();
    },
    reset() {
      wasRung = false;
    },
    ring: (timeoutMs) =>
      new Promise((done) => {
        if (wasRung) return done();
        const timer = setTimeout(done, timeoutMs);
        resolve = () => {
          clearTimeout(timer);
          resolve = null;
          done();
        };
      }),
  };
}
