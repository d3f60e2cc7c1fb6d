import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { testSize } from "../../../tools/test-size.ts";
import { countFaults } from "./fault-counts.ts";
import { mainRef, textsOf } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const child = bundledWorker(new URL("./flush-child.ts", import.meta.url));
const source = join(import.meta.dirname, "failing-flush.c");
const compiler = ["/usr/bin/cc", "/usr/bin/gcc"].find((path) => existsSync(path));
/** More flushes than these calls make. */
const positions = 60;
const step = testSize({ short: 11, long: 1 });

/** Runs the child; gives its lines. */
function run(root: string, env: Readonly<Record<string, string>> = {}): readonly string[] {
  const { stdout, stderr, status } = spawnSync(process.execPath, [child, root], {
    env: { ...process.env, ...env },
    encoding: "utf8",
    timeout: 60_000,
  });
  expect([status, stderr]).toEqual([0, ""]);
  return stdout.trimEnd().split("\n");
}

describe.skipIf(compiler === undefined || process.platform !== "linux")("a flush that the system refuses", () => {
  it.for([
    ["once", true],
    ["from then on", false],
  ] as const)(
    "is never acknowledged, and what is repeated with its key is there once, by any handle and process: %s",
    { timeout: 300_000 },
    async ([, isOnce], context) => {
      const library = join(newFolder(), "failing-flush.so");
      execFileSync(compiler ?? "", ["-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"]);
      let runs = 0;
      let failures = 0;
      for (let from = 1; from < positions; from += step) {
        const root = newFolder();
        const until = isOnce ? { FLUSH_UNTIL: String(from) } : {};
        const lines = run(root, { LD_PRELOAD: library, FLUSH_BELOW: root, FLUSH_FROM: String(from), ...until });
        const acknowledged = lines.filter((line) => line.endsWith(" acknowledged")).map((line) => line.split(" ")[0]);
        runs++;
        failures += lines.length - acknowledged.length;
        expect([
          from,
          lines.filter((line) => !/ (acknowledged|unknown(, and it is there)?|not-applied)$/.test(line)),
        ]).toEqual([from, []]);
        // Once the disk works again another process repeats all of it.
        expect([from, run(root).filter((line) => !line.endsWith(" acknowledged"))]).toEqual([from, []]);
        await using store = createJsonlStore({ root, sessionsJson: false });
        expect([from, (await textsOf(store)).toSorted()]).toEqual([from, ["a", "b", "c"]]);
        // In whatever order they were applied in the end.
        expect((await store.load(mainRef))?.entry).toMatchObject({ label: "b", note: "entry" });
      }
      expect(failures).toBeGreaterThan(0);
      countFaults(context, { states: runs });
    },
  );
});
