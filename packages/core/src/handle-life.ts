import { assertSignal } from "./assert-arguments.ts";
import { abortedBefore, refused } from "./refused.ts";
import type { SessionEvent, SessionEventListener } from "./session-event.ts";
import { tellListener } from "./tell-listener.ts";

/** The checks before every operation of a store's handle, and its events afterwards. */
export interface HandleLife {
  /** @throws {ThroughlineError} STORE_CLOSED, INPUT_INVALID for a value that is not an AbortSignal, ABORTED */
  begin(signal?: AbortSignal): void;
  /** Calls the listener, as `tellListener` does. */
  announce(...events: readonly SessionEvent[]): void;
  /** Ends the handle; true the first time. */
  end(): boolean;
}

/** The life of one handle, from now on until it is ended once. */
export function createHandleLife(listener: SessionEventListener | undefined): HandleLife {
  let isEnded = false;
  return {
    begin(signal) {
      if (isEnded) throw refused("STORE_CLOSED", "The store handle was closed.");
      assertSignal(signal);
      if (signal?.aborted === true) throw abortedBefore("the operation began", signal);
    },
    announce(...events) {
      for (const event of events) tellListener(listener, event);
    },
    end() {
      const isFirst = !isEnded;
      isEnded = true;
      return isFirst;
    },
  };
}
