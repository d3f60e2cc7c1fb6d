import { spawn } from "node:child_process";
import { join } from "node:path";
import type { StoredRecord } from "@throughline/core";
import { createJsonlStore } from "@throughline/store-jsonl";
import { describe, expect, it } from "vitest";
import { countFaults } from "./fault-counts.ts";
import { mainRef, storeWithSession, textsOf } from "./session-fixture.ts";
import { temporaryFolders } from "./temporary-folder.ts";

const newFolder = temporaryFolders();
const child = join(import.meta.dirname, "append-child.ts");

interface Run {
  readonly acknowledged: readonly string[];
  readonly code: number | null;
  readonly errors: string;
}

/** Runs the child; kills it, hard, some time after its first acknowledgement when asked to. */
function append(root: string, name: string, count: number, bytes: number, killAfterMs?: number): Promise<Run> {
  return new Promise((resolve) => {
    const running = spawn(process.execPath, [child, root, name, String(count), String(bytes)], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    let errors = "";
    let timer: NodeJS.Timeout | undefined;
    running.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      if (killAfterMs !== undefined) timer ??= setTimeout(() => running.kill("SIGKILL"), killAfterMs);
    });
    running.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
    running.on("close", (code) => {
      clearTimeout(timer);
      resolve({ acknowledged: output.split("\n").slice(0, -1), code, errors });
    });
  });
}

describe("several processes", () => {
  it(
    "append to one session without a gap and without a loss [LCK-14, LCK-16, TST-01]",
    { timeout: 60_000 },
    async () => {
      const root = newFolder();
      const store = await storeWithSession(root);
      const names = ["a", "b", "c", "d"];
      const runs = await Promise.all(names.map((name) => append(root, name, 200, 100)));
      expect(runs.map(({ errors }) => errors)).toEqual(["", "", "", ""]);
      const records: StoredRecord[] = [];
      for await (const page of store.read(mainRef)) records.push(...page.records);
      expect(records.map(({ seq }) => seq)).toEqual(Array.from({ length: 800 }, (_, index) => index + 1));
      expect(records.every(({ parentId }, index) => parentId === (records[index - 1]?.id ?? null))).toBe(true);
      const texts = await textsOf(store);
      for (const [place, name] of names.entries()) {
        const own = texts.flatMap((text, index) =>
          text.startsWith(`${name}-`) ? [`${text.split(" ")[0]?.slice(2)} ${index + 1}`] : [],
        );
        expect(own).toEqual(runs[place]?.acknowledged);
      }
      await store.close();
    },
  );

  it.for([
    ["small records", 200],
    ["records of 50 KB", 50_000],
  ] as const)(
    "killed while appending %s lose nothing they acknowledged [REC-26]",
    { timeout: 120_000 },
    async ([_name, bytes], context) => {
      const root = newFolder();
      await (await storeWithSession(root)).close();
      const acknowledged: string[] = [];
      for (let round = 0; round < 15; round++) {
        const run = await append(root, `r${round}`, 100_000, bytes, 5 + round * 6);
        expect(run.errors).toBe("");
        acknowledged.push(...run.acknowledged.map((line) => `r${round}-${line}`));
      }
      const store = createJsonlStore({ root });
      const seen = (await textsOf(store)).map((text, index) => `${text.split(" ")[0]} ${index + 1}`);
      await store.close();
      expect(new Set(seen).size).toBe(seen.length);
      const wanted = new Set(acknowledged);
      expect(seen.filter((line) => wanted.has(line))).toEqual(acknowledged);
      // A record that was written and not acknowledged may be there: one at most for each process.
      expect(seen.length - acknowledged.length).toBeLessThanOrEqual(15);
      expect(acknowledged.length).toBeGreaterThan(100);
      countFaults(context, { kills: 15 });
    },
  );
});
