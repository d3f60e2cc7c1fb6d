import { quote } from "@throughline/core/internal";
import { ThroughlineError } from "@throughline/core";

const sqlite = { busy: 5, locked: 6, readOnly: 8, full: 13, corrupt: 11, notADatabase: 26 } as const;

const reasons: Readonly<Record<number, string>> = {
  [sqlite.busy]: "another process is writing it",
  [sqlite.locked]: "another process is writing it",
  [sqlite.readOnly]: "it cannot be written",
  [sqlite.full]: "the disk is full",
};

/** Converts an error of SQLite or of a file to a typed error. A typed error passes. */
export function keyringError(error: unknown, path: string): ThroughlineError {
  if (ThroughlineError.isInstance(error)) return error;
  const result = ((error as { readonly errcode?: number }).errcode ?? 0) & 0xff;
  const details = { path, result, code: (error as { readonly code?: unknown }).code ?? null };
  if (result === sqlite.corrupt || result === sqlite.notADatabase)
    return new ThroughlineError("KEYRING_DAMAGED", `The file ${quote(path)} is damaged or is not a keyring.`, {
      outcome: "not-applied",
      details,
      cause: error,
    });
  const reason = reasons[result] ?? (error instanceof Error ? error.message : "an operation on the file failed");
  return new ThroughlineError("KEYRING_IO", `The keyring ${quote(path)} could not be used: ${reason}.`, {
    outcome: "not-applied",
    details,
    retryable: result === sqlite.busy || result === sqlite.locked,
    cause: error,
  });
}

/** Runs a function, with its errors as typed errors. */
export function withKeyringErrors<Result>(path: string, run: () => Result): Result {
  try {
    return run();
  } catch (error) {
    throw keyringError(error, path);
  }
}
