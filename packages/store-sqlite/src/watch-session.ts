import { hasErrorCode, type RecordPage, type SessionRef, type WatchFacet } from "@throughline/core";
import { type PageRange, watchBounds } from "@throughline/core/store";
import type { Connection } from "./open-connection.ts";
import { readPage, type ReadTarget } from "./read-pages.ts";
import type { StoreHandle } from "./store-handle.ts";

/** So often SQLite is asked whether another process has committed: 3 microseconds each time. */
const pollMs = 50;

/** Follows sessions: told at once of what this handle commits, within a moment of what others do. */
export function createWatch(handle: StoreHandle): WatchFacet {
  return { watch: (ref, options) => watchSession(handle, ref, options) };
}

async function* watchSession(
  handle: StoreHandle,
  ref: SessionRef,
  options: { readonly afterSeq: number; readonly signal: AbortSignal },
): AsyncGenerator<RecordPage> {
  const { afterSeq, signal } = watchBounds(options);
  const target: ReadTarget = { ref, session: null };
  const changes = createChanges(handle, signal);
  try {
    for (let seq = afterSeq; !signal.aborted;) {
      // Asked for before reading, so that a commit in between is not missed.
      const changed = changes.next();
      const range: PageRange = { afterSeq: seq, beforeSeq: Infinity, order: "ascending", left: Infinity };
      const page = await handle.read((connection) => {
        changes.mark(connection);
        return readPage(handle.context, connection, target, range, "record");
      });
      const last = page.records.at(-1);
      if (last === undefined) await changed;
      else {
        yield page;
        seq = last.seq;
      }
    }
  } catch (error) {
    // The signal is how a watch ends.
    if (!signal.aborted || !hasErrorCode(error, "ABORTED")) throw error;
  } finally {
    changes.end();
  }
}

interface Changes {
  /** What commits after this counts as a change. */
  mark(connection: Connection): void;
  /** Resolves when something may have changed since this was called, or the signal was aborted. */
  next(): Promise<void>;
  end(): void;
}

function createChanges(handle: StoreHandle, signal: AbortSignal): Changes {
  let version: unknown = null;
  let wake: () => void = () => undefined;
  const notify = (): void => wake();
  const unfollow = handle.follow(notify);
  signal.addEventListener("abort", notify, { once: true });
  const versionOf = ({ database }: Connection): unknown => database.pragma("data_version", { simple: true });
  const poll = async (): Promise<void> => {
    if ((await handle.read(versionOf)) !== version) notify();
  };
  let isPolling = false;
  const timer = setInterval(() => {
    if (isPolling) return;
    isPolling = true;
    // A store that cannot be read says so to whoever reads it next, which is the watch itself.
    poll().then(
      () => (isPolling = false),
      () => {
        isPolling = false;
        notify();
      },
    );
  }, pollMs);
  return {
    mark: (connection) => (version = versionOf(connection)),
    next: () => new Promise((resolve) => (wake = resolve)),
    end: () => {
      clearInterval(timer);
      unfollow();
      signal.removeEventListener("abort", notify);
    },
  };
}
