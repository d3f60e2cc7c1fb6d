import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { testSize } from "../../../tools/test-size.ts";
import { writeTranscripts } from "./generated-transcripts.ts";
import { objects, runHere, temporaryDirectory } from "./harness.ts";

const corpus = process.env["THROUGHLINE_CORPUS"];
const script = fileURLToPath(new URL("independent-usage.mjs", import.meta.url));
/** Holds calls, input, cache read, cache write, output, reasoning, and the cost that programs stated. */
type Sums = Readonly<Record<string, readonly number[]>>;

let directory = temporaryDirectory();
beforeEach(() => (directory = temporaryDirectory()));
afterEach(() => directory.remove());

async function ourSums(folder: string): Promise<Sums> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const { code } = await runHere(directory.path, [
    "import",
    ...files.map(({ parentPath, name }) => join(parentPath, name)),
    "--quiet",
  ]);
  expect(code).toBe(0);
  const { stdout } = await runHere(directory.path, ["usage", "--by", "month,model", "--json"], {
    environment: { TZ: "UTC" },
  });
  const rows = objects(stdout).filter(({ kind }) => kind === "usage");
  return Object.fromEntries(
    rows.map(({ group, calls, input, cacheRead, cacheWrite, output, reasoning, statedUsd }) => {
      const { month, model } = group as Readonly<Record<string, string | null>>;
      return [`${month} ${model}`, [calls, input, cacheRead, cacheWrite, output, reasoning, statedUsd] as number[]];
    }),
  );
}

function seeds(count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

describe.skipIf(corpus === undefined)("usage of generated transcripts", () => {
  async function compare(count: number): Promise<void> {
    const folder = join(directory.path, "transcripts");
    writeTranscripts(String(corpus), folder, seeds(count));
    const independent = execFileSync(process.execPath, [script, folder], { encoding: "utf8" });
    const [ours, theirs] = [rounded(await ourSums(folder)), rounded(JSON.parse(independent) as Sums)];
    expect(Object.keys(theirs).length).toBeGreaterThan(5);
    const names = [...new Set([...Object.keys(ours), ...Object.keys(theirs)])];
    const differing = names.filter((name) => JSON.stringify(ours[name]) !== JSON.stringify(theirs[name]));
    expect(differing.map((name) => [name, ours[name], theirs[name]])).toEqual([]);
  }

  it("equals an independent count of one session of each program", { tags: ["slow"] }, () => compare(12));

  it("equals an independent count", { tags: ["slow"], timeout: 600_000 }, () =>
    compare(testSize({ short: 60, long: 1000 })),
  );
});

/** Sums of cents differ by the order in which they were added. */
function rounded(sums: Sums): Sums {
  return Object.fromEntries(
    Object.entries(sums)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, values]) => [name, values.map((value) => Math.round(value * 1e9) / 1e9)]),
  );
}
