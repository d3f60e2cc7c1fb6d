import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import type { SessionRef, SessionStore } from "@throughline/core";
import { killProcess } from "@throughline/store-conformance";
import {
  createMovingStore,
  createPostgresStore,
  type PostgresStore,
  type PostgresStoreOptions,
  relocateSessions,
} from "@throughline/store-postgres";
import pg from "pg";
import { afterAll, describe, expect, inject, it } from "vitest";
import { isLongRun, testSize } from "../../../tools/test-size.ts";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const scope = { namespace: "", agentId: "main" };
const refOf = (name: string): SessionRef => ({ ...scope, key: `agent:main:${name}` });
const conditions = "--conditions=@throughline/source";

const stores: PostgresStore[] = [];
afterAll(async () => {
  for (const store of stores) await store.close();
});

function open(options: Partial<PostgresStoreOptions> = {}): PostgresStore & { readonly schema: string } {
  const schema = options.schema ?? newSchema();
  const where = options.pool === undefined ? { url } : {};
  const store = createPostgresStore({ ...where, schema, partitions: 2, notify: false, ...options });
  stores.push(store);
  return Object.assign(store, { schema });
}

async function* content(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += 100_000) yield bytes.subarray(at, at + 100_000);
}

async function putNew(store: SessionStore, length: number): Promise<string> {
  return (await store.files!.put(scope, content(randomBytes(length)))).id;
}

async function refer(store: SessionStore, name: string, fileId: string): Promise<void> {
  if ((await store.load(refOf(name))) === null)
    await store.save(refOf(name), { sessionId: name }, { ifRevision: null });
  const message = { role: "user", content: [{ type: "file", fileId }] };
  await store.append(refOf(name), [{ type: "message", message }]);
}

async function lengthOf(store: SessionStore, id: string): Promise<number> {
  let bytes = 0;
  for await (const piece of store.files!.get(scope, id)) bytes += piece.byteLength;
  return bytes;
}

async function listed(store: SessionStore): Promise<readonly { readonly id: string; readonly references: number }[]> {
  return (await Array.fromAsync(store.files!.list(scope))).flat();
}

/** Counts the rows of the three tables. */
async function rowsOf(schema: string): Promise<readonly number[]> {
  const counts = ["files", "file_chunks", "file_references"].map(
    (table) => `(SELECT count(*)::int FROM "${schema}".${table})`,
  );
  const { rows } = await withClient(url, (client) =>
    client.query<{ counts: number[] }>(`SELECT ARRAY[${counts.join(", ")}] AS counts`),
  );
  return rows[0]?.counts ?? [];
}

