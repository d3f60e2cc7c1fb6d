import type { Clock } from "@throughline/core";

/** What a promise gives within a time; null where it takes longer. */
export async function within<Value>(clock: Clock, promise: Promise<Value>, ms: number): Promise<Value | null> {
  const ending = new AbortController();
  const late = clock.sleep(ms, ending.signal).then(
    () => null,
    () => null,
  );
  try {
    return await Promise.race([promise, late]);
  } finally {
    ending.abort();
  }
}
