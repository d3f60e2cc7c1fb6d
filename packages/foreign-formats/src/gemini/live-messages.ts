/** A message that the program would resume with. */
export interface LiveMessage {
  /** Its first record in the conversation; null while it has none. */
  recordId: string | null;
  /** The head before it. */
  readonly headBefore: string | null;
  /** The calls in its first record, and all calls that have records. */
  firstCalls: ReadonlySet<string>;
  readonly calls: Set<string>;
  hasUsage: boolean;
  /** Differs where a later copy says something else. */
  words: string;
}

/** The messages of a session by the ids the program gave them, in the order in which each came first. */
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

  /** Takes a message and all behind it away; gives the head before it. One that is not there takes everything away. */
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
