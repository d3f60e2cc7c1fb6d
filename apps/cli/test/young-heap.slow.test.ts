import { spawnSync } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { expect, it } from "vitest";
import { sourceCondition } from "./harness.ts";

/** Makes objects that live through several collections, which lets V8 grow its space for young objects. */
const script = `
  import { getHeapSpaceStatistics } from "node:v8";
  import { setTimeout as wait } from "node:timers/promises";
  if (process.argv[2] !== "none") (await import(process.argv[2])).limitYoungHeap();
  let live = [];
  for (let round = 0; round < 60; round++) {
    for (let at = 0; at < 20_000; at++) live.push({ round, at, text: "words " + at });
    if (live.length > 150_000) live = live.slice(100_000);
    await wait(0);
  }
  console.log(getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").space_size);`;

function youngBytes(module: string): number {
  const { stdout } = spawnSync(
    process.execPath,
    [sourceCondition, "--input-type=module", "-e", script, "run", module],
    {
      encoding: "utf8",
    },
  );
  return Number(stdout);
}

it("keeps the space for young objects of an import at 17 MB, which V8 grows to more", { timeout: 60_000 }, () => {
  const module = pathToFileURL(join(import.meta.dirname, "../src/sync/limit-young-heap.ts")).href;
  expect(youngBytes("none")).toBeGreaterThan(60_000_000);
  const limited = youngBytes(module);
  expect(limited).toBeGreaterThan(4_000_000);
  expect(limited).toBeLessThan(35_000_000);
});
