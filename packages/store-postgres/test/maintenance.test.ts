import { mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Finding, SessionRef, SessionStore } from "@throughline/core";
import { createPostgresStore, type PostgresStore } from "@throughline/store-postgres";
import { describe, expect, inject, it } from "vitest";
import { newSchema, withClient } from "./store-under-test.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;

function refOf(name: string): SessionRef {
  return { namespace: "", agentId: "main", key: `agent:main:${name}` };
}

const line = String.raw`{"type":"message","id":"x","parentId":null,"timestamp":"2026-01-02T03:04:05.006Z","n":1.0,"e":"\u00e9\ud800\u0000"}`;
const meaning = { type: "custom", id: "y", parentId: "x", timestamp: "2026-01-02T03:04:05.006Z" };

/** A session with every kind of record there is, a fork of it, an archived one, a turn, a key and large payloads. */
async function fill(store: PostgresStore): Promise<readonly SessionRef[]> {
  const [one, fork] = [refOf("one"), refOf("fork")];
  await store.save(one, { sessionId: "one", label: "it's \\ \u00e9 \u0000 \ud800" }, { ifRevision: null });
  await store.append(one, [{ source: line }, { source: Uint8Array.of(0, 0xff), record: meaning }], {
    idempotencyKey: "k'",
  });
  await store.append(one, [
    { type: "message", message: { role: "user", content: "quoted ' \\ \" \n \u2028 words" } },
    {
      type: "message",
      message: { role: "toolResult", toolCallId: "c", toolName: "t", content: "large ".repeat(60_000) },
    },
    { type: "checkpoint", checkpoint: { summary: "s" } },
  ]);
  await store.fork.fork(one, fork, { sessionId: "fork" });
  await store.append(fork, [{ type: "message", message: { role: "user", content: "in the fork" } }], {
    turn: { action: "open", turnId: "t", owner: "o", leaseUntilMs: 4e12, fence: 1 },
    windowFromSeq: 2,
  });
  return [one, fork];
}

async function contentOf(store: SessionStore, refs: readonly SessionRef[]): Promise<unknown[]> {
  const found: unknown[] = [];
  for (const ref of refs) {
    found.push(await store.load(ref));
    for await (const { records } of store.read(ref, { payload: "source" })) found.push(...records);
  }
  return found;
}

async function codesOf(findings: AsyncIterable<Finding>): Promise<string[]> {
  const codes: string[] = [];
  for await (const { code, severity, key } of findings) if (severity === "error") codes.push(`${code} ${String(key)}`);
  return codes;
}

