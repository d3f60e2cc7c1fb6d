import {
  hasErrorCode,
  openSession,
  type SessionRef,
  type SessionStore,
  type StoredRecord,
  customRecord,
} from "@throughline/core";
import { refused, systemRandom } from "@throughline/core/internal";
import { type GatewayMode, isGatewayMode } from "@throughline/gateway/internal";
import { isScope, type Scope } from "./scopes.ts";
import { isSameDigest, newToken, noDigest, parseToken } from "./token-text.ts";

export interface TokenRights {
  /** Names the tenant. With `*`, each request names its namespace. */
  readonly namespace: string;
  readonly agents: readonly string[] | "*";
  readonly scopes: readonly Scope[];
  /** Is null for a token that never expires. */
  readonly expiresAtMs: number | null;
  /** Sets the gateway mode of the token's calls; null uses the mode of the upstream. @default null */
  readonly mode?: GatewayMode | null;
  /** Limits the requests of the token in a minute; null: no limit. @default the limit of the server */
  readonly requestsPerMinute?: number | null;
}

/** Lacks the secret, because only the token's owner has it. */
export interface TokenInfo extends TokenRights {
  readonly id: string;
  readonly label: string | null;
  readonly mode: GatewayMode | null;
  readonly createdAtMs: number;
  readonly revokedAtMs: number | null;
}

interface KeptToken extends TokenInfo {
  readonly digest: string;
}

/** These namespaces hold the server's own data, so no token may reach them. */
export const reservedNamespaces: ReadonlySet<string> = new Set([
  "throughline.tokens",
  "throughline.audit",
  "throughline.gateway",
]);

export const tokensRef: SessionRef = { namespace: "throughline.tokens", agentId: "main", key: "tokens" };
const ref = tokensRef;
const recordType = "throughline-server.token";

export function isValidToken({ revokedAtMs, expiresAtMs }: TokenInfo, nowMs: number): boolean {
  return revokedAtMs === null && (expiresAtMs === null || expiresAtMs > nowMs);
}

export interface TokenStore {
  /** Creates a token. Its text is only in the result, because the store keeps a digest. */
  create(rights: TokenRights, label: string | null): Promise<{ readonly info: TokenInfo; readonly text: string }>;
  /**
   * Accepts a token that was created elsewhere, for example in a mounted secret. A registered id is left unchanged, so
   * every start may call this.
   */
  adopt(text: string, rights: TokenRights, label: string | null): Promise<TokenInfo>;
  /** @throws {ThroughlineError} INPUT_INVALID for an unknown id */
  revoke(id: string): Promise<TokenInfo>;
  list(): Promise<readonly TokenInfo[]>;
  /** Other processes create and revoke tokens too, so this process has to read their changes. */
  refresh(): Promise<void>;
  /** Covers only the tokens that this process has read so far. */
  namespaces(): ReadonlySet<string>;
  /** Returns whether the token is valid. The answer may lag behind other processes until the next refresh. */
  isValid(id: string): boolean;
  /**
   * Returns the token with this text, even when it is expired or revoked, because the caller checks that. Null when
   * this process has not read such a token.
   */
  find(text: string): TokenInfo | null;
}

/**
 * Stores tokens in an append-only session that every node reads. It reads nothing before the first call. `nowMs` is the
 * clock for the creation time of tokens.
 */
