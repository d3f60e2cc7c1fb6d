import { once } from "node:events";
import { createServer as createHttpServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import { Hono } from "hono";
import type { SessionApi } from "@throughline/http-api";
import { openSessionApi, type TokenStore } from "@throughline/http-api/internal";
import { createServer, type ServerOptions } from "@throughline/server";
import { it } from "vitest";

/** A server of another framework, into which the session API is mounted. */
export type ForeignHost = "express" | "hono";

/** The server that the tests of this run start; null for our own. */
export const foreignHost: ForeignHost | null = hostNamed(process.env["THROUGHLINE_API_HOST"]);

/** Runs a test with our own server only: it is about connections, or about the gateway. */
export const itOfOurs: typeof it = foreignHost === null ? it : (it.skip as typeof it);

/** Runs a test with a server that has the bytes of a request. A `Request` has a URL and headers that the host normalized. */
export const itOfBytes: typeof it = foreignHost === "hono" ? (it.skip as typeof it) : it;

/** What the tests use of a server. */
export interface StartedServer {
  readonly url: string;
  readonly tokens: TokenStore;
  /** Exempts a token from the rate limits. */
  exempt(tokenId: string): void;
  close(): Promise<void>;
}

function hostNamed(name: string | undefined): ForeignHost | null {
  if (name === undefined || name === "hono" || name === "express") return name ?? null;
  throw new Error(`THROUGHLINE_API_HOST is hono or express, not ${name}.`);
}

export async function startServer(
  options: ServerOptions,
  host: ForeignHost | null = foreignHost,
): Promise<StartedServer> {
  return host === null ? createServer(options) : mountIn(host, options);
}

async function mountIn(host: ForeignHost, options: ServerOptions): Promise<StartedServer> {
  const { openStore, port: _port, gateway, ...rest } = options;
  if (gateway !== undefined) throw new Error("The gateway is mounted by our own server only.");
  const store = await openStore(() => {});
  const { api, parts } = openSessionApi({ ...rest, store });
  const http = host === "hono" ? inHono(api) : inExpress(api);
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    tokens: parts.context.tokens,
    exempt: (tokenId) => parts.rates.exempt(tokenId),
    async close() {
      await api.close();
      http.close();
      http.closeAllConnections();
      await once(http, "close");
      await store.close();
    },
  };
}

/** As of our own server: with the 5 s of Node, a client on a busy machine uses a connection that closes. */
const lasting = { keepAliveTimeout: 65_000 };

// A pattern with a name would decode the path, and refuse what is not UTF-8.
const paths = /^\/(?:api\/v1\/|healthz$|readyz$|metrics$)/;

function inExpress(api: SessionApi): HttpServer {
  const app = express();
  app.all(paths, (request, response) => api.nodeHandler(request, response));
  app.use(express.json());
  // A mistake: what stands before has read the body.
  app.use("/late", (request, response) => api.nodeHandler(request, response));
  return createHttpServer(lasting, app);
}

function inHono(api: SessionApi): HttpServer {
  const app = new Hono();
  for (const path of ["/api/v1/*", "/healthz", "/readyz", "/metrics"])
    app.all(path, (context) => api.fetch(context.req.raw));
  // A mistake: it reads the body before the API.
  app.all("/late/*", async ({ req: { raw } }) => {
    await raw.text();
    const url = raw.url.replace("/late/", "/");
    return api.fetch(
      new Proxy(raw, { get: (target, name) => (name === "url" ? url : (Reflect.get(target, name) as unknown)) }),
    );
  });
  return createHttpServer(lasting, getRequestListener(app.fetch));
}
