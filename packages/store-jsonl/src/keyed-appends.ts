import type { SessionHead } from "@throughline/core";
import { defaultIdempotency } from "@throughline/core/internal";

/** A head in its shortest form: thousands may be kept. */
export type KeptHead = readonly [
  lastSeq: SessionHead["lastSeq"],
  headId: SessionHead["headId"],
  windowSeq: SessionHead["windowSeq"],
  fence: SessionHead["fence"],
  turn: SessionHead["turn"],
];

/**
 * An append without records that had an idempotency key, and what came of it. There is no line in the transcript for the
 * key to travel in. One that an older version wrote has no time, the oldest no head.
 */
export type KeyedAppend = readonly [key: string, digest: string, revision: number, head?: KeptHead, atMs?: number];

/** Keyed appends of one session, the oldest first. */
export interface SessionKeys {
  readonly sessionId: string;
  readonly appends: readonly KeyedAppend[];
}

/** Keyed appends without records, by session: as many, and for as long, as every store remembers them. */
export class KeyedAppends {
  readonly #bySession: Map<string, Map<string, KeyedAppend>> = new Map();
  /** When the last one came. */
  readonly #newestMs: Map<string, number> = new Map();

  /** The oldest first; one that is known already stays where it is. */
  remember({ sessionId, appends }: SessionKeys): void {
    if (appends.length === 0) return;
    const known = this.#bySession.get(sessionId) ?? new Map<string, KeyedAppend>();
    this.#bySession.set(sessionId, known);
    for (const append of appends) known.set(append[0], append);
    const newestMs = timeOf(appends.at(-1));
    this.#newestMs.set(sessionId, newestMs);
    const sinceMs = keptSinceMs(newestMs);
    for (const [key, append] of known) {
      if (known.size <= defaultIdempotency.rememberedAppends || timeOf(append) >= sinceMs) break;
      known.delete(key);
    }
  }

  find(sessionId: string, key: string): KeyedAppend | null {
    return this.#bySession.get(sessionId)?.get(key) ?? null;
  }

  of(sessionId: string): readonly KeyedAppend[] {
    return [...(this.#bySession.get(sessionId)?.values() ?? [])];
  }

  /** A key made no later may have been forgotten. */
  horizonMs(sessionId: string): number {
    const known = this.#bySession.get(sessionId);
    if (known === undefined || known.size < defaultIdempotency.rememberedAppends) return -1;
    const [oldest] = known.values();
    return horizonOf(timeOf(oldest), this.#newestMs.get(sessionId) ?? 0);
  }

  *[Symbol.iterator](): Generator<SessionKeys, void, void> {
    for (const [sessionId, known] of this.#bySession) yield { sessionId, appends: [...known.values()] };
  }

  forget(sessionId: string): void {
    this.#bySession.delete(sessionId);
    this.#newestMs.delete(sessionId);
  }

  clear(): void {
    this.#bySession.clear();
    this.#newestMs.clear();
  }
}

export function timeOf(append: KeyedAppend | undefined): number {
  return append?.[4] ?? 0;
}

/** What is newer stays when one of this time is added, however many there are. */
export function keptSinceMs(newestMs: number): number {
  return newestMs - defaultIdempotency.rememberedMs;
}

/** Of what is full: whatever was forgotten is no newer than the oldest that is left, and than what is kept for its time alone. */
export function horizonOf(oldestMs: number, newestMs: number): number {
  return Math.min(oldestMs, keptSinceMs(newestMs));
}
