import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SessionStore, StoredRecord } from "@throughline/core";
import { createGateway, type Gateway, type GatewayOptions } from "@throughline/gateway";
import { createMemoryStore } from "@throughline/store-memory";
import { createProviderSimulator, type ProviderSimulator } from "@throughline/testing";

let folder = "";
let provider: ProviderSimulator;
let store: SessionStore;
let gateway: Gateway | null = null;
let server: Server | null = null;
let failures: unknown[] = [];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "throughline-gateway-"));
  provider = createProviderSimulator({ fallback: () => "Hello, Ada." });
  await provider.start();
  store = createMemoryStore();
  failures = [];
});
afterEach(async () => {
  await gateway?.close();
  server?.closeAllConnections();
  server?.close();
  [gateway, server] = [null, null];
  await provider.close();
  rmSync(folder, { recursive: true, force: true });
});

function options(): GatewayOptions {
  return {
    store,
    spoolFolder: join(folder, "spool"),
    upstreams: { claude: { api: "anthropic", baseUrl: provider.url, credentials: "server", apiKey: "provider-key" } },
    authenticate: (token) =>
      token === "ada"
        ? { id: "ada", namespace: "", agents: "*", scopes: ["gateway:claude"] }
        : token === "odd"
          ? { id: "../odd", namespace: "", agents: "*", scopes: ["gateway:claude"] }
          : null,
    onFailure: (_message, error) => void failures.push(error),
  };
}

/** Mounts the gateway in a server of node:http that has a path of its own. */
async function mount(): Promise<string> {
  const mounted = await createGateway(options());
  gateway = mounted;
  const http = createServer((request, response) => {
    void mounted.handle(request, response).then((isHandled) => {
      if (!isHandled) response.writeHead(404).end("not mine");
    });
  });
  server = http;
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const address = http.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
}

async function ask(url: string, key: string): Promise<Response> {
  return fetch(`${url}/claude/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": key, "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ model: "claude-opus-5", max_tokens: 99, messages: [{ role: "user", content: "Hello" }] }),
  });
}

describe("a gateway in a server of its user's", () => {
  it("passes a call on with the provider's key and stores it", async () => {
    const url = await mount();
    const answer = await ask(url, "ada");
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("Hello, Ada.")]);
    expect(provider.requests[0]?.headers["x-api-key"]).toBe("provider-key");
    await gateway?.close();
    const key = answer.headers.get("throughline-session") ?? "";
    const records: StoredRecord[] = [];
    for await (const page of store.read({ namespace: "", agentId: "main", key })) records.push(...page.records);
    const roles = records.flatMap(({ record }) =>
      record.type === "message" ? [Reflect.get(record["message"] as object, "role")] : [],
    );
    expect(roles).toEqual(["user", "assistant"]);
    expect(readdirSync(join(folder, "spool"))).toEqual([]);
    expect(statSync(join(folder, "spool")).mode & 0o777).toBe(0o700);
  });

  it("refuses a caller that it does not know in the provider's form, and leaves other paths alone", async () => {
    const url = await mount();
    const refused = await ask(url, "eve");
    expect([refused.status, await refused.json()]).toMatchObject([
      401,
      { type: "error", error: { type: "authentication_error" } },
    ]);
    const other = await fetch(`${url}/healthz`);
    expect([other.status, await other.text()]).toEqual([404, "not mine"]);
    expect([provider.requests, failures]).toEqual([[], []]);
  });

  it("reports a caller whose id no session key may have, and asks no provider", async () => {
    const url = await mount();
    expect((await ask(url, "odd")).status).toBe(500);
    expect([provider.requests.length, failures]).toEqual([0, [expect.any(TypeError)]]);
  });
});

it("refuses options that it does not know or that are missing", async () => {
  const { spoolFolder: _folder, ...less } = options();
  await expect(createGateway(less as GatewayOptions)).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  await expect(createGateway({ ...options(), spoolbytes: 1 } as GatewayOptions)).rejects.toMatchObject({
    message: expect.stringContaining("did you mean `spoolBytes`?") as string,
  });
  for (const [key, upstreams] of [
    ["gateway.upstreams.Claude", { Claude: { api: "anthropic" } }],
    ["gateway.upstreams.claude.api", { claude: { api: "claude" } }],
    ["gateway.upstreams.claude.baseUrl", { claude: { api: "anthropic", baseUrl: "api.anthropic.com" } }],
  ] as const)
    await expect(createGateway({ ...options(), upstreams } as GatewayOptions)).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      details: { key },
    });
});
