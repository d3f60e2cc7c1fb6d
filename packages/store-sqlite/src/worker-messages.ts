import { type ErrorCode, type SessionEvent, ThroughlineError } from "@throughline/core";
import { type WriteOutcome } from "@throughline/core/internal";

/** What a stream or a call is asked for: a method of the store, or of one of its facets. */
export type WorkerMethod =
  | "append"
  | "load"
  | "save"
  | "list"
  | "move"
  | "remove"
  | "redact"
  | "close"
  | "read"
  | "search.search"
  | "search.lag"
  | "search.rebuild"
  | "search.fill"
  | "fork.fork"
  | "fork.sharers"
  | "watch.watch"
  | "partials.write"
  | "partials.read"
  | "partials.remove"
  | "maintenance.verify"
  | "maintenance.repair"
  | "maintenance.backup";

/** To the thread. A call that has a signal says so, and is aborted by a message of its own. */
export type WorkerRequest =
  | {
      readonly kind: "call" | "open";
      readonly id: number;
      readonly method: WorkerMethod;
      readonly args: readonly unknown[];
      /** At which of the arguments a signal is to be put into the options; null: none. */
      readonly signalAt: number | null;
    }
  | { readonly kind: "next" | "return" | "abort"; readonly id: number };

/** From the thread. */
export type WorkerReply =
  | { readonly kind: "result"; readonly id: number; readonly value: unknown }
  | { readonly kind: "error"; readonly id: number; readonly error: SentError }
  | { readonly kind: "event"; readonly event: SessionEvent };

/** An error as it goes from one thread to the other. */
export interface SentError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly outcome: WriteOutcome | null;
  readonly remedy: string;
  readonly details: Readonly<Record<string, unknown>>;
  readonly cause: string | null;
}

export function sentError(error: unknown): SentError {
  const known = ThroughlineError.isInstance(error)
    ? error
    : new ThroughlineError("INTERNAL", `The store's thread failed: ${String(error)}`, { outcome: "unknown" });
  const { code, message, outcome, remedy, details, cause } = known;
  // Details speak of paths and numbers; what cannot be sent is left out.
  const plain = JSON.parse(JSON.stringify(details)) as Readonly<Record<string, unknown>>;
  return { code, message, outcome, remedy, details: plain, cause: cause === undefined ? null : String(cause) };
}

export function receivedError({ code, message, outcome, remedy, details, cause }: SentError): ThroughlineError {
  return new ThroughlineError(code, message, {
    remedy,
    details,
    ...(outcome === null ? {} : { outcome }),
    ...(cause === null ? {} : { cause: new Error(cause) }),
  });
}
