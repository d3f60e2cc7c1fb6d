import type { Clock } from "@throughline/core";
import { monotonicMs } from "@throughline/core/internal";

/** Aborts when nothing happens for a time. */
interface SilenceLimit {
  /** Aborts with the caller's signal, after the silence, and at the end. */
  readonly signal: AbortSignal;
  /** States that something happened. */
  touch(): void;
  /** Ends the limit, and what still listens to its signal. */
  end(): void;
}

/** Without a touch it limits the whole time. */
export function createLimit(clock: Clock, silenceMs: number, signal: AbortSignal | undefined): SilenceLimit {
  const controller = new AbortController();
  const stopped = new AbortController();
  let lastMs = monotonicMs();
  const watch = async (): Promise<void> => {
    for (let leftMs = silenceMs; leftMs > 0; leftMs = lastMs + silenceMs - monotonicMs())
      await clock.sleep(leftMs, stopped.signal);
    controller.abort(new Error(`no byte within ${silenceMs} ms`));
  };
  // The sleep rejects when the limit ends.
  void watch().catch(() => undefined);
  return {
    signal: signal === undefined ? controller.signal : AbortSignal.any([signal, controller.signal]),
    touch() {
      lastMs = monotonicMs();
    },
    end() {
      stopped.abort();
      controller.abort();
    },
  };
}
