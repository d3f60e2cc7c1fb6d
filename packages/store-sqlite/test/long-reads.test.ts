import { join } from "node:path";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { say } from "./append-drafts.ts";
import { createSession, testFolder } from "./test-folder.ts";

describe("a read of a long session", () => {
  it.each(["ascending", "descending"] as const)("lets other work run after each page, %s", async (order) => {
    await using store = createSqliteStore({
      path: join(testFolder(), "store.db"),
      limits: { pageRecords: 10 },
      searchFill: "on-demand",
    });
    const ref = await createSession(store, "a");
    await store.append(
      ref,
      Array.from({ length: 100 }, (_, index) => say(`n${index}`)),
    );
    let turns = 0;
    let isOver = false;
    const turn = (): void => {
      turns += 1;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    const turnsOfPages: number[] = [];
    for await (const { records } of store.read(ref, { order })) {
      expect(records).toHaveLength(10);
      turnsOfPages.push(turns);
    }
    isOver = true;
    expect(turnsOfPages).toHaveLength(10);
    expect(turnsOfPages.slice(1).every((each, index) => each > (turnsOfPages[index] ?? 0))).toBe(true);
  });
});
