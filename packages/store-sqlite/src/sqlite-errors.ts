import { causeText } from "@throughline/core/internal";
import { type ErrorCode, ThroughlineError } from "@throughline/core";
import type { WriteOutcome } from "@throughline/core/internal";

/** Returns the code of an error of SQLite or of the operating system, or an empty text. */
export function nativeCode(error: unknown): string {
  const code = typeof error === "object" && error !== null ? (error as { code?: unknown }).code : undefined;
  return typeof code === "string" ? code : "";
}

/** Returns true when another connection holds a lock, so the same statement may pass in a moment. */
export function isBusy(error: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED|PROTOCOL)/.test(nativeCode(error));
}

/** Returns true when the disk failed while it was written or flushed, so that its content is in doubt. */
export function isFailedFlush(error: unknown): boolean {
  const cause: unknown = ThroughlineError.isInstance(error) ? error.cause : error;
  return nativeCode(cause).startsWith("SQLITE_IOERR");
}

/** SQLite reports these errors for statements of this package when the schema in the file is damaged. */
const foreignSchema =
  /no such (?:column|table|index|view|module|tokenizer)|no query solution|parse error|constructor failed|has no column named|syntax error|unrecognized|already exists|invalid fts5 file format|unsupported file format/;

/** Returns true when the file is not what SQLite wrote. */
export function isDamage(error: unknown): boolean {
  const native = nativeCode(error);
  if (native === "SQLITE_ERROR") return foreignSchema.test(String((error as { readonly message?: unknown }).message));
  return /^SQLITE_(NOTADB|CORRUPT)/.test(native);
}

/**
 * The first entry that matches a native code decides. SQLite reports a moved file as a matter of permissions, which it
 * is not.
 */
const meanings: readonly (readonly [RegExp, ErrorCode, string])[] = [
  [/^SQLITE_(BUSY|LOCKED|PROTOCOL)/, "STORE_LOCKED", "Another connection holds the database."],
  // SHMSIZE: the pages that connections share cannot be written, which SQLite tries in order to notice a full disk.
  [/^(SQLITE_FULL|SQLITE_IOERR_SHMSIZE|ENOSPC|EDQUOT)$/, "STORE_FULL", "There is no space left for the database."],
  [/^SQLITE_READONLY_DBMOVED$/, "STORE_IO", "The database file was moved or deleted while it was open."],
  [/^(SQLITE_READONLY|SQLITE_PERM|EACCES|EPERM|EROFS)/, "STORE_READ_ONLY", "The database cannot be written."],
  [
    /^(SQLITE_(IOERR|CANTOPEN|NOLFS)|E[A-Z0-9]+$)/,
    "STORE_IO",
    "The operating system refused an operation on the database.",
  ],
];

const damaged: (typeof meanings)[number] = [/^/, "STORE_CORRUPT", "The file is damaged or is not a SQLite database."];

/** Translates an error of SQLite or of the operating system. */
export function storeError(error: unknown, path: string, outcome: WriteOutcome = "not-applied"): ThroughlineError {
  if (ThroughlineError.isInstance(error)) return error;
  const native = nativeCode(error);
  const meaning = isDamage(error) ? damaged : meanings.find(([pattern]) => pattern.test(native));
  const details = { path, nativeCode: native };
  if (meaning !== undefined)
    return new ThroughlineError(meaning[1], `${meaning[2]} (${path})`, { outcome, details, cause: error });
  const text = causeText(error);
  return new ThroughlineError("INTERNAL", `The SQLite store failed: ${text}`, { outcome, details, cause: error });
}
