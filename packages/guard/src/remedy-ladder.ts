import { nextRemedy, ownCures, type Remedy } from "./guard-steps.ts";
import type { OverflowKind } from "./overflow.ts";

/**
 * Which remedies may be tried, and whether another call may follow.
 *
 * Between two calls each works at most once, and one that did nothing is tried again only after another made the request
 * smaller. A refusal frees them all: what did nothing by the estimate may do everything by the provider's own count. It
 * ends, because calls are bounded: the first, the retries, and one for each of the own cures that ever worked.
 */
export class RemedyLadder {
  readonly #maxRetries: number;
  /** Worked since the last call. */
  readonly #worked = new Set<Remedy>();
  /** Did nothing to the request as it is. */
  readonly #idle = new Set<Remedy>();
  /** Own cures that ever worked. */
  readonly #cured = new Set<Remedy>();
  /** The last refusal stated no sizes. */
  #isWithoutSizes = false;
  /** Tool results were shortened after a refusal that stated no sizes. */
  #hasTruncated = false;

  constructor(maxRetries: number) {
    this.#maxRetries = maxRetries;
  }

  /** The next remedy for a kind that may be tried after this number of calls; null if there is none. */
  next(kind: OverflowKind, calls: number): Remedy | null {
    const remedy = nextRemedy(kind, this.#worked.union(this.#idle));
    if (remedy === null) return null;
    const isFree = ownCures.has(remedy) && !this.#cured.has(remedy);
    return calls === 0 || isFree || calls - this.#cured.size <= this.#maxRetries ? remedy : null;
  }

  /** Whether it was tried since the last refusal that somebody could read. */
  isTried(remedy: Remedy): boolean {
    return this.#worked.has(remedy) || this.#idle.has(remedy);
  }

  /** It made the request smaller, or did nothing. */
  tried(remedy: Remedy, hasWorked: boolean): void {
    if (!hasWorked) {
      this.#idle.add(remedy);
      return;
    }
    this.#worked.add(remedy);
    if (ownCures.has(remedy)) this.#cured.add(remedy);
    if (remedy === "truncate" && this.#isWithoutSizes) this.#hasTruncated = true;
    // A compaction asks the caller, perhaps a model: it is not asked the same again for a little less.
    for (const other of this.#idle) if (other !== "compact") this.#idle.delete(other);
  }

  /**
   * A request was refused. Without sizes it is unknown how much shorter tool results must be, so after they were
   * shortened the history comes next.
   */
  refused(hasSizes: boolean): void {
    this.#worked.clear();
    this.#idle.clear();
    this.#isWithoutSizes = !hasSizes;
    if (!hasSizes && this.#hasTruncated) this.#worked.add("truncate");
  }

  /** The last call that may be made has nothing after it to fall back on. */
  isLastCall(calls: number): boolean {
    return calls > 0 && calls - this.#cured.size >= this.#maxRetries;
  }
}