describe.skipIf(url === "")(
  `checking and copying${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    const damages: readonly (readonly [string, string, boolean, readonly string[]])[] = [
      [
        "a record that is gone",
        "DELETE FROM records WHERE seq = 3",
        false,
        ["RECORD_MISSING one", "RECORD_MISSING fork"],
      ],
      [
        "a letter that changed",
        "UPDATE records SET rest = replace(rest, 'words', 'wards') WHERE seq = 3",
        true,
        ["CHECKSUM_MISMATCH one", "CHECKSUM_MISMATCH fork"],
      ],
      [
        "bytes of a source that changed",
        "UPDATE records SET source = '\\x01' WHERE seq = 2",
        true,
        ["CHECKSUM_MISMATCH one", "CHECKSUM_MISMATCH fork"],
      ],
      ["a payload that is gone", "DELETE FROM payloads", true, ["STORE_DAMAGED one", "STORE_DAMAGED fork"]],
      [
        "text that is no JSON any more",
        "UPDATE records SET rest = 'x', crc = 2363233923 WHERE seq = 3",
        true,
        ["STORE_DAMAGED one", "STORE_DAMAGED fork"],
      ],
      [
        "an entry that is no JSON any more",
        "UPDATE sessions SET entry_values[2] = 'x' WHERE session_id = 'fork'",
        true,
        ["STORE_DAMAGED fork"],
      ],
    ];

    it.each(damages)(
      "%s is found, in every session that has it",
      { tags: ["slow"] },
      async (_name, damage, isOnlyFull, wanted) => {
        const schema = newSchema();
        await using store = createPostgresStore({ url, schema, partitions: 2 });
        await fill(store);
        expect(await codesOf(store.maintenance.verify({ full: true }))).toEqual([]);
        await withClient(url, async (client) => {
          await client.query(`SET search_path = "${schema}"`);
          expect((await client.query(damage)).rowCount).toBe(1);
        });
        const keyed = wanted.map((each) => each.replace(/ (\w+)$/, " agent:main:$1"));
        if (isOnlyFull) expect(await codesOf(store.maintenance.verify())).toEqual([]);
        expect(await codesOf(store.maintenance.verify({ full: true }))).toEqual(keyed);
      },
    );

    it(
      "a record that is damaged hides no other from a search, indexed before it was or after",
      { tags: ["slow"] },
      async () => {
        const schema = newSchema();
        await using store = createPostgresStore({ url, schema, partitions: 2 });
        await fill(store);
        await store.append(refOf("one"), [{ type: "message", message: { role: "user", content: "words again" } }]);
        const searched = async (): Promise<number[]> => {
          const seqs: number[] = [];
          for await (const { seq } of store.search?.search({ text: "words" }) ?? []) seqs.push(seq);
          return seqs.toSorted();
        };
        expect(await searched()).toEqual([3, 6]);
        await withClient(url, (client) => client.query(`UPDATE "${schema}".records SET rest = 'x' WHERE seq = 3`));
        expect(await searched()).toEqual([6]);
        await store.search?.rebuild?.();
        expect(await searched()).toEqual([6]);
        await expect(contentOf(store, [refOf("one")])).rejects.toMatchObject({ code: "STORE_CORRUPT" });
      },
    );

    const madeBeside =
      "a backup made beside a writer is of one moment, nobody else's to read, and makes the same store again";

    it.each(["plain", "tenant"] as const)(`${madeBeside}: %s layout`, { tags: ["slow"] }, async (layout) => {
      const schema = newSchema();
      const folder = await mkdtemp(join(tmpdir(), "throughline-backup-"));
      await using store = createPostgresStore({ url, schema, partitions: 3, layout });
      const refs = await fill(store);
      const before = await contentOf(store, refs);
      const importedFrom = { format: "pi", sessionId: "source" };
      await store.save(refOf("imported"), { sessionId: "imported", importedFrom }, { ifRevision: null });
      await store.save(refOf("purged"), { sessionId: "purged", importedFrom }, { ifRevision: null });
      await store.remove(refOf("purged"), { purge: true });
      const ofSource = { importedFrom: { format: "pi", sourceId: "source" } };
      const listed = await store.list(ofSource);
      expect(listed).toMatchObject({ sessions: [{ sessionId: "imported" }], purgedAtMs: expect.any(Number) });
      const busy = refOf("busy");
      await store.save(busy, { sessionId: "busy" }, { ifRevision: null });
      let isOver = false;
      const writing = (async (): Promise<void> => {
        for (let turn = 0; !isOver; turn++)
          await store.append(
            busy,
            [1, 2].map(() => ({ type: "message", message: { role: "user", content: `${turn}` } })),
          );
      })();
      const path = join(folder, "store.sql");
      const { sizeBytes } = await store.maintenance.backup(path);
      isOver = true;
      await writing;
      expect((await stat(path)).mode & 0o777).toBe(0o600);
      expect((await stat(path)).size).toBe(sizeBytes);
      const name = `copy_${schema}`;
      await withClient(url, (client) => client.query(`CREATE DATABASE ${name}`));
      const copyUrl = new URL(url);
      copyUrl.pathname = `/${name}`;
      const script = await readFile(path, "utf8");
      await withClient(copyUrl.href, (client) => client.query(script));
      const copy = createPostgresStore({ url: copyUrl.href, schema });
      expect(await contentOf(copy, refs)).toEqual(before);
      expect(await copy.list(ofSource)).toEqual(listed);
      // Both records of a turn, or neither.
      expect(((await copy.load(busy))?.head.lastSeq ?? 1) % 2).toBe(0);
      expect(await codesOf(copy.maintenance.verify({ full: true }))).toEqual([]);
      // What comes after goes on where the copy stands, and is found.
      await copy.save(refOf("new"), { sessionId: "new" }, { ifRevision: null });
      await copy.append(refOf("new"), [{ type: "message", message: { role: "user", content: "after the copy" } }]);
      expect(
        (
          await copy.append(refOf("one"), [{ source: line }, { source: Uint8Array.of(0, 0xff), record: meaning }], {
            idempotencyKey: "k'",
          })
        ).replayed,
      ).toBe(true);
      const hits: string[] = [];
      for await (const hit of copy.search?.search({ text: "copy" }) ?? []) hits.push(hit.sessionId);
      expect(hits).toEqual(["new"]);
      await copy.close();
      await withClient(url, (client) => client.query(`DROP DATABASE ${name}`));
      await rm(folder, { recursive: true });
    });

    it("what a fork has of a purged session is found after the index was rebuilt", async () => {
      await using store = createPostgresStore({ url, schema: newSchema(), partitions: 2 });
      await store.save(refOf("origin"), { sessionId: "origin" }, { ifRevision: null });
      await store.append(refOf("origin"), [{ type: "message", message: { role: "user", content: "kept by a fork" } }]);
      await store.fork.fork(refOf("origin"), refOf("heir"), { sessionId: "heir" });
      await store.remove(refOf("origin"), { purge: true });
      const found = async (): Promise<readonly string[]> => {
        const hits: string[] = [];
        for await (const { sessionId } of store.search?.search({ text: "kept" }) ?? []) hits.push(sessionId);
        return hits;
      };
      expect(await found()).toEqual(["heir"]);
      await store.search?.rebuild?.();
      expect(await found()).toEqual(["heir"]);
      // And it goes with the last fork.
      await store.remove(refOf("heir"), { purge: true });
      expect(await found()).toEqual([]);
    });

    it(
      "a backup that breaks off leaves no file and holds none open, whatever broke it",
      { tags: ["slow"] },
      async () => {
        const folder = await mkdtemp(join(tmpdir(), "throughline-backup-"));
        const path = join(folder, "store.sql");
        const openFiles = async (): Promise<string[]> => {
          const names = await readdir("/proc/self/fd").catch(() => []);
          const targets = await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => "")));
          return targets.filter((target) => target.startsWith(folder));
        };
        const schema = newSchema();
        await using store = createPostgresStore({ url, schema, partitions: 2 });
        await fill(store);
        const controller = new AbortController();
        const aborted = store.maintenance.backup(path, { signal: controller.signal });
        setImmediate(() => controller.abort());
        await expect(aborted).rejects.toMatchObject({ code: "ABORTED" });
        await withClient(url, async (client) => {
          await client.query(`BEGIN; LOCK TABLE "${schema}".payloads`);
          const waiting = store.maintenance.backup(path, { signal: AbortSignal.timeout(100) });
          await expect(waiting).rejects.toMatchObject({ code: "ABORTED", outcome: "not-applied" });
        });
        // The server ends what reads, in the middle of it: where it waits for a table that another one holds.
        await withClient(url, async (client) => {
          await client.query(`BEGIN; LOCK TABLE "${schema}".payloads`);
          const ended = expect(store.maintenance.backup(path)).rejects.toMatchObject({
            code: "STORE_UNREACHABLE",
            outcome: "not-applied",
          });
          const terminate = `SELECT pg_terminate_backend(pid) FROM pg_locks
          WHERE NOT granted AND relation = '"${schema}".payloads'::regclass`;
          while ((await client.query(terminate)).rowCount === 0) await client.query("SELECT pg_sleep(0.01)");
          await ended;
        });
        expect([await readdir(folder), await openFiles()]).toEqual([[], []]);
        await expect(store.maintenance.backup(join(folder, "none", "store.sql"))).rejects.toMatchObject({
          code: "STORE_IO",
        });
        expect((await store.maintenance.backup(path)).sizeBytes).toBe((await stat(path)).size);
        expect(await openFiles()).toEqual([]);
        await rm(folder, { recursive: true });
      },
    );

    it("a backup that a killed process has left half of is named, with what to do", async () => {
      const folder = await mkdtemp(join(tmpdir(), "throughline-backup-"));
      const path = join(folder, "store.sql");
      await writeFile(`${path}.part`, "half");
      await using store = createPostgresStore({ url, schema: newSchema(), partitions: 2 });
      await expect(store.maintenance.backup(path)).rejects.toMatchObject({
        code: "EXPORT_EXISTS",
        outcome: "not-applied",
        remedy: expect.stringContaining(`Remove ${path}.part`) as string,
      });
      await rm(`${path}.part`);
      expect((await store.maintenance.backup(path)).sizeBytes).toBeGreaterThan(0);
      await rm(folder, { recursive: true });
    });

    it("a store in order has no findings, and its partitioned table is none", { tags: ["slow"] }, async () => {
      await using store = createPostgresStore({ url, schema: newSchema(), partitions: 2 });
      await fill(store);
      const findings: Finding[] = [];
      for await (const finding of store.maintenance.verify({ full: true })) findings.push(finding);
      expect(findings).toEqual([]);
    });

    it("a step that was changed after it was applied is refused, with its number, by whoever may migrate or not", async () => {
      const schema = newSchema();
      await using store = createPostgresStore({ url, schema, partitions: 2 });
      await store.list();
      await withClient(url, (client) =>
        client.query(`UPDATE "${schema}".store_info SET value = 'other' WHERE name = 'checksum_1'`),
      );
      for (const migrate of [true, false]) {
        await using later = createPostgresStore({ url, schema, migrate });
        await expect(later.list()).rejects.toMatchObject({
          code: "STORE_VERSION_UNSUPPORTED",
          details: { step: 1, applied: "other" },
        });
      }
    });
  },
);
