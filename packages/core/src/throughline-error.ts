import { errorCodes, type ErrorCode } from "./error-codes.ts";

/**
 * States the outcome of a failed write: not applied, or unknown. Retry after an unknown outcome only with the
 * idempotency key.
 */
export type WriteOutcome = "not-applied" | "unknown";

/** Sets the details, the outcome and the cause of a `ThroughlineError`. */
export interface ThroughlineErrorOptions {
  /**
   * Holds the values of the message for programs: paths, lines, ids, expected and actual values. Never holds secrets.
   */
  readonly details?: Readonly<Record<string, unknown>> | undefined;
  /** States the outcome of a failed write. */
  readonly outcome?: WriteOutcome | undefined;
  /** Holds the error that caused this error. */
  readonly cause?: unknown | undefined;
  /** Replaces the table's remedy when the case has a better one. */
  readonly remedy?: string | undefined;
  /** Replaces the table's value when the case requires another value. */
  readonly retryable?: boolean | undefined;
}

const brand = Symbol.for("throughline.error");

/**
 * Represents every error of Throughline. Programs act on the code; people read the message. A brand recognizes errors
 * across copies of the package, so use `ThroughlineError.isInstance`, not `instanceof`.
 */
export class ThroughlineError extends Error {
  /** States the code, which is a key of `errorCodes`. Programs act on it. */
  readonly code: ErrorCode;
  /** States whether the same call, unchanged, may succeed later. */
  readonly retryable: boolean;
  /** States for people what to do next. */
  readonly remedy: string;
  /** States whether a failed write was applied; null for an error that concerns no write. */
  readonly outcome: WriteOutcome | null;
  /** Holds facts for programs as plain JSON: names, sizes and limits. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: ThroughlineErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ThroughlineError";
    Object.defineProperty(this, brand, { value: true });
    this.code = code;
    this.retryable = options.retryable ?? errorCodes[code].retryable;
    this.remedy = options.remedy ?? errorCodes[code].remedy;
    this.outcome = options.outcome ?? null;
    this.details = options.details ?? {};
  }

  /** Returns whether a value is an error of Throughline, from any copy of the package. */
  static isInstance(value: unknown): value is ThroughlineError {
    return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[brand] === true;
  }
}

/** Returns whether a value is a ThroughlineError with one of the codes. */
export function hasErrorCode(value: unknown, ...codes: readonly ErrorCode[]): value is ThroughlineError {
  return ThroughlineError.isInstance(value) && codes.includes(value.code);
}

/** Quotes a word for a shell, because remedies print commands. A plain word does not change. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./~-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