export function createTokenStore(store: SessionStore, nowMs: () => number): TokenStore {
  const log = new TokenLog(store);
  return {
    async create(rights, label) {
      const { id, text, digest } = newToken();
      await log.append({ action: "create", id, digest, label, ...rights, createdAtMs: nowMs() });
      return { info: log.known(id), text };
    },
    async adopt(text, rights, label) {
      const parsed = parseToken(text);
      if (parsed === null) throw refused("INPUT_INVALID", "The text is no token: a token is tl_ID_SECRET.");
      await log.refresh();
      if (!log.tokens.has(parsed.id))
        await log.append({ action: "create", ...parsed, label, ...rights, createdAtMs: nowMs() });
      return log.known(parsed.id);
    },
    async revoke(id) {
      await log.refresh();
      if (log.known(id).revokedAtMs === null) await log.append({ action: "revoke", id, revokedAtMs: nowMs() });
      return log.known(id);
    },
    async list() {
      await log.refresh();
      return Array.from(log.tokens.values(), infoOf);
    },
    refresh: () => log.refresh(),
    namespaces() {
      const valid = Array.from(log.tokens.values()).filter((token) => isValidToken(token, nowMs()));
      // A token for all namespaces names one per request, so only the namespace without a name is certain to exist.
      return new Set(valid.map(({ namespace }) => (namespace === "*" ? "" : namespace)));
    },
    isValid(id) {
      const token = log.tokens.get(id);
      return token !== undefined && isValidToken(token, nowMs());
    },
    find(text) {
      const parsed = parseToken(text);
      const token = parsed === null ? undefined : log.tokens.get(parsed.id);
      const isSame = isSameDigest(parsed?.digest ?? noDigest, token?.digest ?? noDigest);
      return token !== undefined && isSame ? infoOf(token) : null;
    },
  };
}

/** Holds the tokens that this process has read from the session. */
class TokenLog {
  readonly tokens = new Map<string, KeptToken>();
  readonly #store: SessionStore;
  #lastSeq = 0;
  #reading: Promise<void> | null = null;

  constructor(store: SessionStore) {
    this.#store = store;
  }

  refresh(): Promise<void> {
    this.#reading ??= this.#readOn().finally(() => (this.#reading = null));
    return this.#reading;
  }

  async append(data: Readonly<Record<string, unknown>>): Promise<void> {
    await openSession(this.#store, ref, { random: systemRandom });
    await this.#store.append(ref, [customRecord(recordType, data)]);
    await this.refresh();
  }

  /** @throws {ThroughlineError} INPUT_INVALID for an unknown id */
  known(id: string): TokenInfo {
    const token = this.tokens.get(id);
    if (token === undefined) throw refused("INPUT_INVALID", `There is no token ${JSON.stringify(id)}.`, { id });
    return infoOf(token);
  }

  async #readOn(): Promise<void> {
    try {
      for await (const page of this.#store.read(ref, { afterSeq: this.#lastSeq }))
        for (const record of page.records) {
          apply(this.tokens, record);
          this.#lastSeq = record.seq;
        }
    } catch (error) {
      // The session exists only after the first token was created, so its absence is not an error.
      if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
    }
  }
}

function infoOf({ digest: _digest, ...info }: KeptToken): TokenInfo {
  return info;
}

function apply(tokens: Map<string, KeptToken>, { record }: StoredRecord): void {
  if (record["customType"] !== recordType) return;
  const data = record["data"] as Readonly<Record<string, unknown>>;
  const { action, id } = data;
  if (typeof id !== "string") return;
  const earlier = tokens.get(id);
  if (action === "revoke" && earlier !== undefined)
    tokens.set(id, { ...earlier, revokedAtMs: Number(data["revokedAtMs"]) });
  if (action !== "create" || earlier !== undefined || typeof data["digest"] !== "string") return;
  const { namespace, agents, scopes, label, expiresAtMs, mode, createdAtMs, requestsPerMinute } = data;
  const isLimit =
    requestsPerMinute === null || (Number.isSafeInteger(requestsPerMinute) && Number(requestsPerMinute) > 0);
  tokens.set(id, {
    id,
    digest: data["digest"],
    label: typeof label === "string" ? label : null,
    namespace: typeof namespace === "string" ? namespace : "",
    agents: agents === "*" ? "*" : Array.isArray(agents) ? agents.filter((each) => typeof each === "string") : [],
    // A scope of a later version is unknown here and must not grant a right.
    scopes: Array.isArray(scopes) ? scopes.filter((each) => typeof each === "string" && isScope(each)) : [],
    expiresAtMs: typeof expiresAtMs === "number" ? expiresAtMs : null,
    // A mode of a later version cannot be followed here, so the mode of the upstream applies.
    mode: isGatewayMode(mode) ? mode : null,
    ...(isLimit ? { requestsPerMinute: requestsPerMinute as number | null } : {}),
    createdAtMs: Number(createdAtMs),
    revokedAtMs: null,
  });
}
