import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server as HttpServer,
  type ServerResponse,
} from "node:http";
import { uploadMs, upstreamsOf } from "@throughline/gateway/internal";
import {
  answerRequest,
  type ApiParts,
  closeParts,
  createApiParts,
  createFindings,
  createLocalToken,
  createServices,
  loadTokens,
  nodeExchange,
  refreshTokens,
  stopServing,
  type TokenStore,
} from "@throughline/http-api/internal";
import { systemClock } from "@throughline/core/internal";
import { answerClientErrors } from "./http/client-errors.ts";
import { type Connections, trackConnections } from "./http/connections.ts";
import { type MountedGateway, mountGateway } from "./mount-gateway.ts";
import { openPageFiles } from "./page/page-files.ts";
import { createPage, type Page } from "./page/page-neighbor.ts";
import type { ServerOptions } from "./server-options.ts";

export interface Server {
  /** States the bound port too, because port 0 selects a free port: `http://127.0.0.1:4788`. */
  readonly url: string;
  readonly tokens: TokenStore;
  /** Is the text of the token in memory; null without `localToken`. */
  readonly localToken: string | null;
  /** Returns the milliseconds since the last request ended; 0 while an answer is open. */
  idleMs(): number;
  /** Exempts a token from the rate limits of this node. The programs of the server's machine use such a token. */
  exempt(tokenId: string): void;
  /** Makes readiness report `draining` and ends event streams. The server still answers requests. */
  drain(): void;
  /** Drains, waits at most 30 s for running requests, and closes the store. */
  close(): Promise<void>;
}

/**
 * Opens the store and starts to listen.
 *
 * @throws {ThroughlineError} CONFIG_INVALID, what opening the store throws; Error of the system when the address cannot
 *   be listened on
 */
export async function createServer(options: ServerOptions): Promise<Server> {
  const { host = "127.0.0.1", port = 4788 } = options;
  const opened = await openApi(options);
  const { parts, gateway } = opened;
  const http = createHttp(opened);
  const connections = trackConnections(http);
  try {
    await loadTokens(parts);
    await listen(http, host, port);
  } catch (error) {
    http.close();
    await gateway?.handlers.close();
    await closeParts(parts);
    await parts.context.store.close();
    throw error;
  }
  const refreshing = refreshTokens(parts);
  const address = http.address();
  const boundPort = typeof address === "object" && address !== null ? address.port : port;
  let closing: Promise<void> | null = null;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${boundPort}`,
    tokens: parts.context.tokens,
    localToken: opened.localToken,
    idleMs: connections.idleMs,
    exempt: (tokenId) => {
      parts.rates.exempt(tokenId);
      gateway?.exempt(tokenId);
    },
    drain: () => parts.context.drain(),
    close: () => (closing ??= closeServer(options, opened, { connections, refreshing })),
  };
}

interface OpenedApi {
  readonly localToken: string | null;
  readonly page: Page | null;
  readonly parts: ApiParts;
  readonly gateway: MountedGateway | null;
}

async function openApi(options: ServerOptions): Promise<OpenedApi> {
  const { host = "127.0.0.1", allowedHosts = [] } = options;
  const upstreams = options.gateway === undefined ? null : upstreamsOf(options.gateway);
  // Before the store is opened: without the page there is no server to close again.
  const page = options.inspect === undefined ? null : createPage(await openPageFiles(options.inspect));
  const findings = createFindings();
  const store = await options.openStore((event) => findings.take(event));
  const { localToken: rights, ...rest } = options;
  const nowMs = (options.clock ?? systemClock).nowMs();
  const localToken = rights === undefined ? null : createLocalToken(rights, nowMs);
  const services = createServices({ ...rest, store, findings, ...(localToken === null ? {} : { localToken }) });
  const gateway = await mountGateway(options, upstreams, services);
  // A wildcard address such as 0.0.0.0 is never a host name that a client sends, so it allows nothing.
  const bound = host === "0.0.0.0" || host === "::" ? [] : [host.includes(":") ? `[${host}]` : host];
  const allowed = { ...options, allowedHosts: [...bound, ...allowedHosts] };
  const parts = createApiParts(services, allowed, gateway?.handlers ?? null);
  if (localToken !== null) parts.rates.exempt(localToken.info.id);
  return { parts, gateway, page, localToken: localToken?.text ?? null };
}

function createHttp({ parts, gateway, page }: OpenedApi): HttpServer {
  const { headerBytes, bodyMs } = parts.context.limits;
  const http = createHttpServer({
    maxHeaderSize: headerBytes,
    headersTimeout: 10_000,
    requestTimeout: Math.max(bodyMs, uploadMs),
    connectionsCheckingInterval: 4000,
    keepAliveTimeout: 65_000,
  });
  const clientErrors = answerClientErrors(http);
  // `checkContinue` has a listener so that a client with `Expect: 100-continue` sends its body only after the request
  // passed the checks.
  for (const event of ["request", "checkContinue"] as const)
    http.on(event, (request: IncomingMessage, response: ServerResponse) => {
      clientErrors.began(response);
      const neighbor = page?.neighborOf(request, response) ?? gateway?.neighborOf(request, response);
      void answerRequest(parts, nodeExchange(request, response), neighbor);
    });
  // With the default limit, Node silently drops every header after the 2,000th.
  http.maxHeadersCount = 0;
  return http;
}

interface Listening {
  readonly connections: Connections;
  readonly refreshing: NodeJS.Timeout;
}

async function closeServer(
  { drainDelayMs = 0, onStopping }: ServerOptions,
  { parts, gateway }: OpenedApi,
  { connections, refreshing }: Listening,
): Promise<void> {
  const { clock, store, tokens, drain } = parts.context;
  drain();
  if (drainDelayMs > 0) await clock.sleep(drainDelayMs);
  stopServing(parts);
  await connections.end();
  // Close the gateway before the store: it still has to store the calls that it passed on.
  await gateway?.handlers.close();
  clearInterval(refreshing);
  await closeParts(parts);
  try {
    await onStopping?.(tokens);
  } finally {
    await store.close();
  }
  parts.log.info("The server has stopped.");
}

function listen(http: HttpServer, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    http.once("error", reject);
    http.listen(port, host, () => {
      http.off("error", reject);
      resolve();
    });
  });
}
