import type fs from "node:fs";
import { appendFileSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import { Home, idOf, line } from "./synced-home.ts";

const counted = vi.hoisted(() => ({ folder: "", opens: 0 }));

/** Passes every call on, and counts the files that are opened below the folder. */
vi.mock("node:fs", async (original) => {
  const real = await original<typeof fs>();
  const count = (path: unknown): void => {
    if (counted.folder !== "" && String(path).startsWith(counted.folder)) counted.opens += 1;
  };
  const open = ((...given: Parameters<typeof real.open>) => {
    count(given[0]);
    real.open(...given);
  }) as typeof real.open;
  const openSync: typeof real.openSync = (...given) => {
    count(given[0]);
    return real.openSync(...given);
  };
  return { ...real, open, openSync, default: { ...real, open, openSync } };
});

async function opensBelow(folder: string, work: () => Promise<unknown>): Promise<number> {
  Object.assign(counted, { folder, opens: 0 });
  await work();
  counted.folder = "";
  return counted.opens;
}

describe("the cost of a sync", () => {
  it.each([10, 1000, 10_000])(
    "of %i files is no open file with nothing new, and with one line the opens of one file",
    { timeout: 600_000 },
    async (count) => {
      using home = new Home();
      for (let at = 0; at < count; at++) home.write(at);
      const options = { options: { durability: "process" } } as const;
      expect(await opensBelow(home.places, () => home.pass(options))).toBeGreaterThan(count);
      expect(await opensBelow(home.places, () => home.pass(options))).toBe(0);
      const at = count - 1;
      appendFileSync(home.path(at), line(idOf(at), 2, "more"));
      // The same number for any count: a file is opened to detect its format, to find its session, and to be read.
      expect(await opensBelow(home.places, () => home.pass(options))).toBe(opensOfOneFile);
    },
  );
});

const opensOfOneFile = 5;
