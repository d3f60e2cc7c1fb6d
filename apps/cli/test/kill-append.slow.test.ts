import { afterAll, describe, expect, it } from "vitest";
import { isFaultless, killAppend } from "../../../tools/kill-append.ts";
import { testSize } from "../../../tools/test-size.ts";
import { binPath, temporaryDirectory } from "./harness.ts";

const directories = [temporaryDirectory(), temporaryDirectory(), temporaryDirectory(), temporaryDirectory()];
afterAll(() => directories.forEach((directory) => directory.remove()));

const rounds = testSize({ short: 2, long: 40 });

describe("append under kill -9", () => {
  it.concurrent.each([
    [200, "sqlite", directories[0]],
    [50_000, "sqlite", directories[1]],
    [200, "jsonl", directories[2]],
    [50_000, "jsonl", directories[3]],
  ] as const)(
    "keeps every acknowledged record of %i bytes, in order, once, in a %s store",
    async (sizeBytes, scheme, directory) => {
      const seed = Math.floor(Math.random() * 1_000_000);
      const figures = await killAppend({
        rounds,
        sizeBytes,
        seed,
        scheme,
        directory: directory?.path ?? "",
        program: binPath,
      });
      expect(isFaultless(figures), JSON.stringify(figures)).toBe(true);
      expect(figures).toMatchObject({ rounds, found: figures.acknowledged, duplicates: 0, outOfOrder: 0 });
      expect(figures.acknowledged).toBeGreaterThanOrEqual(rounds);
    },
  );
});
