import type { Clock } from "./ports.ts";
import { ThroughlineError } from "./throughline-error.ts";

/**
 * Holds a signal that fires with the caller's signal or when the time is over. Callers dispose the deadline, so that no
 * timer outlives the work.
 */
export class Deadline implements AsyncDisposable {
  isOver = false;
  readonly signal: AbortSignal;
  private readonly ending = new AbortController();
  private readonly timer: Promise<void>;

  constructor(clock: Clock, deadlineMs: number, signal: AbortSignal | null) {
    const stop = new AbortController();
    this.signal = signal === null ? stop.signal : AbortSignal.any([stop.signal, signal]);
    this.timer = clock.sleep(deadlineMs, this.ending.signal).then(
      () => {
        this.isOver = true;
        stop.abort(new ThroughlineError("ABORTED", `Not done within ${deadlineMs} ms.`));
      },
      // The deadline was disposed before the time was over, so the sleep rejects.
      () => {},
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.ending.abort();
    await this.timer;
  }
}
