/** The calls of a conversation so far, to find the one that a result answers. */
export class CallBook {
  readonly #calls: { readonly id: string; readonly name: string; isAnswered: boolean }[] = [];
  readonly #names = new Map<string, string>();
  #open = 0;
  #made = 0;
  /** True when a result or a user message came after the last call: what is called next belongs to another reply. */
  #isClosed = false;

  /** Notes a call. */
  add(id: string, name: string): void {
    if (this.#isClosed) this.#open = this.#calls.length;
    this.#isClosed = false;
    this.#calls.push({ id, name, isAnswered: false });
    this.#names.set(id, name);
  }

  /** An id for a call that has none, from its place among them. */
  newId(): string {
    this.#made += 1;
    return `call_${this.#made}`;
  }

  /** The name of the tool that was called under an id; null for an id nobody called. */
  nameOf(id: string): string | null {
    return this.#names.get(id) ?? null;
  }

  /** Notes that a call was answered. */
  answer(id: string): void {
    const call = this.#calls.slice(this.#open).find((one) => one.id === id && !one.isAnswered);
    if (call !== undefined) call.isAnswered = true;
    this.close();
  }

  /** The id of the call that a result without an id answers: the oldest open one of that tool, else the oldest. */
  takeOldest(name: string | null): string {
    const open = this.#calls.slice(this.#open).filter((call) => !call.isAnswered);
    const call = open.find((one) => one.name === name) ?? (name === null ? open[0] : undefined);
    if (call === undefined) return this.newId();
    call.isAnswered = true;
    this.close();
    return call.id;
  }

  /** Notes that the reply with the last calls is over: calls without a result stay so once the next reply calls tools. */
  close(): void {
    this.#isClosed = true;
    while (this.#calls[this.#open]?.isAnswered === true) this.#open += 1;
  }
}
