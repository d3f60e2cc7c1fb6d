import type { DraftLine } from "./read-drafts.ts";

/** The reader stops ahead of the consumer at these bounds, so that memory stays limited. */
const maxWaitingBytes = 8 * 1024 * 1024;
const maxWaitingLines = 1000;

/** Reads lines ahead of the consumer, up to a bound. A read failure surfaces only after the lines before it. */
export class DraftQueue {
  readonly #lines: AsyncIterator<DraftLine, void, void>;
  #waiting: DraftLine[] = [];
  #waitingBytes = 0;
  #isDone = false;
  #isStopped = false;
  /** While the consumer waits, the queue never counts as full; a batch could otherwise not complete. */
  #isTakerWaiting = false;
  #failure: { readonly error: unknown } | null = null;
  #wakeReader: () => void = () => {};
  #wakeTaker: () => void = () => {};

  constructor(lines: AsyncIterator<DraftLine, void, void>) {
    this.#lines = lines;
    void this.#read();
  }

  /**
   * Returns up to `count` lines: fewer at the end or when they exceed the size of an append, and none at the end. A
   * batch that contains a bad line is dropped, because the store appends it as one item.
   */
  async take(count: number, maxBytes: number): Promise<readonly DraftLine[]> {
    const isEnough = (): boolean => this.#waiting.length >= count || this.#waitingBytes > maxBytes;
    this.#isTakerWaiting = true;
    this.#wakeReader();
    while (!isEnough() && !this.#isDone) await new Promise<void>((resolve) => (this.#wakeTaker = resolve));
    this.#isTakerWaiting = false;
    if (!isEnough() && this.#failure !== null) return [];
    const taken = this.#waiting.splice(0, count);
    for (const { sizeBytes } of taken) this.#waitingBytes -= sizeBytes;
    this.#wakeReader();
    return taken;
  }

  throwFailure(): void {
    if (this.#failure !== null) throw this.#failure.error;
  }

  stop(): void {
    this.#isStopped = true;
    this.#wakeReader();
  }

  async #read(): Promise<void> {
    try {
      for (let next = await this.#lines.next(); next.done !== true; next = await this.#lines.next()) {
        this.#waiting.push(next.value);
        this.#waitingBytes += next.value.sizeBytes;
        this.#wakeTaker();
        while (this.#isFull()) await new Promise<void>((resolve) => (this.#wakeReader = resolve));
        if (this.#isStopped) break;
      }
    } catch (error) {
      this.#failure = { error };
    }
    this.#isDone = true;
    this.#wakeTaker();
  }

  #isFull(): boolean {
    if (this.#isStopped || this.#isTakerWaiting) return false;
    return this.#waitingBytes >= maxWaitingBytes || this.#waiting.length >= maxWaitingLines;
  }
}
