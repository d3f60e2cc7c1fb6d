import { appendTable } from "./store-option-tables.ts";
import { assertKnownOptions, optionKinds, type OptionTable } from "./option-checks.ts";
import type { ErrorCode } from "./error-codes.ts";
import type { AppendDraft } from "./record-draft.ts";
import type { SessionRef } from "./session-ref.ts";
import type { AppendOptions, AppendResult, SessionStore } from "./session-store.ts";
import { ThroughlineError } from "./throughline-error.ts";

/** The store is asked this many times in all before the caller gets the error. */
const maxAttempts = 4;

/**
 * A store answers these only after it has looked for the key. When it answers a repeated append with one of them, the
 * first attempt did not reach the log.
 */
const saidAfterTheKey: ReadonlySet<ErrorCode> = new Set(["APPEND_CONFLICT", "SESSION_BUSY", "TURN_FENCED"]);

/** Options of `appendOnce`: those of an append, with a key. */
export interface AppendOnceOptions extends AppendOptions {
  readonly idempotencyKey: string;
}

const appendOnceTable: OptionTable<AppendOnceOptions> = {
  ...appendTable,
  idempotencyKey: optionKinds.required(optionKinds.text),
};

/**
 * Appends exactly once. When a store reports that the outcome of an append is unknown, this repeats the append with the
 * same key. The store decides: it makes the first attempt durable and answers for it, writes the records, or fails again.
 * Nobody decides it by reading the log: what a read returns may be in the page cache only.
 *
 * A repeat ignores `signal`, because an abort would hide that the first attempt may have been applied.
 * @throws {ThroughlineError} INPUT_INVALID for a wrong option; what the store throws; after the last attempt the first error, with `outcome: "unknown"`
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

/** Whether a write failed in a way that leaves its outcome open. */
export function isUnknown(error: unknown): error is ThroughlineError {
  return ThroughlineError.isInstance(error) && error.outcome === "unknown";
}
