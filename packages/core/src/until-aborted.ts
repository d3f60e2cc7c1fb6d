import { ThroughlineError } from "./throughline-error.ts";

/**
 * Waits for work until the signal aborts, because work that ignores its signal must not hold the turn. A later result
 * of the work is ignored.
 */
export async function untilAborted<Value>(work: Promise<Value>, signal: AbortSignal | null): Promise<Value> {
  if (signal === null) return work;
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(new ThroughlineError("ABORTED", "The work was aborted.", { cause: signal.reason }));
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", abort);
    work.catch(() => {});
  }
}
