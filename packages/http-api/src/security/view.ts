import { createAgentScope, type SessionRef, type SessionStore } from "@throughline/core";
import { agentOfKey, assertNamespace, refused, sessionNotFound } from "@throughline/core/internal";
import type { Scope } from "./scopes.ts";
import { reservedNamespaces, type TokenInfo } from "./token-store.ts";

export interface View {
  readonly token: TokenInfo;
  readonly namespace: string;
  /** Identifies the rights of the view. Cursors are sealed with it, so that another view cannot use them. */
  readonly identity: string;
  /** @throws {ThroughlineError} FORBIDDEN */
  require(scope: Scope): void;
  /** States whether the token may read. Without it, answers to writes hold nothing of the entry of a session. */
  readonly isReader: boolean;
  /**
   * Returns the store limited to one agent. Without an agent it covers all agents, as lists need.
   * @throws {ThroughlineError} SESSION_NOT_FOUND for an agent outside the view, INPUT_INVALID when an agent must be
   *   named
   */
  store(agentId: string | undefined): SessionStore;
  /** Returns whether the token reaches sessions of an agent. */
  isSeen(agentId: string): boolean;
  /**
   * Throws SESSION_NOT_FOUND for a session outside the view, exactly as for a missing session, so that a token cannot
   * probe for keys.
   */
  assertSeen(ref: SessionRef): void;
  /** Is null when the view has several agents, so that a request must name one. */
  readonly onlyAgent: string | null;
}

/** @throws {ThroughlineError} FORBIDDEN for a namespace that is not the token's, NAMESPACE_INVALID */
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
    isReader: token.scopes.includes("read"),
    isSeen,
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
