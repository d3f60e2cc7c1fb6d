import type { DraftLine } from "./read-drafts.ts";

/** At most so much is read ahead. */
const maxWaitingBytes = 8 * 1024 * 1024;
const maxWaitingLines = 1000;

/** Reads lines ahead of whoever takes them, up to a bound; a failure to read comes after the lines before it. */
export class DraftQueue {
  readonly #lines: AsyncIterator<DraftLine, void, void>;
  #waiting: DraftLine[] = [];
  #waitingBytes = 0;
  #isDone = false;
  #isStopped = false;
  /** While somebody waits for lines, nothing counts as full. */
  #isTakerWaiting = false;
  #failure: { readonly error: unknown } | null = null;
  #wakeReader: () => void = () => {};
  #wakeTaker: () => void = () => {};

  constructor(lines: AsyncIterator<DraftLine, void, void>) {
    this.#lines = lines;
    void this.#read();
  }

  /**
   * The next lines up to a number, fewer at the end or if they exceed the size of an append; none at the end. A batch
   * with a bad line is dropped, because it is one unit.
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
