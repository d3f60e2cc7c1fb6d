import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { mkdirSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { createServer, type GatewayMode } from "../../apps/server/src/index.ts";
import {
  createProviderSimulator,
  type ProviderSimulator,
  type ReceivedRequest,
  type SimulatedReply,
} from "../../packages/testing/src/index.ts";
import { createSqliteStore } from "../../packages/store-sqlite/src/index.ts";

/** A provider on this machine, with a gateway before it or without. */
export interface Stand {
  readonly simulator: ProviderSimulator;
  /** What stands in place of `http://127.0.0.1:4788/anthropic` and `…/openai` of the guide. */
  readonly baseUrls: Readonly<Record<"anthropic" | "openai", string>>;
  /** What stands in place of the token of the guide. */
  readonly token: string;
  /** The gateway; null without one. */
  readonly gateway: { readonly url: string; readonly database: string } | null;
  /** What the program asks for besides its calls, as `METHOD path status`. */
  readonly probes: ReadonlySet<string>;
  /** Says what the provider answers from here on. */
  answerWith(reply: (request: ReceivedRequest) => SimulatedReply): void;
  /** How many tokens the models take from here on; null: as many as the real ones. */
  limitWindow(tokens: number | null): void;
  close(): Promise<void>;
}

export interface StandGateway {
  readonly mode: GatewayMode;
  readonly credentials: "server" | "caller";
}

/** Paths of calls, below the name of an upstream. */
const callPath = /\/v1\/(?:messages|responses|chat\/completions)(?:\?|$)/;

export async function startStand(folder: string, own: StandGateway | null): Promise<Stand> {
  mkdirSync(folder, { recursive: true });
  let reply: (request: ReceivedRequest) => SimulatedReply = () => "Nothing is asked yet.";
  let windowTokens: number | null = null;
  const simulator = createProviderSimulator({
    fallback: (request) => reply(request),
    models: {
      get "*"() {
        // What an agent asks for as the longest answer is no part of the window here.
        return { outputOverflow: "stop" as const, ...(windowTokens === null ? {} : { windowTokens }) };
      },
    },
  });
  await simulator.start();
  const probes = new Set<string>();
  const onRequest = (message: unknown): void => {
    const { request, response } = message as { readonly request: IncomingMessage; readonly response: ServerResponse };
    const { method = "", url = "" } = request;
    if (`${request.socket.localPort}` !== new URL(address).port || url.startsWith("/api/")) return;
    if (method === "POST" && callPath.test(url)) return;
    response.once("close", () => void probes.add(`${method} ${url} ${response.statusCode}`));
  };
  const common = {
    simulator,
    probes,
    answerWith: (next: typeof reply) => void (reply = next),
    limitWindow: (tokens: number | null) => void (windowTokens = tokens),
  };
  let address = simulator.url;
  if (own === null)
    return {
      ...common,
      baseUrls: { anthropic: address, openai: address },
      token: "any-key",
      gateway: null,
      close: () => simulator.close(),
    };
  const database = join(folder, "sessions.db");
  const upstream = { baseUrl: simulator.url, mode: own.mode, credentials: own.credentials, apiKey: "provider-key" };
  const server = await createServer({
    port: 0,
    openStore: (onEvent) => createSqliteStore({ path: database, onEvent }),
    gateway: {
      upstreams: { anthropic: { api: "anthropic", ...upstream }, openai: { api: "openai", ...upstream } },
      spoolFolder: join(folder, "spool"),
    },
  });
  const scopes = ["read", "gateway:anthropic", "gateway:openai"] as const;
  const token = await server.tokens.create({ namespace: "", agents: "*", scopes, expiresAtMs: null }, "agents");
  address = server.url;
  subscribe("http.server.request.start", onRequest);
  return {
    ...common,
    baseUrls: { anthropic: `${address}/anthropic`, openai: `${address}/openai` },
    token: token.text,
    gateway: { url: address, database },
    close: async () => {
      unsubscribe("http.server.request.start", onRequest);
      await server.close();
      await simulator.close();
    },
  };
}
