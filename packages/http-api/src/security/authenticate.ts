import { refused } from "@throughline/core/internal";
import { isValidToken, type TokenInfo, type TokenStore } from "./token-store.ts";

/** Limits how often an unknown token triggers a refresh, so that invalid tokens cannot load the store. */
const refreshEveryMs = 500;

export interface Authenticator {
  /**
   * Returns the token of an authorization header.
   * @throws {ThroughlineError} UNAUTHENTICATED, with the same message for every cause
   */
  authenticate(authorization: string | undefined): Promise<TokenInfo>;
}

export function createAuthenticator(
  tokens: TokenStore,
  clock: { readonly nowMs: () => number; readonly monotonicMs: () => number },
): Authenticator {
  let refreshedAtMs = -Infinity;
  /** Concurrent requests share one refresh, so that many unknown tokens cause a single read. */
  let looking: Promise<void> | null = null;
  return {
    async authenticate(authorization) {
      const [, text = ""] = /^Bearer +([\w-]+) *$/i.exec(authorization ?? "") ?? [];
      let token = tokens.find(text);
      if (token === null && (looking !== null || clock.monotonicMs() - refreshedAtMs >= refreshEveryMs)) {
        // Another process may have created the token a moment ago. A wrong secret waits as long as an unknown id, so
        // that timing reveals no ids.
        if (looking === null) refreshedAtMs = clock.monotonicMs();
        looking ??= tokens.refresh().finally(() => (looking = null));
        await looking;
        token = tokens.find(text);
      }
      if (token === null || !isValidToken(token, clock.nowMs()))
        throw refused("UNAUTHENTICATED", "The request has no valid token.", {});
      return token;
    },
  };
}
