import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import type { Finding, ListQuery, SessionStore } from "@throughline/core";
import { systemClock } from "@throughline/core/internal";
import { createSqliteStore, restoreSqliteBackup } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createFaultyDriver } from "./faulty-driver.ts";
import { createSession, testFolder } from "./test-folder.ts";

const source = { format: "claude-code", sourceId: "6f1c" };
const importedFrom = { format: "claude-code", sessionId: "6f1c", path: "/home/a.jsonl" };
const purgedAtMs = Date.UTC(2026, 4, 6);
const clock = { ...systemClock, nowMs: () => purgedAtMs };

async function purgeOf(path: string, query: ListQuery = {}): Promise<number | null | undefined> {
  await using store = createSqliteStore({ path, create: false, recover: false });
  return (await store.list({ importedFrom: source, ...query })).purgedAtMs;
}

async function imported(store: SessionStore, name: string): Promise<void> {
  await store.save(refOf(name), { sessionId: `session-${name}`, importedFrom }, { ifRevision: null });
}

/** A closed store with a purged source, a session of the same source, and a session with records. */
async function filled(path: string): Promise<void> {
  await using store = createSqliteStore({ path, clock, recover: false });
  for (const name of ["a", "b"]) await imported(store, name);
  const other = await createSession(store, "c");
  for (let each = 0; each < 20; each++) await store.append(other, [say(`text ${each} ${"x".repeat(900)}`)]);
  await store.remove(refOf("a"), { purge: true });
}

async function findingsOf(findings: AsyncIterable<Finding> | undefined): Promise<Finding[]> {
  return Array.fromAsync(findings ?? []);
}

/** Repairs a store, and returns the path of the copy. */
async function repaired(path: string): Promise<string> {
  await using store = createSqliteStore({ path, create: false, recover: false });
  const findings = await findingsOf(store.maintenance?.repair());
  expect(findings.at(-1)).toMatchObject({ code: "STORE_DAMAGED", repaired: true });
  return findings.at(-1)?.path ?? "";
}

function change(path: string, sql: string): void {
  const database = new Database(path);
  expect(database.prepare(sql).run().changes).toBe(1);
  database.close();
}

describe("a purged source", () => {
  it("is in a backup, in what is restored from it, and in a repaired copy", async () => {
    const path = join(testFolder(), "store.db");
    await filled(path);
    const backupPath = `${path}.backup`;
    {
      await using store = createSqliteStore({ path });
      await store.maintenance?.backup?.(backupPath);
      await store.remove(refOf("b"), { purge: true });
    }
    expect(await purgeOf(path)).toBeGreaterThan(purgedAtMs);
    restoreSqliteBackup({ backupPath, path, keptAs: "before" });
    expect(await purgeOf(path)).toBe(purgedAtMs);
    // SQLite reads the table of this store.
    change(path, "UPDATE store_records SET text = 'x' WHERE seq = 3");
    const copy = await repaired(path);
    expect(await purgeOf(copy)).toBe(purgedAtMs);
    expect(await purgeOf(copy, { agentId: "other" })).toBe(null);
    await using store = createSqliteStore({ path: copy });
    expect((await store.list({ importedFrom: source })).sessions.map(({ sessionId }) => sessionId)).toEqual([
      "session-b",
    ]);
    expect(await findingsOf(store.maintenance?.verify({ full: true }))).toEqual([]);
  });

  it("is found on the pages of a file that SQLite does not read", async () => {
    const path = join(testFolder(), "store.db");
    await filled(path);
    const bytes = readFileSync(path);
    bytes.fill(0, 0, 4096);
    writeFileSync(path, bytes);
    expect(await purgeOf(await repaired(path))).toBe(purgedAtMs);
  });

  it.each([
    ["time", "purged_at_ms = purged_at_ms - 1"],
    ["agent", "agent_id = 'maim'"],
    ["digest", "source_digest = 'a'"],
  ])("whose %s changed is reported, and no backup has it", async (_what, changed) => {
    const path = join(testFolder(), "store.db");
    await filled(path);
    change(path, `UPDATE store_purged_sources SET ${changed}`);
    await using store = createSqliteStore({ path });
    const findings = await findingsOf(store.maintenance?.verify());
    expect(findings.map(({ code }) => code)).toEqual(["STORE_DAMAGED"]);
    expect(findings[0]?.message).toContain("1 of the marks");
    await expect(store.maintenance?.backup?.(`${path}.backup`)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    const isFound = !changed.startsWith("source_digest");
    if (isFound) await expect(store.list({ importedFrom: source })).rejects.toMatchObject({ code: "STORE_CORRUPT" });
  });

  it("does not reveal the source or the key of its session", async () => {
    const path = join(testFolder(), "store.db");
    {
      await using store = createSqliteStore({ path, clock });
      const named = { format: "claude-code", sessionId: "very-secret-source" };
      await store.save(refOf("hidden"), { sessionId: "hidden-id", importedFrom: named }, { ifRevision: null });
      await store.remove(refOf("hidden"), { purge: true });
    }
    expect(readFileSync(path).toString("latin1")).not.toMatch(/very-secret|hidden/i);
    expect(await purgeOf(path, { importedFrom: { format: "claude-code", sourceId: "Very-Secret-Source" } })).toBe(
      purgedAtMs,
    );
  });
});

describe("the source of a session", () => {
  it("is looked up without a look at the other sessions, also for the first time", async () => {
    const path = join(testFolder(), "store.db");
    await filled(path);
    const { driver, statements } = createFaultyDriver();
    await using store = createSqliteStore({ path, driver });
    expect((await store.list({ importedFrom: source })).sessions).toHaveLength(1);
    expect(statements().filter((sql) => sql.includes("NOT INDEXED"))).toEqual([]);
    // The control: other lists compare the whole table with its indexes once.
    await store.list();
    expect(statements().filter((sql) => sql.includes("NOT INDEXED"))).not.toEqual([]);
  });

  it("is named where the row of its session is damaged", async () => {
    const path = join(testFolder(), "store.db");
    await filled(path);
    change(path, "UPDATE store_sessions SET revision = revision + 1 WHERE session = 2");
    const codes: string[] = [];
    await using store = createSqliteStore({
      path,
      onEvent: (event) => void (event.name === "finding" && codes.push(event.finding.code)),
    });
    expect((await store.list({ importedFrom: source })).sessions).toEqual([]);
    expect(codes).toEqual(["STORE_DAMAGED"]);
  });

  it("is that of the entry in a repaired copy, and none where the entry was lost", async () => {
    const path = join(testFolder(), "store.db");
    await filled(path);
    change(path, "DELETE FROM store_entries WHERE session = 2");
    await using store = createSqliteStore({ path: await repaired(path) });
    expect((await store.list({ importedFrom: source })).sessions).toEqual([]);
    expect((await store.load(refOf("b")))?.entry).toEqual({ sessionId: "session-b" });
  });
});
