/** The program would resume with this message. */
export interface LiveMessage {
  /** The id is that of the message's first record in the conversation; null while it has none. */
  recordId: string | null;
  readonly headBefore: string | null;
  /**
   * A later copy of the message may add calls. The first set holds those in the first record, and the second all that
   * have records.
   */
  firstCalls: ReadonlySet<string>;
  readonly calls: Set<string>;
  hasUsage: boolean;
  /** The hash differs when a later copy has other words, which become an edit. */
  words: string;
}

/** A rewind removes a message and all later ones, so the order of first appearance is kept. */
export class LiveMessages {
  readonly #messages = new Map<string, LiveMessage>();

  get(id: string): LiveMessage | undefined {
    return this.#messages.get(id);
  }

  add(id: string, message: LiveMessage): void {
    this.#messages.set(id, message);
  }

  clear(): void {
    this.#messages.clear();
  }

  /** Removes a message and all later ones, and returns the head before it. An unknown id removes every message. */
  rewindTo(id: string): string | null {
    const found = this.#messages.get(id);
    if (found === undefined) {
      this.#messages.clear();
      return null;
    }
    let isBehind = false;
    for (const known of this.#messages.keys()) {
      isBehind ||= known === id;
      if (isBehind) this.#messages.delete(known);
    }
    return found.headBefore;
  }
}
