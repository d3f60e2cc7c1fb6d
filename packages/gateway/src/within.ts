import type { Clock } from "@throughline/core";

/** Returns null after a timeout. The promise itself keeps running, because it cannot be canceled. */
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
