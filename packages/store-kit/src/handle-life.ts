import { assertSignal } from "./assert-arguments.ts";
import { abortedBefore, refused, tellListener } from "@throughline/core/internal";
import type { SessionEvent, SessionEventListener } from "@throughline/core";

/** Runs the checks before every operation of a store's handle, and announces its events afterwards. */
export interface HandleLife {
  /**
   * Throws unless the handle is open and the signal has not been aborted.
   *
   * @throws {ThroughlineError} STORE_CLOSED, INPUT_INVALID for a value that is not an AbortSignal, ABORTED
   */
  begin(signal?: AbortSignal): void;
  /** Runs an operation that `close` waits for. The method does not check whether the handle is open; `begin` does. */
  track<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Calls the listener with each event, as `tellListener` does. */
  announce(...events: readonly SessionEvent[]): void;
  /** Ends the handle. Returns true only for the first call. */
  end(): boolean;
  /**
   * Ends the handle, waits for the tracked operations, and then releases the resources of the store. The release
   * happens once; every caller waits for the same end. `first` runs at once, so that waiting operations learn of the
   * end.
   */
  close(release: () => Promise<void>, first?: () => void): Promise<void>;
}

/** Creates the life of one handle, which is open until it is ended. */
export function createHandleLife(listener: SessionEventListener | undefined): HandleLife {
  let isEnded = false;
  let closing: Promise<void> | null = null;
  const underWay = new Set<Promise<unknown>>();
  const life: HandleLife = {
    begin(signal) {
      if (isEnded) throw refused("STORE_CLOSED", "The store handle was closed.");
      assertSignal(signal);
      if (signal?.aborted === true) throw abortedBefore("the operation began", signal);
    },
    async track(work) {
      const running = work();
      underWay.add(running);
      try {
        return await running;
      } finally {
        underWay.delete(running);
      }
    },
    announce(...events) {
      for (const event of events) tellListener(listener, event);
    },
    end() {
      const isFirst = !isEnded;
      isEnded = true;
      return isFirst;
    },
    close(release, first) {
      if (closing !== null) return closing;
      life.end();
      first?.();
      closing = (async (): Promise<void> => {
        while (underWay.size > 0) await Promise.allSettled(underWay);
        await release();
      })();
      return closing;
    },
  };
  return life;
}
