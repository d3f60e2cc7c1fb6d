import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { inspect } from "node:util";
import { ThroughlineError, type SessionRef } from "@throughline/core";
import { createPostgresStore } from "@throughline/store-postgres";
import { describe, expect, inject, it } from "vitest";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:one" };
const draft = { type: "message", message: { role: "user", content: "Hello" } };

async function errorOf(work: Promise<unknown>): Promise<ThroughlineError> {
  const error: unknown = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!ThroughlineError.isInstance(error)) throw new Error(`not a refusal of ours: ${String(error)}`);
  return error;
}

function withOption(option: string): string {
  const other = new URL(url);
  other.searchParams.set("options", `-c ${option}`);
  return other.href;
}

it("a store closes while a server that took its connection says nothing", { timeout: 15_000 }, async () => {
  const taken: Socket[] = [];
  const silent = createServer((socket) => void taken.push(socket.on("error", () => {}).resume()));
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const store = createPostgresStore({ url: `postgres://a:b@127.0.0.1:${port}/c`, connectTimeoutMs: 50 });
  expect((await errorOf(store.list())).code).toBe("STORE_UNREACHABLE");
  await store.close();
  expect(taken.length).toBeGreaterThan(0);
  for (const socket of taken) socket.destroy();
  silent.close();
});

