import { ThroughlineError } from "@throughline/core";
import { monotonicMs, systemClock } from "@throughline/core/internal";

/** Waiters also poll, because code outside the store may free descriptors without a signal. */
const lookMs = 25;
/** Limits how many waiters retry when an operation ends, because that operation freed only a few descriptors. */
const wokenAtOnce = 4;

/** Tests whether a call failed because the process, or the system, has no file descriptor left. */
export function isOutOfDescriptors(error: unknown): boolean {
  const { errno } = ThroughlineError.isInstance(error) ? error.details : { errno: (error as { code?: unknown }).code };
  return errno === "EMFILE" || errno === "ENFILE";
}

export class DescriptorRoom {
  readonly #timeoutMs: number;
  readonly #waiting: Set<() => void> = new Set();
  #underWay = 0;
  #endedMs = -Infinity;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** Begins an operation that may hold descriptors. Each one ends with `leave`. */
  enter(): void {
    this.#underWay++;
  }

  leave(): void {
    this.#underWay--;
    this.#endedMs = monotonicMs();
    if (this.#waiting.size > 0) for (const wake of [...this.#waiting].slice(0, wokenAtOnce)) wake();
  }

  /**
   * Repeats work that found no free descriptor. `own` counts the operations that wait for this work. The error is
   * thrown when no other operation is running, because then no descriptor is freed. It is also thrown when none has
   * ended within the lock timeout.
   */
  async patiently<T>(work: () => Promise<T> | T, own: () => number = () => 1): Promise<T> {
    for (const startedMs = monotonicMs(); ;) {
      try {
        return await work();
      } catch (error) {
        if (!(await this.waitsAfter(error, startedMs, own()))) throw error;
      }
    }
  }

  /**
   * Waits before the repeat of work that started at `startedMs`, and returns true; returns false at once when a repeat
   * is hopeless.
   */
  async waitsAfter(error: unknown, startedMs: number, own: number): Promise<boolean> {
    const waitedMs = monotonicMs() - Math.max(startedMs, this.#endedMs);
    const isHopeless = this.#underWay <= own || waitedMs > this.#timeoutMs;
    if (!isOutOfDescriptors(error) || isApplied(error) || isHopeless) return false;
    await this.#wait();
    return true;
  }

  async #wait(): Promise<void> {
    let wake: () => void = () => undefined;
    const woken = new Promise<void>((resolve) => (wake = resolve));
    this.#waiting.add(wake);
    const looking = new AbortController();
    await Promise.race([woken, systemClock.sleep(lookMs, looking.signal).catch(() => undefined)]);
    looking.abort();
    this.#waiting.delete(wake);
  }
}

/** Errors of other kinds come from reading only, so no write was applied. */
function isApplied(error: unknown): boolean {
  return ThroughlineError.isInstance(error) && error.outcome !== "not-applied";
}
