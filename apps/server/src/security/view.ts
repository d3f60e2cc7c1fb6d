import { createAgentScope, type SessionRef, type SessionStore } from "@throughline/core";
import { agentOfKey, assertNamespace, refused, sessionNotFound } from "@throughline/core/internal";
import { marksKeyStart, marksNamespace } from "@throughline/transfer/internal";
import type { Scope } from "./scopes.ts";
import { reservedNamespaces, type TokenInfo } from "./token-store.ts";

/** What one request may see: the sessions of its namespace and of the token's agents. */
export interface View {
  readonly token: TokenInfo;
  readonly namespace: string;
  /** A text for what the view may see, which seals cursors. */
  readonly identity: string;
  /** @throws {ThroughlineError} FORBIDDEN */
  require(scope: Scope): void;
  /**
   * The store as far as the view sees an agent. Without an agent: of all agents, for lists.
   * @throws {ThroughlineError} SESSION_NOT_FOUND for an agent that it does not see, INPUT_INVALID where one must be named
   */
  store(agentId: string | undefined): SessionStore;
  /** Throws SESSION_NOT_FOUND, as for a key that is not there, unless the view sees the session's agent. */
  assertSeen(ref: SessionRef): void;
  /** The only agent that the view sees; null when it sees several. */
  readonly onlyAgent: string | null;
  /**
   * The view is of what an import notes about its sources: a namespace beside the token's own, of which it sees these
   * notes, by these operations only.
   */
  readonly isOfImports: boolean;
}

/** What an import asks of its notes. A run's own note goes when the import is done, which takes no right to delete. */
const importOperations: ReadonlyMap<string, Scope> = new Map([
  ["listSessions", "read"],
  ["getSession", "read"],
  ["replaceEntry", "write"],
  ["removeSession", "write"],
]);

/** The scope that an operation needs in a view. @throws {ThroughlineError} FORBIDDEN */
export function scopeIn(view: View, { id, scope }: { readonly id: string; readonly scope: Scope }): Scope {
  if (!view.isOfImports) return scope;
  const needed = importOperations.get(id);
  if (needed !== undefined) return needed;
  throw refused("FORBIDDEN", "The token does not reach this namespace.", { needs: "namespace" });
}

/** A list of notes of imports holds nothing else. @throws {ThroughlineError} FORBIDDEN */
export function assertListed(
  view: View,
  { agent, prefix = "" }: { readonly agent?: string; readonly prefix?: string },
): void {
  if (!view.isOfImports || (agent === "main" && prefix.startsWith(marksKeyStart))) return;
  throw refused("FORBIDDEN", "The token does not reach this namespace.", { needs: "namespace" });
}

/**
 * @throws {ThroughlineError} FORBIDDEN for a namespace that is not the token's, NAMESPACE_INVALID
 */
export function createView(store: SessionStore, token: TokenInfo, named: string | undefined): View {
  const namespace = namespaceOf(token, named);
  const { agents } = token;
  const isOfImports = namespace !== token.namespace && token.namespace !== "*";
  const scopes = new Map<string, SessionStore>();
  const isSeen = (agentId: string): boolean => agents === "*" || agents.includes(agentId);
  return {
    token,
    namespace,
    identity: JSON.stringify([namespace, agents]),
    onlyAgent: agents !== "*" && agents.length === 1 ? (agents[0] ?? null) : null,
    require(scope) {
      if (token.scopes.includes(scope)) return;
      throw refused("FORBIDDEN", `The token has no scope "${scope}".`, { needs: scope, scopes: token.scopes });
    },
    store(agentId) {
      if (agents === "*") return store;
      if (agentId === undefined)
        throw refused("INPUT_INVALID", "The token sees several agents: name one with ?agent=.", { agents });
      if (!isSeen(agentId)) throw sessionNotFound({ namespace, agentId, key: "" });
      const scoped = scopes.get(agentId) ?? createAgentScope(store, { agentId, namespace });
      scopes.set(agentId, scoped);
      return scoped;
    },
    isOfImports,
    assertSeen(ref) {
      if (isOfImports && (ref.agentId !== "main" || !ref.key.startsWith(marksKeyStart))) throw sessionNotFound(ref);
      if (agents === "*") return;
      const named = agentOfKey(ref.key);
      if (isSeen(ref.agentId) && (named === null || named === ref.agentId)) return;
      throw sessionNotFound(ref);
    },
  };
}

function namespaceOf({ namespace: own, agents }: TokenInfo, named: string | undefined): string {
  const namespace = named ?? (own === "*" ? "" : own);
  const isOwnImports = agents === "*" && own !== "*" && namespace === marksNamespace(own);
  if (own !== "*" && namespace !== own && !isOwnImports)
    throw refused("FORBIDDEN", "The token does not reach this namespace.", { needs: "namespace" });
  if (reservedNamespaces.has(namespace))
    throw refused("FORBIDDEN", "The namespace belongs to the server.", { needs: "namespace" });
  assertNamespace(namespace);
  return namespace;
}
