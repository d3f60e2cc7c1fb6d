import type { IncomingMessage } from "node:http";
import type { SessionStore } from "@throughline/core";
import { refused, systemClock } from "@throughline/core/internal";
import type { MemoryScope } from "@throughline/mcp";
import {
  assertHost,
  assertOrigin,
  createRateLimits,
  createTokenStore,
  defaultLimits,
  isValidToken,
  type TokenInfo,
  type TokenStore,
} from "@throughline/http-api/internal";

/** Limits how often the tokens are read again for changes by other processes. */
const refreshEveryMs = 500;

export interface Admission {
  /** True if a token exists that admits a client. */
  hasToken(): Promise<boolean>;
  /**
   * Returns the scope that both the configuration and the sender's token allow.
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
    // A known token is read again too, because it may have been revoked.
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
