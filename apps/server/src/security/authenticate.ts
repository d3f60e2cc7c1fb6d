import { refused } from "@throughline/core/internal";
import { isValidToken, type TokenInfo, type TokenStore } from "./token-store.ts";

/** Between two looks for tokens that were made elsewhere. */
const refreshEveryMs = 500;

export interface Authenticator {
  /**
   * The token of an authorization header.
   * @throws {ThroughlineError} UNAUTHENTICATED, in the same words whatever is wrong
   */
  authenticate(authorization: string | undefined): Promise<TokenInfo>;
}

export function createAuthenticator(
  tokens: TokenStore,
  clock: { readonly nowMs: () => number; readonly monotonicMs: () => number },
): Authenticator {
  let refreshedAtMs = -Infinity;
  /** The look that runs; requests that come meanwhile wait for it as well. */
  let looking: Promise<void> | null = null;
  return {
    async authenticate(authorization) {
      const [, text = ""] = /^Bearer +([\w-]+) *$/i.exec(authorization ?? "") ?? [];
      let token = tokens.find(text);
      if (token === null && (looking !== null || clock.monotonicMs() - refreshedAtMs >= refreshEveryMs)) {
        // It may have been made a moment ago by another process. A wrong secret is looked for as long as an unknown id.
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
