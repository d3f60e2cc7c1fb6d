import process from "node:process";
import { describe, expect, it } from "vitest";
import { createLoopDisk, powerCuts } from "../power-cut.ts";

describe.skipIf(process.platform !== "linux" || process.getuid?.() !== 0)("a power cut (as root only)", () => {
  it("takes nothing from the SQLite store that was acknowledged before it", { timeout: 240_000 }, async (context) => {
    const disk = await createLoopDisk();
    if (disk === null) return context.skip("this system does not let root mount a file system in a file");
    try {
      const figures = await powerCuts(disk, { rounds: 5, writerArgs: ["2000", "disk"] });
      expect(figures.acknowledged).toBeGreaterThan(0);
      expect(figures.found).toBe(figures.acknowledged);
      expect(figures.findings).toEqual([]);
    } finally {
      disk.dispose();
    }
  });
});
