import process from "node:process";
import { parseStoreUrl } from "@throughline/config";
import { maskSecrets, settingOf } from "@throughline/config/internal";
import { sessionRef, ThroughlineError } from "@throughline/core";
import type { SettingValue } from "@throughline/core/internal";
import { folderScope, resolvedFolder } from "@throughline/core/internal/node";
import { serveMemoryOverHttp, serveMemoryOverStdio } from "@throughline/mcp";
import type { MemoryHttpServer, MemoryPlace, MemoryScope, MemoryServerOptions } from "@throughline/mcp";
import type { MemoryHit } from "@throughline/tools/internal";
import { memorySearchTool, workspaceOf } from "@throughline/agent/internal";
import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";
import { fillVectors, type VectorFilling } from "../fill-vectors.ts";
import { createStoreOfCalls, type StoreOfCalls } from "../mcp/store-of-calls.ts";
import { wantedFolder } from "../session-filter.ts";
import { aborted, isLoopback, listenFailure } from "../server/listening.ts";
import { startSync } from "../sync/start-sync.ts";
import { version } from "../version.ts";

interface McpOptions {
  /** True when the option has no address. */
  readonly http?: string | true;
  readonly allAgents?: boolean;
  readonly here?: boolean;
  readonly folder?: string;
  readonly allowNotes?: boolean;
  readonly sync?: boolean;
}

const defaultAddress = { host: "127.0.0.1", port: 4789 };
const mostErrorCharacters = 300;
const mostPlaces = 10;

export async function run(context: CommandContext, { options }: CommandInput): Promise<number> {
  const { http } = options as McpOptions;
  const address = http === undefined ? null : addressOf(http);
  const scope = scopeOf(context, options as McpOptions);
  if (address !== null && parseStoreUrl(context.storeUrl, context.host.workingDirectory).scheme === "http")
    throw usageError("mcp --http needs a store of its own: the tokens of its clients are in the store.");
  const store = createStoreOfCalls(context);
  await using _sync = (options as McpOptions).sync === false ? null : startSync(context, () => store.open("write"));
  try {
    const agentIds = scope.agents === "*" ? [scope.agentId] : scope.agents;
    await using filling = fillVectors(context, agentIds, () => store.open("read"));
    const server = serverOptions(context, store, scope, filling);
    if (address === null) await overStdio(context, { server, scope, store });
    else await overHttp(context, { server, scope, store, address });
  } finally {
    await store.close();
  }
  return 0;
}

function scopeOf({ host, settings, scope }: CommandContext, options: McpOptions): MemoryScope {
  const { allAgents, allowNotes } = options;
  const valueOf = (key: string): SettingValue => settingOf(settings, `mcp.${key}`);
  const { namespace, agentId } = scope;
  const named = valueOf("agents") as readonly string[];
  const isAll = allAgents === true || named.includes("*");
  // An invalid agent name is refused before a client is served.
  for (const name of isAll ? [] : named) sessionRef({ key: "scope", namespace, agentId: name });
  const folder = scopeFolder(host, options, valueOf("folder"));
  return {
    ...(folder === null ? {} : { folder }),
    namespace,
    agentId,
    agents: isAll ? "*" : named.length === 0 ? [agentId] : [...new Set(named)],
    keyPrefixes: valueOf("keyPrefixes") as readonly string[],
    allowNotes: allowNotes === true || valueOf("notes") === true,
  };
}

/**
 * Returns the folder that limits the clients; null without one. An option overrides the setting.
 * @throws {ThroughlineError} USAGE for a folder whose links cannot be resolved, because nothing would be visible
 */
function scopeFolder(host: CommandContext["host"], options: McpOptions, setting: SettingValue): string | null {
  const named = setting === null || options.here === true ? {} : { folder: String(setting) };
  const wanted = wantedFolder(host, { ...named, ...options });
  if (wanted === null) return null;
  const folder = resolvedFolder(wanted);
  if (folder === null) throw usageError(`The folder ${JSON.stringify(wanted)} cannot be resolved.`, { folder: wanted });
  return folder;
}

function serverOptions(
  context: CommandContext,
  store: StoreOfCalls,
  { folder }: MemoryScope,
  filling: VectorFilling | null,
): MemoryServerOptions {
  const { settings } = context;
  // Memory files of another folder stay hidden as its sessions do.
  const isReached = folder === undefined || folderScope(folder)(workspaceOf(context));
  const workspace = isReached ? settingOf(settings, "workspace") : null;
  return {
    version,
    openStore: (purpose) => store.open(purpose),
    resultTokens: Number(settingOf(settings, "mcp.resultTokens")),
    callTimeoutMs: Number(settingOf(settings, "mcp.callTimeoutMs")),
    onError: (error) => report(context, error),
    // The user did not choose the folder in which a client starts the command, so files need a configured workspace.
    ...(filling === null ? {} : { meaningOf: (agentId: string) => filling.meaningOf(agentId) }),
    ...(workspace === null ? {} : { searchFiles: filesBelow(context, store) }),
  };
}

