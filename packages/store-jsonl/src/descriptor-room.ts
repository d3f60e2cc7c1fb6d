import { ThroughlineError } from "@throughline/core";
import { monotonicMs, systemClock } from "@throughline/core/internal";

/** Somebody of the process who is no store may give descriptors back too. */
const lookMs = 25;
/** How many waiters try again when an operation ends. */
const wokenAtOnce = 4;

/** Whether a call failed because the process, or the system, may open no more files. */
export function isOutOfDescriptors(error: unknown): boolean {
  const { errno } = ThroughlineError.isInstance(error) ? error.details : { errno: (error as { code?: unknown }).code };
  return errno === "EMFILE" || errno === "ENFILE";
}

/** Where operations wait that found no descriptor left, while others of the store hold some. */
export class DescriptorRoom {
  readonly #timeoutMs: number;
  readonly #waiting: Set<() => void> = new Set();
  #underWay = 0;
  #endedMs = -Infinity;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** An operation that may hold descriptors begins; call what this returns when it ends. */
  enter(): () => void {
    this.#underWay++;
    return () => {
      this.#underWay--;
      this.#endedMs = monotonicMs();
      for (const wake of [...this.#waiting].slice(0, wokenAtOnce)) wake();
    };
  }

  /**
   * Repeats work that found no descriptor, until it has one. `own`: operations that wait for this work. When no other is under
   * way nobody gives one back, and the error is thrown; also when none has ended for as long as a lock is waited for.
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

  /** Waits where work that began at a time is to be repeated, as `patiently` does. False at once where it is not. */
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

/** Of an error that is not ours nobody knows: only reading throws those. */
function isApplied(error: unknown): boolean {
  return ThroughlineError.isInstance(error) && error.outcome !== "not-applied";
}
