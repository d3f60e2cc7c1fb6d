import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { createMcpHandler, type AuthInfo, type McpHttpHandler } from "@modelcontextprotocol/server";
import { ThroughlineError } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import { CallLimits } from "./call-limits.ts";
import { createMemoryServer } from "./create-memory-server.ts";
import type { MemoryScope, MemoryServerOptions } from "./memory-scope.ts";

const path = "/mcp";
/** Limits a request's body; its arguments are short texts. */
const mostBodyBytes = 1_048_576;
const requestTimeoutMs = 30_000;
/** Sets how often the sender of a running request is checked again, because its token may have been revoked. */
const admitEveryMs = 2000;

export interface HttpOptions extends MemoryServerOptions {
  readonly host: string;
  /** Selects a free port with 0. */
  readonly port: number;
  /**
   * Decides on a request by its headers: returns the sender's scope, or throws an error whose code names the reason.
   * The check repeats while the answer is sent.
   * @throws {ThroughlineError} HOST_REFUSED, ORIGIN_REFUSED, UNAUTHENTICATED, FORBIDDEN, RATE_LIMITED
   */
  readonly admit: (request: IncomingMessage) => Promise<MemoryScope>;
}

export interface MemoryHttpServer {
  readonly url: string;
  /** Aborts running requests and frees the port. */
  close(): Promise<void>;
}

/**
 * Serves clients over streamable HTTP. Each request stands alone: no protocol session is kept between two requests.
 * @throws {Error} the system's error for the address
 */
export async function serveMemoryOverHttp(options: HttpOptions): Promise<MemoryHttpServer> {
  const { host, port, onError } = options;
  const limits = new CallLimits();
  const scopes = new WeakMap<AuthInfo, MemoryScope>();
  const handler = createMcpHandler(
    ({ authInfo }) => {
      const scope = authInfo === undefined ? undefined : scopes.get(authInfo);
      if (scope === undefined) throw refused("UNAUTHENTICATED", "The request has no scope.");
      return createMemoryServer({ options, limits, scope });
    },
    { onerror: onError, maxRequestBodySize: mostBodyBytes },
  );
  const admitted = new Map<ServerResponse, IncomingMessage>();
  const server = createServer(
    { requestTimeout: requestTimeoutMs, headersTimeout: requestTimeoutMs },
    (request, response) => {
      answer(request, response, { handler, scopes, admitted, admit: options.admit, onError }).catch(
        (error: unknown) => {
          onError(error);
          response.destroy();
        },
      );
    },
  );
  const admitting = setInterval(() => {
    for (const [response, request] of admitted)
      options.admit(request).catch((error: unknown) => {
        // If the store cannot be read, the earlier decision stays valid.
        if (ThroughlineError.isInstance(error) && statuses[error.code] !== undefined) response.destroy();
        else onError(error);
      });
  }, admitEveryMs);
  admitting.unref();
  await listening(server, host, port);
  const address = server.address() as AddressInfo;
  return {
    url: `http://${address.family === "IPv6" ? `[${address.address}]` : address.address}:${address.port}${path}`,
    async close() {
      clearInterval(admitting);
      const ended = new Promise<void>((resolve) => server.close(() => resolve()));
      await handler.close();
      server.closeAllConnections();
      await ended;
    },
  };
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

interface Answering {
  readonly handler: McpHttpHandler;
  readonly scopes: WeakMap<AuthInfo, MemoryScope>;
  readonly admitted: Map<ServerResponse, IncomingMessage>;
  readonly admit: HttpOptions["admit"];
  readonly onError: HttpOptions["onError"];
}

const statuses: Readonly<Record<string, number>> = {
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  ORIGIN_REFUSED: 403,
  HOST_REFUSED: 421,
  INPUT_INVALID: 400,
  RATE_LIMITED: 429,
};

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { handler, scopes, admitted, admit, onError }: Answering,
): Promise<void> {
  let scope: MemoryScope;
  try {
    scope = await admit(request);
  } catch (error) {
    if (!ThroughlineError.isInstance(error)) throw error;
    const status = statuses[error.code];
    // Any other failure stays hidden from the sender, who has not shown a valid token.
    if (status === undefined) onError(error);
    const retryAfterMs = error.details["retryAfterMs"];
    const retry: Record<string, string> =
      typeof retryAfterMs === "number" ? { "retry-after": String(Math.ceil(retryAfterMs / 1000)) } : {};
    const message = status === undefined ? "The store could not answer." : error.message;
    refuse(request, response, status ?? 503, message, retry);
    return;
  }
  if ((request.url ?? "").split("?")[0] !== path) {
    refuse(request, response, 404, `The server answers at ${path}.`);
    return;
  }
  // Without protocol sessions, GET and DELETE have no meaning.
  if (request.method !== "POST") {
    refuse(request, response, 405, "The server takes POST.");
    return;
  }
  const gone = new AbortController();
  response.once("close", () => {
    admitted.delete(response);
    gone.abort();
  });
  admitted.set(response, request);
  const authInfo: AuthInfo = { token: "", clientId: "", scopes: [] };
  scopes.set(authInfo, scope);
  const answered = await handler.fetch(webRequest(request, gone.signal), { authInfo });
  await send(answered, response);
}

function webRequest(request: IncomingMessage, signal: AbortSignal): Request {
  const { rawHeaders } = request;
  const headers = new Headers();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) headers.append(rawHeaders[at] ?? "", rawHeaders[at + 1] ?? "");
  return new Request(`http://127.0.0.1${path}`, {
    method: "POST",
    headers,
    signal,
    body: Readable.toWeb(request) as ReadableStream<Uint8Array>,
    duplex: "half",
  });
}

async function send(answered: Response, response: ServerResponse): Promise<void> {
  response.writeHead(answered.status, { ...Object.fromEntries(answered.headers), "cache-control": "no-store" });
  if (answered.body !== null)
    for await (const chunk of answered.body) {
      if (response.destroyed) break;
      if (!response.write(chunk)) await new Promise<void>((resolve) => onceOpen(response, resolve));
    }
  response.end();
}

/** Resolves once the client has received the written bytes or disconnected. */
function onceOpen(response: ServerResponse, resolve: () => void): void {
  const done = (): void => {
    response.off("drain", done);
    response.off("close", done);
    resolve();
  };
  response.on("drain", done);
  response.on("close", done);
}

function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  // The rest of the body is discarded, and the connection ends with the answer.
  request.resume();
  response.writeHead(status, {
    "content-type": "application/json",
    "cache-control": "no-store",
    connection: "close",
    ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
    ...(status === 405 ? { allow: "POST" } : {}),
    ...headers,
  });
  response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32_000, message } }));
}
