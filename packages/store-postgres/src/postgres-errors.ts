import { causeText } from "@throughline/core/internal";
import { type ErrorCode, ThroughlineError } from "@throughline/core";
import type { WriteOutcome } from "@throughline/core/internal";

/** Returns the SQLSTATE of a server error or the code of a system error. Returns an empty text for other errors. */
export function nativeCode(error: unknown): string {
  const code = typeof error === "object" && error !== null ? (error as { code?: unknown }).code : undefined;
  return typeof code === "string" ? code : "";
}

/**
 * Tests whether a row broke the index, by the beginning of the index name. A proxy such as Citus omits the field, and
 * names the index of a shard (`sessions_address_102008`). It also quotes the name as its language does, so the message
 * is searched as well.
 */
export function breaksIndex(error: unknown, index: string): boolean {
  const { constraint } = error as { readonly constraint?: unknown };
  return typeof constraint === "string" ? constraint.startsWith(index) : messageOf(error).includes(index);
}

interface Meaning {
  readonly pattern: RegExp;
  readonly code: ErrorCode;
  readonly says: string;
  /** Replaces the remedy of the code, which names files. A function gets the server's message. */
  readonly remedy?: string | ((text: string) => string);
}

const grants = "Grant the role what the README of the PostgreSQL store lists, and have the schema made by its owner.";

/** For a page with a wrong checksum the server names the file, and neither the table nor the index. */
function damageRemedy(text: string): string {
  const file = /\bbase\/\d+\/(\d+)/.exec(text)?.[1];
  const look =
    file === undefined ? "pg_amcheck names" : `\`SELECT pg_filenode_relation(0, ${file})\` in this database names`;
  return `${look} the damaged table or index. Rebuild an index with REINDEX; restore a table from a backup or a replica. Then check the disk and the memory of the server.`;
}

/** While Citus moves or splits a shard, a statement that was planned before may name a shard that is no longer there. */
const movedShard: Meaning = {
  pattern: /could not find valid entry for shard \d|_\d{1,20}" does not exist/,
  code: "STORE_UNREACHABLE",
  says: "The rows moved to another place of the cluster meanwhile.",
  remedy: "Try again.",
};

/** Citus changes tables and functions from its coordinator only. */
const notCoordinator: Meaning = {
  pattern: /operation is not allowed on this node/,
  code: "STORE_UNSUPPORTED",
  says: "Only the coordinator of Citus can make or change the schema.",
  remedy: "Open the store once with the URL of the coordinator.",
};

const ofCitus = [movedShard, notCoordinator];

/** The first row that matches the native code counts. */
const meanings: readonly Meaning[] = [
  { pattern: /^(55P03|40P01|40001)$/, code: "STORE_LOCKED", says: "Another writer kept the rows until the deadline." },
  {
    pattern: /^(53100|ENOSPC)$/,
    code: "STORE_FULL",
    says: "The database server's disk is full.",
    remedy: "Free some space on the server, or give it a larger disk; what was acknowledged is intact.",
  },
  {
    pattern: /^(53200|54000)$/,
    code: "STORE_FULL",
    says: "The statement is more than the database server can hold.",
    remedy: "Append less at a time, or give the server more memory.",
  },
  { pattern: /^53/, code: "STORE_OVERLOADED", says: "The database server takes no more connections." },
  {
    pattern: /^25006$/,
    code: "STORE_READ_ONLY",
    says: "The database can only be read here.",
    remedy: "Use the URL of the primary; a replica serves lists, searches and exports.",
  },
  { pattern: /^42501$/, code: "STORE_READ_ONLY", says: "The user is not allowed to do that.", remedy: grants },
  {
    pattern: /^(28|3D000|3F000|42P01|42883)/,
    code: "STORE_NOT_FOUND",
    says: "The database, its schema or its user is not there.",
  },
  {
    pattern: /^42(P07|710|723)$/,
    code: "STORE_FOREIGN",
    says: "The schema holds objects of another program under names that the store needs.",
    remedy: "Name another schema for the store; nothing was changed.",
  },
  {
    pattern: /^TL003$/,
    code: "STORE_UNSUPPORTED",
    says: "The server runs with fsync off.",
    remedy: "Turn fsync on in the server's configuration: without it no write is durable.",
  },
  {
    pattern: /^XX00[12]$/,
    code: "STORE_CORRUPT",
    says: "The database says that it is damaged.",
    remedy: damageRemedy,
  },
  { pattern: /^58/, code: "STORE_IO", says: "The operating system of the database server refused an operation." },
  {
    pattern: /^(08|57P|57014|25P0[34]|E[A-Z]+$)/,
    code: "STORE_UNREACHABLE",
    says: "The database server cannot be reached, or broke off.",
  },
];

