import type { SessionHead, SessionRef, SessionStore } from "@throughline/core";
import { BranchWalk } from "@throughline/core/internal";

/** Knows which records the current conversation left. It keeps ranges, because branches are few and records many. */
export class OffBranch {
  /** Holds the first and the last seq of each run of such records, the newest first. */
  readonly #ranges: (readonly [from: number, to: number])[] = [];

  /** Reads the heads of the records from the newest on. A log whose records follow no order has no known branch. */
  static async find(store: SessionStore, ref: SessionRef, head: SessionHead, signal?: AbortSignal): Promise<OffBranch> {
    const found = new OffBranch();
    const { headId, lastSeq } = head;
    if (headId === null) return found;
    const walk = new BranchWalk(headId);
    const range = { order: "descending", beforeSeq: lastSeq + 1, payload: "head", signal } as const;
    for await (const { records } of store.read(ref, range))
      for (const stored of records) if (!stored.side) found.#add(stored.seq, walk.take(stored));
    return walk.isAtRoot ? found : new OffBranch();
  }

  #isOpen = false;

  #add(seq: number, isOnBranch: boolean): void {
    if (!isOnBranch) {
      const last = this.#ranges.at(-1);
      if (this.#isOpen && last !== undefined) this.#ranges[this.#ranges.length - 1] = [seq, last[1]];
      else this.#ranges.push([seq, seq]);
    }
    this.#isOpen = !isOnBranch;
  }

  has(seq: number): boolean {
    let [low, high] = [0, this.#ranges.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#ranges[middle]?.[0] ?? 0) <= seq) high = middle;
      else low = middle + 1;
    }
    const range = this.#ranges[low];
    return range !== undefined && seq <= range[1];
  }
}
