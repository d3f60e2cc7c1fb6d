import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionStore } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { createMemoryStore } from "@throughline/store-memory";
import { createPostgresStore } from "@throughline/store-postgres";
import { createSqliteStore } from "@throughline/store-sqlite";
import { afterAll, describe } from "vitest";
import { startPostgres } from "../../store-postgres/test/postgres-server.ts";

/** An empty store of its own for each test. */
export type OpenStore = () => SessionStore;

/** Runs the same tests over memory, JSON Lines, SQLite and PostgreSQL. */
export async function describeStores(name: string, tests: (open: OpenStore) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "throughline-adapter-"));
  const postgres = await startPostgres();
  const opened: SessionStore[] = [];
  let count = 0;
  afterAll(async () => {
    for (const store of opened) await store.close();
    if ("stop" in postgres) await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const kinds: readonly (readonly [string, (at: string) => SessionStore])[] = [
    ["memory", () => createMemoryStore()],
    ["jsonl", (at) => createJsonlStore({ root: join(folder, at) })],
    ["sqlite", (at) => createSqliteStore({ path: join(folder, `${at}.db`), create: true })],
    ...("url" in postgres
      ? [["postgres", (at: string) => createPostgresStore({ url: postgres.url, schema: at })] as const]
      : []),
  ];
  describe.each(kinds)(`${name}, over %s`, (_kind, open) => {
    tests(() => {
      count += 1;
      const store = open(`s${count}`);
      opened.push(store);
      return store;
    });
  });
}
