import { ThroughlineError, type ErrorCode, type WriteOutcome } from "@throughline/core";

/** The five characters of an error of the server, or the code of one of the operating system; empty for others. */
export function nativeCode(error: unknown): string {
  const code = typeof error === "object" && error !== null ? (error as { code?: unknown }).code : undefined;
  return typeof code === "string" ? code : "";
}

/** The index or table whose rule was broken. */
export function constraintOf(error: unknown): string {
  const { constraint } = error as { readonly constraint?: unknown };
  return typeof constraint === "string" ? constraint : "";
}

/** Tables of native codes; the first that fits counts. */
const meanings: readonly (readonly [RegExp, ErrorCode, string])[] = [
  [/^(55P03|40P01|40001)$/, "STORE_LOCKED", "Another writer kept the rows until the deadline."],
  [/^(53100|53200|54000|ENOSPC)$/, "STORE_FULL", "The database server has no room left."],
  [/^53/, "STORE_OVERLOADED", "The database server takes no more connections."],
  [/^(25006|42501)$/, "STORE_READ_ONLY", "The database cannot be written by this user, or at this server."],
  [/^(28|3D000|3F000|42P01|42883)/, "STORE_NOT_FOUND", "The database, its schema or its user is not there."],
  [/^XX00[12]$/, "STORE_CORRUPT", "The database says that it is damaged."],
  [/^58/, "STORE_IO", "The operating system of the database server refused an operation."],
  [/^(08|57P|57014|E[A-Z]+$)/, "STORE_UNREACHABLE", "The database server cannot be reached, or broke off."],
];

/** True when a server that answered so has undone the statement: everything but the ends of servers and connections. */
export function isAnswer(error: unknown): boolean {
  return (
    /^[0-9A-Z]{5}$/.test(nativeCode(error)) &&
    !/^(08|57P|40003)/.test(nativeCode(error)) &&
    "severity" in (error as object)
  );
}

/** True when trying again in a moment may help: the server is starting, full, or was not there. */
export function isPassing(error: unknown): boolean {
  const code = nativeCode(error);
  if (code === "") return /terminated|timeout|ended|closed/i.test(error instanceof Error ? error.message : "");
  return /^(08|57P0|53300|E(CONN|PIPE|TIMEDOUT|HOST|NET|AI_AGAIN))/.test(code) || code === "EAI_AGAIN";
}

/** What the server, the driver or the operating system said, as an error of ours. Never with what the URL holds. */
export function storeError(error: unknown, outcome: WriteOutcome, place: string): ThroughlineError {
  if (ThroughlineError.isInstance(error)) return error;
  const native = nativeCode(error);
  const details = { place, nativeCode: native };
  const text = error instanceof Error ? error.message : String(error);
  const meaning =
    meanings.find(([pattern]) => pattern.test(native)) ??
    (native === "" && isPassing(error) ? (["", "STORE_UNREACHABLE", "The connection broke off."] as const) : undefined);
  if (meaning === undefined)
    return new ThroughlineError("INTERNAL", `The PostgreSQL store failed: ${text}`, { outcome, details, cause: error });
  return new ThroughlineError(meaning[1], `${meaning[2]} (${place}: ${text})`, { outcome, details, cause: error });
}
