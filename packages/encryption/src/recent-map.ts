/** Keeps the values that were used last. */
export class RecentMap<Value> {
  readonly #values = new Map<string, Value>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  get(name: string): Value | undefined {
    const found = this.#values.get(name);
    if (found === undefined) return undefined;
    this.#values.delete(name);
    this.#values.set(name, found);
    return found;
  }

  set(name: string, value: Value): Value {
    this.#values.delete(name);
    this.#values.set(name, value);
    const [oldest] = this.#values.keys();
    if (this.#values.size > this.#most && oldest !== undefined) this.#values.delete(oldest);
    return value;
  }

  values(): Iterable<Value> {
    return this.#values.values();
  }

  clear(): void {
    this.#values.clear();
  }
}
