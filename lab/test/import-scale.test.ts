import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { testSize } from "../../tools/test-size.ts";
import { problemsOf, runScale, writeScaleDirectory } from "../import-scale.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "import-scale-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

function hashOf(root: string): string {
  const hash = createHash("sha256");
  const names = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const path of names.map(({ parentPath, name }) => join(parentPath, name)).toSorted()) {
    hash.update(path.slice(root.length)).update(readFileSync(path));
  }
  return hash.digest("hex");
}

describe("an import at scale", () => {
  // `node --conditions=@throughline/source lab/import-scale.ts` does it with 100,000 sessions and 5,000,000 records.
  it(
    "is killed twice, goes on where it was, loses nothing, and does nothing the second time",
    { tags: ["slow"], timeout: 120_000 },
    async () => {
      const size = testSize({ short: { sessions: 200, records: 4500 }, long: { sessions: 400, records: 9000 } });
      const report = await runScale(size, folder, () => undefined);
      expect(problemsOf(report, 300)).toEqual([]);
      expect(report.stored).toMatchObject(size);
      expect(report.runs.map(({ wasKilled }) => wasKilled)).toEqual([true, true, false]);
      expect(report.again).toMatchObject({ imported: 0, grown: 0, unchanged: size.sessions, records: 0 });
    },
  );

  it("is of a directory that is the same every time", async () => {
    const plan = { sessions: 30, records: 500 };
    const hashes = [];
    for (const name of ["one", "other"]) {
      await writeScaleDirectory(join(folder, name), plan);
      hashes.push(hashOf(join(folder, name)));
    }
    expect(hashes[0]).toBe(hashes[1]);
  });
});
