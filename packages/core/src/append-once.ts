import { appendTable } from "./store-option-tables.ts";
import { assertKnownOptions, optionKinds, type OptionTable } from "./option-checks.ts";
import type { ErrorCode } from "./error-codes.ts";
import type { AppendDraft } from "./record-draft.ts";
import type { SessionRef } from "./session-ref.ts";
import type { AppendOptions, AppendResult, SessionStore } from "./session-store.ts";
import { ThroughlineError } from "./throughline-error.ts";

/** The limit includes the first attempt; after the last attempt the caller gets the error. */
const maxAttempts = 4;

/**
 * A store reports these errors only after it has searched for the key. A repeated append that fails with one of them
 * proves that the first attempt did not reach the log.
 */
const saidAfterTheKey: ReadonlySet<ErrorCode> = new Set(["APPEND_CONFLICT", "SESSION_BUSY", "TURN_FENCED"]);

/** Extends the options of an append with a required idempotency key. */
export interface AppendOnceOptions extends AppendOptions {
  readonly idempotencyKey: string;
}

const appendOnceTable: OptionTable<AppendOnceOptions> = {
  ...appendTable,
  idempotencyKey: optionKinds.required(optionKinds.text),
};

/**
 * Appends exactly once. When a store reports that the outcome of an append is unknown, the append is repeated with the
 * same key. The store then makes the first attempt durable and returns its result, writes the records, or fails again.
 * Reading the log cannot decide the outcome, because a read may return records that are only in the page cache.
 *
 * A repeat ignores `signal`, because an abort would hide that the first attempt may have been applied.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option; what the store throws; after the last attempt the first
 * error, with `outcome: "unknown"`
 */
export async function appendOnce(
  store: SessionStore,
  ref: SessionRef,
  drafts: readonly AppendDraft[],
  options: AppendOnceOptions,
): Promise<AppendResult> {
  assertKnownOptions<AppendOnceOptions>("appendOnce", options, appendOnceTable);
  const { signal: _signal, isNewKey: _isNewKey, ...again } = options;
  let unknown: ThroughlineError | null = null;
  for (let attempt = 1; ; attempt++) {
    try {
      return await store.append(ref, drafts, attempt === 1 ? options : again);
    } catch (error) {
      if (unknown !== null && ThroughlineError.isInstance(error) && saidAfterTheKey.has(error.code)) throw error;
      if (unknown === null && !isUnknown(error)) throw error;
      unknown ??= error as ThroughlineError;
      if (attempt >= maxAttempts) throw unknown;
    }
  }
}

export function isUnknown(error: unknown): error is ThroughlineError {
  return ThroughlineError.isInstance(error) && error.outcome === "unknown";
}
