import { spawn } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { StoredRecord } from "@throughline/core";
import { killProcess } from "@throughline/store-conformance";
import { createSqliteStore } from "@throughline/store-sqlite";
import { describe, expect, it } from "vitest";
import { bundledWorker } from "../../../tools/bundle-worker.ts";
import { refOf } from "./append-drafts.ts";
import { createSession, testFolder } from "./test-folder.ts";

const untilKilled = fileURLToPath(new URL("./append-until-killed.ts", import.meta.url));
const appendMany = bundledWorker(new URL("./append-many.ts", import.meta.url));

const condition = "--conditions=@throughline/source";

/** What is in the store, and of each record seq and id as the writers print them. */
async function readBack(
  path: string,
  name: string,
): Promise<{ readonly records: readonly StoredRecord[]; readonly said: ReadonlySet<string> }> {
  await using store = createSqliteStore({ path, create: false });
  const records: StoredRecord[] = [];
  for await (const page of store.read(refOf(name))) records.push(...page.records);
  return { records, said: new Set(records.map(({ seq, id }) => `${seq}:${id}`)) };
}

function contentOf({ record }: StoredRecord): string {
  return (record["message"] as { readonly content: string }).content;
}

/** Here a few rounds of each; `tools/kill-append.ts` and `tools/power-cut.ts` make as many as are asked for. */
const kinds = [
  { what: "200 bytes", args: ["200", "disk"], rounds: 6 },
  { what: "50,000 bytes", args: ["50000", "disk"], rounds: 6 },
  { what: "2,000 bytes", args: ["2000", "disk"], rounds: 5 },
];

describe("kill -9 while appending", () => {
  it.each(kinds)(
    "loses nothing that was acknowledged, in $rounds rounds on one store: records of $what",
    { timeout: 120_000 },
    async ({ args, rounds }) => {
      const path = join(testFolder(), "store.db");
      const acknowledged: string[] = [];
      for (let round = 0; round < rounds; round++) {
        const killed = await killProcess({
          scriptPath: untilKilled,
          args: [path, ...args],
          execArgv: [condition],
          maxDelayMs: 60,
        });
        expect(killed.stderr).toBe("");
        expect(killed.wasKilled).toBe(true);
        acknowledged.push(...killed.acknowledged.flatMap((line) => line.split(" ")));
      }
      const { records, said } = await readBack(path, "killed");
      expect(acknowledged.filter((each) => !said.has(each))).toEqual([]);
      expect(new Set(acknowledged).size).toBe(acknowledged.length);
      expect(records.map(({ seq }) => seq)).toEqual(records.map((_, index) => index + 1));
      // A batch is there whole or not at all.
      expect(records.every((record, index) => contentOf(record).startsWith(index % 2 === 0 ? "first" : "second"))).toBe(
        true,
      );
      // Killed after its first acknowledgement, every round has one at least.
      expect(acknowledged.length).toBeGreaterThanOrEqual(rounds * 2);
    },
  );
});

describe("several processes", () => {
  it("append to one session, four times 200: each record once, in one line", { timeout: 120_000 }, async () => {
    const path = join(testFolder(), "store.db");
    await using store = createSqliteStore({ path });
    await createSession(store, "shared");
    const outputs = await Promise.all(["a", "b", "c", "d"].map((name) => run(appendMany, [path, name, "200"])));
    expect(outputs.map(({ code, stderr }) => ({ code, stderr }))).toEqual(outputs.map(() => ({ code: 0, stderr: "" })));
    const acknowledged = outputs.flatMap(({ stdout }) => stdout.trim().split("\n"));
    const { records, said } = await readBack(path, "shared");
    expect(acknowledged).toHaveLength(800);
    expect(acknowledged.filter((each) => !said.has(each))).toEqual([]);
    expect(records.map(({ seq }) => seq)).toEqual(Array.from({ length: 800 }, (_, index) => index + 1));
    expect(records.map(({ parentId }) => parentId)).toEqual([null, ...records.slice(0, -1).map(({ id }) => id)]);
    for (const name of ["a", "b", "c", "d"]) {
      const own = records.map(contentOf).filter((text) => text.startsWith(name));
      expect(own).toEqual(Array.from({ length: 200 }, (_, index) => `${name}-${index}`));
    }
  });
});

function run(
  scriptPath: string,
  args: readonly string[],
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  const child = spawn(process.execPath, [condition, scriptPath, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, stdout, stderr }));
  });
}
