import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import type { SessionEvent } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { expect, it } from "vitest";
import { refOf, say } from "./append-drafts.ts";
import { createSession, testFolder, textsOf } from "./test-folder.ts";

const script = fileURLToPath(new URL("purge-until-killed.ts", import.meta.url));
const pageBytes = 8192;

/** A store whose session a was being purged when the process was killed; b has as many records, c a few. */
async function interruptedPurge(until: string, isIndexed: boolean): Promise<string> {
  const path = join(testFolder(), "store.db");
  await using store = createSqliteStore({ path, searchFill: "on-demand" });
  for (const name of ["a", "b"]) {
    const ref = await createSession(store, name);
    for (let from = 0; from < 2200; from += 550)
      await store.append(
        ref,
        Array.from({ length: 550 }, (_, index) => say(`word ${name} ${from + index}`)),
      );
  }
  await store.append(await createSession(store, "c"), [say("shortlived")]);
  if (isIndexed) await Array.fromAsync(store.search?.search({ text: "word" }) ?? []);
  await store.close();
  const { signal } = spawnSync(process.execPath, ["--conditions=@throughline/source", script, path, until]);
  expect(signal).toBe("SIGKILL");
  return path;
}

/** Fills a page with zeros: the first one of a table that the look at its bytes says is the one. */
function damage(path: string, table: string, isIt: (page: Buffer) => boolean): void {
  const database = new Database(path);
  database.pragma("wal_checkpoint(TRUNCATE)");
  const pages = database
    .prepare<[string], number>("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY pageno")
    .pluck()
    .all(table);
  database.close();
  const bytes = readFileSync(path);
  const pageAt = (number: number): Buffer => bytes.subarray((number - 1) * pageBytes, number * pageBytes);
  const found = pages.find((number) => isIt(pageAt(number))) ?? expect.unreachable("no such page");
  pageAt(found).fill(0);
  writeFileSync(path, bytes);
}

function purgedIn(path: string): number[] {
  const database = new Database(path, { readonly: true });
  const counted = database.prepare<[], number>(
    "SELECT count(r.seq) FROM store_sessions s LEFT JOIN store_records r USING (session) WHERE s.namespace = '(purged)' GROUP BY s.session",
  );
  try {
    return counted.pluck().all();
  } finally {
    database.close();
  }
}

it("a purge is made although what an earlier one has left stands on a damaged page, which is told and kept", async () => {
  const path = await interruptedPurge("1", false);
  damage(path, "store_records", (page) => page.includes("word a 2100"));
  const events: SessionEvent[] = [];
  await using store = createSqliteStore({ path, searchFill: "on-demand", onEvent: (event) => events.push(event) });
  for (const name of ["b", "c"]) {
    await store.remove(refOf(name), { purge: true });
    expect(await store.load(refOf(name))).toBeNull();
  }
  await expect(store.remove(refOf("c"), { purge: true })).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  const findings = events.flatMap((event) => (event.name === "finding" ? [event.finding] : []));
  expect(findings).toMatchObject([{ code: "STORE_DAMAGED", path, message: /purged/ }]);
  const again = await createSession(store, "b");
  await store.append(again, [say("goes on")]);
  expect(await textsOf(store, again)).toEqual(["goes on"]);
  await store.close();
  // Of a, what stands before the damage is deleted; nothing is left of the others.
  expect(purgedIn(path)).toHaveLength(1);
  expect(readFileSync(path).includes("word b ")).toBe(false);
  expect(readFileSync(path).includes("shortlived")).toBe(false);
});

it(
  "a purge is made although an index that was put aside by an earlier one is damaged",
  { tags: ["slow"] },
  async () => {
    const path = await interruptedPurge("index", true);
    damage(path, "store_search_old", () => true);
    const events: SessionEvent[] = [];
    await using store = createSqliteStore({ path, searchFill: "on-demand", onEvent: (event) => events.push(event) });
    await Array.fromAsync(store.search?.search({ text: "word" }) ?? []);
    await store.remove(refOf("b"), { purge: true });
    expect(await store.load(refOf("b"))).toBeNull();
    expect(await Array.fromAsync(store.search?.search({ text: "word" }) ?? [])).toEqual([]);
    expect(await Array.fromAsync(store.search?.search({ text: "shortlived" }) ?? [])).toHaveLength(1);
    const findings = events.flatMap((event) => (event.name === "finding" ? [event.finding] : []));
    expect(findings).toMatchObject([{ code: "STORE_DAMAGED", path, message: /index/ }]);
    await store.close();
    expect(purgedIn(path)).toEqual([]);
  },
);

it("a purge that meets damage in its own session says so, and the next one of another is made", async () => {
  const path = join(testFolder(), "store.db");
  {
    await using store = createSqliteStore({ path, searchFill: "on-demand" });
    for (const name of ["a", "b"])
      await store.append(
        await createSession(store, name),
        Array.from({ length: 1000 }, (_, index) => say(`word ${name} ${index}`)),
      );
  }
  damage(path, "store_records", (page) => page.includes("word a 900"));
  await using store = createSqliteStore({ path, searchFill: "on-demand" });
  await expect(store.remove(refOf("a"), { purge: true })).rejects.toMatchObject({
    code: "STORE_CORRUPT",
    outcome: "unknown",
  });
  expect(await store.load(refOf("a"))).toBeNull();
  await store.remove(refOf("b"), { purge: true });
  await store.close();
  expect(readFileSync(path).includes("word b ")).toBe(false);
});
