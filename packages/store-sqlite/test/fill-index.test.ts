import { join } from "node:path";
import type { SessionStore } from "@throughline/core";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { say } from "./append-drafts.ts";
import { createSession, testFolder } from "./test-folder.ts";

const records = 6000;

async function filled(path: string): Promise<void> {
  await using store = createSqliteStore({ path, searchFill: "on-demand", defaultDurability: "process" });
  const ref = await createSession(store, "a");
  for (let from = 0; from < records; from += 1000)
    await store.append(
      ref,
      Array.from({ length: 1000 }, (_, index) => say(`word n${from + index}`)),
    );
}

async function leftBy(store: SessionStore, signal?: AbortSignal): Promise<number[]> {
  return Array.fromAsync(store.search?.fill?.(signal === undefined ? {} : { signal }) ?? []);
}

describe("filling the search index", () => {
  it("tells how many records are left", async () => {
    const path = join(testFolder(), "store.db");
    await filled(path);
    await using store = createSqliteStore({ path, searchFill: "on-demand" });
    const left = await leftBy(store);
    expect([left[0], left.at(-1)]).toEqual([records, 0]);
    expect(left.length).toBeGreaterThan(3);
    expect(left.slice(0, -1)).toEqual(left.slice(0, -1).toSorted((a, b) => b - a));
    expect(await store.search?.lag()).toBe(0);
    expect(await leftBy(store)).toEqual([0, 0]);
  });

  it("keeps what it has added when it is ended, and goes on there", async () => {
    const path = join(testFolder(), "store.db");
    await filled(path);
    await using store = createSqliteStore({ path, searchFill: "on-demand" });
    let told = 0;
    for await (const left of store.search?.fill?.() ?? []) if (left < records && ++told === 1) break;
    const afterLeaving = (await store.search?.lag()) ?? 0;
    expect(afterLeaving).toBeGreaterThan(0);
    expect(afterLeaving).toBeLessThan(records);
    const interrupt = new AbortController();
    const aborted = (async () => {
      for await (const left of store.search?.fill?.({ signal: interrupt.signal }) ?? [])
        if (left < afterLeaving) interrupt.abort();
    })();
    await expect(aborted).rejects.toMatchObject({ code: "ABORTED" });
    expect(await store.search?.lag()).toBeLessThan(afterLeaving);
    expect((await leftBy(store)).at(-1)).toBe(0);
  });

  it("ends beside a writer that does not, and beside another that fills", async () => {
    const path = join(testFolder(), "store.db");
    await filled(path);
    await using one = createSqliteStore({ path, searchFill: "on-demand" });
    await using two = createSqliteStore({ path, searchFill: "on-demand", defaultDurability: "process" });
    let isOver = false;
    const writing = (async () => {
      const ref = await createSession(two, "b");
      while (!isOver) await two.append(ref, [say("late")]);
    })();
    await Promise.all([leftBy(one), leftBy(two)]);
    isOver = true;
    await writing;
    expect((await leftBy(one)).at(-1)).toBe(0);
    const hits = await Array.fromAsync(one.search?.search({ text: "n77" }) ?? []);
    expect(hits.map(({ seq }) => seq)).toEqual([78]);
  });
});
