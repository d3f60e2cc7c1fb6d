import type fs from "node:fs";
import { appendFileSync, writeFileSync } from "node:fs";
import type util from "node:util";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { systemClock } from "@throughline/core/internal";
import { testSize } from "../../../tools/test-size.ts";
import type * as syncedHome from "./synced-home.ts";

const counted = vi.hoisted(() => ({ folder: "", opens: 0, bytes: 0, handles: new Set<number>() }));

/** Passes every call on, and counts the files that are opened below the folder, and the bytes that are read from them. */
vi.mock("node:fs", async (original) => {
  const real = await original<typeof fs>();
  const { promisify } = await vi.importActual<typeof util>("node:util");
  const count = (path: unknown): void => {
    if (counted.folder !== "" && String(path).startsWith(counted.folder)) counted.opens += 1;
  };
  const open = ((path: string, flags: number, done: (error: Error | null, handle: number) => void) => {
    count(path);
    const isCounted = counted.folder !== "" && path.startsWith(counted.folder);
    real.open(path, flags, (error, handle) => {
      if (isCounted && error === null) counted.handles.add(handle);
      done(error, handle);
    });
  }) as typeof real.open;
  const read = ((...given: Parameters<typeof real.read>) => real.read(...given)) as typeof real.read;
  // Reads through promises give the bytes and the buffer, as those of the original do.
  Object.defineProperty(read, promisify.custom, {
    value: async (handle: number, buffer: Uint8Array, offset: number, length: number, at: number) => {
      if (counted.handles.has(handle)) counted.bytes += length;
      return promisify(real.read)(handle, buffer, offset, length, at);
    },
  });
  const close = ((handle: number, done: (error: Error | null) => void) => {
    counted.handles.delete(handle);
    real.close(handle, done);
  }) as typeof real.close;
  const openSync: typeof real.openSync = (...given) => {
    count(given[0]);
    return real.openSync(...given);
  };
  return { ...real, open, openSync, read, close, default: { ...real, open, openSync, read, close } };
});

async function opensBelow(folder: string, work: () => Promise<unknown>): Promise<number> {
  Object.assign(counted, { folder, opens: 0 });
  await work();
  counted.folder = "";
  return counted.opens;
}

/** The sources are loaded again, because another file of this worker may have loaded them with the module of Node. */
let { Home, idOf, line } = {} as typeof syncedHome;
beforeAll(async () => {
  vi.resetModules();
  ({ Home, idOf, line } = await import("./synced-home.ts"));
});
afterAll(() => vi.resetModules());

describe("the cost of a sync", () => {
  it.each(testSize({ short: [10, 300], long: [10, 1000, 10_000] }))(
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

describe("the cost of a line, once a sync goes on", () => {
  it.each(testSize({ short: [1], long: [1, 10, 100] }))(
    "of a file of %i MB is one open file and a few kilobytes",
    { timeout: 600_000 },
    async (megabytes) => {
      using home = new Home();
      const path = home.write(1);
      const text = "words of a long session ".repeat(400);
      let at = 1;
      for (let written = 0; written < megabytes; written++)
        appendFileSync(path, Array.from({ length: 105 }, () => line(idOf(1), ++at, text)).join(""));
      const stop = new AbortController();
      await using sync = home.sync({ clock: systemClock, options: { durability: "process" } });
      const passes = sync.passes(stop.signal);
      const next = async (): Promise<readonly (string | number)[]> => {
        const turn = await passes.next();
        if (turn.done === true) throw new Error("the sync has ended");
        const sources = await Array.fromAsync(turn.value);
        return sources.flatMap(({ state, records }) => [state, records]);
      };
      expect(await next()).toEqual(["imported", at]);
      for (let round = 0; round < 5; round++) {
        Object.assign(counted, { folder: home.places, opens: 0, bytes: 0 });
        appendFileSync(path, line(idOf(1), ++at, `zebra ${round}`));
        expect(await next()).toEqual(["grown", 1]);
        counted.folder = "";
        expect([counted.opens, counted.bytes]).toEqual([
          1,
          expect.toSatisfy((bytes: number) => bytes > 0 && bytes < 50_000),
        ]);
      }
      // A line without its end, and a rewrite of the bytes before, are read from the start.
      const whole = line(idOf(1), ++at, "torn");
      appendFileSync(path, whole.slice(0, 20));
      expect(await next()).toEqual(["grown", 1]);
      appendFileSync(path, whole.slice(20));
      expect(await next()).toEqual(["grown", 1]);
      if (megabytes > 1) return;
      writeFileSync(path, `${line(idOf(1), 1, "other")}${"\n".repeat(megabytes * 2 ** 21)}`);
      expect(await next()).toEqual(["refused", 0]);
    },
  );
});

const opensOfOneFile = 5;