function filesBelow(context: CommandContext, store: StoreOfCalls): NonNullable<MemoryServerOptions["searchFiles"]> {
  const root = workspaceOf(context);
  return async (query, signal) => {
    const tool = await memorySearchTool(context, await store.open("read"), { root, reach: "self", meaning: null });
    // A call without a session searches files only.
    const result = await tool.run({ query, limit: mostPlaces }, { signal, callId: "mcp" });
    const details =
      typeof result === "string" ? undefined : (result.details as { readonly hits?: readonly MemoryHit[] });
    return (details?.hits ?? []).filter((hit): hit is MemoryHit & MemoryPlace => hit.kind === "file");
  };
}

interface OverStdio {
  readonly server: MemoryServerOptions;
  readonly scope: MemoryScope;
  readonly store: StoreOfCalls;
}

async function overStdio(context: CommandContext, { server, scope, store }: OverStdio): Promise<void> {
  const { host, output, signal } = context;
  if ((host.stdin as { readonly isTTY?: boolean }).isTTY === true)
    output.note("An MCP client talks to this command over stdin and stdout. Ctrl-D ends it.");
  // An unusable store ends the command, so that the user notices. Clients are served meanwhile, because most wait only
  // a few seconds for a server to start. A locked store may also become free later.
  const unusable = new AbortController();
  const looked = assertUsable(store, scope).catch((error: unknown) => {
    unusable.abort();
    return error;
  });
  const either = AbortSignal.any([signal, unusable.signal]);
  await serveMemoryOverStdio({ ...server, scope, stdin: host.stdin, stdout: host.stdout, signal: either });
  const failure = await looked;
  if (failure !== null) throw failure;
}

/** Resolves with null if the store is readable, or if a later attempt may succeed. */
async function assertUsable(store: StoreOfCalls, { namespace, agentId }: MemoryScope): Promise<null> {
  try {
    await (await store.open("read")).list({ namespace, agentId, limit: 1 });
  } catch (error) {
    if (!ThroughlineError.isInstance(error) || !error.retryable) throw error;
  }
  return null;
}

interface OverHttp extends OverStdio {
  readonly address: typeof defaultAddress;
}

async function overHttp(context: CommandContext, { server, scope, store, address }: OverHttp): Promise<void> {
  const { signal } = context;
  const { createAdmission } = await import("../mcp/admit-request.ts");
  const admission = createAdmission(() => store.open("read"), scope);
  if (!(await admission.hasToken()))
    throw usageError(
      "The store has no token yet, and every client needs one.",
      {},
      "Make one: `throughline token create mcp --scopes read`.",
    );
  let listening: MemoryHttpServer;
  try {
    listening = await serveMemoryOverHttp({ ...server, ...address, admit: (request) => admission.admit(request) });
  } catch (error) {
    throw listenFailure(error, address);
  }
  try {
    await tell(context, listening.url);
    await aborted(signal);
  } finally {
    await listening.close();
  }
}

async function tell({ output, storeUrl }: CommandContext, url: string): Promise<void> {
  const store = maskSecrets(storeUrl);
  if (output.isJson) await output.object({ kind: "mcp", url, pid: process.pid, store });
  else await output.line(url);
  await output.flush();
  if (output.isJson) return;
  output.note(`MCP clients see sessions of ${store}; each sends "Authorization: Bearer TOKEN". Ctrl-C stops it.`);
}

/** @throws {ThroughlineError} USAGE */
function addressOf(text: string | true): typeof defaultAddress {
  if (text === true) return defaultAddress;
  const [, host = defaultAddress.host, digits = ""] = /^(?:([^:\s]+|\[[0-9a-f:]+\]):)?(\d{1,5})$/i.exec(text) ?? [];
  const port = Number(digits);
  if (digits === "" || port > 65_535)
    throw usageError(`--http takes HOST:PORT, as in 127.0.0.1:4789, not ${JSON.stringify(text)}.`);
  const name = host.replace(/^\[(.*)\]$/, "$1");
  if (!isLoopback(name))
    throw usageError(
      `--http serves programs of this machine only, and ${JSON.stringify(name)} is not a loopback address.`,
      {},
      "For other machines, `throughline serve` has sessions over HTTP.",
    );
  return { host: name, port };
}

function report({ output }: CommandContext, error: unknown): void {
  const text = ThroughlineError.isInstance(error) ? `${error.code}: ${error.message}` : String(error);
  output.note(`A call failed. ${text.slice(0, mostErrorCharacters).toWellFormed()}`);
}
