import type { SessionRef, SessionStore } from "@throughline/core";
import { createXorCodec } from "@throughline/store-conformance";
import { createPostgresStore, type PostgresStoreOptions } from "@throughline/store-postgres";
import { afterAll, describe, expect, inject, it } from "vitest";
import { endPools, newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:cli:direct:bounds" };
const refusal = { code: "INPUT_INVALID", outcome: "not-applied" };
const ofMembers = { ...refusal, details: { of: "members", limit: 1000 } };
const ofBytes = { ...refusal, details: { of: "bytes", limit: 1024 * 1024 } };
const question = { type: "message", message: { role: "user", content: "hello" } } as const;

const many = (count: number, from = 0): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`field${from + index}`, 1]));

async function open(options: PostgresStoreOptions): Promise<SessionStore & AsyncDisposable> {
  const store = createPostgresStore({ url, schema: newSchema(), partitions: 2, notify: false, ...options });
  await store.save(ref, { sessionId: "s" }, { ifRevision: null });
  return store;
}

async function fieldsOf(store: SessionStore): Promise<number> {
  return Object.keys((await store.load(ref))?.entry ?? {}).length;
}

afterAll(endPools);

describe.skipIf(url === "")("an entry that many appends patch", () => {
  it.each([
    ["plain", { layout: "plain" }],
    ["tenant", { layout: "tenant" }],
    ["under a codec", { codec: createXorCodec() }],
  ] as const)(
    "has no more than the bounds, and an append that exceeds them writes nothing: %s",
    { tags: ["slow"] },
    async (_, options) => {
      await using store = await open(options);
      await store.append(ref, [], { entry: many(900) });
      await expect(store.append(ref, [question], { entry: many(100, 900) })).rejects.toMatchObject(ofMembers);
      await store.append(ref, [question], { entry: many(99, 900) });
      // The place of a removed field is free again.
      await store.append(ref, [], { entry: { field0: undefined, other: 1 } });
      await store.append(ref, [], {
        entry: Object.fromEntries(Object.keys(many(999)).map((name) => [name, undefined])),
      });
      expect(await fieldsOf(store)).toBe(2);
      await store.append(ref, [], { entry: { text: "ü".repeat(400_000) } });
      await expect(store.append(ref, [question], { entry: { more: "x".repeat(300_000) } })).rejects.toMatchObject(
        ofBytes,
      );
      await store.append(ref, [question], { entry: { text: "ä".repeat(500_000) } });
      expect([await fieldsOf(store), (await store.load(ref))?.head.lastSeq]).toEqual([3, 2]);
    },
  );

  it(
    "may have exactly as many bytes as the bound, and names in its values count once",
    { tags: ["slow"] },
    async () => {
      await using store = await open({});
      const bytes = JSON.stringify({ sessionId: "s", text: "" }).length;
      await store.append(ref, [], { entry: { text: "x".repeat(1024 * 1024 - bytes) } });
      await expect(store.append(ref, [], { entry: { n: 1 } })).rejects.toMatchObject(ofBytes);
      const list = Array.from({ length: 5000 }, (_item, index) => ({ name: `"skill": ${index} \\`, path: '\\"/x":' }));
      await store.append(ref, [], { entry: { text: undefined, list } });
      await store.append(ref, [], { entry: { nested: [many(500), { deep: many(994) }] } });
      await expect(store.append(ref, [], { entry: { nested: [many(996)] } })).rejects.toMatchObject(ofMembers);
      expect((await store.load(ref))?.entry["list"]).toEqual(list);
    },
  );

  it("is refused to one of two that patch it at once", async () => {
    await using store = await open({});
    await store.append(ref, [], { entry: many(500) });
    const results = await Promise.allSettled(
      [1000, 2000].map((from) => store.append(ref, [], { entry: many(400, from) })),
    );
    expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    expect(await fieldsOf(store)).toBe(901);
  });

  it("may be changed where another program made it too large, and an earlier append is repeated all the same", async () => {
    const schema = newSchema();
    await using store = await open({ schema });
    const idempotencyKey = "first";
    await store.append(ref, [question], { entry: many(600), idempotencyKey });
    await store.append(ref, [], { entry: many(300, 600) });
    const names = Object.keys(many(2000)).map((name) => JSON.stringify(name));
    await withClient(url, (client) =>
      client.query(
        `UPDATE "${schema}".sessions SET entry_names = entry_names[1:1] || $1::text[], entry_values = entry_values[1:1] || $2::text[]`,
        [names, names.map(() => "1")],
      ),
    );
    await store.append(ref, [], { entry: { label: "still" } });
    expect(await fieldsOf(store)).toBe(2002);
    const again = await store.append(ref, [question], { entry: many(600), idempotencyKey });
    expect(again.replayed).toBe(true);
  });
});
