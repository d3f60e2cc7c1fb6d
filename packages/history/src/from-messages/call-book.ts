export class CallBook {
  readonly #calls: { readonly id: string; readonly name: string; isAnswered: boolean }[] = [];
  readonly #names = new Map<string, string>();
  #open = 0;
  #made = 0;
  /** Is true when a result or a user message came after the last call. The next call then belongs to another reply. */
  #isClosed = false;

  add(id: string, name: string): void {
    if (this.#isClosed) this.#open = this.#calls.length;
    this.#isClosed = false;
    this.#calls.push({ id, name, isAnswered: false });
    this.#names.set(id, name);
  }

  /** Creates an id for a call without one. It counts up, so that the same conversation always gets the same ids. */
  newId(): string {
    this.#made += 1;
    return `call_${this.#made}`;
  }

  /** Returns the tool name of a call, or null for an unknown id. */
  nameOf(id: string): string | null {
    return this.#names.get(id) ?? null;
  }

  answer(id: string): void {
    const call = this.#calls.slice(this.#open).find((one) => one.id === id && !one.isAnswered);
    if (call !== undefined) call.isAnswered = true;
    this.close();
  }

  /**
   * Returns the id of the call that a result without an id answers. It prefers the oldest open call of the tool.
   * Without a name it takes the oldest open call.
   */
  takeOldest(name: string | null): string {
    const open = this.#calls.slice(this.#open).filter((call) => !call.isAnswered);
    const call = open.find((one) => one.name === name) ?? (name === null ? open[0] : undefined);
    if (call === undefined) return this.newId();
    call.isAnswered = true;
    this.close();
    return call.id;
  }

  /**
   * Marks the reply with the last calls as finished. Its calls without a result stay unanswered once the next reply
   * calls tools.
   */
  close(): void {
    this.#isClosed = true;
    while (this.#calls[this.#open]?.isAnswered === true) this.#open += 1;
  }
}