describe.skipIf(url === "").each(["plain", "tenant"] as const)(
  `files of a PostgreSQL store, layout %s${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  (layout) => {
    it("are whole or not there after kill -9, in the middle of a put and between a put and its append", async () => {
      const store = open({ layout });
      await store.list();
      const said: string[] = [];
      const rounds = testSize({ short: 2, long: 6 });
      for (let round = 0; round < rounds; round++) {
        const killed = await killProcess({
          scriptPath: join(import.meta.dirname, "put-until-killed.ts"),
          args: [url, store.schema],
          execArgv: [conditions],
          maxDelayMs: 60,
        });
        expect(killed.stderr).toBe("");
        said.push(...killed.acknowledged);
      }
      const files = await listed(store);
      for (const { id } of files) expect(await lengthOf(store, id)).toBe(900_000);
      const references = new Map(files.map((file) => [file.id, file.references]));
      for (const line of said) {
        const [what, id = ""] = line.split(" ");
        expect(references.get(id), line).toBeGreaterThanOrEqual(what === "append" ? 1 : 0);
      }
      expect(said.length).toBeGreaterThanOrEqual(rounds);
      // What the killed processes left is deleted by a put of a later day.
      await withClient(url, (client) =>
        client.query(`UPDATE "${store.schema}".files SET stored_at_ms = stored_at_ms - 90000000 WHERE file_id IS NULL`),
      );
      const added = await putNew(store, 10);
      await store.remove(refOf("killed"), { purge: true });
      for (const { id } of await listed(store)) await store.files.delete(scope, id);
      expect(await store.files.stat(scope, added)).toBeNull();
      expect(await rowsOf(store.schema)).toEqual([0, 0, 0]);
    });

    // The whole tier streams through one layout: both have the same table of chunks.
    it.skipIf(!isLongRun && layout === "tenant")(
      "of 100 MB are put and read with a bounded memory",
      async () => {
        const store = open({ layout });
        await store.list();
        const { stdout } = await promisify(execFile)(process.execPath, [
          conditions,
          "--max-old-space-size=64",
          join(import.meta.dirname, "stream-file.ts"),
          url,
          store.schema,
          "100000000",
        ]);
        const { mostMb, ...counted } = JSON.parse(stdout) as { readonly mostMb: number };
        expect(counted).toEqual({ bytes: 100_000_000, read: 100_000_000 });
        expect(mostMb).toBeLessThan(90);
      },
      120_000,
    );

    it("that several put at the same time are kept once", async () => {
      const store = open({ layout });
      const bytes = randomBytes(600_000);
      const stored = await Promise.all(Array.from({ length: 8 }, () => store.files.put(scope, content(bytes))));
      expect(new Set(stored.map(({ id }) => id)).size).toBe(1);
      expect(await rowsOf(store.schema)).toEqual([1, 3, 0]);
      expect(await lengthOf(store, stored[0]?.id ?? "")).toBe(600_000);
    });

    it("stay when an append refers to them while another session that did is purged", async () => {
      const store = open({ layout });
      const id = await putNew(store, 300_000);
      await refer(store, "first", id);
      await store.save(refOf("second"), { sessionId: "second" }, { ifRevision: null });
      // The append of this store runs in a transaction that stays open until the test commits it.
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      const lent = { query: client.query.bind(client), release: () => undefined };
      const pool = { waitingCount: 0, options: { max: 1 }, connect: async () => lent as never };
      const held = open({ layout, schema: store.schema, pool });
      await held.list();
      await client.query("BEGIN");
      await refer(held, "second", id);
      let isPurged = false;
      const purge = store.remove(refOf("first"), { purge: true }).then(() => (isPurged = true));
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(isPurged).toBe(false);
      await client.query("COMMIT");
      await purge;
      await client.end();
      expect(await listed(store)).toMatchObject([{ id, references: 1 }]);
      expect(await lengthOf(store, id)).toBe(300_000);
      await store.remove(refOf("second"), { purge: true });
      expect(await rowsOf(store.schema)).toEqual([0, 0, 0]);
    });

    it("stay whole when the server breaks a deletion off, which then names the cause", async () => {
      const limited = new URL(url);
      limited.searchParams.set("options", "-c statement_timeout=300");
      const store = open({ layout });
      const id = await putNew(store, 700_000);
      await refer(store, "first", id);
      const other = open({ layout, schema: store.schema, url: limited.href });
      await other.list();
      await withClient(url, async (client) => {
        await client.query(`BEGIN; SELECT FROM "${store.schema}".file_chunks WHERE number = 2 FOR UPDATE`);
        for (const work of [() => other.files.delete(scope, id), () => other.remove(refOf("first"), { purge: true })])
          await expect(work()).rejects.toMatchObject({ code: "STORE_UNREACHABLE", outcome: "not-applied" });
        await client.query("ROLLBACK");
      });
      expect(await rowsOf(store.schema)).toEqual([1, 3, 1]);
      expect(await lengthOf(store, id)).toBe(700_000);
      await other.remove(refOf("first"), { purge: true });
      expect(await rowsOf(store.schema)).toEqual([0, 0, 0]);
    });

    it("with a changed or a missing chunk are damage: of a read, and of a check", async () => {
      const store = open({ layout });
      const [changed, missing] = [await putNew(store, 700_000), await putNew(store, 700_000)];
      await putNew(store, 700_000);
      const ofFile = (id: string): string =>
        `upload = (SELECT upload FROM "${store.schema}".files WHERE file_id = '${id}') AND number = 1`;
      await withClient(url, (client) =>
        client.query(`UPDATE "${store.schema}".file_chunks SET content = set_byte(content, 0, get_byte(content, 0) # 1) WHERE ${ofFile(changed)};
          DELETE FROM "${store.schema}".file_chunks WHERE ${ofFile(missing)}`),
      );
      for (const id of [changed, missing])
        await expect(lengthOf(store, id)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
      const found = async (full: boolean): Promise<readonly string[]> =>
        (await Array.fromAsync(store.maintenance.verify({ full }))).map(({ message }) => message);
      expect(await found(false)).toEqual([expect.stringContaining(missing)]);
      const both = await found(true);
      expect(both).toHaveLength(2);
      for (const id of [changed, missing]) expect(both.join()).toContain(id);
    });

    it("move with their sessions, and a purge during the move leaves none in either schema", async () => {
      const [from, to] = [open({ layout }), open({ layout: layout === "plain" ? "tenant" : "plain" })];
      const [one, two, unused] = [await putNew(from, 600_000), await putNew(from, 10), await putNew(from, 11)];
      await refer(from, "first", one);
      await refer(from, "first", two);
      await from.fork.fork(refOf("first"), refOf("fork"), { sessionId: "fork", atSeq: 1 });
      await refer(from, "busy", one);
      const turn = { action: "open", fence: 1, turnId: "t", owner: "o", leaseUntilMs: 4e12 } as const;
      await from.append(refOf("busy"), [], { turn });
      const wanted = await listed(from);
      const outcomes = await Array.fromAsync(relocateSessions(from, to), ({ outcome }) => outcome);
      expect(outcomes.toSorted()).toEqual(["busy", "moved"]);
      // The references of the busy session were copied before it was found to be busy.
      expect(await listed(to)).toEqual(wanted);
      for (const [id, length] of [[one, 600_000] as const, [two, 10] as const, [unused, 11] as const])
        expect(await lengthOf(to, id)).toBe(length);
      const moving = createMovingStore(to, from);
      // A session of the target names a file, and a purge at the source leaves it there.
      const late = (await moving.files!.put(scope, content(randomBytes(700_000)))).id;
      for (const name of ["busy", "first"]) {
        const message = { role: "user", content: [{ type: "file", fileId: late }] };
        const held = name === "busy" ? { turn: { action: "renew", fence: 1, leaseUntilMs: 4e12 } as const } : {};
        await moving.append(refOf(name), [{ type: "message", message }], held);
      }
      await moving.remove(refOf("busy"), { purge: true });
      expect(await lengthOf(moving, late)).toBe(700_000);
      await moving.remove(refOf("first"), { purge: true });
      expect(await moving.files!.stat(scope, late)).toBeNull();
      expect(await lengthOf(moving, one)).toBe(600_000);
      await moving.remove(refOf("fork"), { purge: true });
      expect(await moving.files!.delete(scope, unused)).toBe(true);
      // The run that finds the session of the source purged removes what it had copied of it.
      for await (const _family of relocateSessions(from, to)) continue;
      expect(await rowsOf(from.schema)).toEqual([0, 0, 0]);
      expect(await rowsOf(to.schema)).toEqual([0, 0, 0]);
    });

    it("are in a backup", async () => {
      const store = open({ layout });
      const [used, unused] = [await putNew(store, 700_000), await putNew(store, 10)];
      await refer(store, "first", used);
      const folder = await mkdtemp(join(tmpdir(), "throughline-files-"));
      const path = join(folder, "store.sql");
      await store.maintenance.backup(path);
      const before = await listed(store);
      const script = await readFile(path, "utf8");
      await rm(folder, { recursive: true });
      await withClient(url, (client) => client.query(`DROP SCHEMA "${store.schema}" CASCADE`));
      await withClient(url, (client) => client.query(script));
      const again = open({ layout, schema: store.schema });
      expect(await listed(again)).toEqual(before);
      expect(await lengthOf(again, used)).toBe(700_000);
      await again.remove(refOf("first"), { purge: true });
      expect((await listed(again)).map(({ id }) => id)).toEqual([unused]);
    });
  },
);
