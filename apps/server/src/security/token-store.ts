import { hasErrorCode, openSession, type SessionRef, type SessionStore, type StoredRecord } from "@throughline/core";
import { customRecord } from "@throughline/core";
import { refused, systemRandom } from "@throughline/core/internal";
import { type GatewayMode, isGatewayMode } from "../gateway/gateway-options.ts";
import { isScope, type Scope } from "./scopes.ts";
import { isSameDigest, newToken, noDigest, parseToken } from "./token-text.ts";

/** What a token may reach. */
export interface TokenRights {
  /** The tenant; `*`: each request names one. */
  readonly namespace: string;
  readonly agents: readonly string[] | "*";
  readonly scopes: readonly Scope[];
  /** Null: it never expires. */
  readonly expiresAtMs: number | null;
  /** What the gateway does with its calls; null: what the upstream says. @default null */
  readonly mode?: GatewayMode | null;
}

/** A token as it is listed. Its secret is known to nobody but its owner. */
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

/** Namespaces of the server's own, which no token reaches. */
export const reservedNamespaces: ReadonlySet<string> = new Set([
  "throughline.tokens",
  "throughline.audit",
  "throughline.gateway",
]);

/** The session of the tokens. */
export const tokensRef: SessionRef = { namespace: "throughline.tokens", agentId: "main", key: "tokens" };
const ref = tokensRef;
const recordType = "throughline-server.token";

/** Whether a token is neither revoked nor past its end. */
export function isValidToken({ revokedAtMs, expiresAtMs }: TokenInfo, nowMs: number): boolean {
  return revokedAtMs === null && (expiresAtMs === null || expiresAtMs > nowMs);
}

export interface TokenStore {
  /** Makes a token; its text is in nothing that is kept. */
  create(rights: TokenRights, label: string | null): Promise<{ readonly info: TokenInfo; readonly text: string }>;
  /** Takes a token that was made elsewhere, for example from a mounted secret. Does nothing when it is known. */
  adopt(text: string, rights: TokenRights, label: string | null): Promise<TokenInfo>;
  /** @throws {ThroughlineError} INPUT_INVALID for an id that there is none of */
  revoke(id: string): Promise<TokenInfo>;
  list(): Promise<readonly TokenInfo[]>;
  /** Reads what other processes made and revoked. */
  refresh(): Promise<void>;
  /** Namespaces of the tokens that are valid, as far as they are known here. */
  namespaces(): ReadonlySet<string>;
  /** Whether the token with this id is valid, as far as is known here. */
  isValid(id: string): boolean;
  /** The token with this text as far as is known here, also one that has expired or was revoked; null for none. */
  find(text: string): TokenInfo | null;
}

/**
 * The tokens of a store: an append-only session that every node reads. `nowMs` is the time that new tokens state.
 * Reads nothing before it is asked.
 */
export function createTokenStore(store: SessionStore, nowMs: () => number): TokenStore {
  const tokens = new Map<string, KeptToken>();
  let lastSeq = 0;
  let reading: Promise<void> | null = null;

  const refresh = (): Promise<void> => {
    reading ??= readOn().finally(() => (reading = null));
    return reading;
  };
  const readOn = async (): Promise<void> => {
    try {
      for await (const page of store.read(ref, { afterSeq: lastSeq }))
        for (const record of page.records) {
          apply(tokens, record);
          lastSeq = record.seq;
        }
    } catch (error) {
      // Before the first token there is no such session.
      if (!hasErrorCode(error, "SESSION_NOT_FOUND")) throw error;
    }
  };
  const append = async (data: Readonly<Record<string, unknown>>): Promise<void> => {
    await openSession(store, ref, { random: systemRandom });
    await store.append(ref, [customRecord(recordType, data)]);
    await refresh();
  };
  const known = (id: string): TokenInfo => {
    const token = tokens.get(id);
    if (token === undefined) throw refused("INPUT_INVALID", `There is no token ${JSON.stringify(id)}.`, { id });
    return infoOf(token);
  };

  return {
    async create(rights, label) {
      const { id, text, digest } = newToken();
      await append({ action: "create", id, digest, label, ...rights, createdAtMs: nowMs() });
      return { info: known(id), text };
    },
    async adopt(text, rights, label) {
      const parsed = parseToken(text);
      if (parsed === null) throw refused("INPUT_INVALID", "The text is no token: a token is tl_ID_SECRET.");
      await refresh();
      if (!tokens.has(parsed.id)) await append({ action: "create", ...parsed, label, ...rights, createdAtMs: nowMs() });
      return known(parsed.id);
    },
    async revoke(id) {
      await refresh();
      if (known(id).revokedAtMs === null) await append({ action: "revoke", id, revokedAtMs: nowMs() });
      return known(id);
    },
    async list() {
      await refresh();
      return Array.from(tokens.values(), infoOf);
    },
    refresh,
    namespaces() {
      const valid = Array.from(tokens.values()).filter((token) => isValidToken(token, nowMs()));
      // A token of all namespaces names one with each request; the one without a name is always there.
      return new Set(valid.map(({ namespace }) => (namespace === "*" ? "" : namespace)));
    },
    isValid(id) {
      const token = tokens.get(id);
      return token !== undefined && isValidToken(token, nowMs());
    },
    find(text) {
      const parsed = parseToken(text);
      const token = parsed === null ? undefined : tokens.get(parsed.id);
      const isSame = isSameDigest(parsed?.digest ?? noDigest, token?.digest ?? noDigest);
      return token !== undefined && isSame ? infoOf(token) : null;
    },
  };
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
  const { namespace, agents, scopes, label, expiresAtMs, mode, createdAtMs } = data;
  tokens.set(id, {
    id,
    digest: data["digest"],
    label: typeof label === "string" ? label : null,
    namespace: typeof namespace === "string" ? namespace : "",
    agents: agents === "*" ? "*" : Array.isArray(agents) ? agents.filter((each) => typeof each === "string") : [],
    // A scope of a later version gives no right here.
    scopes: Array.isArray(scopes) ? scopes.filter((each) => typeof each === "string" && isScope(each)) : [],
    expiresAtMs: typeof expiresAtMs === "number" ? expiresAtMs : null,
    // A mode of a later version is none that this one can keep to: the upstream's holds.
    mode: isGatewayMode(mode) ? mode : null,
    createdAtMs: Number(createdAtMs),
    revokedAtMs: null,
  });
}
