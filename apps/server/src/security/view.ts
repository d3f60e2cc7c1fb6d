import {
  createAgentScope,
  parseSessionKey,
  type SessionRef,
  type SessionStore,
  ThroughlineError,
} from "@throughline/core";
import { assertNamespace, refused, sessionNotFound } from "@throughline/core/store";
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
}

/**
 * @throws {ThroughlineError} FORBIDDEN for a namespace that is not the token's, NAMESPACE_INVALID
 */
export function createView(store: SessionStore, token: TokenInfo, named: string | undefined): View {
  const namespace = namespaceOf(token, named);
  const { agents } = token;
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
    assertSeen(ref) {
      if (agents === "*") return;
      const named = agentOfKey(ref.key);
      if (isSeen(ref.agentId) && (named === null || named === ref.agentId)) return;
      throw sessionNotFound(ref);
    },
  };
}

function namespaceOf({ namespace: own }: TokenInfo, named: string | undefined): string {
  const namespace = named ?? (own === "*" ? "" : own);
  if (own !== "*" && namespace !== own)
    throw refused("FORBIDDEN", "The token does not reach this namespace.", { needs: "namespace" });
  if (reservedNamespaces.has(namespace))
    throw refused("FORBIDDEN", "The namespace belongs to the server.", { needs: "namespace" });
  assertNamespace(namespace);
  return namespace;
}

/** The agent that a key names; null for one that names none, and for one that no session has. */
function agentOfKey(key: string): string | null {
  try {
    return parseSessionKey(key).agentId;
  } catch (error) {
    if (ThroughlineError.isInstance(error)) return null;
    throw error;
  }
}
