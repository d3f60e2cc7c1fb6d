import { nextRemedy, ownCures, type Remedy } from "./guard-steps.ts";
import type { OverflowKind } from "./overflow.ts";

/**
 * Decides which remedy is next, and whether another call may follow.
 *
 * Between two calls each remedy works at most once. A remedy that changed nothing is tried again only after another one
 * made the request smaller. A refusal resets both sets: a remedy that changes nothing by the estimate may help by the
 * provider's own count. The loop ends, because calls are bounded: the first call, the retries, and one call for each
 * own cure that ever worked.
 */
export class RemedyLadder {
  readonly #maxRetries: number;
  /** Holds the remedies that worked since the last call. */
  readonly #worked = new Set<Remedy>();
  /** Holds the remedies that change nothing in the current request. */
  readonly #idle = new Set<Remedy>();
  /** Holds the own cures that ever worked, each of which allows one more call. */
  readonly #cured = new Set<Remedy>();
  #isWithoutSizes = false;
  /** Is true when tool results were shortened after a refusal that stated no sizes. */
  #hasTruncated = false;

  constructor(maxRetries: number) {
    this.#maxRetries = maxRetries;
  }

  /** Returns the next remedy for a kind after `calls` calls; null when no remedy or no call is left. */
  next(kind: OverflowKind, calls: number): Remedy | null {
    const remedy = nextRemedy(kind, this.#worked.union(this.#idle));
    if (remedy === null) return null;
    const isFree = ownCures.has(remedy) && !this.#cured.has(remedy);
    return calls === 0 || isFree || calls - this.#cured.size <= this.#maxRetries ? remedy : null;
  }

  /** States whether the remedy was tried since the last refusal that was recorded. */
  isTried(remedy: Remedy): boolean {
    return this.#worked.has(remedy) || this.#idle.has(remedy);
  }

  tried(remedy: Remedy, hasWorked: boolean): void {
    if (!hasWorked) {
      this.#idle.add(remedy);
      return;
    }
    this.#worked.add(remedy);
    if (ownCures.has(remedy)) this.#cured.add(remedy);
    if (remedy === "truncate" && this.#isWithoutSizes) this.#hasTruncated = true;
    // A compaction calls the caller's function, perhaps a model. A slightly smaller request is no reason to repeat it.
    for (const other of this.#idle) if (other !== "compact") this.#idle.delete(other);
  }

  /**
   * Resets the remedies after a refusal. A refusal without sizes does not state how much shorter results must become.
   * If shortening did not help once, the history comes next.
   */
  refused(hasSizes: boolean): void {
    this.#worked.clear();
    this.#idle.clear();
    this.#isWithoutSizes = !hasSizes;
    if (!hasSizes && this.#hasTruncated) this.#worked.add("truncate");
  }

  /** After the last call no other remedy can follow. */
  isLastCall(calls: number): boolean {
    return calls > 0 && calls - this.#cured.size >= this.#maxRetries;
  }
}
