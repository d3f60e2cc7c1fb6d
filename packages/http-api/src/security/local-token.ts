import { refused } from "@throughline/core/internal";
import { isValidToken, type TokenInfo, type TokenRights, type TokenStore } from "./token-store.ts";
import { isSameDigest, newToken, noDigest, parseToken } from "./token-text.ts";

/** Is a token that ends with its process: no store and no file has it. */
export interface LocalToken {
  readonly info: TokenInfo;
  readonly text: string;
  readonly digest: string;
}

export function createLocalToken(rights: TokenRights, nowMs: number): LocalToken {
  const { id, text, digest } = newToken();
  const info = { mode: null, ...rights, id, label: null, createdAtMs: nowMs, revokedAtMs: null };
  return { info, text, digest };
}

/** Returns a store that knows one token. A token of the persistent store gives no access through this process. */
export function localTokens({ info, digest }: LocalToken, nowMs: () => number): TokenStore {
  const refuse = (): never => {
    throw refused("FORBIDDEN", "This server keeps no tokens.", {});
  };
  return {
    create: async () => refuse(),
    adopt: async () => refuse(),
    revoke: async () => refuse(),
    list: async () => [info],
    refresh: async () => {},
    namespaces: () => new Set([info.namespace]),
    isValid: (id) => id === info.id && isValidToken(info, nowMs()),
    find: (text) => (isSameDigest(parseToken(text)?.digest ?? noDigest, digest) ? info : null),
  };
}
