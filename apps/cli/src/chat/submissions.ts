import type { Submission } from "./chat-view.ts";

/** Holds what was submitted before the conversation reads it, and the read that waits for it. */
export class Submissions {
  readonly #queue: Submission[] = [];
  #waiting: ((submission: Submission) => void) | null = null;

  /** Whether the conversation reads, so that no turn or command runs. */
  get isRead(): boolean {
    return this.#waiting !== null;
  }

  get queuedTexts(): number {
    return this.#queue.filter(({ kind }) => kind === "text").length;
  }

  /** Returns the oldest submission that waits; null without one. */
  next(): Submission | null {
    return this.#queue.shift() ?? null;
  }

  read(): Promise<Submission> {
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  /** Queues a submission while nothing reads. @param before runs before a waiting read gets it */
  submit(submission: Submission, before: () => void): void {
    const resolve = this.#waiting;
    if (resolve === null) {
      this.#queue.push(submission);
      return;
    }
    this.#waiting = null;
    before();
    resolve(submission);
  }

  /** Removes the newest texts that wait, in their order. */
  takeBack(count: number): readonly string[] {
    const taken = count === 0 ? [] : this.#queue.splice(-count);
    return taken.flatMap((each) => (each.kind === "text" ? [each.text] : []));
  }
}
