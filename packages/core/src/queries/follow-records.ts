import type { SessionRef } from "../session-ref.ts";
import type { SessionStore } from "../session-store.ts";
import type { StoredRecord } from "../stored-records.ts";
import { systemClock } from "../node/system-ports.ts";

const pollMs = 250;

/**
 * Yields every record after a sequence number once and in order, page by page, until the signal aborts. A store without
 * the watch facet is polled every 250 ms.
 */
export async function* followRecords(
  store: SessionStore,
  ref: SessionRef,
  { afterSeq, signal }: { readonly afterSeq: number; readonly signal: AbortSignal },
): AsyncGenerator<readonly StoredRecord[], void, void> {
  if (store.watch !== undefined) {
    for await (const { records } of store.watch.watch(ref, { afterSeq, signal })) yield records;
    return;
  }
  let seenSeq = afterSeq;
  while (!signal.aborted) {
    const state = await store.load(ref, { signal });
    if (state !== null && state.head.lastSeq > seenSeq) {
      for await (const { records } of store.read(ref, { afterSeq: seenSeq, signal })) {
        seenSeq = records.at(-1)?.seq ?? seenSeq;
        yield records;
      }
    }
    await systemClock.sleep(pollMs, signal);
  }
}
