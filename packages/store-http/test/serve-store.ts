import process from "node:process";
import type { Clock, SessionEventListener, SessionStore } from "@throughline/core";
import { sessionRefText, systemClock } from "@throughline/core/internal";
import { createServer, type Server } from "@throughline/server";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryData } from "@throughline/store-memory/internal";
import { createMemoryStore } from "@throughline/store-memory";
import { createPostgresStore } from "@throughline/store-postgres";
import { createSqliteStore } from "@throughline/store-sqlite";

/** Where the sessions of a server under test are. */
export type ServedPlace =
  | { readonly kind: "memory" }
  | { readonly kind: "jsonl" | "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string; readonly schema: string };

/** What the process of the servers is asked; each is answered by a message with its number. */
export type ServeRequest =
  | { readonly ask: "open"; readonly place: ServedPlace; readonly token: string }
  | { readonly ask: "close" | "contents"; readonly port: number }
  | { readonly ask: "advance"; readonly port: number; readonly deltaMs: number }
  | { readonly ask: "damage"; readonly port: number; readonly key: string };

interface Served {
  readonly server: Server;
  readonly advance: (deltaMs: number) => void;
  readonly damage: (key: string) => void;
  readonly contents: () => readonly string[];
}

const served = new Map<number, Served>();

async function open(place: ServedPlace, token: string): Promise<number> {
  let aheadMs = 0;
  const clock: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + aheadMs };
  const data = createMemoryData();
  const server = await createServer({
    openStore: (onEvent) => openStore(place, { clock, onEvent, data }),
    port: 0,
    clock,
    limits: { requestsPerMinute: 10_000_000, requestBurst: 10_000_000 },
  });
  const all = { namespace: "*", agents: "*", scopes: ["read", "write", "delete"], expiresAtMs: null } as const;
  await server.tokens.adopt(token, all, "tests");
  const port = Number(new URL(server.url).port);
  served.set(port, {
    server,
    advance: (deltaMs) => (aheadMs += deltaMs),
    damage: (key) => {
      const session = data.sessions.get(sessionRefText({ namespace: "", agentId: "main", key }));
      if (session !== undefined) session.entry = "{";
    },
    contents: () => keptTexts(data),
  });
  return port;
}

function openStore(
  place: ServedPlace,
  options: {
    readonly clock: Clock;
    readonly onEvent: SessionEventListener;
    readonly data: ReturnType<typeof createMemoryData>;
  },
): SessionStore {
  const { data, ...ports } = options;
  switch (place.kind) {
    case "memory":
      return createMemoryStore({ ...ports, data });
    case "jsonl":
      return createJsonlStore({ ...ports, root: place.path });
    case "sqlite":
      return createSqliteStore({ ...ports, path: place.path });
    case "postgres":
      return createPostgresStore({ url: place.url, schema: place.schema, partitions: 2, onEvent: ports.onEvent });
  }
}

/** Every text and piece of bytes that is kept in memory, as base64. */
function keptTexts(value: unknown): string[] {
  if (value instanceof Uint8Array) return [Buffer.from(value).toString("base64")];
  if (typeof value === "string") return [Buffer.from(value).toString("base64")];
  if (value instanceof Map || value instanceof Set) return keptTexts([...value]);
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(keptTexts);
}

async function answer(request: ServeRequest): Promise<unknown> {
  if (request.ask === "open") return open(request.place, request.token);
  const found = served.get(request.port);
  if (found === undefined) throw new Error(`no server has the port ${request.port}`);
  if (request.ask === "advance") return found.advance(request.deltaMs);
  if (request.ask === "damage") return found.damage(request.key);
  if (request.ask === "contents") return found.contents();
  served.delete(request.port);
  return found.server.close();
}

process.on("message", (message: ServeRequest & { readonly number: number }) => {
  answer(message).then(
    (result) => process.send?.({ number: message.number, result: result ?? null }),
    (error: unknown) => process.send?.({ number: message.number, error: String((error as Error).stack ?? error) }),
  );
});
// The tests are gone: nobody needs a server any more.
process.on("disconnect", () => process.exit());
