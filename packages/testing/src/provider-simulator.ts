import { createServer } from "node:http";
import type { Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createAnthropicAdapter } from "./anthropic/anthropic-adapter.ts";
import { handleRequest } from "./handle-request.ts";
import type { Desk } from "./handle-request.ts";
import { resolveModel } from "./model-table.ts";
import { createOllamaAdapter } from "./ollama/ollama-adapter.ts";
import { createOpenAiChatAdapter } from "./openai/openai-chat-adapter.ts";
import { createOpenAiResponsesAdapter } from "./openai/openai-responses-adapter.ts";
import { createResponseLedger } from "./openai/response-ledger.ts";
import { createPrefixCache } from "./prefix-cache.ts";
import { createRequestLog } from "./request-log.ts";
import type { SimulatedReply } from "./simulated-reply.ts";
import type { ProviderSimulator, ProviderSimulatorOptions } from "./simulator-options.ts";
import { createThinkingSeals } from "./thinking-seal.ts";
import type { WireContext } from "./wire-adapter.ts";

function createContext(options: ProviderSimulatorOptions): WireContext {
  let issued = 0;
  return {
    nextId(kind): string {
      issued += 1;
      return `${kind}_${options.idPrefix ?? "sim"}_${issued}`;
    },
    nowMs: () => options.clock?.nowMs() ?? Date.UTC(2026, 0, 1),
    model: (name) => resolveModel(name, options.models ?? {}),
    seals: createThinkingSeals(options.signingKey ?? "sim"),
    cache: createPrefixCache(options.minimumCacheTokens ?? 1024),
    ledger: createResponseLedger(),
  };
}

function createDesk(options: ProviderSimulatorOptions, script: SimulatedReply[]): Desk {
  const context = createContext(options);
  return {
    options,
    context,
    adapters: {
      anthropic: createAnthropicAdapter(context),
      "openai-chat": createOpenAiChatAdapter(context),
      "openai-responses": createOpenAiResponsesAdapter(context),
      ollama: createOllamaAdapter(context, options.ollamaContextTokens ?? 4096),
    },
    log: createRequestLog(),
    nextReply: (request) => script.shift() ?? options.fallback?.(request) ?? null,
  };
}

/** Keeps faults of the simulator apart from provider errors. A fault drops the connection, and `close` throws it. */
function createFaultKeeper(): { keep(error: unknown, response: ServerResponse): void; rethrow(): void } {
  const faults: unknown[] = [];
  return {
    keep(error, response): void {
      faults.push(error);
      response.destroy();
    },
    rethrow(): void {
      const [first] = faults.splice(0);
      if (first !== undefined) throw first;
    },
  };
}

function listen(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: "127.0.0.1", port: 0 }, resolve);
  });
}

/**
 * Creates a server that stands in for the providers. It speaks their wire formats on the loopback interface, answers by
 * script, and rejects the requests that they reject. It always validates and measures a request before the reply.
 */
export function createProviderSimulator(options: ProviderSimulatorOptions = {}): ProviderSimulator {
  const script: SimulatedReply[] = [...(options.replies ?? [])];
  const desk = createDesk(options, script);
  const faults = createFaultKeeper();
  // Providers keep an idle connection for minutes. After Node's five seconds a test on a busy machine would lose a request
  // that is on its way while the connection ends.
  const server = createServer({ keepAliveTimeout: 65_000 }, (request, response) => {
    handleRequest(request, response, desk).catch((error: unknown) => {
      // A client that disconnects while it is still sending is not a fault of the simulator.
      if (request.complete) faults.keep(error, response);
      else response.destroy();
    });
  });
  const close = async (): Promise<void> => {
    if (server.listening) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    }
    faults.rethrow();
  };
  return {
    get url(): string {
      if (!server.listening) throw new Error("The simulator is not started.");
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    },
    requests: desk.log.requests,
    refusals: desk.log.refusals,
    start: () => listen(server),
    enqueue: (...replies) => void script.push(...replies),
    close,
    [Symbol.asyncDispose]: close,
  };
}
