import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chownSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { ThroughlineError, type Clock, type SessionRef } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { createPostgresStore, type PostgresPool, type PostgresStore } from "@throughline/store-postgres";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { endingPool } from "./ending-pool.ts";
import { newSchema, withClient } from "./store-under-test.ts";
import { startProxy } from "./tcp-proxy.ts";
import { testSize } from "../../../tools/test-size.ts";

const place = inject("postgres");
const url = "unavailable" in place ? "" : place.url;
const dataFolder = "dataFolder" in place ? place.dataFolder : "";
const ref: SessionRef = { namespace: "", agentId: "main", key: "agent:main:one" };

function saying(content: string): { readonly type: string; readonly message: object } {
  return { type: "message", message: { role: "user", content } };
}

async function refusalOf(work: Promise<unknown>): Promise<readonly unknown[]> {
  const error: unknown = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!ThroughlineError.isInstance(error)) throw new Error(`not a refusal of ours: ${String(error)}`, { cause: error });
  return [error.code, error.outcome, error.retryable];
}

async function textsOf(store: PostgresStore, of: SessionRef = ref): Promise<string[]> {
  const texts: string[] = [];
  for await (const { records } of store.read(of))
    texts.push(
      ...records.map(({ record }) => String((record["message"] as { readonly content: string } | undefined)?.content)),
    );
  return texts;
}

