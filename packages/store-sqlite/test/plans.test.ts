import { join } from "node:path";
import Database from "better-sqlite3";
import { planList } from "@throughline/store-kit/internal";
import type { ListQuery } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { listStatement } from "../src/list-sessions.ts";
import { prepareStatements } from "../src/statements.ts";
import type { Statements } from "../src/statements.ts";
import { say } from "./append-drafts.ts";
import { createSession, testFolder } from "./test-folder.ts";

/** Statements of one row or of a range of one session, by the table they must search and never scan. */
const hot = [
  "findCurrent",
  "findArchived",
  "findSession",
  "findIds",
  "findAgent",
  "updateSession",
  "countKeyed",
  "placeSession",
  "moveSession",
  "findEntry",
  "replaceRecord",
  "catchUpIds",
  "findId",
  "findKeyed",
  "renewKeyed",
  "oldKeyed",
  "deleteKeyed",
  "deleteRecords",
  "deleteSession",
  "childrenIn",
  "takeOutChild",
  "setSource",
  "findPurges",
  "countBySource",
  "countByDigest",
] as const satisfies readonly (keyof Statements)[];

function planOf(database: Database.Database, sql: string, values: unknown): string[] {
  const rows = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(values) as { readonly detail: string }[];
  return rows.map(({ detail }) => detail);
}

/** Values for every parameter; what they are makes no difference to a plan that looks at none. */
function valuesFor(sql: string): unknown {
  const names = [...sql.matchAll(/@(\w+)/g)].map(([, name]) => [name, 1]);
  return names.length > 0 ? Object.fromEntries(names) : Array.from(sql.matchAll(/\?/g), () => 1);
}

/** Every plan of the store on this database. */
function expectPlans(database: Database.Database): void {
  const statements = prepareStatements(database);
  const ranges = [statements.readHeads, statements.readRecords].flatMap(({ ascending, descending }) => [
    ascending.source,
    descending.source,
  ]);
  for (const sql of [...hot.map((name) => statements[name].source), ...ranges]) {
    const plan = planOf(database, sql, valuesFor(sql));
    expect(
      plan.filter((step) => !step.startsWith("SEARCH")),
      `${sql}: ${plan.join("; ")}`,
    ).toEqual([]);
  }
  for (const sql of ranges)
    expect(planOf(database, sql, valuesFor(sql))[0]).toMatch(
      /USING INDEX sqlite_autoindex_store_records_1 \(session=\? AND seq>\? AND seq<\?\)/,
    );
  expect(planOf(database, statements.findCurrent.source, ["", "a", "k"])[0]).toContain(
    "store_sessions_current (namespace=? AND agent_id=? AND key=?)",
  );
}

function listPlan(database: Database.Database, query: ListQuery): string[] {
  const { sql, values } = listStatement(query, planList(query));
  return planOf(database, sql, values);
}

/** The indexes that a statement writes, as the bytecode of SQLite states. */
function writtenIndexes(database: Database.Database, sql: string): number {
  const steps = database.prepare(`EXPLAIN ${sql}`).all(valuesFor(sql)) as { readonly opcode: string }[];
  return steps.filter(({ opcode }) => opcode === "IdxInsert" || opcode === "IdxDelete").length;
}

describe("an append", () => {
  it("writes no index of the sessions, and only another source writes the index of sources", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path });
    await store.list();
    const database = new Database(path);
    try {
      const { advanceSession, updateSession, setSource } = prepareStatements(database);
      expect(writtenIndexes(database, advanceSession.source)).toBe(0);
      expect(writtenIndexes(database, updateSession.source)).toBe(0);
      expect(writtenIndexes(database, setSource.source)).toBe(4);
    } finally {
      database.close();
    }
  });
});

describe("query plans", () => {
  it("search by index, on empty tables and on full ones with statistics", async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path });
    await store.list();
    const database = new Database(path);
    try {
      expectPlans(database);
      const refs = [];
      for (let index = 0; index < 300; index++) refs.push(await createSession(store, `n${index}`));
      await Promise.all(
        refs.map((ref, index) =>
          store.append(ref, [say("one"), say("two", { id: `given-${index}` })], { idempotencyKey: "k" }),
        ),
      );
      await store.append(
        refs[0] ?? expect.unreachable(),
        Array.from({ length: 1000 }, () => say("many")),
      );
      database.exec("ANALYZE");
      expectPlans(database);
      const cursor = planList({}).cursorAt([-1, "a", "k", "s"]);
      for (const query of [{}, { cursor }, { sinceMs: 1, untilMs: 2 }, { state: "archived" }] satisfies ListQuery[]) {
        const plan = listPlan(database, query);
        expect(plan.join("; "), JSON.stringify(query)).toMatch(
          /SEARCH s USING INDEX store_sessions_updated \(namespace=\? AND archived=\?/,
        );
        // The index gives the order of the minutes: the database reads and sorts those it shows, however many sessions there are.
        expect(plan.filter((step) => /SCAN store|TEMP B-TREE FOR ORDER BY/.test(step))).toEqual([]);
      }
      const byKey = listPlan(database, {
        sort: "key",
        agentId: "main",
        state: "any",
        cursor: planList({ sort: "key", agentId: "main", state: "any" }).cursorAt([0, "a", "k", "s"]),
      });
      for (const query of [
        {},
        { agentId: "main", sort: "key" },
        { state: "active", sinceMs: 1 },
      ] satisfies ListQuery[]) {
        const bySource = listPlan(database, { ...query, importedFrom: { format: "pi", sourceId: "s" } });
        expect(bySource[1], JSON.stringify(query)).toBe(
          "SEARCH s USING INDEX store_sessions_source (namespace=? AND source_digest=?)",
        );
        expect(bySource.filter((step) => step.startsWith("SCAN store"))).toEqual([]);
      }
      expect(byKey.join("; ")).toMatch(/SEARCH s USING INDEX store_sessions_key \(namespace=\? AND agent_id=\?/);
    } finally {
      database.close();
    }
  });
});
