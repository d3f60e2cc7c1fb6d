import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore } from "../src/open-store.ts";
import { objects, runHere, temporaryDirectory } from "./harness.ts";

const lines = 6000;
let directory = temporaryDirectory();
beforeEach(() => {
  directory = temporaryDirectory();
  const text = Array.from({ length: lines }, (_, at) =>
    JSON.stringify({ type: "user", content: `harbour number ${at}`, ts: at + 1 }),
  );
  writeFileSync(join(directory.path, "talk.jsonl"), `${text.join("\n")}\n`);
});
afterEach(() => directory.remove());

async function lag(name = "sessions.db"): Promise<number | undefined> {
  await using store = await openStore(`sqlite:${join(directory.path, name)}`, {
    workingDirectory: directory.path,
    create: false,
  });
  return await store.search?.lag();
}

describe("the search index after an import", () => {
  it("has every record, and a terminal is told how many are left", { tags: ["slow"] }, async () => {
    const { code, stderr } = await runHere(directory.path, ["import", "talk.jsonl", "--key", "talk"], {
      isTerminal: true,
    });
    expect(code).toBe(0);
    expect(stderr).toMatch(/adding \d+ records to the search index/);
    expect(await lag()).toBe(0);
    const again = await runHere(directory.path, ["import", "talk.jsonl", "--key", "talk"], { isTerminal: true });
    expect(again.stderr).not.toContain("search index");
  });

  it("is filled in silence elsewhere, also by a copy, and not by a dry run", { tags: ["slow"] }, async () => {
    const dry = await runHere(directory.path, ["import", "talk.jsonl", "--key", "talk", "--dry-run"]);
    expect(dry.code).toBe(0);
    const { stderr } = await runHere(directory.path, ["import", "talk.jsonl", "--key", "talk", "--json"]);
    expect(stderr).not.toContain("index");
    await runHere(directory.path, ["copy", "talk", "--to-store", `sqlite:${join(directory.path, "copy.db")}`]);
    expect(await lag("copy.db")).toBe(0);
  });

  it(
    "lacks what was not added before an interrupt, which says so and loses nothing of the import",
    { tags: ["slow"] },
    async () => {
      const abort = new AbortController();
      // The results are printed when everything is imported; what follows is the index.
      const onStdout = (chunk: Buffer): void => {
        if (chunk.toString().includes('"totals"')) setTimeout(() => abort.abort(), 5);
      };
      const args = ["import", "talk.jsonl", "--key", "talk", "--json"];
      const { code, stdout, stderr } = await runHere(directory.path, args, { signal: abort.signal, onStdout });
      expect(code).toBe(130);
      expect(objects(stdout)[0]).toMatchObject({ kind: "import", totals: { imported: 1, records: lines } });
      expect(objects(stderr).at(-1)).toMatchObject({ kind: "finding", code: "SEARCH_INDEX_BEHIND" });
      expect(await lag()).toBeGreaterThan(0);
      const found = await runHere(directory.path, ["search", '"harbour number 5999"', "--json"]);
      expect(objects(found.stdout).at(-1)).toMatchObject({ kind: "end", count: 1 });
    },
  );
});
