import { parseStoreUrl } from "@throughline/config";
import { ThroughlineError } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import {
  createAuditLog,
  createTokenStore,
  isScope,
  isValidToken,
  scopes as allScopes,
} from "@throughline/http-api/internal";
import type { TokenInfo, TokenRights } from "@throughline/http-api/internal";
import { isGatewayMode } from "@throughline/server";
import { tokenJson } from "@throughline/http-api/internal/json";
import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";
import { createAskServer } from "../server/ask-server.ts";
import { timeText } from "../time-text.ts";

interface TokenOptions {
  readonly scopes?: string;
  readonly agents?: string;
  readonly allNamespaces?: boolean;
  readonly expires?: number;
  readonly mode?: string;
  readonly all?: boolean;
}

/** Covers tokens in a local store and tokens of a server. */
interface Tokens {
  list(): Promise<readonly TokenInfo[]>;
  create(rights: TokenRights, label: string): Promise<{ readonly info: TokenInfo; readonly text: string }>;
  revoke(id: string): Promise<TokenInfo>;
}

export async function run(context: CommandContext, input: CommandInput): Promise<number> {
  const [action = "list", name, ...rest] = input.arguments;
  const options = input.options as TokenOptions;
  if (rest.length > 0) throw usageError(`token ${action} takes one name at most.`);
  if (action === "create") return create(context, name, options);
  if (action === "list" && name === undefined) return list(context, options.all === true);
  if (action === "list") throw usageError("token list takes no name.");
  if (action !== "revoke") throw usageError(`token does create, list and revoke, not ${JSON.stringify(action)}.`);
  if (name === undefined)
    throw usageError("token revoke needs the id of a token.", {}, "`throughline token list` prints the ids.");
  const revoked = await (await openTokens(context, "write")).revoke(name);
  if (context.output.isJson) await context.output.object(tokenJson(revoked));
  else await context.output.line(`revoked ${revoked.id}`);
  return 0;
}

async function create(context: CommandContext, name: string | undefined, options: TokenOptions): Promise<number> {
  const { output, scope } = context;
  if (name === undefined || name.trim() === "") throw usageError("token create needs a name: what the token is for.");
  if (name.length > 200) throw usageError("The name of a token has at most 200 characters.");
  const scopes = wordsOf(options.scopes ?? "read,write");
  const unknown = scopes.find((word) => !isScope(word));
  if (unknown !== undefined || scopes.length === 0)
    throw usageError(`--scopes takes ${allScopes.join(", ")}, gateway:NAME, not ${JSON.stringify(unknown ?? "")}.`);
  const named = options.agents === undefined ? (scope.isAgentGiven ? [scope.agentId] : null) : wordsOf(options.agents);
  if (named?.length === 0) throw usageError("--agents names no agent.");
  const { mode = null } = options;
  if (mode !== null && !isGatewayMode(mode))
    throw usageError(`--mode takes record, guard or stateful, not ${JSON.stringify(mode)}.`);
  const rights: TokenRights = {
    namespace: options.allNamespaces === true ? "*" : scope.namespace,
    agents: named ?? "*",
    scopes: [
      ...allScopes.filter((each) => scopes.includes(each)),
      ...new Set(scopes.filter(isScope).filter((each) => each.startsWith("gateway:"))),
    ],
    expiresAtMs: options.expires === undefined ? null : systemClock.nowMs() + options.expires,
    ...(mode === null ? {} : { mode }),
  };
  const { info, text } = await (await openTokens(context, "write")).create(rights, name);
  if (output.isJson) await output.object(tokenJson(info, text));
  else await output.line(text);
  await output.flush();
  if (!output.isJson) output.note("This is the only time that the token is shown. Keep it like a password.");
  return 0;
}

async function list(context: CommandContext, isAll: boolean): Promise<number> {
  const { output } = context;
  const nowMs = systemClock.nowMs();
  const tokens = (await (await openTokens(context, "read")).list()).filter(
    (token) => isAll || isValidToken(token, nowMs),
  );
  if (output.isJson) {
    for (const token of tokens) await output.object(tokenJson(token));
    await output.end(tokens.length);
    return 0;
  }
  const rows = tokens.map(({ id, label, namespace, agents, scopes, expiresAtMs, revokedAtMs }) => [
    id,
    label ?? "",
    scopes.join(","),
    agents === "*" ? "all" : agents.join(","),
    namespace,
    revokedAtMs !== null ? `revoked ${timeText(revokedAtMs)}` : expiresAtMs === null ? "never" : timeText(expiresAtMs),
  ]);
  const titles = ["ID", "NAME", "SCOPES", "AGENTS", "NAMESPACE", "ENDS"];
  await output.table(
    titles.map((title) => ({ title })),
    rows,
  );
  return 0;
}

function wordsOf(text: string): readonly string[] {
  return text
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");
}

async function openTokens(context: CommandContext, purpose: "read" | "write"): Promise<Tokens> {
  const { host, storeUrl } = context;
  const address = parseStoreUrl(storeUrl, host.workingDirectory);
  if (address.scheme === "http") return remoteTokens(address.url, context);
  if (address.scheme === "memory") throw usageError("A store in memory keeps no tokens.");
  const store = await context.openStore(purpose);
  const nowMs = (): number => systemClock.nowMs();
  const tokens = createTokenStore(store, nowMs);
  const audit = createAuditLog(store, nowMs, 0);
  const common = { by: "cli", agentId: null, requestId: null };
  return {
    list: () => tokens.list(),
    create: async (rights, label) => {
      const { namespace, agents, scopes, expiresAtMs, mode = null } = rights;
      const details = { label, agents, scopes, expiresAtMs, mode };
      await audit.write({ ...common, action: "token.create", namespace, details });
      return tokens.create(rights, label);
    },
    revoke: async (id) => {
      const found = (await tokens.list()).find((token) => token.id === id);
      if (found === undefined) throw unknownToken(id);
      await audit.write({ ...common, action: "token.revoke", namespace: found.namespace, details: { id } });
      return tokens.revoke(id);
    },
  };
}

function unknownToken(id: string): ThroughlineError {
  const message = `There is no token ${JSON.stringify(id)}.`;
  const remedy = "`throughline token list --all` prints the ids.";
  return new ThroughlineError("INPUT_INVALID", message, { outcome: "not-applied", details: { id }, remedy });
}

type WireToken = TokenInfo & { readonly secret: string | null };

/** Manages tokens through the routes of a server that another process runs. */
function remoteTokens(url: string, context: CommandContext): Tokens {
  const ask = createAskServer(url, context);
  return {
    list: async () => (await ask<{ readonly items: readonly WireToken[] }>({ path: "/admin/tokens" })).items,
    create: async (rights, label) => {
      const info = await ask<WireToken>({ method: "POST", path: "/admin/tokens", body: { label, ...rights } });
      return { info, text: info.secret ?? "" };
    },
    revoke: (id) => ask<WireToken>({ method: "DELETE", path: `/admin/tokens/${encodeURIComponent(id)}` }),
  };
}
