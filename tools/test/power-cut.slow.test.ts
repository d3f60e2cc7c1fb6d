import process from "node:process";
import { describe, expect, it } from "vitest";
import { powerCutTargets } from "../power-cut-targets.ts";
import { createLoopDisk, powerCuts } from "../power-cut.ts";
import { testSize } from "../test-size.ts";

describe.skipIf(process.platform !== "linux" || process.getuid?.() !== 0)("a power cut (as root only)", () => {
  it.for([
    ["SQLite", powerCutTargets.sqlite],
    ["JSONL", powerCutTargets.jsonl],
  ] as const)(
    "takes nothing from the %s store that was acknowledged before it",
    { timeout: 240_000 },
    async ([_name, target], context) => {
      const disk = await createLoopDisk();
      if (disk === null) return context.skip("this system does not let root mount a file system in a file");
      try {
        const figures = await powerCuts(disk, {
          rounds: testSize({ short: 2, long: 20 }),
          writerArgs: ["2000", "disk"],
          target,
        });
        expect(figures.acknowledged).toBeGreaterThan(0);
        expect(figures.found).toBe(figures.acknowledged);
        expect(figures.findings).toEqual([]);
      } finally {
        disk.dispose();
      }
    },
  );
});
