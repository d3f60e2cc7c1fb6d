import type { Scope } from "./scopes.ts";
import type { TokenInfo } from "./token-store.ts";

/** Describes who sends a request and what it may do, when the host server authenticates its users itself. */
export interface ApiCaller {
  /** Identifies the caller in limits and in the audit log: 1 to 128 of A-Z, a-z, 0-9 and `.:@_-`. */
  readonly id: string;
  /** Holds the caller's sessions. With `*`, each request names its namespace in `throughline-namespace`. */
  readonly namespace: string;
  /** Lists the agents whose sessions the caller reaches. */
  readonly agents: readonly string[] | "*";
  /** Lists rights. `metrics` allows `/metrics`, `admin` tokens, the audit log and draining. */
  readonly scopes: readonly ("read" | "write" | "delete" | "metrics" | "admin")[];
}

/** Separates the ids of callers from those of tokens. */
const idStart = "caller:";

/** Returns whether the id of a request is that of a caller, which the host server authenticates. */
export function isCallerId(id: string): boolean {
  return id.startsWith(idStart);
}

/** Gives a caller the form of a token, whose rights the routes check. */
export function tokenOfCaller({ id, namespace, agents, scopes }: ApiCaller): TokenInfo {
  // The id is part of log lines and audit events, where other characters could forge a line.
  if (!/^[A-Za-z0-9.:@_-]{1,128}$/.test(id))
    throw new TypeError("The id of a caller must be 1 to 128 of A-Z, a-z, 0-9 and .:@_-.");
  const rights: { readonly agents: TokenInfo["agents"]; readonly scopes: readonly Scope[] } = { agents, scopes };
  const times = { createdAtMs: 0, expiresAtMs: null, revokedAtMs: null };
  return { id: `${idStart}${id}`, label: null, namespace, mode: null, ...rights, ...times };
}
