import { randomBytes } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { SessionRef, SessionStore } from "@throughline/core";
import { ThroughlineError } from "@throughline/core";
import { copyRecords } from "@throughline/core/internal";

import { createMemoryStore } from "@throughline/store-memory";
import { createXorCodec } from "@throughline/store-conformance";
import { createPostgresStore, type PostgresPool } from "@throughline/store-postgres";
import type { PostgresConnection } from "../src/connection-pool.ts";
import pg from "pg";
import { describe, expect, inject, it } from "vitest";
import { migrateSchema } from "../src/migrate-schema.ts";
import { schemaSteps } from "../src/schema.ts";
import { readmeGrants } from "./readme-grants.ts";
import { migrationPlace } from "./migrate-beside.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:one" };
const draft = { type: "message", message: { role: "user", content: "Hello" } };

async function codeOf(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  return ThroughlineError.isInstance(error) ? error.code : String(error);
}

describe.skipIf(url === "")(
  `the PostgreSQL store${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    it("a window is the state and the records from the boundary on, over pages too", { tags: ["slow"] }, async () => {
      await using store = createPostgresStore({ url, schema: newSchema(), partitions: 2, limits: { pageRecords: 3 } });
      await store.save(ref, { sessionId: "one", label: "x" }, { ifRevision: null });
      expect((await store.readWindow(ref)).records).toEqual([]);
      await store.append(
        ref,
        Array.from({ length: 10 }, () => draft),
        { windowFromSeq: 4 },
      );
      const { state, records } = await store.readWindow(ref);
      expect(records.map(({ seq }) => seq)).toEqual([4, 5, 6, 7, 8, 9, 10]);
      expect(state).toEqual(await store.load(ref));
      expect(await codeOf(store.readWindow({ ...ref, key: "agent:main:none" }))).toBe("SESSION_NOT_FOUND");
    });

    it(
      "large payloads lie aside once for a session and its forks, and are gone when they are redacted",
      { tags: ["slow"] },
      async () => {
        const schema = newSchema();
        await using store = createPostgresStore({ url, schema, partitions: 2 });
        await store.save(ref, { sessionId: "one" }, { ifRevision: null });
        const large = {
          type: "message",
          timestamp: "2026-01-02T03:04:05.006Z",
          message: { role: "user", content: "large ".repeat(60_000) },
        };
        await store.append(ref, [{ ...large, id: "a" }, { ...large, id: "b" }, draft]);
        const fork = { ...ref, key: "agent:main:fork" };
        await store.fork?.fork(ref, fork, { sessionId: "fork" });
        const payloads = (): Promise<number> =>
          withClient(url, async (client) =>
            Number((await client.query(`SELECT count(*) FROM "${schema}".payloads`)).rows[0].count),
          );
        expect(await payloads()).toBe(1);
        for await (const { records } of store.read(fork, { payload: "source" }))
          for (const { record, source } of records) expect(JSON.parse(String(source))).toEqual(record);
        await store.redact(ref, ["a"], { reason: "test" });
        expect(await payloads()).toBe(1);
        await store.redact(fork, ["b"], { reason: "test" });
        expect(await payloads()).toBe(0);
      },
    );

    it("what forks share of a purged session is found, also when nobody had searched before", async () => {
      await using store = createPostgresStore({ url, schema: newSchema(), partitions: 2 });
      await store.save(ref, { sessionId: "one" }, { ifRevision: null });
      await store.append(ref, [draft, { type: "message", message: { role: "user", content: "needle" } }, draft]);
      await store.fork.fork(ref, { ...ref, key: "agent:main:fork" }, { sessionId: "fork", atSeq: 2 });
      await store.remove(ref, { purge: true });
      const found: string[] = [];
      for await (const hit of store.search?.search({ text: "needle" }) ?? []) found.push(`${hit.sessionId} ${hit.seq}`);
      expect(found).toEqual(["fork 2"]);
    });

    it("a session copied here from another store and back has the same seq, ids and lines", async () => {
      await using here = createPostgresStore({ url, schema: newSchema(), partitions: 2 });
      await using there = createMemoryStore();
      await using back = createMemoryStore();
      for (const store of [here, there, back]) await store.save(ref, { sessionId: "one" }, { ifRevision: null });
      const line = String.raw`{"type":"message","id":"x","parentId":null,"timestamp":"2026-01-02T03:04:05.006Z","n":1.0,"m":-0,"n":1e3,"e":"\u00e9\ud800\u0000"}`;
      const meaning = { type: "custom", id: "y", parentId: "x", timestamp: "2026-01-02T03:04:05.006Z" };
      await there.append(ref, [draft, { source: line }, { source: Uint8Array.of(0, 0xff, 0xfe), record: meaning }]);
      await copyRecords({ store: there, ref }, { store: here, ref });
      await copyRecords({ store: here, ref }, { store: back, ref });
      const read = async (store: SessionStore): Promise<unknown[]> => {
        const found: unknown[] = [];
        for await (const { records } of store.read(ref, { payload: "source" }))
          found.push(...records.map(({ seq, id, parentId, source, record }) => [seq, id, parentId, source, record]));
        return found;
      };
      expect(await read(here)).toEqual(await read(there));
      expect(await read(back)).toEqual(await read(there));
    });

    it.each([
      ["a NUL", "agent:main:a\0b"],
      ["half a character", "agent:main:a\ud800b"],
      ["more than an index takes", `agent:main:${randomBytes(3000).toString("base64")}`],
    ])("a key with %s begins no session: not saved, not forked, not renamed to", async (_what, key) => {
      await using store = createPostgresStore({ url, schema: newSchema(), partitions: 2 });
      await store.save(ref, { sessionId: "one" }, { ifRevision: null });
      const odd = { ...ref, key };
      expect([
        await codeOf(store.save(odd, { sessionId: "two" }, { ifRevision: null })),
        await codeOf(store.fork.fork(ref, odd, { sessionId: "three" })),
        await codeOf(store.move(ref, { kind: "rename", key })),
        await codeOf(store.append(odd, [draft])),
        await store.load(odd),
      ]).toEqual(["KEY_INVALID", "KEY_INVALID", "KEY_INVALID", "SESSION_NOT_FOUND", null]);
      expect((await store.list({ state: "any" })).sessions.map(({ ref: { key: listed } }) => listed)).toEqual([
        ref.key,
      ]);
      // The longest key there may be, in characters of three bytes.
      const longest = { ...ref, key: `agent:main:${"\u4e00\u6f22".repeat(250)}` };
      await store.fork.fork(ref, longest, { sessionId: "longest" });
      expect((await store.load(longest))?.sessionId).toBe("longest");
    });

    it("nothing is left in a connection: every statement runs on one that was wiped, as behind a pooler in transaction mode", async () => {
      const name = `wiped_${newSchema()}`;
      const inner = new pg.Pool({ connectionString: url, max: 3, application_name: name });
      const wiping: PostgresPool = {
        get waitingCount() {
          return inner.waitingCount;
        },
        async connect(): Promise<PostgresConnection> {
          const client = await inner.connect();
          let depth = 0;
          return {
            async query(query) {
              if (query.name !== undefined) throw new Error("a named statement");
              if (query.text.startsWith("BEGIN")) depth += 1;
              else if (depth === 0) await client.query("DISCARD ALL");
              if (/^(COMMIT|ROLLBACK)/.test(query.text)) depth -= 1;
              return client.query(query);
            },
            release: (error) => client.release(error),
          };
        },
      };
      const schema = newSchema();
      await using store = createPostgresStore({ pool: wiping, schema, partitions: 2, prepare: false });
      await store.save(ref, { sessionId: "one" }, { ifRevision: null });
      const turn = { action: "open", turnId: "t", owner: "o", leaseUntilMs: Date.now() + 60_000, fence: 1 } as const;
      await store.append(ref, [draft], { turn, durability: "process" });
      await store.append(ref, [draft], {
        turn: { action: "close", fence: 1 },
        idempotencyKey: "k",
        entry: { label: "x" },
      });
      await store.move(ref, { kind: "rename", key: "agent:main:two" });
      expect((await store.readWindow({ ...ref, key: "agent:main:two" })).records).toHaveLength(2);
      const left = await inner.query(
        `SELECT (SELECT count(*) FROM pg_prepared_statements) AS statements, current_setting('synchronous_commit') AS commits,
          current_setting('search_path') AS path, (SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
            WHERE l.locktype = 'advisory' AND a.application_name = '${name}') AS locks`,
      );
      expect(left.rows[0]).toEqual({ statements: "0", commits: "on", path: '"$user", public', locks: "0" });
      await store.close();
      await inner.end();
    });

    it("names its statements until a pooler loses them, and appends each turn once all the same", async () => {
      const inner = new pg.Pool({ connectionString: url, max: 1 });
      const names: (string | undefined)[] = [];
      let isLosing = false;
      const pool: PostgresPool = {
        get waitingCount() {
          return inner.waitingCount;
        },
        async connect(): Promise<PostgresConnection> {
          const client = await inner.connect();
          return {
            async query(query) {
              names.push(query.name);
              if (isLosing) await client.query("DEALLOCATE ALL");
              return client.query(query);
            },
            release: (error) => client.release(error),
          };
        },
      };
      await using store = createPostgresStore({ pool, schema: newSchema(), partitions: 2, notify: false });
      await store.save(ref, { sessionId: "one" }, { ifRevision: null });
      for (let turn = 0; turn < 3; turn++) await store.append(ref, [draft]);
      const [name] = names.filter((each) => each !== undefined);
      expect(name).toMatch(/^throughline_[0-9a-f]{32}$/);
      expect(names.filter((each) => each === name)).toHaveLength(3);
      isLosing = true;
      names.length = 0;
      for (let turn = 0; turn < 3; turn++) await store.append(ref, [draft]);
      expect(names).toEqual([name, undefined, undefined, undefined]);
      expect((await store.load(ref))?.head.lastSeq).toBe(6);
      await inner.end();
    });

    it("ten nodes that migrate at once make one schema", { tags: ["slow"] }, async () => {
      const schema = newSchema();
      const stores = Array.from({ length: 10 }, () =>
        createPostgresStore({ url, schema, partitions: 2, maxConnections: 1 }),
      );
      await Promise.all(stores.map((store) => store.list()));
      await Promise.all(stores.map((store) => store.close()));
    });

    it("a step that fails leaves nothing, a newer schema serves the program before it, and not the one before that", async () => {
      const schemaName = newSchema();
      const where = migrationPlace(url, schemaName);
      const options = { partitions: 1 };
      const newest = schemaSteps("plain").at(-1)?.version ?? 0;
      const broken = {
        version: newest + 1,
        oldestProgram: 1,
        sql: () => `CREATE TABLE "${schemaName}".half (x int); SELECT 1 / 0`,
      };
      await expect(migrateSchema(where, options, () => [...schemaSteps("plain"), broken])).rejects.toThrow();
      const [half] = await where.pool.run("SELECT to_regclass($1) AS half", [`"${schemaName}".half`]);
      expect(half?.["half"]).toBeNull();
      const second = { ...broken, sql: (schema: string) => `ALTER TABLE ${schema}.sessions ADD COLUMN later text` };
      await migrateSchema(where, options, () => [...schemaSteps("plain"), second]);
      await using old = createPostgresStore({ url, schema: schemaName });
      await old.save(ref, { sessionId: "one" }, { ifRevision: null });
      await old.append(ref, [draft]);
      const third = { version: newest + 2, oldestProgram: newest + 1, sql: () => "SELECT 1" };
      await migrateSchema(where, options, () => [...schemaSteps("plain"), second, third]);
      await using tooOld = createPostgresStore({ url, schema: schemaName });
      expect(await codeOf(tooOld.list())).toBe("STORE_VERSION_UNSUPPORTED");
      await where.end();
    });

    it("without leave to migrate, a schema that is not there is said and not made", async () => {
      await using store = createPostgresStore({ url, schema: newSchema(), migrate: false });
      expect(await codeOf(store.list())).toBe("STORE_NOT_FOUND");
    });

    it("a role that may only read and write rows is enough, and with row security sees its own agents only", async () => {
      const schema = newSchema();
      await using owner = createPostgresStore({ url, schema, partitions: 2, rowSecurity: true });
      await owner.save(ref, { sessionId: "one" }, { ifRevision: null });
      const theirs = { namespace: "", agentId: "other", key: "agent:other:one" };
      await owner.save(theirs, { sessionId: "two" }, { ifRevision: null });
      await owner.append(theirs, [draft]);
      const role = `role_${schema}`;
      await withClient(url, async (client) => {
        await client.query(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'; ${readmeGrants(schema, role)}
          INSERT INTO "${schema}".agent_roles (role_name, agent_id) VALUES ('${role}', 'main')`);
      });
      const own = new URL(url);
      own.username = role;
      own.password = "secret";
      await using store = createPostgresStore({ url: own.href, schema, migrate: false });
      await store.append(ref, [draft], { idempotencyKey: "k", entry: { label: "x" } });
      await store.save({ ...ref, key: "agent:main:two" }, { sessionId: "three" }, { ifRevision: null });
      await store.fork?.fork(ref, { ...ref, key: "agent:main:fork" }, { sessionId: "four" });
      expect((await store.list({ sort: "key" })).sessions.map(({ sessionId }) => sessionId)).toEqual([
        "four",
        "one",
        "three",
      ]);
      expect(await store.load(theirs)).toBeNull();
      expect(await codeOf(store.append(theirs, [draft]))).toBe("SESSION_NOT_FOUND");
      expect(["STORE_READ_ONLY", "ID_CASE_COLLISION"]).toContain(
        await codeOf(store.save({ ...theirs, key: "agent:other:new" }, { sessionId: "five" }, { ifRevision: null })),
      );
      const seen = await withClient(own.href, (client) => client.query(`SELECT count(*) FROM "${schema}".records`));
      expect(seen.rows[0].count).toBe("1");
      await store.close();
      await withClient(url, (client) => client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`));
    });

    it("under a codec no file of the server holds what was said, its log included", { tags: ["slow"] }, async () => {
      const schema = newSchema();
      await using store = createPostgresStore({ url, schema, partitions: 2, codec: createXorCodec() });
      const secret = `very-${schema}-secret`;
      await store.save(ref, { sessionId: "one", label: secret }, { ifRevision: null });
      await store.append(ref, [{ type: "message", message: { role: "user", content: secret } }], {
        entry: { model: secret },
      });
      await withClient(url, (client) => client.query("CHECKPOINT"));
      const folder = "dataFolder" in place ? place.dataFolder : "";
      let files = 0;
      for (const name of await readdir(folder, { recursive: true })) {
        const path = join(folder, name);
        const found = await stat(path).catch(() => null);
        if (found === null || !found.isFile()) continue;
        files += 1;
        expect((await readFile(path)).includes(secret), name).toBe(false);
      }
      expect(files).toBeGreaterThan(100);
      await using wrong = createPostgresStore({ url, schema });
      expect(await codeOf(wrong.list())).toBe("CODEC_FAILED");
    });

    it("a database whose default isolation is stricter is refused before anything is made", async () => {
      const strict = new URL(url);
      strict.searchParams.set("options", "-c default_transaction_isolation=serializable");
      await using store = createPostgresStore({ url: strict.href, schema: newSchema() });
      expect(await codeOf(store.list())).toBe("STORE_UNSUPPORTED");
    });
  },
);
