import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Finding, SessionStore } from "@throughline/core";
import { flipByte } from "@throughline/store-conformance";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { checkPages } from "../src/check-pages.ts";
import { defaultDriver } from "../src/connection.ts";
import { say } from "./append-drafts.ts";
import { createSession, testFolder } from "./test-folder.ts";

async function findingsOf(store: SessionStore, signal?: AbortSignal): Promise<Finding[]> {
  const found: Finding[] = [];
  const asked = { full: true, ...(signal === undefined ? {} : { signal }) };
  for await (const each of store.maintenance?.verify(asked) ?? []) found.push(each);
  return found;
}

/** A store of twelve megabytes. */
async function large(path: string): Promise<void> {
  await using store = createSqliteStore({ path, searchFill: "on-demand" });
  const ref = await createSession(store, "a");
  const text = "x".repeat(250_000);
  for (let each = 0; each < 6; each++)
    await store.append(
      ref,
      Array.from({ length: 8 }, () => say(text)),
      { durability: "process" },
    );
}

/** How often the event loop went round meanwhile. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const turn = (): void => {
    turns++;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await work();
  isOver = true;
  return turns;
}

describe("checking the pages of a file", () => {
  it("is done in a thread where it is large, so that the event loop goes on", async () => {
    const [path, smallPath] = [join(testFolder(), "store.db"), join(testFolder(), "store.db")];
    await large(path);
    {
      await using store = createSqliteStore({ path: smallPath, searchFill: "on-demand" });
      await createSession(store, "a");
    }
    const order = { mostAnswers: 20, references: true };
    let wrong: readonly string[] = ["not asked"];
    const turns = await turnsDuring(async () => {
      wrong = await checkPages({ ...order, path }, defaultDriver);
    });
    expect(wrong).toEqual([]);
    expect(turns).toBeGreaterThan(10);
    expect(await turnsDuring(() => checkPages({ ...order, path: smallPath }, defaultDriver))).toBe(0);
  });

  it("finds damage there, ends early for whoever asks, and says what is no database", { tags: ["slow"] }, async () => {
    const path = join(testFolder(), "store.db");
    await large(path);
    await using store = createSqliteStore({ path, recover: false, searchFill: "on-demand" });
    expect(await findingsOf(store)).toEqual([]);
    const gone = new AbortController();
    const check = findingsOf(store, gone.signal);
    setTimeout(() => gone.abort(), 5);
    await expect(check).rejects.toMatchObject({ code: "ABORTED" });
    await store.close();
    // The first page of a table: its header says what kind of page it is.
    await flipByte(path, 3 * 8192);
    await using damaged = createSqliteStore({ path, recover: false, searchFill: "on-demand" });
    const outcome = await findingsOf(damaged).catch((error: unknown) => error);
    expect(JSON.stringify(outcome)).toMatch(/STORE_DAMAGED|STORE_CORRUPT/);
    writeFileSync(path, Buffer.alloc(9 * 1024 * 1024, "no database "));
    const order = { path, mostAnswers: 20, references: true };
    await expect(checkPages(order, defaultDriver)).rejects.toMatchObject({ code: "STORE_CORRUPT" });
  });
});
