import type { IncomingMessage, ServerResponse } from "node:http";
import process from "node:process";
import {
  assertKnownOptions,
  type OptionKind,
  optionKinds,
  type OptionTable,
  portKinds,
} from "@throughline/core/internal";
import { within } from "@throughline/gateway/internal";
import { closeParts, refreshTokens, stopServing } from "./api-life.ts";
import { defaultLimits, type SessionApiLimits, type SessionApiOptions } from "./api-options.ts";
import { createApiParts, createServices } from "./api-parts.ts";
import { answerRequest, type ApiParts } from "./http/answer-request.ts";
import type { HostRequest } from "./http/exchange.ts";
import { fetchExchange } from "./http/fetch-exchange.ts";
import { nodeExchange } from "./http/node-exchange.ts";
import { createFindings } from "./operations/findings.ts";

/** Serves sessions over HTTP in a server of yours. */
export interface SessionApi {
  /**
   * Answers a request, also with its errors: the routes are below `/api/v1`, beside `/healthz`, `/readyz` and
   * `/metrics`.
   */
  readonly fetch: (request: Request, host?: HostRequest) => Promise<Response>;
  /**
   * Answers a request of Node's own server, without the detour over `Request` and `Response`. Mount it before the
   * middleware that reads bodies.
   */
  readonly nodeHandler: (request: IncomingMessage, response: ServerResponse, host?: HostRequest) => Promise<void>;
  /**
   * Refuses new requests with status 503, ends event streams, and waits at most 30 s for the answers that run. It
   * leaves the store open.
   */
  readonly close: () => Promise<void>;
}

const { filledText, integer, listOf, object, objectOf, objectWith, oneOf, required, secret } = optionKinds;

const address: OptionKind = {
  expected: "an http or https address",
  accepts: (value) => typeof value === "string" && /^https?:$/.test(URL.parse(value)?.protocol ?? ""),
};

const limit = integer({ min: 1 });
const names = Object.keys(defaultLimits) as readonly (keyof SessionApiLimits)[];
const limitTable = Object.fromEntries(names.map((name) => [name, limit])) as OptionTable<SessionApiLimits>;

export const sessionApiTable: OptionTable<SessionApiOptions> = {
  store: required(portKinds.store),
  publicUrl: address,
  allowedHosts: listOf(filledText),
  allowedOrigins: listOf(filledText),
  trustedProxies: listOf(filledText),
  limits: objectOf(limitTable),
  cursorKey: secret({ expected: "32 bytes", accepts: (value) => value instanceof Uint8Array && value.length === 32 }),
  log: objectWith("write"),
  logLevel: oneOf(["debug", "info", "warn", "error"]),
  auditDays: integer({ min: 0 }),
  sessionPolicy: object,
  summaries: object,
  gateway: objectWith("forget", "erased"),
  clock: portKinds.clock,
};

const graceMs = 30_000;

/**
 * Creates the session API over a store, for a server of your own.
 *
 * A caller shows a token of the store in `authorization`, or your server authenticates it and passes it as `caller`.
 * The routes check scopes, agents and namespaces either way. Requests from pages of other origins and to other host
 * names than loopback are refused, unless `publicUrl`, `allowedHosts` or `allowedOrigins` name them.
 *
 * @throws {ThroughlineError} CONFIG_INVALID for an option that is not known, has another type, or is out of range
 * @example
 *   const api = createSessionApi({ store });
 *   const caller = { id: "ada", namespace: "", agents: "*", scopes: ["read", "write"] } as const;
 *   const response = await api.fetch(new Request("http://localhost/api/v1/sessions"), { caller });
 */
export function createSessionApi(options: SessionApiOptions): SessionApi {
  return openSessionApi(options).api;
}

/** Creates the session API, and gives its parts to programs of Throughline. */
export function openSessionApi(options: SessionApiOptions): { readonly api: SessionApi; readonly parts: ApiParts } {
  assertKnownOptions<SessionApiOptions>("createSessionApi", options, sessionApiTable, "options", "CONFIG_INVALID");
  const services = createServices({ ...options, findings: createFindings(), onFailure: warn });
  const parts = createApiParts(services, options, options.gateway ?? null);
  const refreshing = refreshTokens(parts);
  let closing: Promise<void> | null = null;
  const api: SessionApi = {
    async fetch(request, host) {
      const exchange = fetchExchange(request, host);
      void answerRequest(parts, exchange);
      return exchange.answered;
    },
    nodeHandler: (request, response, host) => answerRequest(parts, nodeExchange(request, response, host)),
    close: () => (closing ??= closeApi(parts, refreshing)),
  };
  return { api, parts };
}

async function closeApi(parts: ApiParts, refreshing: NodeJS.Timeout): Promise<void> {
  const { clock, live } = parts.context;
  stopServing(parts);
  await within(clock, live.settled(), graceMs);
  live.cut();
  clearInterval(refreshing);
  await closeParts(parts);
}

/** Reports a failure when there is no log, because no client sees it. */
function warn(message: string): void {
  process.emitWarning(message, "ThroughlineWarning");
}
