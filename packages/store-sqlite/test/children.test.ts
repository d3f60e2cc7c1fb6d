import { join } from "node:path";
import Database from "better-sqlite3";
import { hasErrorCode, type Finding, type SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { createXorCodec } from "@throughline/store-conformance";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { refOf, say } from "./append-drafts.ts";
import { createFaultyDriver } from "./faulty-driver.ts";
import { createSession, quickFolder, testFolder } from "./test-folder.ts";

const bySession = "SELECT id FROM children WHERE session = ? AND parent_id = ?";
const byKey =
  "SELECT id FROM children WHERE namespace = '' AND agent_id = 'main' AND session_key = ? AND parent_id = ?";

function planOf(database: Database.Database, sql: string, ...values: readonly unknown[]): string[] {
  const rows = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values) as { readonly detail: string }[];
  return rows.map(({ detail }) => detail);
}

function childrenOf(database: Database.Database, name: string, parentId: string): unknown[] {
  return database.prepare(`${byKey} ORDER BY seq`).pluck().all(refOf(name).key, parentId);
}

function entered(database: Database.Database): number {
  return database.prepare("SELECT count(*) FROM store_children").pluck().get() as number;
}

/** r1 has the children r2, r4 and r5; r2 has r3. */
const tree = [
  say("one", { id: "r1", parentId: null }),
  say("two", { id: "r2", parentId: "r1" }),
  say("three", { id: "r3", parentId: "r2" }),
  say("four", { id: "r4", parentId: "r1" }),
  say("five", { id: "r5", parentId: "r1" }),
];

async function isFilled(database: Database.Database, count: number): Promise<void> {
  for (let waits = 0; entered(database) < count && waits < 200; waits++) await systemClock.sleep(20);
  expect(entered(database)).toBe(count);
}

async function findingsOf(store: SessionStore): Promise<Finding[]> {
  const findings: Finding[] = [];
  for await (const finding of store.maintenance?.verify({ full: true }) ?? []) findings.push(finding);
  return findings;
}

