import { ThroughlineError } from "@throughline/core";

/** The turn that holds the queue. */
export interface QueueHolder {
  readonly turnId: string;
  readonly sinceMs: number;
}

/** Turns of one session in one process: one at a time, first come, first served. */
export class TurnQueue {
  holder: QueueHolder | null = null;
  readonly #waiting: (() => void)[] = [];

  get isIdle(): boolean {
    return this.holder === null && this.#waiting.length === 0;
  }

  /** Waits for its turn; what it gives lets the next one in. @throws {ThroughlineError} ABORTED */
  async enter(holder: QueueHolder, signal: AbortSignal | undefined): Promise<() => void> {
    if (this.holder !== null) await this.#wait(signal);
    this.holder = holder;
    return () => {
      this.holder = null;
      this.#waiting.shift()?.();
    };
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const letIn = (): void => {
        signal?.removeEventListener("abort", giveUp);
        // Taken before anybody else can: whoever comes now waits.
        this.holder = { turnId: "", sinceMs: 0 };
        resolve();
      };
      const giveUp = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(letIn), 1);
        reject(new ThroughlineError("ABORTED", "The wait for the session was aborted.", { cause: signal?.reason }));
      };
      this.#waiting.push(letIn);
      if (signal?.aborted === true) giveUp();
      else signal?.addEventListener("abort", giveUp, { once: true });
    });
  }
}
