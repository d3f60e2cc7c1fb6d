import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server as HttpServer,
  type ServerResponse,
} from "node:http";
import { hasErrorCode } from "@throughline/core";
import { uploadMs, within } from "@throughline/gateway/internal";
import { answerRequest, type RequestHandlers } from "./http/answer-request.ts";
import { answerClientErrors } from "./http/client-errors.ts";
import { type Connections, trackConnections } from "./http/connections.ts";
import { openHandlers } from "./open-handlers.ts";
import type { TokenStore } from "./security/token-store.ts";
import type { ServerOptions } from "./server-options.ts";

export interface Server {
  /** States the bound port too, because port 0 selects a free port: `http://127.0.0.1:4788`. */
  readonly url: string;
  readonly tokens: TokenStore;
  /** Exempts a token from the rate limits of this node. The programs of the server's machine use such a token. */
  exempt(tokenId: string): void;
  /** Makes readiness report `draining` and ends event streams. The server still answers requests. */
  drain(): void;
  /** Drains, waits at most 30 s for running requests, and closes the store. */
  close(): Promise<void>;
}

/** Limits how long startup waits for the token list, so that the server also starts while its store does not answer. */
const mostTokenWaitMs = 5000;
/** Clients of event streams wait this long before they reconnect, because the node is stopping. */
const retryMs = 1000;
/**
 * Other processes revoke tokens too. At this interval a revocation reaches every node and every open response within 5
 * s.
 */
const tokenEveryMs = 2000;

/**
 * Opens the store and starts to listen.
 *
 * @throws {ThroughlineError} CONFIG_INVALID, what opening the store throws; Error of the system when the address cannot
 *   be listened on
 */
export async function createServer(options: ServerOptions): Promise<Server> {
  const { host = "127.0.0.1", port = 4788 } = options;
  const handlers = await openHandlers(options);
  const { context, rates } = handlers;
  const http = createHttp(handlers);
  const connections = trackConnections(http);
  try {
    await loadTokens(handlers);
    await listen(http, host, port);
  } catch (error) {
    http.close();
    await handlers.gateway?.close();
    closeStreams(handlers);
    await context.store.close();
    throw error;
  }
  const refreshing = refreshTokens(handlers);
  const address = http.address();
  const boundPort = typeof address === "object" && address !== null ? address.port : port;
  let closing: Promise<void> | null = null;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${boundPort}`,
    tokens: context.tokens,
    exempt: (tokenId) => rates.exempt(tokenId),
    drain: () => context.drain(),
    close: () => (closing ??= closeServer(options, handlers, { connections, refreshing })),
  };
}

function createHttp(handlers: RequestHandlers): HttpServer {
  const { limits } = handlers.context;
  const http = createHttpServer({
    maxHeaderSize: limits.headerBytes,
    headersTimeout: 10_000,
    requestTimeout: Math.max(limits.bodyMs, uploadMs),
    connectionsCheckingInterval: 4000,
    keepAliveTimeout: 65_000,
  });
  const clientErrors = answerClientErrors(http);
  // `checkContinue` has a listener so that a client with `Expect: 100-continue` sends its body only after the request
  // passed the checks.
  for (const event of ["request", "checkContinue"] as const)
    http.on(event, (request: IncomingMessage, response: ServerResponse) => {
      clientErrors.began(response);
      void answerRequest(handlers, request, response);
    });
  // With the default limit, Node silently drops every header after the 2,000th.
  http.maxHeadersCount = 0;
  return http;
}

/**
 * Loads the tokens before the server listens: a node that has just started must not reject a valid token. A store that
 * is away does not prevent the start.
 */
async function loadTokens({ context: { tokens, clock }, log }: RequestHandlers): Promise<void> {
  try {
    await within(clock, tokens.refresh(), mostTokenWaitMs);
  } catch (error) {
    if (!hasErrorCode(error, "STORE_UNREACHABLE", "STORE_OVERLOADED", "STORE_LOCKED")) throw error;
    log.failed("The store cannot be reached yet; requests are answered once it can.", error);
  }
}

function refreshTokens({ context: { tokens, live }, log }: RequestHandlers): NodeJS.Timeout {
  const refresh = (): void => {
    // Check open responses before the refresh as well, because a token also expires while the store is away.
    live.check();
    tokens
      .refresh()
      .then(() => live.check())
      .catch((error: unknown) => log.failed("The tokens could not be read.", error));
  };
  return setInterval(refresh, tokenEveryMs).unref();
}

function closeStreams({ context: { streams, hub, usage }, metrics }: RequestHandlers): void {
  streams.close();
  hub.close();
  usage.close();
  metrics.close();
}

interface Listening {
  readonly connections: Connections;
  readonly refreshing: NodeJS.Timeout;
}

async function closeServer(
  { drainDelayMs = 0, onStopping }: ServerOptions,
  handlers: RequestHandlers,
  { connections, refreshing }: Listening,
): Promise<void> {
  const { context, readiness, gateway, log } = handlers;
  const { clock, streams, summaries, store, tokens } = context;
  context.drain();
  if (drainDelayMs > 0) await clock.sleep(drainDelayMs);
  readiness.servesWhileDraining = false;
  streams.bye(retryMs);
  await connections.end();
  // Close the gateway before the store: it still has to store the calls that it passed on.
  await gateway?.close();
  clearInterval(refreshing);
  closeStreams(handlers);
  await Promise.all([summaries.checkpointer.close(), summaries.retries.close()]);
  try {
    await onStopping?.(tokens);
  } finally {
    await store.close();
  }
  log.info("The server has stopped.");
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
