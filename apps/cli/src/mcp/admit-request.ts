import type { IncomingMessage } from "node:http";
import type { SessionStore } from "@throughline/core";
import { refused, systemClock } from "@throughline/core/internal";
import type { MemoryScope } from "@throughline/mcp";
import { createTokenStore, defaultLimits, isValidToken, type TokenInfo, type TokenStore } from "@throughline/server";
import { assertHost, assertOrigin, createRateLimits } from "@throughline/server/internal";

/** Between two looks for tokens that were made or revoked elsewhere. */
const refreshEveryMs = 500;

/** Decides on requests of MCP clients by the tokens of the store. */
export interface Admission {
  /** Whether there is a token that lets a client in. */
  hasToken(): Promise<boolean>;
  /**
   * What the sender of a request may see: what the configuration and its token both allow.
   * @throws {ThroughlineError} HOST_REFUSED, ORIGIN_REFUSED, INPUT_INVALID, UNAUTHENTICATED, FORBIDDEN, RATE_LIMITED
   */
  admit(request: IncomingMessage): Promise<MemoryScope>;
}

export function createAdmission(openStore: () => Promise<SessionStore>, scope: MemoryScope): Admission {
  const known = new WeakMap<SessionStore, { readonly tokens: TokenStore; refreshedAtMs: number }>();
  const current = async (): Promise<TokenStore> => {
    const store = await openStore();
    const entry = known.get(store) ?? {
      tokens: createTokenStore(store, () => systemClock.nowMs()),
      refreshedAtMs: -Infinity,
    };
    known.set(store, entry);
    // Also a token that is known is looked for: it may have been revoked.
    const nowMs = performance.now();
    if (nowMs - entry.refreshedAtMs >= refreshEveryMs) {
      await entry.tokens.refresh();
      entry.refreshedAtMs = nowMs;
    }
    return entry.tokens;
  };
  const rates = createRateLimits(defaultLimits, () => performance.now());
  const isUsable = (token: TokenInfo): boolean => isValidToken(token, systemClock.nowMs());
  return {
    hasToken: async () =>
      (await (await current()).list()).some((token) => isUsable(token) && token.scopes.includes("read")),
    async admit(request) {
      const ownSite = { hosts: [], origins: [] };
      assertHost(request, ownSite);
      assertOrigin(request, ownSite);
      const { authorization } = request.headers;
      const [, text = ""] = /^Bearer +([\w-]+) *$/i.exec(authorization ?? "") ?? [];
      const token = (await current()).find(text);
      if (token === null || !isUsable(token)) {
        const { isOver, retryAfterMs } =
          authorization === undefined
            ? { isOver: false, retryAfterMs: 0 }
            : rates.failed(request.socket.remoteAddress ?? "");
        if (isOver)
          throw refused("RATE_LIMITED", "The address has shown too many tokens that are not valid.", { retryAfterMs });
        throw refused("UNAUTHENTICATED", "The request has no valid token.");
      }
      return scopeOf(token, scope);
    },
  };
}

function scopeOf({ namespace, agents, scopes }: TokenInfo, scope: MemoryScope): MemoryScope {
  if (!scopes.includes("read")) throw refused("FORBIDDEN", 'The token has no scope "read".');
  if (namespace !== "*" && namespace !== scope.namespace)
    throw refused("FORBIDDEN", "The token does not reach the namespace of this server.");
  const seen = agents === "*" ? scope.agents : scope.agents === "*" ? agents : common(scope.agents, agents);
  if (seen !== "*" && seen.length === 0) throw refused("FORBIDDEN", "The token reaches no agent of this server.");
  return { ...scope, agents: seen, allowNotes: scope.allowNotes && scopes.includes("write") };
}

function common(one: readonly string[], other: readonly string[]): readonly string[] {
  return one.filter((agentId) => other.includes(agentId));
}