const brokeOff: Meaning = { pattern: /^$/, code: "STORE_UNREACHABLE", says: "The connection broke off." };

/** A server reports these codes also when it goes down itself, for example because it cannot write or flush its log. */
const ofPanics = /^(42501|53|58|XX)/;

/**
 * Tests whether a server with this answer has undone the statement. The ends of servers and connections are excluded. A
 * server that panics may have the commit in its log, and finds it there after its restart. The severity is in the
 * server's language. An unknown one counts as a panic if the code allows it.
 */
export function isAnswer(error: unknown): boolean {
  const code = nativeCode(error);
  if (!/^[0-9A-Z]{5}$/.test(code) || /^(08|57P|40003)/.test(code)) return false;
  const { severity } = error as { readonly severity?: unknown };
  return severity === "ERROR" || severity === "FATAL" || (severity !== undefined && !ofPanics.test(code));
}

/** Tests whether the driver knew before sending that the connection had ended. */
export function isUnsent(error: unknown): boolean {
  return nativeCode(error) === "" && messageOf(error).endsWith("is not queryable");
}

/** The name is missing or exists already, because the pooler does not keep names with a connection. */
export function isLostName(error: unknown): boolean {
  return isAnswer(error) && /^(26000|42P05)$/.test(nativeCode(error));
}

/** The server undid the transaction because of a deadlock or a serialization failure. */
export function isVictim(error: unknown): boolean {
  return isAnswer(error) && /^40(P01|001)$/.test(nativeCode(error));
}

/** The driver's pool throws this for a caller that waited in its queue. */
export function isQueueTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === "timeout exceeded when trying to connect";
}

export function isPoolEnded(error: unknown): boolean {
  return error instanceof Error && error.message === "Cannot use a pool after calling end on the pool";
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : "";
}

/** Tests whether a retry may help, because the server is starting, full or unreachable. */
export function isPassing(error: unknown): boolean {
  const code = nativeCode(error);
  if (code === "") return /terminated|timeout|ended|closed|not queryable/i.test(messageOf(error));
  return /^(08|57P0|53300|E(CONN|PIPE|TIMEDOUT|HOST|NET|AI_AGAIN))/.test(code) || code === "EAI_AGAIN";
}

/**
 * States whether the server answered the last statement of a connection, which is given back with this error. It is
 * undefined for an error that does not tell, such as the caller's own abort.
 */
export function hasAnswered(error: unknown): boolean | undefined {
  if (error === undefined || isAnswer(error)) return true;
  const isSilent = ThroughlineError.isInstance(error)
    ? error.code === "STORE_UNREACHABLE"
    : isPassing(error) && !isUnsent(error);
  return isSilent ? false : undefined;
}

/** Converts an error that occurred before there was a connection. */
export function connectError(error: unknown, place: string): ThroughlineError {
  const known = storeError(error, "not-applied", place);
  if (known.code !== "INTERNAL") return known;
  const text = messageOf(error);
  const given = { outcome: "not-applied", details: known.details, cause: error } as const;
  if (text.startsWith("SASL"))
    return new ThroughlineError("STORE_NOT_FOUND", `The server asks for a password. (${place}: ${text})`, {
      ...given,
      remedy: "Put the user's password into the URL, its special characters percent-encoded, or into PGPASSWORD.",
    });
  return new ThroughlineError("STORE_UNREACHABLE", `The server takes no such connection. (${place}: ${text})`, {
    ...given,
    remedy: "Check what the URL says behind the question mark, of TLS above all, against what the server offers.",
  });
}

/**
 * Converts an error of the server, the driver or the operating system. The result never repeats the password of the
 * URL.
 */
export function storeError(error: unknown, outcome: WriteOutcome, place: string): ThroughlineError {
  if (ThroughlineError.isInstance(error)) return error;
  const native = nativeCode(error);
  const details = { place, nativeCode: native };
  const text = causeText(error);
  const meaning =
    (/^(XX000|42P01)$/.test(native) ? ofCitus.find(({ pattern }) => pattern.test(text)) : undefined) ??
    meanings.find(({ pattern }) => pattern.test(native)) ??
    (native === "" && isPassing(error) ? brokeOff : undefined);
  if (meaning === undefined)
    return new ThroughlineError("INTERNAL", `The PostgreSQL store failed: ${text}`, { outcome, details, cause: error });
  const { code, says, remedy } = meaning;
  const advice = typeof remedy === "function" ? remedy(text) : remedy;
  const given = { outcome, details, cause: error, ...(advice === undefined ? {} : { remedy: advice }) };
  return new ThroughlineError(code, `${says} (${place}: ${text})`, given);
}