/** A small file system in memory for a tablespace, or why there is none here. */
function smallDisk(megabytes: number): { readonly folder: string; grow(to: number): void; remove(): void } | string {
  if (process.getuid?.() !== 0) return "mounting takes root";
  const folder = mkdtempSync(join(tmpdir(), "throughline-small-"));
  const remove = (): void => rmSync(folder, { recursive: true });
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=0700`, "tmpfs", folder], { stdio: "pipe" });
  } catch (error) {
    remove();
    return `this system mounts nothing: ${String(error)}`;
  }
  const { uid, gid } = statSync(dataFolder);
  chownSync(folder, uid, gid);
  return {
    folder,
    grow: (to) => void execFileSync("mount", ["-o", `remount,size=${to}m`, folder], { stdio: "pipe" }),
    remove() {
      execFileSync("umount", [folder], { stdio: "pipe" });
      remove();
    },
  };
}

const other: SessionRef = { ...ref, key: "agent:main:other" };

/** What is done while connections end, and the ways it may stand afterwards. */
const operations: readonly (readonly [string, (store: PostgresStore) => Promise<unknown>, readonly string[]])[] = [
  ["append", (store) => store.append(ref, [saying("b")], { idempotencyKey: "b" }), ["a", "a b"]],
  ["load", (store) => store.load(ref), ["a"]],
  ["a page", (store) => textsOf(store), ["a"]],
  ["a list", (store) => store.list(), ["a"]],
  ["fork", (store) => store.fork.fork(ref, other, { sessionId: "fork" }), ["a", "a | a"]],
  ["redact", (store) => store.redact(ref, ["id-a"], { reason: "test" }), ["a", "undefined"]],
  ["move", (store) => store.move(ref, { kind: "rename", key: other.key }), ["a", " | a"]],
  ["purge", (store) => store.remove(ref, { purge: true }), ["a", ""]],
];

describe.skipIf(url === "")(
  `a server that fails${"unavailable" in place ? `: needs PostgreSQL, ${place.unavailable}` : ""}`,
  () => {
    let schema: string;
    let store: PostgresStore;
    beforeEach(async () => {
      schema = newSchema();
      store = createPostgresStore({ url, schema, partitions: 2, notify: false });
      await store.save(ref, { sessionId: "one" }, { ifRevision: null });
      await store.append(ref, [{ ...saying("a"), id: "id-a" }]);
    });
    afterEach(() => store.close());

    const withOption = (option: string, port?: number): string => {
      const changed = new URL(url);
      if (option !== "") changed.searchParams.set("options", `-c ${option}`);
      if (port !== undefined) changed.port = String(port);
      return changed.href;
    };

    it.each(operations)(
      "a connection that the server ends at any statement of %s: a typed error, and the old state or the new",
      async (name, run, states) => {
        const inner = new pg.Pool({ connectionString: url, max: 2 });
        inner.on("error", () => undefined);
        const standing = async (): Promise<string> => {
          const found: string[] = [];
          for (const each of [ref, other])
            found.push((await store.load(each)) === null ? "" : (await textsOf(store, each)).join(" "));
          return found.join(" | ").replace(/ \| $/, "");
        };
        const seen = new Set<string>();
        for (const phase of testSize<readonly ("during" | "before")[]>({
          short: ["during"],
          long: ["before", "during"],
        })) {
          const connections = endingPool(url, inner, phase);
          const options = { pool: connections.pool, schema, migrate: false, notify: false, timeoutMs: 3000 };
          const opened = createPostgresStore(options);
          await opened.load(other);
          for (let at = 1; ; at++) {
            Object.assign(connections, { at, sent: 0 });
            // Readying the store takes statements, too: with a load they are ended like the others.
            const ending = name === "load" ? createPostgresStore(options) : opened;
            const error: unknown = await run(ending).then(
              () => null,
              (reason: unknown) => reason,
            );
            if (error !== null && !(ThroughlineError.isInstance(error) && error.code === "STORE_UNREACHABLE"))
              throw error;
            const { sent } = connections;
            connections.at = 0;
            const now = await standing();
            expect(states).toContain(now);
            if (ThroughlineError.isInstance(error) && error.outcome === "not-applied") expect(now).toBe("a");
            seen.add(now);
            if (now !== "a") {
              await withClient(url, (client) =>
                client.query(
                  ["sessions", "records", "keyed_appends", "payloads"]
                    .map((table) => `DELETE FROM "${schema}".${table}`)
                    .join(";"),
                ),
              );
              await store.save(ref, { sessionId: "one" }, { ifRevision: null });
              await store.append(ref, [{ ...saying("a"), id: "id-a" }]);
            }
            if (sent < at) break;
          }
        }
        expect(seen).toContain(states.at(-1));
        await inner.end();
      },
    );

    it("the server's disk is full: told as that, nothing half there, and it goes on when there is room", async (context) => {
      const disk = smallDisk(12);
      if (typeof disk === "string") return context.skip(disk);
      const name = `small_${schema}`;
      try {
        await withClient(url, (client) => client.query(`CREATE TABLESPACE ${name} LOCATION '${disk.folder}'`));
        const where = `small_${schema}`;
        await using full = createPostgresStore({
          url: withOption(`default_tablespace=${name}`),
          schema: where,
          partitions: 1,
          notify: false,
        });
        await full.save(ref, { sessionId: "one" }, { ifRevision: null });
        let count = 0;
        const text = (): string => randomBytes(100_000).toString("base64");
        const refusal = async (): Promise<readonly unknown[]> => {
          for (;;) {
            const error: unknown = await full.append(ref, [saying(text()), saying(text())]).then(
              () => null,
              (reason: unknown) => reason,
            );
            if (error === null) count += 2;
            else
              return ThroughlineError.isInstance(error)
                ? [error.code, error.outcome, error.remedy?.includes("server")]
                : [error];
          }
        };
        expect(await refusal()).toEqual(["STORE_FULL", "not-applied", true]);
        expect(count).toBeGreaterThan(4);
        expect(await textsOf(full)).toHaveLength(count);
        disk.grow(40);
        await full.append(ref, [saying(text()), saying(text())]);
        expect(await textsOf(full)).toHaveLength(count + 2);
        await full.close();
        await withClient(url, (client) => client.query(`DROP SCHEMA "${where}" CASCADE`));
        await withClient(url, (client) => client.query(`DROP TABLESPACE ${name}`));
      } finally {
        disk.remove();
      }
    });

    it.each([-3_600_000, 3_600_000])(
      "a node whose clock is %i ms off: times and leases of turns are the database's",
      async (offMs) => {
        const clock: Clock = {
          nowMs: () => systemClock.nowMs() + offMs,
          sleep: (delayMs, signal) => systemClock.sleep(delayMs, signal),
        };
        await using off = createPostgresStore({ url, schema, clock, timeoutMs: 3000 });
        const { records } = await off.append(ref, [saying("off")], { entry: { updatedAt: clock.nowMs() } });
        expect(Math.abs((records[0]?.storedAtMs ?? 0) - systemClock.nowMs())).toBeLessThan(60_000);
        expect(Math.abs(((await off.load(ref))?.updatedAtMs ?? 0) - systemClock.nowMs())).toBeLessThan(60_000);
        // Turns end when their writer said, on the database's clock: of a clock that is behind they are over at once, and fenced.
        const turn = {
          action: "open",
          turnId: "t",
          owner: "off",
          leaseUntilMs: clock.nowMs() + 60_000,
          fence: 1,
        } as const;
        await off.append(ref, [saying("begun")], { turn });
        const next = store.append(ref, [saying("next")], {
          turn: { ...turn, owner: "right", fence: 2, leaseUntilMs: systemClock.nowMs() + 60_000 },
        });
        if (offMs > 0) return expect(await refusalOf(next)).toEqual(["SESSION_BUSY", "not-applied", true]);
        await next;
        const late = off.append(ref, [saying("late")], { turn: { action: "close", fence: 1 } });
        expect(await refusalOf(late)).toEqual(["TURN_FENCED", "not-applied", false]);
      },
    );

    it("records of 3 MB are kept, one of 64 MB is refused before it is sent", async () => {
      const large = saying("x".repeat(3 * 1024 ** 2));
      await store.append(ref, [large, large]);
      expect((await textsOf(store)).map((text) => text.length)).toEqual([1, 3 * 1024 ** 2, 3 * 1024 ** 2]);
      const proxy = await startProxy(Number(new URL(url).port));
      await using through = createPostgresStore({ url: withOption("", proxy.port), schema, migrate: false });
      await through.load(ref);
      const { flights } = proxy.traffic;
      expect(await refusalOf(through.append(ref, [saying("x".repeat(64 * 1024 ** 2))]))).toEqual([
        "RECORD_TOO_LARGE",
        "not-applied",
        false,
      ]);
      expect(proxy.traffic.flights).toBe(flights);
      await through.close();
      await proxy.close();
    });

    it("a statement that takes longer than the server lets it is undone, and said so", async () => {
      await using hurried = createPostgresStore({ url: withOption("statement_timeout=150"), schema, migrate: false });
      await hurried.load(ref);
      await withClient(url, async (client) => {
        await client.query(`BEGIN; SELECT FROM "${schema}".sessions FOR UPDATE`);
        expect(await refusalOf(hurried.append(ref, [saying("waits")]))).toEqual([
          "STORE_UNREACHABLE",
          "not-applied",
          true,
        ]);
        expect(await refusalOf(hurried.move(ref, { kind: "archive" }))).toEqual([
          "STORE_UNREACHABLE",
          "not-applied",
          true,
        ]);
      });
      await hurried.append(ref, [saying("b")]);
      expect(await textsOf(store)).toEqual(["a", "b"]);
    });

    it("a transaction that the server ends because its client is slow is undone, and the next one works", async () => {
      const proxy = await startProxy(Number(new URL(url).port));
      const option = "idle_in_transaction_session_timeout=400";
      await using slow = createPostgresStore({
        url: withOption(option, proxy.port),
        schema,
        migrate: false,
        timeoutMs: 10_000,
      });
      await slow.load(ref);
      proxy.delayMs = 700;
      expect(await refusalOf(slow.move(ref, { kind: "archive" }))).toEqual(["STORE_UNREACHABLE", "not-applied", true]);
      proxy.delayMs = 0;
      await slow.append(ref, [saying("b")]);
      expect(await textsOf(store)).toEqual(["a", "b"]);
      await slow.close();
      await proxy.close();
    });

    it("a server that panics in a commit may have kept it: unknown, and the key tells", async () => {
      const panics: PostgresPool = {
        waitingCount: 0,
        async connect() {
          const client = await pool.connect();
          return {
            release: (error) => client.release(error),
            async query(query) {
              const answer = await client.query(query);
              if (!query.text.includes("append_1(")) return answer;
              // As the server says it when the flush of its log fails.
              const panic = new pg.DatabaseError("could not fdatasync file", 100, "error");
              throw Object.assign(panic, { code: "58030", severity });
            },
          };
        },
      };
      const pool = new pg.Pool({ connectionString: url, max: 2 });
      const options = { idempotencyKey: "turn-1" };
      let severity = "PANIC";
      await using panicking = createPostgresStore({ pool: panics, schema, migrate: false });
      expect(await refusalOf(panicking.append(ref, [saying("b")], options))).toEqual(["STORE_IO", "unknown", false]);
      severity = "PANIK";
      expect((await refusalOf(panicking.append(ref, [saying("b")], options)))[1]).toBe("unknown");
      expect((await store.append(ref, [saying("b")], options)).replayed).toBe(true);
      expect(await textsOf(store)).toEqual(["a", "b"]);
      await pool.end();
    });

    it("a server that is older than supported is refused, with what to do", async () => {
      const proxy = await startProxy(Number(new URL(url).port));
      // What it says of its version, in the answer to the question that the store asks first.
      proxy.rewrite = (chunk) =>
        Buffer.from(chunk.toString("latin1").replace(/1[4-9](\d{4})(?=.{4}UTF8)/s, "13$1"), "latin1");
      await using old = createPostgresStore({ url: withOption("", proxy.port), schema: newSchema() });
      const error: unknown = await old.list().catch((reason: unknown) => reason);
      expect(ThroughlineError.isInstance(error) && [error.code, error.remedy]).toEqual([
        "STORE_UNSUPPORTED",
        "Upgrade the server. The store is tested on PostgreSQL 15 and 18.",
      ]);
      await old.close();
      await proxy.close();
    });
  },
);
