import { expect, it } from "vitest";
import { ThroughlineError } from "@throughline/core";
import { createTokenStore } from "@throughline/http-api/internal";
import { startServer } from "./start-server.ts";
import { createMemoryStore } from "@throughline/store-memory";
import { createLeavingStore } from "./leaving-store.ts";

it("starts while the store is away, says so, and serves once it is back", async () => {
  const inner = createMemoryStore();
  const rights = { namespace: "", agents: "*", scopes: ["read"], expiresAtMs: null } as const;
  const { text } = await createTokenStore(inner, () => Date.now()).create(rights, "before");
  const leaving = createLeavingStore(inner);
  leaving.leave("fails");
  const server = await startServer({ openStore: () => leaving.store, port: 0 });
  const ask = async (path: string): Promise<number> =>
    (await fetch(server.url + path, { headers: { authorization: `Bearer ${text}` } })).status;
  expect([await ask("/healthz"), await ask("/readyz"), await ask("/api/v1/sessions")]).toEqual([200, 503, 503]);
  leaving.comeBack();
  await expect.poll(() => ask("/api/v1/sessions")).toBe(200);
  await expect.poll(() => ask("/readyz")).toBe(200);
  await server.close();
});

it("is not ready while its disk is full, and ready once a write succeeds", async () => {
  const inner = createMemoryStore();
  let isFull = false;
  const full = new Proxy(inner, {
    get(target, name: string) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...args: readonly unknown[]): unknown => {
        if (isFull && ["append", "save"].includes(name))
          return Promise.reject(new ThroughlineError("STORE_FULL", "The disk is full.", { outcome: "not-applied" }));
        return Reflect.apply(member, target, args) as unknown;
      };
    },
  });
  const rights = { namespace: "", agents: "*", scopes: ["read", "write"], expiresAtMs: null } as const;
  const { text } = await createTokenStore(inner, () => Date.now()).create(rights, "tests");
  const server = await startServer({ openStore: () => full, port: 0 });
  const ready = async (): Promise<string> => (await fetch(`${server.url}/readyz`)).text();
  const write = async (): Promise<number> => {
    const headers = { authorization: `Bearer ${text}`, "content-type": "application/json" };
    return (await fetch(`${server.url}/api/v1/sessions/notes`, { method: "PUT", headers, body: "{}" })).status;
  };
  expect(await ready()).toBe("ready\n");
  isFull = true;
  expect(await write()).toBe(507);
  await expect.poll(ready).toBe("store-not-writable\n");
  isFull = false;
  await expect.poll(ready).toBe("ready\n");
  expect(await write()).toBe(201);
  await server.close();
});
