import { statSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import type { SessionRef, SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createFaultyDriver } from "./faulty-driver.ts";
import { createSession, testFolder } from "./test-folder.ts";

interface Cost {
  /** Without the values: each statement and how often it ran. */
  readonly statements: readonly string[];
  /** What the log has grown by. */
  readonly logBytes: number;
}

interface Measured {
  readonly store: SessionStore;
  readonly path: string;
  cost(work: () => Promise<unknown>): Promise<Cost>;
}

function openMeasured(): Measured {
  const path = join(testFolder(), "store.db");
  const { driver, statements } = createFaultyDriver();
  const store = createSqliteStore({ path, driver, searchFill: "on-demand" });
  return {
    store,
    path,
    cost: async (work) => {
      const other = new Database(path);
      other.pragma("wal_checkpoint(TRUNCATE)");
      other.close();
      const from = statements().length;
      await work();
      // The length of the log is asked for once in some commits, after them. The minute that lists sort by is written
      // when the clock has passed into another one.
      const timed = /^(?:PRAGMA wal_checkpoint|UPDATE store_sessions SET updated_slot)/;
      const ran = statements().filter((sql, index) => index >= from && !timed.test(sql));
      return { statements: ran, logBytes: statSync(`${path}-wal`).size };
    },
  };
}

const turn = [200, 300, 1700, 500].map((size) => say("x".repeat(size)));

async function readLast(store: SessionStore, ref: SessionRef): Promise<void> {
  let count = 0;
  for await (const { records } of store.read(ref, { order: "descending", limit: 20 })) count += records.length;
  expect(count).toBe(20);
}

/** So many records, as an importer brings them. */
async function fill(store: SessionStore, ref: SessionRef, records: number): Promise<void> {
  const lastSeq = (await store.load(ref))?.head.lastSeq ?? 0;
  for (let left = records - lastSeq; left > 0; left -= 1000) {
    await store.append(
      ref,
      Array.from({ length: Math.min(left, 1000) }, (_, index) => say(`n${index} ${"y".repeat(100)}`)),
      { durability: "process" },
    );
  }
}

describe("the cost of a turn", () => {
  it(
    "is the same at 10, 1,000 and 100,000 records: statements run, bytes logged",
    { tags: ["slow"], timeout: 120_000 },
    async () => {
      const { store, cost } = openMeasured();
      const ref = await createSession(store, "a");
      const costs: { readonly append: Cost; readonly keyed: Cost; readonly read: Cost; readonly load: Cost }[] = [];
      for (const size of [10, 1000, 100_000]) {
        await fill(store, ref, size);
        await fill(store, ref, size + 20);
        costs.push({
          append: await cost(() => store.append(ref, turn)),
          keyed: await cost(() =>
            store.append(ref, turn, { idempotencyKey: `k${size}`, entry: { totalTokens: size }, windowFromSeq: 1 }),
          ),
          read: await cost(() => readLast(store, ref)),
          load: await cost(() => store.load(ref)),
        });
      }
      const [small, ...larger] = costs;
      for (const each of larger) {
        for (const name of ["append", "keyed", "read", "load"] as const)
          expect(each[name].statements).toEqual(small?.[name].statements);
        // A page of the log has 8 KB: a b-tree that is one level deeper, or a page that splits, costs a few of them.
        for (const name of ["append", "keyed"] as const)
          expect(each[name].logBytes).toBeLessThanOrEqual((small?.[name].logBytes ?? 0) + 6 * 8216);
      }
      expect(small?.append.statements.filter((sql) => sql.startsWith("INSERT INTO store_records"))).toHaveLength(4);
      expect(small?.append.statements).toHaveLength(9);
      await store.close();
    },
  );

  it("is one commit, with its entry and its key", async () => {
    const { store, cost } = openMeasured();
    const ref = await createSession(store, "a");
    const { statements } = await cost(() =>
      store.append(ref, turn, { idempotencyKey: "k", entry: { model: "m" }, windowFromSeq: 2 }),
    );
    expect(statements.filter((sql) => /^(BEGIN|COMMIT|SAVEPOINT|ROLLBACK)/.test(sql))).toEqual([
      "BEGIN IMMEDIATE",
      "COMMIT",
    ]);
    await store.close();
  });

  it("holds no ids for a session in which nobody chose one, and catches up when somebody does", async () => {
    const { store, path } = openMeasured();
    const ref = await createSession(store, "a");
    await fill(store, ref, 12_000);
    const database = new Database(path, { readonly: true });
    const ids = (): unknown => database.prepare("SELECT count(*) FROM store_record_ids").pluck().get();
    expect(ids()).toBe(0);
    const { records } = await store.append(ref, [say("made here")]);
    const taken = store.append(ref, [say("again", { id: records[0]?.id })]);
    await expect(taken).rejects.toMatchObject({ code: "RECORD_ID_TAKEN", outcome: "not-applied" });
    await store.append(ref, [say("free", { id: "free" })]);
    expect(ids()).toBe(12_002);
    await expect(store.append(ref, [say("twice", { id: "free" })])).rejects.toMatchObject({ code: "RECORD_ID_TAKEN" });
    database.close();
    await store.close();
  });
});

describe("group commit", () => {
  it("puts what arrives together into one transaction, at most 64 appends each, and a refusal harms nobody else", async () => {
    const { store, cost } = openMeasured();
    const ref = await createSession(store, "a");
    await createSession(store, "b");
    const appends = Array.from({ length: 130 }, (_, index) =>
      index % 10 === 3 ? { ref: refOf("nobody") } : { ref: index % 2 === 0 ? ref : refOf("b") },
    );
    let settled: PromiseSettledResult<unknown>[] = [];
    const { statements } = await cost(async () => {
      settled = await Promise.allSettled(appends.map((each, index) => store.append(each.ref, [say(`n${index}`)])));
    });
    expect(settled.map(({ status }) => status)).toEqual(
      appends.map((each) => (each.ref.key.endsWith("nobody") ? "rejected" : "fulfilled")),
    );
    const commits = statements.filter((sql) => sql === "COMMIT").length;
    expect(commits).toBeGreaterThanOrEqual(3);
    expect(commits).toBeLessThan(30);
    expect([(await store.load(ref))?.head.lastSeq, (await store.load(refOf("b")))?.head.lastSeq]).toEqual([65, 52]);
    await store.close();
  });
});