describe("the children of a record", () => {
  it(
    "are found by parent id through an index search, filled behind the turns, which run no statement for it",
    { tags: ["slow"] },
    async () => {
      const path = join(testFolder(), "store.db");
      const { driver, statements } = createFaultyDriver();
      await using store = createSqliteStore({ path, driver });
      await Promise.all(Array.from({ length: 60 }, (_, index) => createSession(store, `n${index}`)));
      await store.append(await createSession(store, "a"), tree);
      expect(statements().filter((sql) => sql.includes("store_children"))).toEqual([]);
      const database = new Database(path);
      // What is not entered yet is found as well: by going through the end of the log.
      expect([entered(database), childrenOf(database, "a", "r1")]).toEqual([0, ["r2", "r4", "r5"]]);
      await isFilled(database, 4);
      expect([childrenOf(database, "a", "r1"), childrenOf(database, "a", "r2")]).toEqual([["r2", "r4", "r5"], ["r3"]]);
      expect(childrenOf(database, "a", "r5")).toEqual([]);
      for (const isAnalyzed of [false, true]) {
        if (isAnalyzed) database.exec("ANALYZE");
        for (const [sql, ...values] of [
          [bySession, 1, "r1"],
          [byKey, "k", "r1"],
        ] as const) {
          const plan = planOf(database, sql, ...values);
          expect(plan).toContain("SEARCH c USING PRIMARY KEY (session=? AND parent_id=?)");
          // `up` are the origins of a fork, one row a level; `t` has one row in all.
          expect(plan.filter((step) => step.startsWith("SCAN") && !/^SCAN (up|t|CONSTANT ROW)$/.test(step))).toEqual(
            [],
          );
          expect(plan.filter((step) => /SEARCH r /.test(step))).toEqual([
            "SEARCH r USING INDEX sqlite_autoindex_store_records_1 (session=? AND seq=?)",
            "SEARCH r USING INTEGER PRIMARY KEY (rowid>?)",
            "SEARCH r USING INDEX sqlite_autoindex_store_records_1 (session=? AND seq=?)",
            "SEARCH r USING INTEGER PRIMARY KEY (rowid>?)",
          ]);
        }
      }
      database.close();
    },
  );

  it(
    "of a fork are those it shares and its own, however deep it stands, and stay when its origin is purged or redacted",
    { tags: ["slow"] },
    async () => {
      const path = join(testFolder(), "store.db");
      await using store = createSqliteStore({ path, searchFill: "on-demand" });
      const ref = await createSession(store, "a");
      await store.append(ref, tree);
      await store.fork?.fork(ref, refOf("b"), { sessionId: "b", atSeq: 4 });
      await store.append(refOf("b"), [say("six", { id: "r6", parentId: "r1" })]);
      await store.fork?.fork(refOf("b"), refOf("c"), { sessionId: "c" });
      await store.append(refOf("c"), [say("seven", { id: "r7", parentId: "r1" })]);
      await store.append(ref, [say("eight", { id: "r8", parentId: "r1" })]);
      const database = new Database(path);
      const all = (): unknown[] => ["a", "b", "c"].map((name) => childrenOf(database, name, "r1").join(" "));
      const expected = ["r2 r4 r5 r8", "r2 r4 r6", "r2 r4 r6 r7"];
      expect([all(), entered(database)]).toEqual([expected, 0]);
      await store.search?.rebuild?.();
      expect([all(), entered(database)]).toEqual([expected, 7]);
      await store.redact(ref, ["r2"], { reason: "test" });
      expect([all(), await findingsOf(store)]).toEqual([expected, []]);
      await store.remove(ref, { purge: true });
      expect([all(), entered(database)]).toEqual([["", ...expected.slice(1)], 5]);
      expect(await findingsOf(store)).toEqual([]);
      // Numbers of records are used again: those that come now are not taken for entered ones.
      await store.remove(refOf("c"), { purge: true });
      await store.append(refOf("b"), [say("nine", { id: "r9", parentId: "r6" })]);
      expect(childrenOf(database, "b", "r6")).toEqual(["r9"]);
      await store.search?.rebuild?.();
      expect([childrenOf(database, "b", "r6"), entered(database)]).toEqual([["r9"], 5]);
      database.close();
    },
  );

  it("that are lost from the table are told by a full check, and come back when it is made anew", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, searchFill: "on-demand" });
    await store.append(await createSession(store, "a"), tree);
    await store.search?.rebuild?.();
    const database = new Database(path);
    database.exec("DELETE FROM store_children WHERE seq = 4");
    expect(await findingsOf(store)).toMatchObject([{ code: "STORE_DAMAGED", key: refOf("a").key }]);
    await store.search?.rebuild?.();
    expect([await findingsOf(store), childrenOf(database, "a", "r1")]).toEqual([[], ["r2", "r4", "r5"]]);
    database.close();
  });

  it("are found under a codec too", { tags: ["slow"] }, async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path, codec: createXorCodec() });
    await store.append(await createSession(store, "a"), tree);
    const database = new Database(path);
    await isFilled(database, 4);
    expect(childrenOf(database, "a", "r1")).toEqual(["r2", "r4", "r5"]);
    database.close();
  });

  it(
    "are what the records say after every kind of change, by three handles, whatever is entered by then",
    { tags: ["slow"] },
    async () => {
      const path = join(testFolder(quickFolder()), "store.db");
      const stores = [0, 1, 2].map(() => createSqliteStore({ path, lockTimeoutMs: 30_000 }));
      await createSession(stores[0] ?? expect.unreachable(), "s0");
      const database = new Database(path);
      const difference = (one: string, other: string): unknown =>
        database
          .prepare(
            `SELECT count(*) FROM (SELECT session, parent_id, id FROM ${one} WHERE parent_id IS NOT NULL
           EXCEPT SELECT session, parent_id, id FROM ${other})`,
          )
          .pluck()
          .get();
      const names = ["s0"];
      let state = 7;
      const random = (below: number): number => {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        return (state >>> 8) % below;
      };
      for (let step = 0; step < testSize({ short: 60, long: 600 }); step++) {
        const [store, at] = [stores[random(3)] ?? expect.unreachable(), random(names.length)];
        const ref = refOf(names[at] ?? "s0");
        const kind = random(16);
        if (kind < 9)
          await store.append(
            ref,
            Array.from({ length: 1 + random(4) }, () => say(`w${step}`)),
          );
        else if (kind < 12) {
          const atSeq = random(((await store.load(ref))?.head.lastSeq ?? 0) + 1);
          names.push(`f${step}`);
          await store.fork?.fork(ref, refOf(`f${step}`), { sessionId: `f${step}`, atSeq });
        } else if (kind === 12 && names.length > 3) {
          names.splice(at, 1);
          await purge(store, ref);
        } else if (kind === 13) await store.search?.rebuild?.();
        else for await (const _hit of store.search?.search({ text: `w${random(step + 1)}` }) ?? []);
        if (step % 20 === 19)
          expect([step, difference("records", "children"), difference("children", "records")]).toEqual([step, 0, 0]);
      }
      expect(await findingsOf(stores[0] ?? expect.unreachable())).toEqual([]);
      database.close();
      for (const store of stores) await store.close();
    },
  );
});

/** Another handle's reader may keep the log for a moment; the content is gone all the same. */
async function purge(store: SessionStore, ref: ReturnType<typeof refOf>): Promise<void> {
  await store.remove(ref, { purge: true }).catch((error: unknown) => {
    if (!hasErrorCode(error, "STORE_LOCKED")) throw error;
  });
}
