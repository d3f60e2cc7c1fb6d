/** Frees slots at the front only once there are this many, so that each item is moved seldom. */
const maxLeft = 1024;

/** Queues items in order. Taking the first one moves no other, because a hundred thousand may wait. */
export class WaitingLine<Item extends object> {
  #items: (Item | undefined)[] = [];
  #from = 0;

  get isEmpty(): boolean {
    return this.#from === this.#items.length;
  }

  get length(): number {
    return this.#items.length - this.#from;
  }

  get first(): Item | undefined {
    return this.#items[this.#from];
  }

  add(item: Item): void {
    this.#items.push(item);
  }

  take(): Item | undefined {
    const { first } = this;
    if (first === undefined) return undefined;
    this.#items[this.#from++] = undefined;
    if (this.#from > maxLeft && this.#from * 2 > this.#items.length) this.#close();
    return first;
  }

  putBack(items: readonly Item[]): void {
    this.#close();
    this.#items = [...items, ...this.#items];
  }

  remove(item: Item): boolean {
    const at = this.#items.indexOf(item, this.#from);
    if (at === this.#from) this.take();
    else if (at !== -1) this.#items.splice(at, 1);
    return at !== -1;
  }

  takeOut(test: (item: Item) => boolean): readonly Item[] {
    const [taken, left]: [Item[], Item[]] = [[], []];
    for (const item of this) (test(item) ? taken : left).push(item);
    this.#items = left;
    this.#from = 0;
    return taken;
  }

  some(test: (item: Item) => boolean): boolean {
    for (const item of this) if (test(item)) return true;
    return false;
  }

  *[Symbol.iterator](): Generator<Item, void, void> {
    for (let at = this.#from; at < this.#items.length; at++) {
      const item = this.#items[at];
      if (item !== undefined) yield item;
    }
  }

  #close(): void {
    this.#items.splice(0, this.#from);
    this.#from = 0;
  }
}