describe.skipIf(url === "")(
  `servers as they are${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    it.each(["SQL_ASCII", "LATIN1"])("a database in %s is refused before anything is made in it", async (encoding) => {
      const name = `${newSchema()}_${encoding.toLowerCase()}`;
      await withClient(url, (client) =>
        client.query(`CREATE DATABASE ${name} ENCODING '${encoding}' LOCALE 'C' TEMPLATE template0`),
      );
      const other = new URL(url);
      other.pathname = `/${name}`;
      const store = createPostgresStore({ url: other.href });
      const { code, message } = await errorOf(store.list());
      expect([code, message.includes(encoding)]).toEqual(["STORE_UNSUPPORTED", true]);
      await store.close();
      const made = await withClient(other.href, (client) =>
        client.query("SELECT FROM pg_namespace WHERE nspname = 'throughline'"),
      );
      expect(made.rowCount).toBe(0);
      await withClient(url, (client) => client.query(`DROP DATABASE ${name}`));
    });

    it.each(["TimeZone=Pacific/Chatham", "DateStyle=German", "bytea_output=escape", "standard_conforming_strings=off"])(
      "a server that is set to %s keeps and gives back the same",
      { tags: ["slow"] },
      async (option) => {
        const schema = newSchema();
        await using store = createPostgresStore({ url: withOption(option), schema, partitions: 2 });
        await using plain = createPostgresStore({ url, schema });
        await store.save(ref, { sessionId: "one", label: "a\\b'c" }, { ifRevision: null });
        const large = { ...draft, note: "large \\ ".repeat(50_000) };
        const source = Uint8Array.of(0, 0x5c, 0xff);
        const record = { type: "custom", id: "y", parentId: null, timestamp: "2026-01-02T03:04:05.006Z" };
        const turn = { action: "open", turnId: "t", owner: "o", leaseUntilMs: 4_000_000_000_123, fence: 1 } as const;
        await store.append(ref, [draft, large, { source, record }], { turn, idempotencyKey: "k" });
        const read = async (from: typeof store): Promise<unknown> => {
          const found: unknown[] = [await from.load(ref)];
          for await (const { records } of from.read(ref, { payload: "source" })) found.push(...records);
          return found;
        };
        expect(await read(store)).toEqual(await read(plain));
        expect((await store.load(ref))?.head.turn?.leaseUntilMs).toBe(4_000_000_000_123);
      },
    );

    it("a server that rounds the numbers it gives out is refused, for a lease would end at another time", async () => {
      await using store = createPostgresStore({ url: withOption("extra_float_digits=-3"), schema: newSchema() });
      const { code, remedy } = await errorOf(store.list());
      expect([code, remedy?.includes("extra_float_digits")]).toEqual(["STORE_UNSUPPORTED", true]);
    });

    it("who waits as long as may be is not out of time at once", async () => {
      const schema = newSchema();
      const times = { timeoutMs: Infinity, connectTimeoutMs: Infinity, lockTimeoutMs: 3_000_000_000, pollMs: Infinity };
      await using store = createPostgresStore({ url, schema, partitions: 2, ...times });
      await store.save(ref, { sessionId: "one" }, { ifRevision: null });
      expect((await store.append(ref, [draft])).head.lastSeq).toBe(1);
    });

    it("a replica, which cannot be written, is said to be one, and read all the same", { tags: ["slow"] }, async () => {
      const schema = newSchema();
      await using store = createPostgresStore({ url, schema, partitions: 2 });
      await store.save(ref, { sessionId: "one" }, { ifRevision: null });
      await using replica = createPostgresStore({
        url: withOption("default_transaction_read_only=on"),
        schema,
      });
      expect((await replica.load(ref))?.sessionId).toBe("one");
      const { code, outcome, remedy } = await errorOf(replica.append(ref, [draft]));
      expect([code, outcome]).toEqual(["STORE_READ_ONLY", "not-applied"]);
      expect(remedy).toMatch(/primary/);
      expect((await store.load(ref))?.head.lastSeq).toBe(0);
      // It searches what the primary has indexed, and leaves the rest to it.
      const found = async (where: typeof store): Promise<number> => {
        let hits = 0;
        for await (const _hit of where.search?.search({ text: "hello" }) ?? []) hits += 1;
        return hits;
      };
      await store.append(ref, [draft]);
      expect(await found(replica)).toBe(0);
      expect(await found(store)).toBe(1);
      await store.append(ref, [draft]);
      expect(await found(replica)).toBe(1);
    });

    it(
      "a role that may not make schemas, one that may not connect and one with too few connections are told so, and no secret is",
      { tags: ["slow"] },
      async () => {
        const schema = newSchema();
        const role = `role_${schema}`;
        await withClient(url, (client) =>
          client.query(`CREATE ROLE ${role} LOGIN PASSWORD 'hidden-word' CONNECTION LIMIT 1`),
        );
        const own = new URL(url);
        [own.username, own.password] = [role, "hidden-word"];
        const seen: string[] = [];
        const note = (error: ThroughlineError): string => {
          seen.push(inspect(error, { depth: 10 }), JSON.stringify(error), String(error.stack));
          return error.code;
        };
        const store = createPostgresStore({ url: own.href, schema, connectTimeoutMs: 300, timeoutMs: 2000 });
        expect(note(await errorOf(store.list()))).toBe("STORE_READ_ONLY");
        await using second = createPostgresStore({ url: own.href, schema, connectTimeoutMs: 300, timeoutMs: 2000 });
        expect(note(await errorOf(second.list()))).toBe("STORE_OVERLOADED");
        await store.close();
        const wrong = new URL(own);
        wrong.password = "hidden-word-2";
        await using third = createPostgresStore({ url: wrong.href, schema, connectTimeoutMs: 300 });
        expect(note(await errorOf(third.list()))).toBe("STORE_NOT_FOUND");
        const tls = new URL(own);
        tls.searchParams.set("sslmode", "verify-full");
        await using fourth = createPostgresStore({ url: tls.href, schema, connectTimeoutMs: 300 });
        note(await errorOf(fourth.list()));
        for (const text of [...seen, inspect(third, { depth: 6 }), JSON.stringify(third)])
          expect(text).not.toContain("hidden-word");
        await withClient(url, (client) => client.query(`DROP ROLE ${role}`));
      },
    );

    it("a session whose seq is beyond 32 bits goes on counting, to the number", async () => {
      const schema = newSchema();
      await using store = createPostgresStore({ url, schema, partitions: 2 });
      await store.save(ref, { sessionId: "one" }, { ifRevision: null });
      await withClient(url, (client) => client.query(`UPDATE "${schema}".sessions SET last_seq = 4503599627370495`));
      const { records } = await store.append(ref, [draft, draft], { windowFromSeq: 4_503_599_627_370_496 });
      expect(records.map(({ seq }) => seq)).toEqual([4_503_599_627_370_496, 4_503_599_627_370_497]);
      expect((await store.readWindow(ref)).records.map(({ seq }) => seq)).toEqual(records.map(({ seq }) => seq));
    });

    it("keys, ids and entries that look like SQL are kept as they are", { tags: ["slow"] }, async () => {
      const schema = newSchema();
      await using store = createPostgresStore({ url, schema, partitions: 2 });
      const evil = `'); DROP TABLE "${schema}".records; -- $1 \\ {"a",NULL} %s`;
      const odd = { ...ref, key: `agent:main:${evil}` };
      await store.save(odd, { sessionId: "one", label: evil, [evil]: evil }, { ifRevision: null });
      await store.append(odd, [{ ...draft, id: evil }], {
        idempotencyKey: evil,
        expect: { head: null },
        entry: { model: evil },
      });
      expect(
        (
          await store.append(odd, [{ ...draft, id: evil }], {
            idempotencyKey: evil,
            expect: { head: null },
            entry: { model: evil },
          })
        ).replayed,
      ).toBe(true);
      expect(await store.load(odd)).toMatchObject({
        head: { headId: evil },
        entry: { label: evil, [evil]: evil, model: evil },
      });
      expect((await store.list({ keyPrefix: `agent:main:'); DROP`, agentId: "main" })).sessions).toHaveLength(1);
      const hits: unknown[] = [];
      for await (const hit of store.search?.search({ text: "hello", key: odd.key }) ?? []) hits.push(hit);
      expect(hits).toHaveLength(1);
      for (const name of ["a b", "a;b", 'a"b', "A", "", "x".repeat(64)])
        expect(() => createPostgresStore({ url, schema: name }), name).toThrow("schema");
    });
  },
);
