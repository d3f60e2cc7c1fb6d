import { isColumnText } from "./column-text.ts";
import { quote } from "./session-id.ts";
import type { AppendResult } from "./session-store.ts";
import { ThroughlineError } from "./throughline-error.ts";

/** A keyed append is remembered by number or by time, whichever keeps it longer. */
export const defaultIdempotency: { readonly rememberedAppends: number; readonly rememberedMs: number } = Object.freeze({
  rememberedAppends: 4096,
  rememberedMs: 24 * 60 * 60 * 1000,
});

/** Remembers the keyed appends of one session, within `defaultIdempotency`. */
export class RememberedAppends {
  readonly #results = new Map<string, { readonly digest: string; readonly atMs: number; readonly result: string }>();
  /** Holds the time of the newest append that was forgotten. */
  #horizonMs = -1;

  /**
   * Returns a copy of the result of the append that had this key, or null without such an append. `digest` is a hash of
   * `draftsFingerprint`.
   * @throws {ThroughlineError} IDEMPOTENCY_MISMATCH, IDEMPOTENCY_EXPIRED, INPUT_INVALID
   */
  find(key: string, digest: string): AppendResult | null {
    return earlierResult(key, digest, this.#results.get(key) ?? null, this.#horizonMs);
  }

  /** Keeps the result of an append, and forgets the oldest results beyond the promised number and time. */
  remember(key: string, digest: string, result: AppendResult, nowMs: number): void {
    const { rememberedAppends, rememberedMs } = defaultIdempotency;
    this.#results.set(key, { digest, atMs: nowMs, result: JSON.stringify(result) });
    for (const [oldestKey, { atMs }] of this.#results) {
      if (this.#results.size <= rememberedAppends || atMs >= nowMs - rememberedMs) break;
      this.#results.delete(oldestKey);
      this.#horizonMs = Math.max(this.#horizonMs, atMs);
    }
  }
}

/**
 * Returns a copy of the result that is kept under a key, or null for a new key. `horizonMs` states the time of the
 * newest append that was forgotten.
 * @throws {ThroughlineError} IDEMPOTENCY_MISMATCH, IDEMPOTENCY_EXPIRED, INPUT_INVALID
 */
export function earlierResult(
  key: string,
  digest: string,
  kept: { readonly digest: string; readonly result: string } | null,
  horizonMs: number,
): AppendResult | null {
  assertIdempotencyKey(key);
  if (kept === null) {
    assertNotForgotten(key, () => horizonMs);
    return null;
  }
  if (kept.digest !== digest) throw refused("IDEMPOTENCY_MISMATCH", "Other drafts were appended with this key", key);
  return { ...(JSON.parse(kept.result) as AppendResult), replayed: true };
}

/** @throws {ThroughlineError} INPUT_INVALID when the value is not an idempotency key */
export function assertIdempotencyKey(key: string): void {
  if (!isColumnText(key, 256)) throw refused("INPUT_INVALID", "An idempotency key is text of 1 to 256 characters", key);
}

/**
 * Checks a key that is not remembered. A forgotten key can be distinguished from a new key only when it starts with its
 * time. `horizonMs` returns the time of the newest forgotten append and is called only when it matters. Whether an
 * earlier attempt was applied is unknown then.
 * @throws {ThroughlineError} IDEMPOTENCY_EXPIRED
 */
export function assertNotForgotten(key: string, horizonMs: () => number): void {
  const madeAtMs = /^\d{13}_/.test(key) ? Number(key.slice(0, 13)) : Infinity;
  if (madeAtMs < Infinity && madeAtMs <= horizonMs())
    throw refused("IDEMPOTENCY_EXPIRED", "The key is older than what is remembered", key);
}

function refused(
  code: "INPUT_INVALID" | "IDEMPOTENCY_MISMATCH" | "IDEMPOTENCY_EXPIRED",
  why: string,
  key: string,
): ThroughlineError {
  return new ThroughlineError(code, `${why}: ${quote(key)}.`, {
    outcome: code === "IDEMPOTENCY_EXPIRED" ? "unknown" : "not-applied",
    details: { idempotencyKey: key },
  });
}
