/** Describes a message of the program's current conversation, which a rewind may still remove. */
export interface LiveMessage {
  /** Names the record that an edit of the message targets; null while there is none. */
  recordId: string | null;
  /** States the head to which a rewind to this message returns. */
  readonly headBefore: string | null;
  /** Holds the ids of the calls in the message's first record. An edit of that record must keep them. */
  firstCallIds: ReadonlySet<string>;
  /** Holds the ids of all calls that have a record. A later copy of the message may add calls. */
  readonly storedCallIds: Set<string>;
  /** States whether a record holds the usage, so that a later copy does not count it again. */
  isUsageStored: boolean;
  /** Holds the hash of the content without calls. A later copy with another hash becomes an edit. */
  contentHash: string;
}

/** Keeps messages in the order of their first appearance, because a rewind also removes all later messages. */
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
    let isRemoved = false;
    for (const knownId of this.#messages.keys()) {
      isRemoved ||= knownId === id;
      if (isRemoved) this.#messages.delete(knownId);
    }
    return found.headBefore;
  }
}
