/** Keeps the values that were used last. `drop` is called with each value that is kept no longer. */
export class RecentMap<Value> {
  readonly #values = new Map<string, Value>();
  readonly #most: number;
  readonly #drop: (value: Value) => void;

  constructor(most: number, drop: (value: Value) => void) {
    this.#most = most;
    this.#drop = drop;
  }

  get(name: string): Value | undefined {
    const found = this.#values.get(name);
    if (found === undefined) return undefined;
    this.#values.delete(name);
    this.#values.set(name, found);
    return found;
  }

  set(name: string, value: Value): Value {
    this.#remove(name);
    this.#values.set(name, value);
    const [oldest] = this.#values.keys();
    if (this.#values.size > this.#most && oldest !== undefined) this.#remove(oldest);
    return value;
  }

  clear(): void {
    for (const value of this.#values.values()) this.#drop(value);
    this.#values.clear();
  }

  #remove(name: string): void {
    const value = this.#values.get(name);
    if (value === undefined) return;
    this.#values.delete(name);
    this.#drop(value);
  }
}
