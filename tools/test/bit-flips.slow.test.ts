import { describe, expect, it } from "vitest";
import { bitFlips } from "../bit-flips.ts";
import { testSize } from "../test-size.ts";

describe("a PostgreSQL store with one changed bit in a page", () => {
  it(
    "gives what was written or a typed error to every read, copy, search, export and backup",
    { timeout: 3_600_000 },
    async (context) => {
      const wrong: string[] = [];
      const flips = testSize({ short: 6, long: 500 });
      const onWrong = (what: string): number => wrong.push(what);
      const figures = await bitFlips({ store: "postgres", flips, seed: 5, onWrong }).catch((error: unknown) => {
        const { message } = error as Error;
        if (message.startsWith("needs PostgreSQL 18")) return context.skip(message);
        throw error;
      });
      expect(wrong).toEqual([]);
      const all = [...figures.values()];
      expect(all.reduce((sum, each) => sum + each.flips, 0)).toBe(flips);
      expect(new Set(all.flatMap(({ codes }) => [...codes.keys()]))).toEqual(new Set(["STORE_CORRUPT"]));
    },
  );
});

describe("a store of files with one changed bit", () => {
  it.each(["sqlite", "jsonl"] as const)(
    "gives what was written or a typed error to every read, copy, export and backup: %s",
    { timeout: 3_600_000 },
    async (store) => {
      const wrong: string[] = [];
      const flips = testSize({ short: 12, long: 2000 });
      const figures = await bitFlips({ store, flips, seed: 5, onWrong: (what) => wrong.push(what) });
      expect(wrong).toEqual([]);
      const all = [...figures.values()];
      expect(all.reduce((sum, each) => sum + each.flips, 0)).toBe(flips);
      expect(all.reduce((sum, each) => sum + each.right + each.errors, 0)).toBeGreaterThan(flips * 50);
    },
  );
});
