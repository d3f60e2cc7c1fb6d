import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";
import { createServer, type Server } from "@throughline/server";
import { openHttpStore } from "@throughline/store-http";
import { createMemoryStore } from "@throughline/store-memory";
import { build } from "esbuild";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import worker, { type Env } from "../src/worker.ts";
import { workerBundle } from "./worker-bundle.ts";

let provider: ProviderSimulator;
let server: Server;
let env: Env;
let work: Promise<unknown>[] = [];

beforeEach(async () => {
  work = [];
  provider = createProviderSimulator({ fallback: () => ({ kind: "answer", content: "At six.", eventDelayMs: 20 }) });
  await provider.start();
  const log = { write: () => undefined };
  server = await createServer({ openStore: (onEvent) => createMemoryStore({ onEvent }), port: 0, log });
  const rights = { namespace: "", agents: "*", scopes: ["read", "write"], expiresAtMs: null } as const;
  const { text } = await server.tokens.create(rights, "worker");
  env = {
    THROUGHLINE_URL: server.url,
    THROUGHLINE_TOKEN: text,
    ANTHROPIC_API_KEY: "sk-test",
    ANTHROPIC_BASE_URL: provider.url,
    CALLER_TOKEN: "caller",
  };
});
afterEach(async () => {
  await Promise.all(work);
  await server.close();
  await provider.close();
});

function ask(path: string, body: string, headers: Record<string, string> = {}): Promise<Response> {
  const request = new Request(`https://worker.example${path}`, {
    method: "POST",
    body,
    headers: { authorization: "Bearer caller", ...headers },
  });
  return worker.fetch(request, env, { waitUntil: (promise) => void work.push(promise) });
}

async function roles(): Promise<readonly unknown[]> {
  const store = await openHttpStore({ url: env.THROUGHLINE_URL, token: env.THROUGHLINE_TOKEN });
  const pages = await Array.fromAsync(store.read({ namespace: "", agentId: "main", key: "agent:main:cli:direct:ada" }));
  await store.close();
  return pages
    .flatMap(({ records }) => records.map(({ record }) => (record["message"] as { role?: unknown } | undefined)?.role))
    .filter((role) => role !== undefined);
}

describe("the Worker", () => {
  it(
    "keeps the conversation on the server from one request to the next, and answers a repeated one once",
    { tags: ["slow"] },
    async () => {
      const first = await ask("/turns/ada", "When does the harbor open?", { "idempotency-key": "one" });
      expect(await first.text()).toContain("event: turn.result");
      await (await ask("/turns/ada", "When does the harbor open?", { "idempotency-key": "one" })).text();
      await (await ask("/turns/ada", "And when does it close?")).text();
      expect(await roles()).toEqual(["user", "assistant", "user", "assistant"]);
      expect(provider.requests).toHaveLength(2);
      expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain("At six.");
      expect(provider.refusals).toEqual([]);
    },
  );

  it("stores the answer although the caller leaves", { tags: ["slow"] }, async () => {
    await (await ask("/turns/ada", "When?")).body?.cancel();
    await Promise.all(work);
    expect(await roles()).toEqual(["user", "assistant"]);
  });

  it("lets nobody in without the token, and has no other paths", async () => {
    for (const authorization of ["", "Bearer caller2", "Bearer calle", "caller"])
      expect((await ask("/turns/ada", "Hello", { authorization })).status).toBe(401);
    for (const path of ["/", "/turns/", "/turns/ada:ben", "/turns/../ada"])
      expect((await ask(path, "Hello")).status).toBe(404);
    expect(provider.requests).toEqual([]);
  });

  it("is one file of at most 175 kB in gzip, the SDK and the vocabularies apart", async () => {
    const { outputFiles } = await build({
      ...workerBundle,
      external: ["node:*", "@throughline/tokens/vocabulary/*", "@anthropic-ai/sdk"],
      write: false,
    });
    const [bundle] = outputFiles;
    if (bundle === undefined) throw new Error("no bundle");
    const zipped = new Blob([new Uint8Array(bundle.contents)]).stream().pipeThrough(new CompressionStream("gzip"));
    expect((await new Response(zipped).arrayBuffer()).byteLength).toBeLessThan(175_000);
  });
});
