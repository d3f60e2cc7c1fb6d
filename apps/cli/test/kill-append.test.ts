import { afterAll, describe, expect, it } from "vitest";
import { isFaultless, killAppend } from "../../../tools/kill-append.ts";
import { temporaryDirectory } from "./harness.ts";

const directories = [temporaryDirectory(), temporaryDirectory()];
afterAll(() => directories.forEach((directory) => directory.remove()));

describe("append under kill -9", () => {
  it.concurrent.each([
    [200, directories[0]],
    [50_000, directories[1]],
  ])(
    "keeps every acknowledged record of %i bytes, in order, once",
    { timeout: 120_000 },
    async (sizeBytes, directory) => {
      const seed = Math.floor(Math.random() * 1_000_000);
      const figures = await killAppend({ rounds: 20, sizeBytes, seed, directory: directory?.path ?? "" });
      expect(isFaultless(figures), JSON.stringify(figures)).toBe(true);
      expect(figures).toMatchObject({ rounds: 20, found: figures.acknowledged, duplicates: 0, outOfOrder: 0 });
      expect(figures.acknowledged).toBeGreaterThanOrEqual(20);
    },
  );
});
