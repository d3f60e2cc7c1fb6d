import { type SessionStore, ThroughlineError } from "@throughline/core";
import { KeyedQueues } from "@throughline/core/internal";
import { openUsage, type UsageQuery, type UsageReader, type UsageReport } from "./open-usage.ts";

/** Answers questions one after another, so that two callers do not read the same records at once. */
export interface UsageQueue {
  /** @throws {ThroughlineError} as `UsageReader.report`, and ABORTED when the queue is closed meanwhile */
  report(query: UsageQuery): Promise<UsageReport>;
  /** Aborts the running question and closes the reader. */
  close(): Promise<void>;
}

/** Creates a queue that opens the usage of the store with the first question. */
export function createUsageQueue(store: SessionStore): UsageQueue {
  const closing = new AbortController();
  let reader: UsageReader | null = null;
  const queues = new KeyedQueues();
  const answer = async (query: UsageQuery): Promise<UsageReport> => {
    const signal = query.signal === undefined ? closing.signal : AbortSignal.any([query.signal, closing.signal]);
    if (signal.aborted) throw new ThroughlineError("ABORTED", "The count was aborted.", { cause: signal.reason });
    reader ??= openUsage(store);
    return reader.report({ ...query, signal });
  };
  return {
    report: (query) => queues.run("", () => answer(query)),
    async close() {
      closing.abort();
      await queues.settled();
      reader?.close();
      reader = null;
    },
  };
}
