import { errorCodes, type ErrorCode } from "./error-codes.ts";

/** What became of a failed write: nothing of it, or nobody can tell (retry only with its idempotency key). */
export type WriteOutcome = "not-applied" | "unknown";

/** Options of `new ThroughlineError`. */
export interface ThroughlineErrorOptions {
  /** Values of the message, for programs: paths, lines, ids, expected and actual. Never secrets. */
  readonly details?: Readonly<Record<string, unknown>>;
  /** For failed writes. */
  readonly outcome?: WriteOutcome;
  /** The error underneath. */
  readonly cause?: unknown;
  /** Replaces the table's remedy where the case knows a better one. */
  readonly remedy?: string;
  /** Replaces the table's value where the case knows better. */
  readonly retryable?: boolean;
}

const brand = Symbol.for("throughline.error");

/**
 * The one error class. Programs act on the code; people read the message. Recognized across package copies by a brand,
 * so use `ThroughlineError.isInstance`, not `instanceof`.
 */
export class ThroughlineError extends Error {
  /** A key of `errorCodes`. Programs act on it. */
  readonly code: ErrorCode;
  /** The same call, unchanged, may succeed later. */
  readonly retryable: boolean;
  /** What to do next, for people. */
  readonly remedy: string;
  /** Of a failed write: whether it was applied. Null for an error that is about no write. */
  readonly outcome: WriteOutcome | null;
  /** Facts for programs, as plain JSON: names, sizes and limits. */
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

  /** Whether a value is an error of Throughline, from whichever copy of the package. */
  static isInstance(value: unknown): value is ThroughlineError {
    return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[brand] === true;
  }
}

/** True for a ThroughlineError with one of the codes. */
export function hasErrorCode(value: unknown, ...codes: readonly ErrorCode[]): value is ThroughlineError {
  return ThroughlineError.isInstance(value) && codes.includes(value.code);
}

/** Quotes a word for a shell, for the commands that remedies print. A plain word stays as it is. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./~-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
