import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { createMcpHandler, type AuthInfo, type McpHttpHandler } from "@modelcontextprotocol/server";
import { ThroughlineError } from "@throughline/core";
import { refused } from "@throughline/core/internal";
import { CallLimits } from "./call-limits.ts";
import { createMemoryServer } from "./create-memory-server.ts";
import type { MemoryScope, MemoryServerOptions } from "./memory-scope.ts";

/** The path that clients send requests to. */
const path = "/mcp";
/** Of a request: its arguments are short texts. */
const mostBodyBytes = 1_048_576;
const requestTimeoutMs = 30_000;
/** How often the sender of a request that is still being answered is admitted again: its token may have been revoked. */
const admitEveryMs = 2000;

/** Options of `serveMemoryOverHttp`. */
export interface HttpOptions extends MemoryServerOptions {
  readonly host: string;
  /** 0: a free one. */
  readonly port: number;
  /**
   * Decides on a request by its headers alone: what its sender may see, or an error whose code says why not. It is asked
   * again while the answer lasts.
   * @throws {ThroughlineError} HOST_REFUSED, ORIGIN_REFUSED, UNAUTHENTICATED, FORBIDDEN, RATE_LIMITED
   */
  readonly admit: (request: IncomingMessage) => Promise<MemoryScope>;
}

/** A server that listens. */
export interface MemoryHttpServer {
  /** Where clients send their requests. */
  readonly url: string;
  /** Ends the requests that run, and frees the port. */
  close(): Promise<void>;
}

/**
 * Serves clients over streamable HTTP. A request is answered by itself: no session of the protocol is kept between two.
 * @throws {Error} what the system says of the address
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
        // The last answer stands while the store cannot be read.
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
  /** Requests that are being answered. */
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
    // Of any other failure the sender learns nothing: it has shown no token.
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
  // Without sessions of the protocol there is nothing to get and nothing to delete.
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

/** Waits until the reader has taken what was written, or has gone. */
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
  // What is still coming in is nobody's: the connection ends with the answer.
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
