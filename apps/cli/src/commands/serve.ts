import { resolve } from "node:path";
import process from "node:process";
import { homeOf, serverSummaries } from "@throughline/agent/internal";
import { parseStoreUrl, sessionSettings } from "@throughline/config";
import { maskSecrets, settingOf } from "@throughline/config/internal";
import type { SettingValue } from "@throughline/core/internal";
import { hasErrorCode, ThroughlineError } from "@throughline/core";
import type { SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { createTokenStore, isValidToken, scopes } from "@throughline/http-api/internal";
import type { TokenInfo, TokenRights } from "@throughline/http-api/internal";
import { createServer } from "@throughline/server";
import type { GatewayOptions, Server, ServerOptions } from "@throughline/server";
import type { CommandContext, CommandInput } from "../command.ts";
import { usageError } from "../error-report.ts";
import { fillVectors } from "../fill-vectors.ts";
import { openStore } from "../open-store.ts";
import { findPageFolder } from "../page/page-folder.ts";
import { startSync } from "../sync/start-sync.ts";
import { closeHome } from "../server/closed-home.ts";
import {
  claimServerFile,
  readSecretFile,
  readServerFile,
  removeServerFile,
  serverFilePath,
} from "../server/server-file.ts";
import type { ServerFile } from "../server/server-file.ts";
import { baseUrlVariable, gatewayOptions } from "../server/gateway-options.ts";
import { aborted, isLoopback, listenFailure } from "../server/listening.ts";
import { version } from "../version.ts";

/** Labels the token that the server creates for local programs of the same home. */
const ownLabel = "server.json";
const everything: TokenRights = { namespace: "*", agents: "*", scopes, expiresAtMs: null };

export async function run(context: CommandContext, { options }: CommandInput): Promise<number> {
  const { output, signal } = context;
  const plan = await planServer(context);
  const { server, own } = await startServer(context, plan);
  // The option is the consent. A server for a team has no home with sessions, so it is never the default.
  const isSynced = options["sync"] === true;
  await using _sync = isSynced ? startSync(context, () => context.openStore("write"), { isAsked: true }) : null;
  await using _filling = fillVectors(context, [context.scope.agentId], () => context.openStore("write"));
  try {
    await onceReachable(context, async () => {
      await claimHome(context, { server, plan, own });
      await tell(context, server, plan.path);
      if (output.isJson) return;
      if (plan.options.inspect !== undefined) output.note("`throughline ui` opens the page of this server.");
      tellGateway(context, server, plan.options.gateway ?? null);
    });
    await aborted(signal);
    if (!output.isJson) output.note("Stopping: requests that run come to their end. A second signal stops at once.");
  } finally {
    await server.close();
  }
  return 0;
}

/** Holds what the settings and the home say about the server, before its store is opened. */
interface ServerPlan {
  readonly options: ReturnType<typeof serverOptions> & Pick<ServerOptions, "sessionPolicy" | "gateway" | "inspect">;
  /** Is the token of the token file; null without such a file. */
  readonly mounted: string | null;
  readonly path: string;
  /** Is the file that a killed server left. */
  readonly stale: ServerFile | null;
}

async function planServer(context: CommandContext): Promise<ServerPlan> {
  const { host, output, config, settings, storeUrl, configPath } = context;
  const valueOf = (key: string): SettingValue => settingOf(settings, key);
  if (parseStoreUrl(storeUrl, host.workingDirectory).scheme === "http")
    throw usageError("serve needs a store of its own; another server has the one of --store.");
  const { sendPolicy, reset } = sessionSettings(config);
  const home = homeOf(context);
  const gateway = gatewayOptions(valueOf, host.environment, home);
  const sessionPolicy = { sendPolicy, reset };
  const inspect = findPageFolder();
  const options = {
    ...serverOptions(valueOf),
    sessionPolicy,
    ...(gateway === null ? {} : { gateway }),
    ...(inspect === null ? {} : { inspect }),
  };
  const tokenFile = valueOf("server.tokenFile");
  const tokenPath = tokenFile === null ? null : resolve(host.workingDirectory, String(tokenFile));
  if (closeHome({ path: home, configPath, tokenPath }))
    output.note(`Other users could open ${home}; it is closed to them now (chmod 700).`);
  const mounted = tokenPath === null ? null : readToken(tokenPath);
  const path = serverFilePath(home);
  return { options, mounted, path, stale: await staleServer(path) };
}

/** Holds the token and the server file for local programs, once the server has claimed the home. */
interface OwnAccess {
  claimed: { readonly id: string; readonly file: ServerFile } | null;
}

async function startServer(
  context: CommandContext,
  { options, mounted, path }: ServerPlan,
): Promise<{ readonly server: Server; readonly own: OwnAccess }> {
  const { host, storeUrl, storeParts: parts } = context;
  const own: OwnAccess = { claimed: null };
  let onEvent: Parameters<ServerOptions["openStore"]>[0] = () => {};
  const store = await openStore(storeUrl, {
    workingDirectory: host.workingDirectory,
    create: true,
    parts,
    onEvent: (event) => onEvent(event),
  });
  try {
    await onceReachable(context, () => assertReachable(store, options.host, mounted));
    const spoolCodec = (await parts.codecFor(storeUrl)) ?? undefined;
    const server = await listening({
      ...options,
      ...(options.gateway === undefined ? {} : { gateway: { ...options.gateway, spoolCodec } }),
      openStore: (listener) => {
        onEvent = listener;
        return store;
      },
      version,
      summaries: serverSummaries(context, (message) => context.output.note(maskSecrets(message))),
      log: { write: (line) => void host.stderr.write(line) },
      logLevel: logLevelOf(context),
      onStopping: async (tokens) => {
        if (own.claimed === null) return;
        removeServerFile(path, own.claimed.file);
        await tokens.revoke(own.claimed.id);
      },
    });
    return { server, own };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Writes the server file with a token for local programs. @throws {ThroughlineError} SERVER_RUNNING */
async function claimHome(
  { storeUrl }: CommandContext,
  { server, plan, own }: { readonly server: Server; readonly plan: ServerPlan; readonly own: OwnAccess },
): Promise<void> {
  const { path, stale } = plan;
  // A killed server's token is revoked now. Only its server file held the token, so no other program would revoke it.
  await revokeOf(server, stale);
  const { info, text } = await server.tokens.create(everything, ownLabel);
  server.exempt(info.id);
  const file = { url: localUrl(server.url), token: text, pid: process.pid, store: maskSecrets(storeUrl) };
  own.claimed = { id: info.id, file };
  if (!claimServerFile(path, file, stale)) throw running(readServerFile(path));
}

/** Sets the wait before the next attempt to reach the store. */
const reachAgainMs = 1000;

/**
 * Retries until the store can be reached or the command is interrupted, so that the server can start before its store.
 */
async function onceReachable({ output, signal }: CommandContext, work: () => Promise<void>): Promise<void> {
  for (let tries = 1; tries === 1 || !signal.aborted; tries++)
    try {
      return await work();
    } catch (error) {
      if (!hasErrorCode(error, "STORE_UNREACHABLE") || signal.aborted) throw error;
      if (tries === 1) output.note(`${error.message} The server waits for its store.`);
      await systemClock.sleep(reachAgainMs, signal).catch(() => {});
    }
}

function serverOptions(
  valueOf: (key: string) => SettingValue,
): Omit<ServerOptions, "openStore"> & { readonly host: string; readonly port: number } {
  const listOf = (key: string): readonly string[] => valueOf(`server.${key}`) as readonly string[];
  const numberOf = (key: string): number => Number(valueOf(`server.${key}`));
  const publicUrl = valueOf("server.publicUrl");
  const cursorKey = valueOf("server.cursorKey");
  if (publicUrl !== null && !/^https?:$/.test(URL.parse(String(publicUrl))?.protocol ?? ""))
    throw usageError(`server.publicUrl is ${JSON.stringify(publicUrl)}; it must be an http or https address.`);
  if (cursorKey !== null && !/^[0-9a-f]{64}$/i.test(String(cursorKey)))
    throw usageError("server.cursorKey must be 64 hexadecimal digits.", {}, "Make one: openssl rand -hex 32.");
  return {
    host: String(valueOf("server.host")),
    port: numberOf("port"),
    ...(publicUrl === null ? {} : { publicUrl: String(publicUrl) }),
    allowedHosts: listOf("allowedHosts"),
    allowedOrigins: listOf("allowedOrigins"),
    trustedProxies: listOf("trustProxy"),
    ...(cursorKey === null ? {} : { cursorKey: Buffer.from(String(cursorKey), "hex") }),
    drainDelayMs: numberOf("drainDelayMs"),
    auditDays: numberOf("auditDays"),
    limits: {
      requestsPerMinute: numberOf("requestsPerMinute"),
      requestBurst: numberOf("requestBurst"),
      gatewayCallsPerMinute: numberOf("gatewayCallsPerMinute"),
      gatewayBurst: numberOf("gatewayBurst"),
      inFlightBytes: numberOf("inFlightBytes"),
      inFlightBytesPerToken: numberOf("inFlightBytesPerToken"),
      streamsPerToken: numberOf("streamsPerToken"),
      streams: numberOf("streams"),
    },
  };
}

function readToken(path: string): string {
  const text = readSecretFile(path);
  if (text === null) throw new ThroughlineError("FILE_NOT_FOUND", `There is no token file ${JSON.stringify(path)}.`);
  return text.trim();
}

/** Returns the file of a server that no longer runs; null without a file. @throws {ThroughlineError} SERVER_RUNNING */
async function staleServer(path: string): Promise<ServerFile | null> {
  const file = readServerFile(path);
  if (file !== null && file.pid !== process.pid && isAlive(file.pid) && (await answers(file.url))) throw running(file);
  return file;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Returns false if no server listens there. A timeout counts as an answer, because a slow server is running. */
async function answers(url: string): Promise<boolean> {
  try {
    await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2000), redirect: "error" });
    return true;
  } catch (error) {
    return (error as Error).name === "TimeoutError";
  }
}

function running(file: ServerFile | null): ThroughlineError {
  const who = file === null ? "Another server" : `Another server (pid ${file.pid})`;
  const where = file === null ? "" : ` at ${file.url}`;
  const message = `${who} serves this home already${where}.`;
  return new ThroughlineError("SERVER_RUNNING", message, {
    details: { pid: file?.pid ?? null, url: file?.url ?? null },
  });
}

/** @throws {ThroughlineError} USAGE for an address that other machines reach while the store has no token for them */
async function assertReachable(store: SessionStore, host: string, mounted: string | null): Promise<void> {
  const nowMs = (): number => systemClock.nowMs();
  const tokens = createTokenStore(store, nowMs);
  if (mounted !== null) {
    await tokens.adopt(mounted, everything, "token file");
    const token = tokens.find(mounted);
    if (token !== null && isValidToken(token, nowMs())) return;
    throw usageError("The token in the token file was revoked, or another token has its id.");
  }
  if (isLoopback(host)) return;
  const isForOthers = (token: TokenInfo): boolean => token.label !== ownLabel && isValidToken(token, nowMs());
  if ((await tokens.list()).some(isForOthers)) return;
  throw usageError(
    `${host} can be reached from other machines, and the store has no token yet.`,
    { host },
    "Make a token first: `throughline token create NAME`; or name one with --token-file.",
  );
}

async function listening(options: ServerOptions & { readonly host: string; readonly port: number }): Promise<Server> {
  try {
    return await createServer(options);
  } catch (error) {
    throw listenFailure(error, options);
  }
}

async function revokeOf({ tokens }: Server, stale: ServerFile | null): Promise<void> {
  const left = stale === null ? null : tokens.find(stale.token);
  if (left !== null && left.revokedAtMs === null) await tokens.revoke(left.id);
}

/** A wildcard address is not valid as a request target. */
function localUrl(url: string): string {
  return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}

async function tell({ output, storeUrl }: CommandContext, server: Server, path: string): Promise<void> {
  const store = maskSecrets(storeUrl);
  const url = localUrl(server.url);
  if (output.isJson) await output.object({ kind: "server", url, pid: process.pid, store, serverFile: path });
  else await output.line(url);
  await output.flush();
  if (output.isJson) return;
  output.note(`Serving ${store}; Ctrl-C stops it.`);
  output.note(`The token of this machine is in ${path}; it ends with the server.`);
  output.note("`throughline token create NAME` makes a token that stays.");
}

function tellGateway({ output }: CommandContext, server: Server, gateway: GatewayOptions | null): void {
  for (const [name, { api, credentials }] of Object.entries(gateway?.upstreams ?? {})) {
    const key = credentials === "server" ? "a token as its key" : "its own key, and a token in throughline-token";
    output.note(`Gateway ${name}: ${baseUrlVariable(api, name, localUrl(server.url))}; the client sends ${key}.`);
  }
  const [name] = Object.keys(gateway?.upstreams ?? {});
  if (name !== undefined) output.note(`\`throughline token create NAME --scopes gateway:${name}\` makes such a token.`);
}

/** On a terminal, a log line for each request would hide all other output. */
function logLevelOf({ host, settings, output }: CommandContext): "debug" | "info" | "warn" | "error" {
  const setting = settings.find(({ key }) => key === "logLevel");
  const isTerminal = (host.stderr as { readonly isTTY?: boolean }).isTTY === true;
  if (output.isQuiet) return "error";
  if (setting?.source === "default" && isTerminal) return "warn";
  return (setting?.value ?? "info") as "info";
}
