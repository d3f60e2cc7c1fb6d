import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { SessionRef } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import Database from "better-sqlite3";
import { afterEach, describe, expect, it } from "vitest";

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

const refOf = (index: number): SessionRef => ({ namespace: "", agentId: "main", key: `agent:main:w:${index}` });

/** Counts the statements of a handle, those that only ask for the data version too. */
function countedStore(path: string): {
  readonly store: ReturnType<typeof createSqliteStore>;
  readonly asked: string[];
} {
  const asked: string[] = [];
  const store = createSqliteStore({
    path,
    searchFill: "on-demand",
    driver: (file, options) => {
      const database = new Database(file, options);
      const prepare = database.prepare.bind(database);
      database.prepare = ((sql: string) => {
        const statement = prepare(sql);
        for (const name of ["get", "all", "run"] as const) {
          const method = statement[name].bind(statement) as (...given: unknown[]) => unknown;
          Object.assign(statement, { [name]: (...given: unknown[]) => (asked.push(sql), method(...given)) });
        }
        return statement;
      }) as typeof database.prepare;
      return database;
    },
  });
  return { store, asked };
}

describe("watches of many sessions", () => {
  it(
    "ask one statement together while nothing happens, and hear of what another handle writes",
    { timeout: 60_000 },
    async () => {
      const folder = mkdtempSync(join(tmpdir(), "idle-watches-"));
      folders.push(folder);
      const path = join(folder, "store.db");
      const count = 200;
      await using writer = createSqliteStore({ path });
      for (let index = 0; index < count; index++)
        await writer.save(refOf(index), { sessionId: `s${index}` }, { ifRevision: null, durability: "process" });
      const { store, asked } = countedStore(path);
      const controller = new AbortController();
      const seen: string[] = [];
      const watches = Array.from({ length: count }, async (_, index) => {
        for await (const { records } of store.watch?.watch(refOf(index), { afterSeq: 0, signal: controller.signal }) ??
          [])
          seen.push(...records.map(({ seq }) => `${index}:${seq}`));
      });
      // Until all have begun and looks have become seldom: at most two a second, and one that was due.
      let from = -Infinity;
      for (let waited = 0; asked.length - from > 5 && waited < 20; waited++) {
        from = asked.length;
        await pause(2000);
      }
      expect(asked.length - from).toBeLessThanOrEqual(5);
      expect(new Set(asked.slice(from))).toEqual(new Set(["PRAGMA data_version"]));
      const before = asked.length;
      for (const index of [0, 77, 199])
        await writer.append(refOf(index), [{ type: "message", message: { role: "user", content: "hi" } }]);
      for (let waited = 0; seen.length < 3 && waited < 500; waited++) await pause(20);
      expect(seen.toSorted()).toEqual(["0:1", "199:1", "77:1"]);
      // Nobody but the three who have something to read has read.
      const reads = asked.slice(before).filter((sql) => sql.includes("store_records"));
      expect(reads.length).toBeLessThanOrEqual(12);
      controller.abort();
      await Promise.all(watches);
      await store.close();
    },
  );
});
